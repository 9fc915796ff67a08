"""``Chip``: one ATmega328P on a bench, for tests, notebooks and the command line.

The bench can read and write registers by name, drive pins, voltages and the comparator now or at a
later cycle, step, and save or restore everything.

>>> from avrswarm import Chip
>>> from avrswarm.program import Program
>>> chip = Chip(Program.from_words([0xE50A, 0xCFFF]))  # ldi r16, 90 ; rjmp .-2
>>> chip.run(cycles=10)
<StopReason.CYCLES: 'cycles'>
>>> chip.data[16], chip.cycle
(90, 11)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.cpu import Stop
from avrswarm.chip.faults import EXPLANATIONS, Fault
from avrswarm.chip.idle import SCRATCH_SIZE
from avrswarm.chip.kernels import Bench, bench
from avrswarm.chip.native import NO_BLOCKS
from avrswarm.chip.peripherals.adc import TEMPERATURE_CHANNEL
from avrswarm.chip.peripherals.analog_comparator import ACO_SYNC_CYCLES
from avrswarm.chip.profile import FULL, Ledger, observe
from avrswarm.chip.registers import REGISTERS, SPH, SPL, SREG, WORD_REGISTERS
from avrswarm.chip.reset import EXTRF
from avrswarm.chip.state import (
    DATA_SIZE,
    EEPROM_SIZE,
    HELD_IN_RESET,
    SRAM_START,
    TIME_UNITS_PER_SECOND,
    Chips,
    Log,
    Source,
    Tape,
    allocate,
)
from avrswarm.errors import ChipFault, UsageError
from avrswarm.isa.decode import FLASH_WORDS, decode_image
from avrswarm.isa.disassemble import disassemble_word
from avrswarm.isa.table import Op
from avrswarm.jit import announce_compilation
from avrswarm.program.image import Program

DEFAULT_FUSES = (0xE2, 0xFF, 0xFF, 0xD9)
"""Low, lock, extended, high: RC at 8 MHz undivided, boot at 0x7000 (Kilobot, reference 7)."""

FACTORY_OSCCAL = 0x9C
"""A typical factory calibration byte (assumption; every real chip has its own)."""

SUPPLY_VOLTS = 3.0
"""AVCC and AREF of a Kilobot (hardware reference 2.1)."""

TEMPERATURE_SENSOR_VOLTS = 0.314
"""What the temperature sensor gives at 25 degrees Celsius (DS table 24-2)."""

ANALOG_INPUTS = {f"ADC{channel}": channel for channel in range(9)} | {"AIN0": 16, "AIN1": 17}
"""Inputs that take a voltage, with their numbers on a tape."""

MOST_VOLTS = 1000

READ_EFFECTS = frozenset(
    REGISTERS[name] for name in ("TCNT1L", "ICR1L", "ADCL", "ADCH", "SPSR", "SPDR", "UDR0")
)
"""Registers that a read changes something in."""

_SCRATCH = np.zeros(SCRATCH_SIZE, np.int64)
_WHILE_TRANSLATING = 1 << 24  # cycles to interpret before looking for native code again
_RUN_CHUNK = 1 << 40  # longer than any run; one call of the kernel takes at most this many cycles


UNSEEN_FIELDS = (
    "skip_idle",
    "io_touched",
    "io_seen",
    "idle_period",
    "idle_reads_io",
    "calm_since",
    "probe_wait",
    "suspended",
    "spoiled",
    "suspended_at",
    "suspended_pc",
    "suspended_sp",
    "suspended_sreg",
    "suspended_registers",
    "suspended_stack",
    "bytes_read",
    "bytes_written",
    "loop_id",
    "loop_origin",
    "loop_serial",
    "loop_touched",
    "loop_stack",
    "loop_pushes",
    "loop_push",
    "image_words",
    "image_word",
    "image_mask",
    "image_value",
    "log_count",
    "log",
    "tape_next",
    "next_event",
    "cpu",
)
"""Fields that tell how the time was spent or who looked, not what came of it: not in digests."""


class StopReason(StrEnum):
    """Why ``Chip.run`` returned."""

    CYCLES = "cycles"
    BREAKPOINT = "breakpoint"
    HALTED = "halted"


@dataclass(frozen=True)
class Report:
    """Something the firmware did that the chip survives, told once per place."""

    kind: Fault
    cycle: int
    pc: int
    function: str
    instruction: str
    address: int

    def __str__(self) -> str:
        what, hint = EXPLANATIONS[self.kind]
        return (
            f"{what}: address {self.address:#06x} at cycle {self.cycle}, pc {self.pc:#06x} "
            f"({self.function}: {self.instruction}); {hint}"
        )


class NativeCode(Protocol):
    """What ``avrswarm.engine.Translation`` offers."""

    @property
    def blocks(self) -> NDArray[np.int64]:
        """Addresses of native code by word address; see ``avrswarm.chip.native``."""


@dataclass
class Snapshot:
    """The exact state of a chip; only good for ``Chip.restore``."""

    program: Program
    clock_hz: float
    chips: Chips
    flash: NDArray[np.uint16]
    tape: NDArray[np.int64]
    uart: bytes
    native: NativeCode | None
    pin_log: list[tuple[int, int, int]] = field(default_factory=list)


class _OnClassOrInstance:
    """A method that works as ``Chip.restore(s)`` (new chip) and ``chip.restore(s)`` (in place)."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Chip | None, owner: type[Chip]) -> Any:
        target = instance if instance is not None else owner.__new__(owner)
        return lambda snapshot: self.function(target, snapshot)


