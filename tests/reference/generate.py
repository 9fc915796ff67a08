"""Seeded random programs that use the core and the peripherals in ways that mean something.

`generate(seed)` gives a `Case`: the flash words, outside stimuli, EEPROM contents and a listing.
A program is: vectors, set-up of some peripherals, SEI, and an endless main loop of random pieces
(arithmetic, loops, branches, skips, memory, stack, calls, peripheral reads stored to SRAM,
peripheral writes at random moments, EEPROM, ADC, idle sleep ...), with random interrupt handlers.

Each seed switches a random set of themes on, so that some programs are dense in one thing.  What
the timing reference leaves undefined is not generated: pointer forms with their own pointer
registers, reserved timer modes, a TOP of 0 in the dual-slope modes, FOC in PWM modes, EEPM = 3,
a change of ADPS, ADTS or REFS during a conversion, a change of ICNC1 with an edge in the filter.

Registers: the main program writes peripherals from r16-r19, counts loops in r20-r23 and calculates
in the rest; handlers write peripherals from r24, r25 and calculate in r2-r9.  So an interrupt
between LDI and OUT never changes what is written.
"""

import random
from dataclasses import dataclass, field

from . import assemble as asm

THEMES = ["timers", "timer 1", "adc", "comparator", "eeprom", "pins", "gtccr", "modes", "sleep",
          "interrupts", "tcnt", "flags", "wait"]  # fmt: skip

MODES_8 = [0, 1, 2, 3, 5, 7]
MODES_16 = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15]
PWM_8 = {1, 3, 5, 7}
PWM_16 = set(range(1, 16)) - {4, 12}

BRANCHES = [
    "brcs",
    "brcc",
    "breq",
    "brne",
    "brmi",
    "brpl",
    "brvs",
    "brvc",
    "brlt",
    "brge",
    "brhs",
    "brhc",
    "brts",
    "brtc",
    "brie",
    "brid",
]
READABLE = [
    "TIFR0",
    "TIFR1",
    "TIFR2",
    "TCNT0",
    "TCNT2",
    "OCR0A",
    "OCR0B",
    "OCR2A",
    "OCR2B",
    "OCR1AL",
    "OCR1AH",
    "OCR1BL",
    "OCR1BH",
    "TCCR0A",
    "TCCR0B",
    "TCCR1A",
    "TCCR1B",
    "TCCR2A",
    "TCCR2B",
    "TIMSK0",
    "TIMSK1",
    "TIMSK2",
    "GTCCR",
    "PINB",
    "PINC",
    "PIND",
    "PORTB",
    "DDRD",
    "SREG",
    "SPL",
    "SPH",
    "GPIOR0",
    "GPIOR1",
    "ACSR",
    "ADCSRA",
    "ADMUX",
    "ICR1L",
    "ICR1H",
    "PCIFR",
    "EIFR",
    "EEDR",
    "EEARL",
]

PINS_QUIET = 200  # cycles in which the pins are set up
SRAM_START, SRAM_END = 0x100, 0x700  # data; the stack has the rest


@dataclass
class Case:
    seed: int
    words: list[int]
    stimuli: list[tuple]
    eeprom: list[int]
    cycles: int
    themes: set[str]
    listing: list[tuple[int, str]] = field(repr=False)

    def text(self):
        return "\n".join(f"{address:04X}  {line}" for address, line in self.listing)


