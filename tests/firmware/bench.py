"""A robot's chip on the bench: what its firmware hears, and what can be seen of it from outside."""

import json
import subprocess
from functools import cache
from pathlib import Path

from avrswarm import Chip, load_program
from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import Message, frame_from_pulses, pulse_cycles

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"

MS = 8000
TICK = 262_144
IDLE_PASS = 1_620_000  # the main loop notices a command after one pass of the idle loop at most
BOOTED = 5000  # the chip listens from here on, whatever it is
SET_COLOR_CYCLES = 40
ACO_HIGH_CYCLES = 200
ADC_VOLTS = 3.0 / 1024
HOME = 0x7F00  # nothing is there

VECTOR_TIMER1 = 4 * 11
VECTOR_TICK = 4 * 14
VECTOR_COMPARATOR = 4 * 23

SLEEPING, IDLE, BATTERY, SETUP, RUNNING, CHARGING, MOVING = range(7)

CALIBRATED = EepromMap(uid=1)

OFF, WHITE = (0, 0, 0), (3, 3, 3)
RED, GREEN, BLUE, YELLOW = (3, 0, 0), (0, 3, 0), (0, 0, 3), (3, 3, 0)


@cache
def program(name):
    return load_program(FIRMWARE / name / f"{name}.elf")