class Chip:
    """One ATmega328P without a world.

    Parameters
    ----------
    program
        What is flashed; its EEPROM part too.
    clock_hz
        Frequency of the RC oscillator at its factory calibration. EEPROM and flash programming take
        a number of its cycles, so that they are slower at lower frequencies; the watchdog has an
        oscillator of its own.
    eeprom
        EEPROM content that replaces the program's.
    sram_seed
        None starts SRAM and registers as zeros; a number fills them with noise, as power-on does.
    strict
        Make every report (see ``reports``) a fault.
    stop_when_halted
        Let ``run`` stop as soon as only a reset could change what the program does: asleep, or in
        an empty loop, with interrupts off.
    skip_idle
        Jump over idle loops in closed form. Results are the same either way; off is only slower.
    native
        Translated code of the program, from ``avrswarm.engine.Translation``. Results are the same
        without; it is only slower.
    """

    def __init__(
        self,
        program: Program,
        clock_hz: float = 8_000_000,
        *,
        eeprom: Iterable[int] | None = None,
        sram_seed: int | None = None,
        strict: bool = False,
        stop_when_halted: bool = False,
        skip_idle: bool = True,
        native: NativeCode | None = None,
    ) -> None:
        if not clock_hz > 0:
            raise UsageError(f"clock_hz must be a positive number of hertz, not {clock_hz!r}")
        self.program = program
        self.clock_hz = clock_hz
        self._chips = allocate(1)
        self._native = native
        self._tape: NDArray[np.int64] = np.zeros((0, 4), dtype=np.int64)
        self._uart = bytearray()
        self.pin_log: list[tuple[int, int, int]] = []
        self._flash = program.flash.copy()
        self._code = np.zeros(FLASH_WORDS, dtype=np.uint32)
        c = self._c
        c.private_image = 1
        c.eeprom[:] = program.eeprom if eeprom is None else _eeprom_array(eeprom)
        fuses = program.fuses
        given = (fuses.low, program.lock, fuses.extended, fuses.high)
        c.fuses[:] = [d if g is None else g for g, d in zip(given, DEFAULT_FUSES, strict=True)]
        c.oscillator_calibration = FACTORY_OSCCAL
        c.aref_microvolts = c.avcc_microvolts = round(SUPPLY_VOLTS * 1e6)
        c.adc_microvolts[TEMPERATURE_CHANNEL] = round(TEMPERATURE_SENSOR_VOLTS * 1e6)
        c.strict = int(strict)
        c.stop_when_halted = int(stop_when_halted)
        if sram_seed is not None:
            noise = np.random.Generator(np.random.PCG64(sram_seed))
            c.memory[:0x20] = noise.integers(0, 256, 0x20, dtype=np.uint8)
            c.memory[SRAM_START:] = noise.integers(0, 256, DATA_SIZE - SRAM_START, dtype=np.uint8)
        with announce_compilation("kernels.bench"):
            self._bench(Bench.POWER_ON, value=round(TIME_UNITS_PER_SECOND / clock_hz))
            decode_image(self._flash, self._code)
        c.skip_idle = int(skip_idle)

    @classmethod
    def attach(
        cls,
        program: Program,
        clock_hz: float,
        chips: Chips,
        flash: NDArray[np.uint16],
        code: NDArray[np.uint32],
        tape: NDArray[np.int64],
    ) -> Chip:
        """Return a bench around a chip that lives elsewhere, as one row of ``chips``."""
        chip = cls.__new__(cls)
        chip.program = program
        chip.clock_hz = clock_hz
        chip._chips = chips
        chip._tape = tape
        chip._uart = bytearray()
        chip.pin_log = []
        chip._flash = flash
        chip._code = code
        chip._native = None
        return chip

    def _give_flash(self, flash: NDArray[np.uint16]) -> None:
        self._flash = flash
        self._code = np.zeros(FLASH_WORDS, dtype=np.uint32)
        self._redecode()

    @property
    def _c(self) -> Any:
        return self._chips[0]

    def _bench(self, what: Bench, address: int = 0, value: int = 0) -> int:
        return self._do(self._chips, self._code, NO_BLOCKS, what, address, value)

    def _do(
        self,
        chips: Chips,
        code: NDArray[np.uint32],
        blocks: NDArray[np.int64],
        what: Bench,
        address: int,
        value: int,
    ) -> int:
        where = chips, 0, self._flash, code, blocks, self._tape, _SCRATCH
        return int(bench(*where, int(what), address, value))

    def _look(self, what: Bench, address: int = 0, value: int = 0) -> tuple[Any, int]:
        """Do a bench operation on a copy of the chip; return the copy, and what it reads."""
        copy = self._chips.copy()
        return copy[0], self._do(copy, self._code, NO_BLOCKS, what, address, value)

    # ---- running ---------------------------------------------------------------------------------

    def run(self, cycles: int) -> StopReason:
        """Run to the first instruction boundary ``cycles`` or more ahead; say why it stopped."""
        return self._run_to(self.cycle + cycles, self._code)

    def step(self) -> StopReason:
        """Execute one instruction, or enter one interrupt, whichever comes next."""
        return self._run_to(self.cycle + 1, self._code)

    def run_to_wake(self, max_cycles: int) -> StopReason:
        """Let a chip that sleeps, or is held in reset, go on until it wakes, but no longer."""
        end = self.cycle + max_cycles
        reason = StopReason.CYCLES
        while self._c.asleep and self.cycle < end and reason == StopReason.CYCLES:
            _, awaited = self._look(Bench.WAKE)
            reason = self._run_to(min(awaited, end), self._code)
        return reason

    def run_until(
        self, pc: int | None = None, symbol: str | None = None, max_cycles: int = _RUN_CHUNK
    ) -> StopReason:
        """Run until just before the instruction at byte address ``pc`` (or ``symbol``) executes."""
        if (pc is None) == (symbol is None):
            raise UsageError("run_until takes either pc=BYTE_ADDRESS or symbol=NAME")
        if symbol is not None:
            pc = self.program.symbols.resolve(symbol)
        assert pc is not None
        if pc % 2 or not 0 <= pc < 2 * FLASH_WORDS:
            raise UsageError(
                f"pc={pc:#x} is no instruction address: even, below {2 * FLASH_WORDS:#x}"
            )
        end = self.cycle + max_cycles
        if self.pc == pc:  # we stand on it: move off before the breakpoint is set
            reason = self._run_to(self.cycle + 1, self._code)
            if reason != StopReason.CYCLES:
                return reason
        code = self._code.copy()
        code[pc // 2] = Op.BREAKPOINT
        self._forget_loop()  # the breakpoint may stand in the loop that was proven
        reason = self._run_to(end, code)
        if self._c.private_image and not np.array_equal(code, self._code):
            self._redecode()
        return reason

    def _redecode(self) -> None:
        """Decode again: self-programming changed the flash while a breakpoint's copy ran."""
        decode_image(self._flash, self._code)

    def _run_to(self, stop: int, code: NDArray[np.uint32]) -> StopReason:
        while True:
            # Translated code does not see breakpoints, which stand in a copy of the program.
            blocks, end = NO_BLOCKS, stop
            if self._native is not None and code is self._code:
                blocks = self._native.blocks
                if blocks is NO_BLOCKS:  # look again soon
                    end = min(stop, self.cycle + _WHILE_TRANSLATING)
            reason = Stop(self._do(self._chips, code, blocks, Bench.RUN, 0, end))
            self._drain_log()
            match reason:
                case Stop.CYCLES if end == stop:
                    return StopReason.CYCLES
                case Stop.BREAKPOINT:
                    return StopReason.BREAKPOINT
                case Stop.HALTED:
                    return StopReason.HALTED
                case Stop.FAULT:
                    raise ChipFault(self._fault_message())

    def run_watched(self, stop: int, ledger: Ledger) -> bool:
        """Run to cycle ``stop`` (a robot of a scene: to that world time), watched.

        What ``avrswarm.chip.profile`` describes goes to the ledger, pins and serial port too. False
        means that one of its lists is full: empty them and call again.
        """
        reason = observe(
            self._chips, 0, self._flash, self._code, NO_BLOCKS, self._tape, _SCRATCH, stop, ledger
        )
        if reason == Stop.FAULT:
            raise ChipFault(self._fault_message())
        if reason == Stop.IMAGE:
            raise UsageError(
                f"{self.program.name}: programs its own flash at cycle {self.cycle}; a robot of a"
                " scene cannot be watched while it does"
            )
        return reason != FULL

    def _drain_log(self) -> None:
        c = self._c
        for packed in c.log[: c.log_count].tolist():
            cycle, kind, value = packed >> 16, packed >> 8 & 0xFF, packed & 0xFF
            if kind == Log.UART:
                self._uart.append(value)
            else:
                self.pin_log.append((cycle, kind, value))
        c.log_count = 0

    @property
    def fault_pc(self) -> int | None:
        """Byte address of the instruction at which a fault stopped the chip; None without one."""
        c = self._c
        if not c.fault:
            return None
        for kind, place, address in c.reports[: c.report_count].tolist()[::-1]:
            if kind == c.fault and address == c.fault_address:
                return 2 * int(place)
        return self.pc

    def _fault_message(self) -> str:
        what, hint = EXPLANATIONS[Fault(int(self._c.fault))]
        pc = self.fault_pc
        assert pc is not None
        return (
            f"{self.program.name}: {what}: address {int(self._c.fault_address):#06x} "
            f"at cycle {self.cycle}, pc {pc:#06x} ({self._place(pc // 2)}); {hint}"
        )

    def _place(self, word_address: int) -> str:
        text = self._instruction(word_address)
        return f"{self.program.symbols.describe(2 * word_address)}: {text}"

    def _instruction(self, word_address: int) -> str:
        word = int(self._flash[word_address])
        following = int(self._flash[(word_address + 1) % FLASH_WORDS])
        return disassemble_word(2 * word_address, word, following).replace("\t", " ")

    def reset(self) -> None:
        """Pull the RESET pin for a moment: r0 to r31 and SRAM stay, everything else starts afresh.

        A fault is forgotten. The first instruction comes after the start-up time of the fuses.
        """
        self._bench(Bench.RESET, value=EXTRF)

    # ---- state -----------------------------------------------------------------------------------

    @property
    def cycle(self) -> int:
        """CPU cycles since power-on, at the start of the next instruction."""
        return int(self._c.cycle)

    @property
    def seconds(self) -> float:
        """World time since power-on; follows OSCCAL and CLKPR."""
        return self.time_of(self.cycle) / TIME_UNITS_PER_SECOND

    def time_of(self, cycle: int) -> int:
        """Return the world time, in units, at which a cycle begins if the clock stays as it is."""
        c = self._c
        return int(c.time_base) + (cycle - int(c.time_base_cycle)) * int(c.period)

    @property
    def pc(self) -> int:
        """Byte address of the next instruction."""
        return 2 * int(self._c.pc)

    @property
    def sp(self) -> int:
        """Stack pointer."""
        data = self._c.memory
        return int(data[SPL]) | int(data[SPH]) << 8

    @property
    def sreg(self) -> int:
        """Status register."""
        return int(self._c.sreg)

    @property
    def registers(self) -> list[int]:
        """The 32 working registers."""
        return [int(value) for value in self._c.memory[:32]]

    @property
    def data(self) -> NDArray[np.uint8]:
        """Data space 0x000-0x8FF as the CPU would read it now, without side effects."""
        seen, _ = self._look(Bench.PEEK_ALL)
        content: NDArray[np.uint8] = seen.memory
        content.flags.writeable = False
        return content

    def poke(self, address: int, value: int) -> None:
        """Put a byte into a working register or SRAM, as a debugger would."""
        if not (0 <= address < 0x20 or SRAM_START <= address < DATA_SIZE):
            raise UsageError(
                f"poke takes register or SRAM addresses, not {address:#x}; use write(NAME, value)"
            )
        self._c.memory[address] = value
        self._forget_loop()

    def _forget_loop(self) -> None:
        """Make the core prove anew that a loop is idle."""
        self._c.idle_period = self._c.suspended = 0

    def set_pc(self, address: int) -> None:
        """Continue at byte address ``address``."""
        if address % 2 or not 0 <= address < 2 * FLASH_WORDS:
            raise UsageError(
                f"{address:#x} is no instruction address: even, below {2 * FLASH_WORDS:#x}"
            )
        self._c.pc = address // 2
        self._forget_loop()

    @property
    def eeprom(self) -> NDArray[np.uint8]:
        """The 1024 EEPROM bytes; writable."""
        content: NDArray[np.uint8] = self._c.eeprom
        return content

    @property
    def flash(self) -> NDArray[np.uint16]:
        """The 16384 flash words as they are now; read only."""
        view = self._flash.view()
        view.flags.writeable = False
        return view

    @property
    def uart(self) -> bytes:
        """Bytes that the USART began to send so far."""
        return bytes(self._uart)

    @property
    def asleep(self) -> bool:
        """Whether the CPU is in a sleep mode."""
        return bool(self._c.asleep) and not self.in_reset

    @property
    def in_reset(self) -> bool:
        """Whether the chip is held in reset: nothing runs before its start-up time is over."""
        return int(self._c.asleep) == HELD_IN_RESET

    @property
    def reports(self) -> list[Report]:
        """What the firmware did that the chip survives: stray accesses, a lost stack, ..."""
        c = self._c
        found = []
        for number, (kind, pc, address) in enumerate(c.reports[: c.report_count].tolist()):
            cycle = int(c.report_cycle[number])
            function = self.program.symbols.describe(2 * pc)
            found.append(
                Report(Fault(kind), cycle, 2 * pc, function, self._instruction(pc), address)
            )
        return found

    @property
    def reports_lost(self) -> bool:
        """Whether there were more places than ``reports`` can hold."""
        return bool(self._c.reports_lost)

    def digest(self) -> str:
        """Return a digest of the exact state: equal for chips that will behave equally."""
        settled, _ = self._look(Bench.SETTLE)
        settled.next[Source.TAPE] = 0
        for name in UNSEEN_FIELDS:
            settled[name] = 0
        settled.reports[settled.report_count :] = 0
        settled.report_cycle[settled.report_count :] = 0
        content = hashlib.sha256(settled.tobytes())
        content.update(self._flash.tobytes())
        return content.hexdigest()

    # ---- the bench -------------------------------------------------------------------------------

    def read(self, name: str) -> int:
        """Read an I/O register by its datasheet name, as the CPU would now, side effects too."""
        if name in WORD_REGISTERS:
            low = WORD_REGISTERS[name]
            if low == SPL:
                return self.sp
            return self._read(low) | self._read(low + 1) << 8
        return self._read(_register(name))

    def _read(self, address: int) -> int:
        if address == SREG:
            return self.sreg
        if SPL <= address <= SPH:
            return int(self._c.memory[address])
        if address not in READ_EFFECTS:
            return self._look(Bench.READ, address)[1]
        return self._bench(Bench.READ, address)

    def write(self, name: str, value: int) -> None:
        """Write an I/O register by its datasheet name, as a CPU write that lands now."""
        if name in WORD_REGISTERS:
            if not 0 <= value <= 0xFFFF:
                raise UsageError(f"{name} is a 16-bit register; {value} does not fit")
            low = WORD_REGISTERS[name]
            self._write(low + 1, value >> 8)
            self._write(low, value & 0xFF)
            return
        if not 0 <= value <= 0xFF:
            raise UsageError(f"{name} is an 8-bit register; {value} does not fit")
        self._write(_register(name), value)

    def _write(self, address: int, value: int) -> None:
        c = self._c
        self._forget_loop()
        if address == SREG:
            c.sreg = c.memory[SREG] = value
        elif SPL <= address <= SPH:
            c.memory[address] = value
        else:
            self._bench(Bench.WRITE, address, value)
            self._drain_log()

    def pin(self, name: str) -> int:
        """Return the level of a pin such as ``"PB3"``."""
        port, bit = _pin(name)
        settled, _ = self._look(Bench.SETTLE, value=1)
        return int(settled.pin_level[port]) >> bit & 1

    def set_pin(self, name: str, level: int | None, at: int | None = None) -> None:
        """Drive a pin from outside to 0 or 1, or let it float (None), now or from ``at`` on."""
        port, bit = _pin(name)
        if level not in (0, 1, None):
            raise UsageError(f"a pin is driven to 0, 1 or None (floating), not {level!r}")
        self._stimulate(at, Tape.PIN, 8 * port + bit, 2 if level is None else int(level))

    def set_adc(self, name: str, volts: float, at: int | None = None) -> None:
        """Put a voltage on ``"ADC0"`` to ``"ADC7"`` (``"ADC8"``: temperature), now or later.

        ``"AIN0"`` and ``"AIN1"`` are what the comparator compares with the band gap or a channel of
        the multiplexer; without these two, ``set_comparator`` decides.
        """
        if name.upper() not in ANALOG_INPUTS:
            raise UsageError(
                f"no analog input {name!r}; there are ADC0 to ADC7, ADC8 (temperature), AIN0, AIN1"
            )
        if not abs(volts) <= MOST_VOLTS:
            raise UsageError(f"{name}: {volts!r} V is not within {MOST_VOLTS} V of ground")
        self._stimulate(at, Tape.ADC, ANALOG_INPUTS[name.upper()], round(volts * 1e6))

    def set_comparator(self, high: bool | int, at: int | None = None) -> None:
        """Make AIN0 higher (or not) than AIN1, now or from ``at`` on; ACO follows later."""
        when = (self.cycle if at is None else at) + ACO_SYNC_CYCLES
        self._stimulate(when, Tape.ACO, int(bool(high)), 0)

    def pulse_comparator(self, cycles: Iterable[int], high_cycles: int) -> None:
        """Make AIN0 higher than AIN1 for ``high_cycles`` from each of these cycles on."""
        rows = []
        for cycle in cycles:
            if cycle < self.cycle:
                raise UsageError(f"cycle {cycle} is past; the chip is at cycle {self.cycle}")
            rise = cycle + ACO_SYNC_CYCLES
            rows += [(rise, int(Tape.ACO), 1, 0), (rise + high_cycles, int(Tape.ACO), 0, 0)]
        self._add_to_tape(rows)

    def uart_send(self, content: bytes, baud: float = 38_400, at: int | None = None) -> int:
        """Shift 8N1 frames into RXD (PD0) from now or ``at`` on; return the cycle they end.

        A line that is low now first idles for a bit: a start bit is an edge.
        """
        bit_cycles = self.clock_hz / baud
        start = float(self.cycle if at is None else at)
        rows = [(round(start), int(Tape.PIN), 16, 1)]
        level = 1
        if not self.pin("PD0"):
            start += bit_cycles
        for byte in content:
            for bit in [0, *((byte >> n) & 1 for n in range(8)), 1]:
                if bit != level:
                    rows.append((round(start), int(Tape.PIN), 16, bit))
                    level = bit
                start += bit_cycles
        self._add_to_tape(rows)
        return round(start)

    def watch_pins(self, *names: str) -> None:
        """Record level changes of these pins in ``pin_log``: (cycle, port number, port levels)."""
        self._look_at_watchers()  # edges up to now are not recorded
        for name in names:
            port, bit = _pin(name)
            self._c.logged_pins[port] |= 1 << bit
        self._look_at_watchers()

    def _look_at_watchers(self) -> None:
        """Rewrite the pin-change masks, which brings all pins up to date and looks who watches."""
        for register in ("PCMSK0", "PCMSK1", "PCMSK2"):
            self.write(register, int(self._c.memory[REGISTERS[register]]))

    def _stimulate(self, at: int | None, kind: Tape, first: int, second: int) -> None:
        when = self.cycle if at is None else at
        if when < self.cycle:
            raise UsageError(f"cycle {when} is past; the chip is at cycle {self.cycle}")
        self._add_to_tape([(when, int(kind), first, second)])

    def _add_to_tape(self, rows: list[tuple[int, int, int, int]]) -> None:
        played = int(self._c.tape_next)
        waiting = np.concatenate(
            [self._tape[played:], np.array(rows, dtype=np.int64).reshape(-1, 4)]
        )
        self._tape = waiting[np.argsort(waiting[:, 0], kind="stable")]
        self._c.tape_next = 0

    # ---- snapshots -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the exact state, to be given to ``Chip.restore``."""
        return Snapshot(
            self.program,
            self.clock_hz,
            self._chips.copy(),
            self._flash.copy(),
            self._tape.copy(),
            bytes(self._uart),
            self._native,
            list(self.pin_log),
        )

    def _restore(self, snapshot: Snapshot) -> Chip:
        """Return a chip in exactly the saved state: a new one, or this one if called on it."""
        self.program = snapshot.program
        self._native = snapshot.native
        self.clock_hz = snapshot.clock_hz
        self._chips = snapshot.chips.copy()
        self._tape = snapshot.tape.copy()
        self._uart = bytearray(snapshot.uart)
        self.pin_log = list(snapshot.pin_log)
        self._give_flash(snapshot.flash.copy())
        return self

    restore = _OnClassOrInstance(_restore)


def _register(name: str) -> int:
    try:
        return REGISTERS[name]
    except KeyError:
        raise UsageError(
            f"no register {name!r}{_nearest(name, [*REGISTERS, *WORD_REGISTERS])}"
        ) from None


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name.upper(), known, n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _pin(name: str) -> tuple[int, int]:
    text = name.upper()
    if (
        len(text) == 3
        and text[0] == "P"
        and text[1] in "BCD"
        and text[2] in "01234567"
        and text != "PC7"
    ):
        return "BCD".index(text[1]), int(text[2])
    raise UsageError(f"no pin {name!r}; pins are PB0-PB7, PC0-PC6 and PD0-PD7")


def _eeprom_array(content: Iterable[int]) -> NDArray[np.uint8]:
    image = np.frombuffer(bytes(content), dtype=np.uint8)
    if len(image) != EEPROM_SIZE:
        raise UsageError(f"an EEPROM image has {EEPROM_SIZE} bytes, not {len(image)}")
    return image