class Generator:
    def __init__(self, seed, cycles, themes):
        self.random = random.Random(seed)
        self.seed, self.cycles = seed, cycles
        self.assembler = asm.Assembler()
        self.listing = []
        self.labels = 0
        self.depth = 0
        self.subroutines = []
        self.themes = set(themes or (t for t in THEMES if self.random.random() < 0.45))
        if self.random.random() < 0.7 or "sleep" in self.themes:
            self.themes.add("timers")
        # Timer 0 keeps interrupting, so that sleeps and waits for a flag end.
        self.heartbeat = "timers" in self.themes and bool({"sleep", "wait"} & self.themes)
        self.mode = [0, 0, 0]
        self.clock = [0, 0, 0]
        self.adps = self.random.choice([0, 1, 2, 2, 3, 3, 4])
        self.in_handler = False

    # ---- emitting ----

    def emit(self, name, *operands):
        words = getattr(asm, name)(*operands)
        shown = ", ".join(self.show(o) for o in operands)
        self.listing.append((self.assembler.here, f"{name} {shown}".strip()))
        self.assembler(words)

    @staticmethod
    def show(operand):
        for name, address in asm.REGISTERS.items():
            if operand is address:
                return name
        return hex(operand) if isinstance(operand, int) and operand > 31 else str(operand)

    def new_label(self):
        self.labels += 1
        return f"L{self.labels}"

    def place(self, label):
        self.assembler.label(label)
        self.listing.append((self.assembler.here, label + ":"))

    def branch(self, name, label):
        self.listing.append((self.assembler.here, f"{name} {label}"))
        self.assembler.branch(getattr(asm, name), label)

    def absolute(self, name, label):
        self.listing.append((self.assembler.here, f"{name} {label}"))
        self.assembler.absolute(getattr(asm, name), label)

    # ---- small choices ----

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self, low, high):
        return self.random.randint(low, high)

    def byte(self):
        return self.pick(0, 1, 0x7F, 0x80, 0xFF, *[self.number(0, 255)] * 5)

    def source(self):
        return self.number(0, 31)

    def target(self):
        """A register to calculate in."""
        if self.in_handler:
            return self.number(2, 9)
        return self.pick(*range(16), 16, 17, 18, 19, 24, 25)

    def high_target(self):
        return self.pick(24, 25) if self.in_handler else self.pick(16, 17, 18, 19, 24, 25)

    def temporary(self):
        """A register for a constant on its way to a peripheral."""
        return self.pick(24, 25) if self.in_handler else self.number(16, 19)

    def address(self):
        return self.number(SRAM_START, SRAM_END - 1)

    def write(self, register, value):
        """LDI and then OUT, STS or ST through a pointer."""
        r = self.temporary()
        self.emit("ldi", r, value)
        if register < 0x60 and self.chance(0.7):
            self.emit("out", register, r)
        elif self.in_handler or self.chance(0.8):
            self.emit("sts", register, r)
        else:
            self.point(30, register)
            self.emit("std", "Z", 0, r)

    def point(self, pointer, address):
        self.emit("ldi", pointer, address & 0xFF)
        self.emit("ldi", pointer + 1, address >> 8)

    def read_and_store(self, register):
        """Read a register in one of several ways and keep what was read in SRAM."""
        r = self.target()
        if register < 0x60 and self.chance(0.6):
            self.emit("in_", r, register)
        else:
            self.emit("lds", r, register)
        if self.chance(0.8):
            self.emit("sts", self.address(), r)

    # ---- pieces for the core ----

    def alu(self):
        for _ in range(self.number(1, 6)):
            kind = self.number(0, 9)
            if kind <= 2:
                name = self.pick("add", "adc", "sub", "sbc", "and_", "or_", "eor", "mov")
                self.emit(name, self.target(), self.source())
            elif kind == 3:
                self.emit(self.pick("cp", "cpc"), self.source(), self.source())
            elif kind == 4:
                name = self.pick("subi", "sbci", "andi", "ori", "ldi")
                self.emit(name, self.high_target(), self.byte())
            elif kind == 5:
                self.emit("cpi", self.number(16, 31), self.byte())
            elif kind == 6:
                name = self.pick("com", "neg", "swap", "inc", "dec", "asr", "lsr", "ror")
                self.emit(name, self.target())
            elif kind == 7:
                name = self.pick("bst", "bld")
                self.emit(name, self.target(), self.number(0, 7))
            elif kind == 8:
                self.emit(self.pick("bset", "bclr"), self.number(0, 6))
            else:
                self.wide()

    def wide(self):
        if self.in_handler:
            self.emit("movw", self.pick(2, 4, 6, 8), 2 * self.number(0, 15))
            return
        kind = self.number(0, 3)
        if kind == 0:
            self.emit(self.pick("adiw", "sbiw"), 24, self.number(0, 63))
        elif kind == 1:
            self.emit("mul", self.source(), self.source())
        elif kind == 2:
            if self.chance(0.4):
                self.emit("muls", self.number(16, 31), self.number(16, 31))
            else:
                name = self.pick("mulsu", "fmul", "fmuls", "fmulsu")
                self.emit(name, self.number(16, 23), self.number(16, 23))
        else:
            self.emit("movw", self.pick(*range(0, 16, 2), 24), 2 * self.number(0, 15))

    def memory(self):
        if self.in_handler or self.chance(0.3):
            if self.chance(0.5):
                self.emit("lds", self.target(), self.address())
            else:
                self.emit("sts", self.address(), self.source())
            return
        pointer = self.pick("X", "Y", "Z")
        low = {"X": 26, "Y": 28, "Z": 30}[pointer]
        self.point(low, self.number(SRAM_START + 64, SRAM_END - 64))
        for _ in range(self.number(1, 4)):
            # never the pointer's own registers
            free = [r for r in range(32) if r not in (low, low + 1)]
            form = self.pick("plain", "+", "-", "q")
            if form == "q" and pointer != "X":
                q = self.number(0, 63)
                if self.chance(0.5):
                    self.emit("ldd", self.target(), pointer, q)
                else:
                    self.emit("std", pointer, q, self.random.choice(free))
                continue
            mode = {"plain": pointer, "+": pointer + "+", "-": "-" + pointer, "q": pointer}[form]
            if self.chance(0.5):
                self.emit("ld", self.target(), mode)
            else:
                self.emit("st", mode, self.random.choice(free))
        if self.chance(0.2):  # registers and I/O can be reached by pointers too
            register = self.pick(
                asm.TCNT0, asm.TCNT2, asm.TIFR1, asm.PINB, asm.SREG, asm.SPL, 5, 16
            )
            self.point(low, register)
            self.emit("ld", self.target(), pointer)

    def program_memory(self):
        if self.in_handler:
            return
        self.point(30, self.number(0, 0x7FFF))
        for _ in range(self.number(1, 2)):
            form = self.number(0, 2)
            if form == 0:
                self.emit("lpm")
            else:
                self.emit("lpm", self.target(), "Z" if form == 1 else "Z+")

    def stack(self):
        registers = [self.source() for _ in range(self.number(1, 3))]
        for r in registers:
            self.emit("push", r)
        if self.chance(0.5):
            self.alu()
        for _ in registers:
            self.emit("pop", self.target())

    def skip(self):
        kind = self.number(0, 4)
        if kind == 0:
            self.emit("cpse", self.source(), self.source())
        elif kind in (1, 2):
            self.emit(self.pick("sbrc", "sbrs"), self.source(), self.number(0, 7))
        else:
            register = self.pick(asm.TIFR0, asm.TIFR1, asm.TIFR2, asm.PINB, asm.PIND, asm.GPIOR0)
            bit = self.number(0, 7) if register in (asm.PINB, asm.PIND) else self.number(0, 2)
            self.emit(self.pick("sbic", "sbis"), register, bit)
        if self.chance(0.4):
            if self.chance(0.5):
                self.emit("lds", self.target(), self.address())
            else:
                self.emit("sts", self.address(), self.source())
        else:
            name = self.pick("inc", "com", "lsr", "swap")
            self.emit(name, self.target())

    def forward(self):
        """A branch, jump or flag test over one piece."""
        label = self.new_label()
        condition = self.pick(*BRANCHES, "rjmp")
        self.branch(condition, label)
        self.alu()
        self.place(label)

    def loop(self):
        if self.depth >= 2 or self.in_handler:
            self.alu()
            return
        counter = 20 + 2 * self.depth + self.number(0, 1)
        self.depth += 1
        self.emit("ldi", counter, self.number(1, 12))
        label, done = self.new_label(), self.new_label()
        self.place(label)
        for _ in range(self.number(1, 3)):
            self.piece()
        self.emit("dec", counter)
        # the body may be too long for a branch
        self.branch("breq", done)
        self.branch("rjmp", label)
        self.place(done)
        self.depth -= 1

    def delay(self):
        """A busy loop, so that slow things get a chance."""
        counter = self.pick(22, 23) if not self.in_handler else 9
        if self.in_handler:
            self.emit("nop")
            return
        self.emit("ldi", counter, self.number(1, 80))
        label = self.new_label()
        self.place(label)
        self.emit("dec", counter)
        self.branch("brne", label)

    def long_delay(self):
        """The counted delay loops of avr-libc and GCC: SBIW, or SUBI and SBCI over some bytes."""
        if self.in_handler:
            return
        label = self.new_label()
        kind = self.number(1, 4)
        if kind == 1:
            self.emit("ldi", 24, self.byte())
            self.emit("ldi", 25, self.number(0, 6))
            if self.chance(0.1):
                self.emit("nop")
            self.place(label)
            self.emit("sbiw", 24, 1)
        else:
            registers = self.random.sample((16, 17, 18, 19), kind)
            for number, r in enumerate(registers):  # up to about 1500 rounds
                self.emit("ldi", r, (self.byte(), self.number(0, 5), 0, 0)[number])
            self.place(label)
            for number, r in enumerate(registers):
                self.emit("sbci" if number else "subi", r, 0 if number else 1)
        self.branch("brne", label)

    def onto_the_branch(self):
        """Reach the branch of a delay loop without its decrement, with any counter and Z."""
        if self.in_handler:
            return
        label, at_branch = self.new_label(), self.new_label()
        self.emit("ldi", 22, self.pick(0, 1, self.number(0, 255)))
        self.emit(self.pick("sez", "clz"))
        self.branch("rjmp", at_branch)
        self.place(label)
        self.emit("dec", 22)
        self.place(at_branch)
        self.branch("brne", label)

    def wait_for(self):
        """Poll something until it changes, as drivers do."""
        if self.in_handler or self.depth:
            return
        label = self.new_label()
        kinds = ["eeprom", "flag"]
        if "comparator" in self.themes:
            kinds.append("comparator")
        if "pins" in self.themes:
            kinds.append("pin")
        if "adc" in self.themes and not self.auto_trigger:
            kinds.append("adc")
        kind = self.random.choice(kinds)
        if kind == "eeprom":
            self.place(label)
            self.emit("sbic", asm.EECR, 1)
        elif kind == "flag":  # set by the heartbeat's handler or, if there is none, already
            self.emit("cbi" if self.heartbeat else "sbi", asm.GPIOR0, 7)
            self.emit("sei")
            self.place(label)
            self.emit("sbis", asm.GPIOR0, 7)
        elif kind == "comparator":
            self.place(label)
            self.emit("in_", 2, asm.ACSR)
            self.emit(self.pick("sbrs", "sbrc"), 2, 5)
        elif kind == "pin":
            self.place(label)
            self.emit(self.pick("sbis", "sbic"), asm.PINC, self.number(0, 3))
        else:
            self.emit("ldi", 16, 0xC0 | self.adps)
            self.emit("sts", asm.ADCSRA, 16)
            self.place(label)
            self.emit("lds", 2, asm.ADCSRA)
            self.emit("sbrc", 2, 6)
        self.branch("rjmp", label)

    def call(self):
        if self.in_handler or not self.subroutines:
            self.alu()
            return
        label = self.random.choice(self.subroutines)
        kind = self.pick("rcall", "call")
        if kind == "rcall":
            self.branch("rcall", label)
        else:
            self.absolute("call", label)

    def i_flag(self):
        if self.in_handler:
            return
        kind = self.number(0, 3)
        if kind == 0:
            self.emit("cli")
            self.piece()
            self.emit("sei")
        elif kind == 1:
            r = self.pick(18, 19)
            self.emit("in_", r, asm.SREG)
            self.emit("cli")
            self.emit("nop")
            self.emit("out" if self.chance(0.5) else "sts", *self.sreg_operands(r))
        elif kind == 2:
            self.emit("sei")
        else:
            self.emit("in_", self.target(), asm.SREG)

    def sreg_operands(self, r):
        return (asm.SREG, r)

    # ---- pieces for the peripherals ----

    def top_value(self, timer):
        """A compare value that is a sensible TOP too."""
        if timer == 1:
            return self.pick(
                self.number(3, 40), self.number(3, 300), self.number(3, 3000), 0xFF, 0xFFFF
            )
        return self.pick(self.number(3, 20), self.number(3, 255), self.number(3, 255), 0xFF)

    def compare_value(self, timer, x):
        if x == 0 and self.mode[timer] in ((2, 5, 7) if timer != 1 else (4, 9, 11, 15)):
            return self.top_value(timer)
        if timer == 1:
            return self.pick(
                0, 1, self.number(0, 40), self.number(0, 1100), 0xFF, 0x1FF, 0x3FF, 0xFFFF
            )
        return self.pick(0, 1, 0xFF, 0xFE, *[self.number(0, 255)] * 4)

    def write_16(self, high, low, value):
        self.write(high, value >> 8)
        if self.chance(0.1):
            self.emit("nop")
        self.write(low, value & 0xFF)

    def write_compare(self, timer=None):
        timer = self.number(0, 2) if timer is None else timer
        x = self.number(0, 1)
        value = self.compare_value(timer, x)
        if timer == 1:
            if self.in_handler:
                # one TEMP for all: only safe against the main program's own 16-bit accesses if it
                # does not care, so write the low byte alone (the high byte is whatever TEMP holds),
                # except where that could make TOP tiny
                if self.mode[1] in (9, 11):
                    return
                self.write((asm.OCR1AL, asm.OCR1BL)[x], value & 0xFF | 4)
                return
            high, low = ((asm.OCR1AH, asm.OCR1AL), (asm.OCR1BH, asm.OCR1BL))[x]
            if x == 0 and self.mode[1] in (9, 11):
                value |= 4  # an interrupt between the bytes may change the high byte only
            self.write_16(high, low, value)
        else:
            registers = {0: (asm.OCR0A, asm.OCR0B), 2: (asm.OCR2A, asm.OCR2B)}[timer]
            self.write(registers[x], value)

    def write_counter(self):
        timer = self.number(0, 2)
        if timer == 1:
            value = self.pick(self.number(0, 60), self.number(0, 0xFFFF), 0xFFFE, 0xFFFF, 0)
            self.write_16(asm.TCNT1H, asm.TCNT1L, value)
        else:
            register = asm.TCNT0 if timer == 0 else asm.TCNT2
            self.write(register, self.pick(0, 0xFE, 0xFF, *[self.number(0, 255)] * 4))

    def read_counter(self):
        timer = self.number(0, 2)
        if timer == 1:
            self.read_and_store(asm.TCNT1L)
            if self.chance(0.8):
                self.read_and_store(asm.TCNT1H)
        else:
            self.read_and_store(asm.TCNT0 if timer == 0 else asm.TCNT2)

    def read_anything(self):
        self.read_and_store(asm.REGISTERS[self.random.choice(READABLE)])

    def flags(self):
        """Clear timer flags by OUT, STS or SBI."""
        register = self.pick(asm.TIFR0, asm.TIFR1, asm.TIFR2)
        if self.chance(0.3):
            self.emit("sbi" if self.chance(0.8) else "cbi", register, self.number(0, 2))
        else:
            self.write(register, self.pick(1, 2, 4, 7, 0x27, 0, self.number(0, 7)))

    def masks(self):
        register = self.pick(asm.TIMSK0, asm.TIMSK1, asm.TIMSK2)
        if register == asm.TIMSK0 and self.heartbeat:
            return
        self.write(register, self.timer_mask())

    def timer_mask(self):
        if "interrupts" in self.themes:
            return self.pick(0, 1, 2, 4, 6, 7, 0x27)
        return self.pick(0, 0, 0, 1, 2, 4)

    def clock_code(self, timer):
        if "wait" in self.themes:  # slow, so that there are quiet times
            return self.pick(0, 3, 4, 5, 6, 7) if timer == 2 else self.pick(0, 2, 3, 4, 5)
        if timer == 2:
            return self.pick(0, 1, 1, 1, 2, 2, 2, 3, 4, 5, 6, 7)
        pins = [6, 7] if "pins" in self.themes else []
        return self.pick(0, 1, 1, 1, 2, 2, 2, 3, 4, 5, *pins)

    def control_b(self, timer, clock):
        """TCCRnB for the present mode."""
        capture = 0
        if timer == 1 and "pins" in self.themes:
            capture = self.pick(0, 0x40) | (0x80 if self.seed & 1 else 0)
        return capture | self.mode[timer] >> 2 << 3 | clock

    def change_clock(self):
        timer = self.number(0, 2)
        if timer == 0 and self.heartbeat:
            return
        self.clock[timer] = self.clock_code(timer)
        value = self.control_b(timer, self.clock[timer])
        self.write((asm.TCCR0B, asm.TCCR1B, asm.TCCR2B)[timer], value)

    def force(self):
        timer = self.number(0, 2)
        if self.mode[timer] in (PWM_16 if timer == 1 else PWM_8):
            return
        bits = self.pick(0x80, 0x40, 0xC0)
        if timer == 1:
            self.write(asm.TCCR1C, bits)
        else:
            self.write(
                asm.TCCR0B if timer == 0 else asm.TCCR2B,
                bits | self.control_b(timer, self.clock[timer]),
            )

    def com_bits(self):
        return self.pick(0, 1, 2, 3) << 6 | self.pick(0, 1, 2, 3) << 4

    def change_outputs(self):
        timer = self.number(0, 2)
        register = (asm.TCCR0A, asm.TCCR1A, asm.TCCR2A)[timer]
        self.write(register, self.com_bits() | self.mode[timer] & 3)

    def change_mode(self):
        """Another waveform mode while running, never by way of a reserved one."""
        timer = self.number(0, 2)
        if (timer == 0 and self.heartbeat) or self.depth or self.in_handler:
            return
        allowed = MODES_16 if timer == 1 else MODES_8
        old, new = self.mode[timer], self.random.choice(allowed)
        a, b = ((asm.TCCR0A, asm.TCCR0B), (asm.TCCR1A, asm.TCCR1B), (asm.TCCR2A, asm.TCCR2B))[timer]
        a_first = old & ~3 | new & 3
        b_first = new & ~3 | old & 3
        com = self.com_bits()
        # A dual-slope mode with a variable TOP gets a TOP that is not 0 before and after.
        if new in ((5,) if timer != 1 else (8, 9, 10, 11)) or old in (
            (5,) if timer != 1 else (8, 9, 10, 11)
        ):
            return
        if a_first in allowed and a_first not in (5, 8, 9, 10, 11):
            self.mode[timer] = new
            self.write(a, com | new & 3)
            self.write(b, self.control_b(timer, self.clock[timer]))
        elif b_first in allowed and b_first not in (5, 8, 9, 10, 11):
            self.mode[timer] = new
            self.write(b, self.control_b(timer, self.clock[timer]))
            self.write(a, com | new & 3)

    def write_icr(self):
        if self.mode[1] in (8, 10, 12, 14) and not self.in_handler:
            self.write_16(asm.ICR1H, asm.ICR1L, self.top_value(1) | 4)

    def prescaler_reset(self):
        if self.chance(0.7):
            self.write(asm.GTCCR, self.pick(1, 2, 3))
        elif not self.in_handler:
            self.write(asm.GTCCR, self.pick(0x81, 0x82, 0x83))
            for _ in range(self.number(0, 3)):
                self.alu()
            self.write(asm.GTCCR, 0)

    def timer_piece(self):
        choices = [self.write_compare, self.read_counter]
        if "tcnt" in self.themes:
            choices += [self.write_counter] * 2
        if "flags" in self.themes:
            choices += [self.flags] * 2
        if "gtccr" in self.themes:
            choices += [self.prescaler_reset]
        if "modes" in self.themes:
            choices += [self.change_mode, self.change_clock, self.change_outputs]
        if "interrupts" in self.themes and not self.in_handler:
            choices += [self.masks]
        if "timer 1" in self.themes:
            choices += [self.write_icr]
        choices += [self.force]
        self.random.choice(choices)()

    def eeprom(self):
        if self.in_handler:
            return
        self.write(asm.EEARL, self.number(0, 255))
        if self.chance(0.3):
            self.write(asm.EEARH, self.number(0, 3))
        if self.chance(0.6):
            self.emit("sbi", asm.EECR, 0)
            self.read_and_store(asm.EEDR)
            return
        self.write(asm.EEDR, self.byte())
        mode = self.pick(0, 1, 2) << 4
        self.emit("ldi", 16, mode)
        self.emit("ldi", 17, mode | 4)
        self.emit("ldi", 18, mode | 2)
        self.emit("out", asm.EECR, 16)
        guarded = self.chance(0.7)
        if guarded:
            self.emit("cli")
        by_bit = self.chance(0.5)
        if by_bit:
            self.emit("sbi", asm.EECR, 2)
        else:
            self.emit("out", asm.EECR, 17)
        for _ in range(self.pick(0, 0, 0, 1, 2, 6)):
            self.emit("nop")
        if by_bit:
            self.emit("sbi", asm.EECR, 1)
        else:
            self.emit("out", asm.EECR, 18)
        for _ in range(4):  # EEMPE has surely cleared itself
            self.emit("nop")
        if guarded:
            self.emit("sei")
        if "interrupts" in self.themes and self.chance(0.5):
            self.emit("sbi", asm.EECR, 3)
        if self.chance(0.5):
            self.read_and_store(asm.EECR)

    def adcsra(self, start):
        value = 0x80 | self.adps | (0x40 if start else 0)
        if self.auto_trigger:
            value |= 0x20
        if self.adc_interrupt:
            value |= 0x08
        return value | (0x10 if self.chance(0.4) else 0)

    def adc(self):
        kind = self.number(0, 4)
        if kind == 0 and not self.in_handler:
            self.write(asm.ADMUX, self.admux())
        elif kind in (1, 2):
            self.write(asm.ADCSRA, self.adcsra(start=self.chance(0.8)))
        elif kind == 3:
            self.read_and_store(asm.ADCSRA)
        else:
            self.read_and_store(asm.ADCL)
            self.read_and_store(asm.ADCH)

    def admux(self):
        return self.refs | self.pick(0, 0x20) | self.pick(0, 1, 3, 6, 7, 14, 15)

    def comparator(self):
        if self.chance(0.5):
            self.read_and_store(asm.ACSR)
        else:
            self.write(asm.ACSR, self.acsr())

    def acsr(self):
        enable = 0x08 if "interrupts" in self.themes and self.chance(0.7) else 0
        return enable | self.pick(0, 0x10) | self.acis

    def pins(self):
        kind = self.number(0, 6)
        letter = self.pick("B", "C", "D")
        port, ddr, pin = (asm.REGISTERS[n + letter] for n in ("PORT", "DDR", "PIN"))
        # The pins driven from outside stay inputs.
        free = {"B": 0xFE, "C": 0x70, "D": 0xC9}[letter]
        if kind == 0:
            self.write(port, self.byte())
        elif kind == 1:
            self.write(ddr, self.byte() & free)
        elif kind == 2:
            self.write(pin, self.byte())
        elif kind == 3:
            bit = self.random.choice([b for b in range(7) if free >> b & 1])
            register = self.pick(port, ddr, pin)
            self.emit(self.pick("sbi", "cbi"), register, bit)
        elif kind == 4:
            self.write(self.pick(asm.PCIFR, asm.EIFR), self.pick(1, 2, 3, 7))
        else:
            self.read_and_store(pin)

    def sleep(self):
        if self.in_handler:
            return
        self.emit("sei")
        if self.chance(0.5):
            self.emit("nop")
        self.emit("sleep")

    def piece(self):
        """One random piece of code."""
        core = [self.alu] * 4 + [self.memory] * 2 + [self.skip] * 2
        core += [self.forward, self.stack, self.read_anything]
        if not self.in_handler:
            core += [self.loop, self.call, self.i_flag, self.delay, self.program_memory]
        themed = []
        if "timers" in self.themes:
            themed += [self.timer_piece] * 5 + [self.read_counter] * 2
        if "adc" in self.themes:
            themed += [self.adc] * 2
        if "comparator" in self.themes:
            themed += [self.comparator] * 2
        if "eeprom" in self.themes:
            themed += [self.eeprom]
        if "pins" in self.themes:
            themed += [self.pins] * 3
        if "sleep" in self.themes:
            themed += [self.sleep]
        if "wait" in self.themes:
            themed += [self.long_delay] * 2 + [self.wait_for] * 2 + [self.onto_the_branch]
        if themed and self.chance(0.5):
            self.random.choice(themed)()
        else:
            self.random.choice(core)()

    # ---- the whole program ----

    def set_up_timers(self):
        if self.chance(0.8):  # let the OC pins be seen
            self.write(asm.DDRB, self.pick(0x0E, 0x0E, self.byte() & 0x0E))
            self.write(asm.DDRD, self.pick(0x68, 0x68, self.byte() & 0x68))
        for timer in (0, 1, 2):
            if timer == 1 and "timer 1" not in self.themes and self.chance(0.6):
                continue
            # compare values while still in mode 0, so that TOP is never 0
            self.mode[timer] = self.random.choice(MODES_16 if timer == 1 else MODES_8)
            a, b = self.compare_value(timer, 0), self.compare_value(timer, 1)
            if timer == 1:
                self.write_16(asm.OCR1AH, asm.OCR1AL, a | (4 if self.mode[1] in (9, 11) else 0))
                self.write_16(asm.OCR1BH, asm.OCR1BL, b)
            else:
                oa, ob = {0: (asm.OCR0A, asm.OCR0B), 2: (asm.OCR2A, asm.OCR2B)}[timer]
                self.write(oa, a)
                self.write(ob, b)
            com = self.com_bits() if self.chance(0.7) else 0
            self.write((asm.TCCR0A, asm.TCCR1A, asm.TCCR2A)[timer], com | self.mode[timer] & 3)
            self.write((asm.TCCR0B, asm.TCCR1B, asm.TCCR2B)[timer], self.control_b(timer, 0))
            if timer == 1:
                self.write_icr()
            self.write((asm.TIMSK0, asm.TIMSK1, asm.TIMSK2)[timer], self.timer_mask())
            self.clock[timer] = self.clock_code(timer)
            if timer == 0 and self.heartbeat:
                self.clock[0] = 3 if "wait" in self.themes else self.pick(1, 1, 2)
                self.write(asm.TIMSK0, self.pick(1, 2, 3) if self.mode[0] != 2 else 2)
            value = self.control_b(timer, self.clock[timer])
            self.write((asm.TCCR0B, asm.TCCR1B, asm.TCCR2B)[timer], value)

    def set_up(self):
        for r in range(32):
            if self.chance(0.5):
                self.emit("ldi", 16, self.byte())
                self.emit("mov", r, 16)
        self.auto_trigger = self.chance(0.4)
        self.adc_interrupt = "interrupts" in self.themes and self.chance(0.7)
        self.refs = self.pick(0xC0, 0xC0, 0x40, 0x00)
        self.acis = self.pick(0, 2, 3)
        if (
            "pins" in self.themes
        ):  # before any pin moves: where the mask acts in the path is not known
            self.write(asm.PCMSK0, self.byte())
            self.write(asm.PCMSK1, self.byte() & 0x7F)
            self.write(asm.PCMSK2, self.byte())
        if "timers" in self.themes:
            self.set_up_timers()
        if "comparator" in self.themes:
            self.write(asm.ACSR, self.acsr())
        if "adc" in self.themes:
            self.write(asm.ADMUX, self.admux())
            sources = [0, 1, 3, 4, 5, 6] + ([2, 7] if "pins" in self.themes else [])
            self.write(asm.ADCSRB, self.pick(*sources))
            self.write(asm.ADCSRA, self.adcsra(start=self.chance(0.5)))
        if "pins" in self.themes:
            self.write(asm.DDRB, self.byte() & 0xFE)
            self.write(asm.DDRD, self.byte() & 0xE9)
            senses = (0, 1, 1, 2, 2, 3, 3)
            self.write(asm.EICRA, self.pick(*senses) | self.pick(*senses) << 2)
            if "interrupts" in self.themes:
                self.write(asm.EIMSK, self.number(0, 3))
                self.write(asm.PCICR, self.number(0, 7))
        if "sleep" in self.themes:
            self.write(asm.SMCR, 1)
        self.emit("sei" if self.chance(0.9) else "nop")

    def handler(self, vector):
        self.in_handler = True
        self.place(f"handler{vector}")
        saved = []
        for r in (24, 25):
            if self.chance(0.3):
                saved.append(r)
                self.emit("push", r)
        save_sreg = self.chance(0.4)
        if save_sreg:
            self.emit("in_", 9, asm.SREG)
            self.emit("push", 9)
        if vector == 22:
            self.emit("cbi", asm.EECR, 3)
        if vector in (14, 15, 16) and self.heartbeat:
            self.emit("sbi", asm.GPIOR0, 7)
        for _ in range(self.number(0, 3)):
            self.piece()
        if save_sreg:
            self.emit("pop", 9)
            self.emit("out", asm.SREG, 9)
        for r in reversed(saved):
            self.emit("pop", r)
        self.emit("reti")
        self.in_handler = False

    def stimuli(self):
        result = []

        def walk(kind, which, values, low, high):
            result.append((0, kind, which, self.random.choice(values)))
            cycle = PINS_QUIET if kind == "pin" else low
            while cycle < self.cycles:
                result.append((cycle, kind, which, self.random.choice(values)))
                cycle += self.number(low, self.random.choice([high // 8, high]))

        if "comparator" in self.themes:
            walk("comparator", None, [0, 1], 1, 700)
        if "adc" in self.themes:
            for channel in (0, 1, 3, 6, 7):
                walk("adc", channel, [i / 64 for i in range(70)], 200, 4000)
        if "pins" in self.themes:
            for pin in ("PB0", "PD1", "PD2", "PD4", "PD5", "PC0", "PC1", "PC2", "PC3"):
                if self.chance(0.6):
                    walk("pin", pin, [0, 1], 1, 200)
        return result

    def build(self):
        a = self.assembler
        for vector in range(26):
            a.org(2 * vector)
            self.absolute("jmp", "main" if vector == 0 else f"handler{vector}")
        a.org(0x40)
        self.place("main")
        self.set_up()
        self.place("loop")
        for i in range(self.number(0, 3)):
            self.subroutines.append(f"sub{i}")
        for _ in range(self.number(4, 30)):
            self.piece()
        self.absolute("jmp", "loop")
        names, self.subroutines = self.subroutines, []
        for name in names:
            self.place(name)
            for _ in range(self.number(1, 2)):
                self.piece()
            self.emit("ret")
        for vector in range(1, 26):
            self.handler(vector)
        eeprom = [self.number(0, 255) for _ in range(256)]
        return Case(
            seed=self.seed,
            words=a.words(),
            stimuli=sorted(self.stimuli(), key=lambda s: s[0]),
            eeprom=eeprom,
            cycles=self.cycles,
            themes=self.themes,
            listing=self.listing,
        )


def generate(seed, cycles=20_000, themes=None):
    """The program of a seed; `themes` forces a set of themes."""
    return Generator(seed, cycles, themes).build()