def compiled(folder, source, *flags, suffix=".c"):
    """Compile a program with the library as programs are compiled here, and load it."""
    path, image = folder / f"program{suffix}", folder / "program.elf"
    path.write_text(source)
    usual = json.loads((FIRMWARE / "manifest.json").read_text())["compile_flags"]
    if suffix != ".c":
        usual.remove("-std=gnu99")
    library = sorted(FIRMWARE.glob("kilolib/*.[cS]"))
    done = subprocess.run(
        ["avr-gcc", *usual, *flags, path, *library, "-Wl,--gc-sections", "-o", image],
        cwd=FIRMWARE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return load_program(image)


class Robot:
    """One chip, calibrated and with a full battery unless told otherwise."""

    def __init__(self, firmware, eeprom=None, **options):
        self.program = program(firmware) if isinstance(firmware, str) else firmware
        eeprom = CALIBRATED if eeprom is None else eeprom
        content = eeprom.pack() if isinstance(eeprom, EepromMap) else eeprom
        self.chip = Chip(self.program, eeprom=content, **options)
        self.chip.watch_pins("PB0", "PB4", "PB5")
        self.chip.set_pin("PD0", 1)
        self.set_counts(battery=700, light=100, high_gain=800, low_gain=175)

    def set_counts(self, **counts):
        """Voltages that read as these ADC counts."""
        channels = {"high_gain": 0, "low_gain": 1, "battery": 6, "light": 7, "temperature": 8}
        for name, count in counts.items():
            self.chip.set_adc(f"ADC{channels[name]}", (count + 0.5) * ADC_VOLTS)

    def run(self, cycles):
        self.chip.run(cycles)
        return self

    @property
    def cycle(self):
        return self.chip.cycle

    def value(self, name, size=1):
        """Unsigned variable of the firmware."""
        start = self.program.symbols.find(name).address
        return int.from_bytes(bytes(self.chip.data[start : start + size]), "little")

    def bytes(self, name, size):
        start = self.program.symbols.find(name).address
        return bytes(self.chip.data[start : start + size])

    @property
    def state(self):
        return self.value("kilo_state")

    @property
    def led(self):
        """Red, green and blue, 0 to 3: LED segments are switched by DDR bits."""
        c, d = self.chip.read("DDRC"), self.chip.read("DDRD")
        two = lambda port, low, high: (port >> low & 1) + 2 * (port >> high & 1)  # noqa: E731
        return two(d, 5, 4), two(c, 3, 2), two(c, 5, 4)

    @property
    def motors(self):
        """Duty of left and right, None while the pin is no output."""
        left = self.chip.read("OCR2A") if self.chip.read("DDRB") & 8 else None
        right = self.chip.read("OCR2B") if self.chip.read("DDRD") & 8 else None
        return left, right

    def light(self, cycles, high=ACO_HIGH_CYCLES):
        """Light pulses from outside, as the comparator sees them."""
        for cycle in cycles:
            self.chip.set_comparator(1, at=cycle)
            self.chip.set_comparator(0, at=cycle + high)

    def hear(self, message, after=1000, ratio=1.0):
        """Let a message arrive; `ratio` is own clock over the sender's. Returns when it ends."""
        frame = message.pack() if isinstance(message, Message) else message
        start = max(self.cycle + after, BOOTED)
        cycles = [start + round(cycle * ratio) for cycle in pulse_cycles(frame)]
        self.light(cycles)
        return cycles[-1]

    def obey(self, type, data=b"", then=IDLE_PASS):
        """Hear a command and give the main loop time for it."""
        end = self.hear(Message.make(type, data))
        self.run(end - self.cycle + then)
        return self

    def edges(self, pin, level=1):
        """Cycles at which a pin went to `level`."""
        port, bit = "BCD".index(pin[1]), int(pin[2])
        found, before = [], 0
        for cycle, where, levels in self.chip.pin_log:
            if where == port:
                now = levels >> bit & 1
                if now != before and now == level:
                    found.append(cycle)
                before = now
        return found

    def frames(self, pin="PB0"):
        """(cycle of the first pulse, bytes) of every frame sent; bytes None if it was cut short."""
        return split_frames(self.edges(pin))

    def wait_for_led(self, color, limit=20_000_000):
        """Run until the LED has this colour; returns the cycle, good to 60."""
        end = self.cycle + limit
        while self.led != color:
            self.chip.run_until(symbol="set_color", max_cycles=max(1, end - self.cycle))
            assert self.cycle < end, f"LED never became {color}, it is {self.led}"
            self.run(SET_COLOR_CYCLES)
        return self.cycle

    def enter(self, function, *arguments, interrupts=False):
        """Stand at the first instruction of a function that will return to ``HOME``."""
        chip = self.chip
        chip.write("SREG", 0x80 if interrupts else 0)
        for i, argument in enumerate(arguments):
            chip.poke(24 - 2 * i, argument & 0xFF)
            chip.poke(25 - 2 * i, argument >> 8)
        chip.poke(1, 0)
        sp = chip.sp
        chip.poke(sp, HOME // 2 & 0xFF)
        chip.poke(sp - 1, HOME // 2 >> 8)
        chip.write("SPL", sp - 2 & 0xFF)
        chip.write("SPH", sp - 2 >> 8)
        chip.set_pc(self.program.symbols.resolve(function))

    def leave(self, byte=False):
        """Run to the end of the function; gives its result."""
        chip = self.chip
        assert chip.run_until(pc=HOME, max_cycles=3_000_000) == "breakpoint"
        return int(chip.registers[24]) + (0 if byte else 256 * int(chip.registers[25]))

    def call(self, function, *arguments, byte=False, interrupts=False):
        """Call a function; gives its result and how many cycles it took."""
        self.enter(function, *arguments, interrupts=interrupts)
        start = self.cycle
        return self.leave(byte), self.cycle - start

    def interrupts(self, vector, until):
        """Cost of each interrupt through `vector` before cycle `until`, from response to RETI."""
        costs = []
        while self.chip.run_until(pc=vector, max_cycles=until - self.cycle) == "breakpoint":
            start, sp = self.cycle, self.chip.sp
            while self.chip.sp <= sp:
                self.chip.step()
            costs.append(self.cycle - start + 4)
            if self.cycle >= until:
                break
        return costs


def split_frames(rises):
    """Frames in a list of rising edges: a new one begins after a long silence."""
    frames, start = [], 0
    for i in range(1, len(rises) + 1):
        if i == len(rises) or _is_first_pulse(rises, i, start):
            frames.append((rises[start], frame_from_pulses(rises[start:i])))
            start = i
    return frames


def _is_first_pulse(rises, i, start):
    return rises[i] - rises[i - 1] > 2800 or rises[i] - rises[start] > 35_000
