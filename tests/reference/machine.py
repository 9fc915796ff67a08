"""RefChip: an ATmega328P that steps cycle by cycle and does nothing clever.

Time (timing reference, section 0): cycle k is the interval after clock edge k.  `edge()` makes
one clock edge:

    1. everything in hardware moves, decided by the state before the edge (timers tick, ...)
    2. then the CPU's writes of the instruction that ends at this edge take effect ("land")
    3. then outside levels for the new cycle apply

An instruction that starts in cycle k and takes L cycles makes L edges; its writes land at edge
k + L, the start of the next instruction.  IN reads in cycle k, loads read in cycle k + 1.

Not modelled: SPI, TWI, USART, SPM, CLKPR, PRR, asynchronous timer 2, capture from the comparator.
"""

from . import instructions
from .assemble import REGISTERS
from .peripherals import Adc, Comparator, Eeprom, Watchdog
from .timers import CLOCKS_01, CLOCKS_2, ICF, MODES_8, MODES_16, OCFA, OCFB, TOV, Prescaler, Timer

INTERRUPT_ENTRY_CYCLES = 3  # dead cycles before the instruction at the vector starts (2.2)
IDLE_WAKE_CYCLES = 4  # extra halt when an interrupt ends a sleep
START_UP_CYCLES = 6  # RC start-up from power-down
RESET_CYCLES = 14 + 512_000  # after a reset, SUT = 10: 8192 cycles of the 128 kHz oscillator (8.1)
BOOT_START = 0x3800  # word address of the boot section for BOOTSZ = 00

I = 7  # noqa: E741 - the I bit in SREG

# PORT bits replaced by timer outputs: (port index, bit, timer index, x)
OC_PINS = [(0, 1, 1, 0), (0, 2, 1, 1), (0, 3, 2, 0), (2, 6, 0, 0), (2, 5, 0, 1), (2, 3, 2, 1)]

WATCHDOG_VECTOR = 6


class WatchdogReset(Exception):
    pass


class RefChip:
    def __init__(self, words, stimuli=(), eeprom=(), aref=3.0, avcc=3.0):
        """Make a chip at power-on.

        `words`: flash from address 0.  `stimuli`: (cycle, kind, which, value): the level changes
        at that cycle.  Kinds are "comparator" (which None, value 0 or 1), "pin" ("PB0" style, 0, 1
        or None for not connected) and "adc" (channel number, volts).
        """
        self.words = list(words) + [0xFFFF] * (16384 - len(words))
        self.stimuli = sorted(stimuli, key=lambda s: s[0])
        self.cycle = 0
        self.pc = 0  # in words
        self.r = [0] * 32
        self.f = [0] * 8
        self.sp = 0x08FF
        self.sram = [0] * 0x800
        self.decoded = {}
        self.aref, self.avcc = aref, avcc
        self.eeprom = Eeprom()
        self.eeprom.memory[: len(eeprom)] = eeprom
        self.mcusr = 0x01  # PORF
        self.driven, self.outside = [0, 0, 0], [0, 0, 0]  # external drive: which bits, which levels
        self.reset_peripherals()
        self.apply_stimuli()

    def reset_peripherals(self):
        self.prescaler01, self.prescaler2 = Prescaler(), Prescaler()
        self.timers = [
            Timer(8, MODES_8, CLOCKS_01, self.prescaler01),
            Timer(16, MODES_16, CLOCKS_01, self.prescaler01),
            Timer(8, MODES_8, CLOCKS_2, self.prescaler2),
        ]
        self.temp = 0  # T1's shared high byte
        self.gtccr = 0
        self.comparator = Comparator()
        self.adc = Adc(self.aref, self.avcc)
        self.adc_signal = 0  # the selected trigger flag as last seen
        self.watchdog = Watchdog()
        self.port, self.ddr = [0, 0, 0], [0, 0, 0]  # B, C, D
        self.levels = [(0, 0, 0)] * 9  # pin levels: [0] in the present cycle, [i] i cycles ago
        self.tccr1b_high = 0  # ICNC1 and ICES1 as written
        self.filtered_icp = 0
        self.pcifr = self.eifr = self.eimsk = self.pcicr = self.eicra = 0
        self.pcmsk = [0, 0, 0]
        self.plain = dict.fromkeys((62, 74, 75, 83, 126, 127), 0)  # GPIOR0-2, SMCR, DIDR0-1
        self.mcucr = 0
        self.ivce_left = 0  # cycles in which IVSEL may be written
        self.iv_hold_until = -1  # boundaries up to this cycle take no interrupt
        self.iv_shadow = False  # the instruction after the IVSEL write, or after RETI, runs first
        self.request = (
            None  # interrupt vector sampled in the last cycle of the instruction that just ended
        )
        self.asleep = False
        self.io_stopped = False  # clk_IO is off in the deeper sleep modes
        self.landing = []  # writes that take effect at the next instruction's start
        self.halt = 0  # EEPROM halts asked for by the landing write

    # ---- one clock edge --------------------------------------------------------------------------

    def edge(self, last=False):
        """Go on by one cycle.

        `last`: this edge ends the running instruction.  The interrupt request is sampled in the
        cycle before it, and the writes land.
        """
        if last:
            self.request = self.pending_vector() if self.f[I] else None
        self.cycle += 1
        self.watchdog.edge()
        self.eeprom.edge()
        if self.ivce_left:
            self.ivce_left -= 1
        if not self.io_stopped:
            self.hardware()
        if last:
            for write in self.landing:
                write()
            self.landing = []
        self.see_trigger()
        self.apply_stimuli()
        self.levels[0] = self.pin_levels()
        if self.watchdog.wants_reset:
            raise WatchdogReset

    def hardware(self):
        self.levels.insert(0, None)  # from here on levels[i] is i cycles before the new cycle
        self.levels.pop()
        self.prescaler01.edge()
        self.prescaler2.edge()
        self.comparator.edge()
        self.external_interrupts()
        self.capture()
        self.timers[0].edge(self.pin_edge(2, 4))  # T0 is PD4
        self.timers[1].edge(self.pin_edge(2, 5))  # T1 is PD5
        self.timers[2].edge(None)
        self.adc.edge()
        self.see_trigger()

    def see_trigger(self):
        """A positive edge of the flag that ADTS selects starts an auto-triggered conversion."""
        signal = self.adc_trigger_flag()
        if signal and not self.adc_signal:
            self.adc.trigger()
        self.adc_signal = signal

    def adc_trigger_flag(self):
        t0, t1 = self.timers[0].flags, self.timers[1].flags
        flags = [
            0,
            self.comparator.aci,
            self.eifr & 1,
            t0 & OCFA,
            t0 & TOV,
            t1 & OCFB,
            t1 & TOV,
            t1 & ICF,
        ]
        return int(flags[self.adc.adcsrb & 7] != 0)

    # ---- pins (section 9) ------------------------------------------------------------------------

    def pin_levels(self):
        """The level of every pin in the present cycle, as three bytes (B, C, D)."""
        output = list(self.port)
        for port, bit, timer, x in OC_PINS:
            t = self.timers[timer]
            if t.com[x] and t.connected(x):
                output[port] = output[port] & ~(1 << bit) | t.oc[x] << bit
        pull_up = not self.mcucr & 0x10
        levels = []
        for i in range(3):
            floating = self.port[i] if pull_up else 0
            undriven = self.driven[i] & self.outside[i] | ~self.driven[i] & floating
            levels.append(
                (self.ddr[i] & output[i] | ~self.ddr[i] & undriven) & (0xFF, 0x7F, 0xFF)[i]
            )
        return tuple(levels)

    def pin(self, name):
        return self.levels[0]["BCD".index(name[1])] >> int(name[2]) & 1

    def apply_stimuli(self):
        while self.stimuli and self.stimuli[0][0] <= self.cycle:
            _, kind, which, value = self.stimuli.pop(0)
            if kind == "comparator":
                self.comparator.level = value
            elif kind == "adc":
                self.adc.volts[which] = value
            else:
                port, bit = "BCD".index(which[1]), int(which[2])
                self.driven[port] = self.driven[port] & ~(1 << bit) | (value is not None) << bit
                self.outside[port] = self.outside[port] & ~(1 << bit) | (value or 0) << bit

    def pin_edge(self, port, bit):
        """Edge of a pin three cycles after its level changed (Tn and ICP1 edge detectors)."""
        new, old = self.levels[3][port] >> bit & 1, self.levels[4][port] >> bit & 1
        return None if new == old else "rise" if new else "fall"

    def external_interrupts(self):
        for n in (0, 1):  # INT0 is PD2, INT1 is PD3; the flag comes 2 cycles after the change
            new, old = self.levels[2][2] >> 2 + n & 1, self.levels[3][2] >> 2 + n & 1
            sense = self.eicra >> 2 * n & 3
            if new != old and (sense == 1 or (sense == 2 and not new) or (sense == 3 and new)):
                self.eifr |= 1 << n
        for i in range(3):  # pin changes: 3 cycles
            if (self.levels[3][i] ^ self.levels[4][i]) & self.pcmsk[i]:
                self.pcifr |= 1 << i

    def external_requests(self):
        """Flags, and in level mode the pins themselves, behind the same synchronisers."""
        requests = self.eifr
        for n in (0, 1):
            if self.eicra >> 2 * n & 3 == 0 and not self.levels[2][2] >> 2 + n & 1:
                requests |= 1 << n
        return requests

    def capture(self):
        """Input capture from ICP1 (PB0); the noise canceler wants four equal samples and comes
        four cycles later.
        """
        t1 = self.timers[1]
        edge = self.pin_edge(0, 0)
        samples = [level[0] & 1 for level in self.levels[4:8]]
        old = self.filtered_icp
        if samples == [1] * 4 or samples == [0] * 4:
            self.filtered_icp = samples[0]
        if self.tccr1b_high & 0x80:  # ICNC1
            edge = None if self.filtered_icp == old else "rise" if self.filtered_icp else "fall"
        if (
            edge is not None
            and not t1.top_is_icr
            and (edge == "rise") == bool(self.tccr1b_high & 0x40)
        ):
            t1.icr = t1.tcnt
            t1.flags |= ICF

    # ---- interrupts (section 2) ------------------------------------------------------------------

    def pending_vector(self):
        """The lowest numbered vector with flag and enable set."""
        if self.io_stopped:
            return WATCHDOG_VECTOR if self.watchdog.wdif and self.watchdog.wdie else None
        t0, t1, t2 = self.timers
        external, changed = self.external_requests() & self.eimsk, self.pcifr & self.pcicr
        a0, a1, a2 = t0.flags & t0.mask, t1.flags & t1.mask, t2.flags & t2.mask
        requests = [
            (1, external & 1),
            (2, external & 2),
            (3, changed & 1),
            (4, changed & 2),
            (5, changed & 4),
            (WATCHDOG_VECTOR, self.watchdog.wdif and self.watchdog.wdie),
            (7, a2 & OCFA),
            (8, a2 & OCFB),
            (9, a2 & TOV),
            (10, a1 & ICF),
            (11, a1 & OCFA),
            (12, a1 & OCFB),
            (13, a1 & TOV),
            (14, a0 & OCFA),
            (15, a0 & OCFB),
            (16, a0 & TOV),
            (21, self.adc.adif and self.adc.adie),
            (22, self.eeprom.eerie and not self.eeprom.busy),
            (23, self.comparator.aci and self.comparator.acie),
        ]
        for vector, request in requests:
            if request:
                return vector
        return None

    def acknowledge(self, vector):
        """Running the vector clears the flag (EE READY has none)."""
        if vector in (1, 2):
            self.eifr &= ~(1 << vector - 1)
        elif vector in (3, 4, 5):
            self.pcifr &= ~(1 << vector - 3)
        elif vector == WATCHDOG_VECTOR:
            self.watchdog.acknowledge()
        elif 7 <= vector <= 16:
            timer, flag = {
                7: (2, OCFA),
                8: (2, OCFB),
                9: (2, TOV),
                10: (1, ICF),
                11: (1, OCFA),
                12: (1, OCFB),
                13: (1, TOV),
                14: (0, OCFA),
                15: (0, OCFB),
                16: (0, TOV),
            }[vector]
            self.timers[timer].flags &= ~flag
        elif vector == 21:
            self.adc.adif = 0
        elif vector == 23:
            self.comparator.aci = 0

    def about_to_interrupt(self):
        """Is the next step an interrupt entry (or part of a sleep) instead of an instruction?"""
        if self.asleep:
            return True
        held = self.iv_shadow or self.cycle <= self.iv_hold_until  # by IVCE (2.1)
        return self.request is not None and self.f[I] == 1 and not held

    def enter(self, vector):
        self.acknowledge(vector)
        self.see_trigger()
        instructions.push_pc(self)
        for write in self.landing:
            write()
        self.landing = []
        self.f[I] = 0
        self.pc = 2 * vector + (BOOT_START if self.mcucr & 0x02 else 0)
        for i in range(INTERRUPT_ENTRY_CYCLES):
            self.edge(last=i == INTERRUPT_ENTRY_CYCLES - 1)

    # ---- running ---------------------------------------------------------------------------------

    def step(self):
        """One instruction, or one interrupt entry, or one cycle of sleep.  Says which."""
        try:
            return self.step_without_reset()
        except WatchdogReset:
            self.watchdog_restart()
            return "reset"

    def step_without_reset(self):
        if self.asleep:
            if self.request is None:
                self.edge(last=True)
                return "asleep"
            self.wake()
            return "interrupt"
        if self.about_to_interrupt():
            self.enter(self.request)
            return "interrupt"
        self.iv_shadow = False
        self.instruction()
        return "instruction"

    def instruction(self):
        start = self.cycle
        w = self.words[self.pc]
        if w not in self.decoded:
            self.decoded[w] = instructions.decode(w)
        self.pc = (self.pc + 1) & 0x3FFF
        self.halt = 0
        length = self.decoded[w](self, w)
        while self.cycle < start + length - 1:
            self.edge()
        self.edge(last=True)
        for i in range(self.halt):  # the EEPROM halts the CPU after the instruction
            self.edge(last=i == self.halt - 1)

    def wake(self):
        """An interrupt is pending in sleep: start-up (deeper modes), four cycles of halt, then the
        normal entry.
        """
        if self.io_stopped:
            for _ in range(START_UP_CYCLES):
                self.edge()
            self.io_stopped = False
        for i in range(IDLE_WAKE_CYCLES):
            self.edge(last=i == IDLE_WAKE_CYCLES - 1)
        self.asleep = False
        self.enter(self.request)

    def watchdog_restart(self):
        """Registers, SRAM, EEPROM and a running EEPROM write are kept (8.3).

        Nothing else goes on before the start-up time is over.
        """
        level, volts = self.comparator.level, self.adc.volts
        self.reset_peripherals()
        self.comparator.level, self.adc.volts = level, volts
        for _ in range(1 + RESET_CYCLES):
            self.cycle += 1
            self.eeprom.edge()
            self.apply_stimuli()
        self.levels = [self.pin_levels()] * len(self.levels)
        self.comparator.aco = self.comparator.first = self.comparator.level
        self.mcusr |= 0x08
        self.watchdog.wde = 1
        self.f = [0] * 8
        self.sp = 0x08FF
        self.pc = 0

    # ---- what the instructions call --------------------------------------------------------------

    def flash(self, a):
        return self.words[a]

    def program_byte(self, a):
        return self.words[a >> 1 & 0x3FFF] >> 8 * (a & 1) & 0xFF

    def wait(self):
        self.edge()

    def later(self, action):
        self.landing.append(action)

    def set_i(self, value):
        self.f[I] = value

    def return_from_interrupt(self):
        self.f[I] = 1
        self.iv_shadow = True

    def write(self, a, value):
        self.landing.append(lambda: self.store(a, value))

    def write_bit(self, a, bit, value):
        self.landing.append(lambda: self.store(a, value << bit, 1 << bit))

    def spm(self):
        return 1

    def watchdog_reset(self):
        self.watchdog.reset_count()

    def sleep(self):
        smcr = self.plain[0x53]
        if smcr & 1:
            self.later(lambda: self.fall_asleep(smcr >> 1 & 7))

    def fall_asleep(self, mode):
        self.asleep = True
        self.io_stopped = mode != 0
        if mode in (0, 1):
            self.adc.start()  # entering idle or ADC noise reduction starts a conversion

    # ---- data space ------------------------------------------------------------------------------

    @property
    def sreg(self):
        return sum(bit << i for i, bit in enumerate(self.f))

    def read(self, a):
        """A CPU read in the present cycle, with its side effects."""
        if a == 0x84:  # TCNT1L, ICR1L latch the high byte (3.5)
            self.temp = self.timers[1].tcnt >> 8
        elif a == 0x86:
            self.temp = self.timers[1].icr >> 8
        elif a == 0x78:
            return self.adc.read_adcl()
        elif a == 0x79:
            return self.adc.read_adch()
        return self.peek(a)

    def peek(self, a):
        """Data space without side effects."""
        if a < 0x20:
            return self.r[a]
        if 0x100 <= a < 0x900:
            return self.sram[a - 0x100]
        name = REGISTER_NAMES.get(a)
        return READERS[name](self) if name in READERS else self.plain.get(a, 0)

    def store(self, a, value, touched=0xFF):
        """A CPU write lands.  `touched` is one bit for SBI and CBI (which never come here for
        r0-r31 or SRAM).
        """
        if a < 0x20:
            self.r[a] = value
        elif 0x100 <= a < 0x900:
            self.sram[a - 0x100] = value
        elif REGISTER_NAMES.get(a) in WRITERS:
            WRITERS[REGISTER_NAMES[a]](self, value, touched)
        elif a in self.plain:
            mask = {0x53: 0x0F, 0x7E: 0x3F, 0x7F: 0x03}.get(a, 0xFF)
            self.plain[a] = (self.plain[a] & ~touched | value & touched) & mask


# ---- I/O registers: how they read and what writing does ------------------------------------------

REGISTER_NAMES = {int(address): name for name, address in REGISTERS.items()}
READERS = {}  # register name -> function(chip)
WRITERS = {}  # register name -> function(chip, value, touched)


def reader(name):
    def register(function):
        READERS[name] = function
        return function

    return register


def writer(name):
    def register(function):
        WRITERS[name] = function
        return function

    return register


READERS["SREG"] = lambda chip: chip.sreg
READERS["SPL"] = lambda chip: chip.sp & 0xFF
READERS["SPH"] = lambda chip: chip.sp >> 8


@writer("SREG")
def write_sreg(chip, value, touched):
    chip.f = [value >> i & 1 for i in range(8)]


@writer("SPL")
def write_spl(chip, value, touched):
    chip.sp = chip.sp & 0xFF00 | value


@writer("SPH")
def write_sph(chip, value, touched):
    chip.sp = chip.sp & 0x00FF | value << 8


# ports


def define_port(i, letter):
    mask = 0x7F if letter == "C" else 0xFF

    def digital_input_disabled(chip):
        if letter == "C":
            return chip.plain[0x7E]
        if letter == "D":
            return (chip.plain[0x7F] & 3) << 6  # AIN0 is PD6, AIN1 is PD7
        return 0

    READERS["PIN" + letter] = lambda chip: (
        chip.levels[1][i] & ~digital_input_disabled(chip)
    )  # the level of one cycle ago
    READERS["DDR" + letter] = lambda chip: chip.ddr[i]
    READERS["PORT" + letter] = lambda chip: chip.port[i]

    @writer("PIN" + letter)
    def toggle(chip, value, touched):
        chip.port[i] ^= value & touched & mask

    @writer("DDR" + letter)
    def write_ddr(chip, value, touched):
        chip.ddr[i] = (chip.ddr[i] & ~touched | value & touched) & mask

    @writer("PORT" + letter)
    def write_port(chip, value, touched):
        chip.port[i] = (chip.port[i] & ~touched | value & touched) & mask


for _i, _letter in enumerate("BCD"):
    define_port(_i, _letter)


# flags and enables outside the timers

READERS["PCIFR"] = lambda chip: chip.pcifr
READERS["EIFR"] = lambda chip: chip.eifr
READERS["EIMSK"] = lambda chip: chip.eimsk
READERS["PCICR"] = lambda chip: chip.pcicr
READERS["EICRA"] = lambda chip: chip.eicra


@writer("PCIFR")
def write_pcifr(chip, value, touched):
    chip.pcifr &= ~(value & touched)


@writer("EIFR")
def write_eifr(chip, value, touched):
    chip.eifr &= ~(value & touched)


@writer("EIMSK")
def write_eimsk(chip, value, touched):
    chip.eimsk = (chip.eimsk & ~touched | value & touched) & 0x03


@writer("PCICR")
def write_pcicr(chip, value, touched):
    chip.pcicr = value & 0x07


@writer("EICRA")
def write_eicra(chip, value, touched):
    chip.eicra = value & 0x0F
    for n in (0, 1):
        if value >> 2 * n & 3 == 0:
            chip.eifr &= ~(1 << n)  # always cleared in level mode (2.1)


def define_pcmsk(i):
    READERS[f"PCMSK{i}"] = lambda chip: chip.pcmsk[i]

    @writer(f"PCMSK{i}")
    def write_pcmsk(chip, value, touched):
        chip.pcmsk[i] = value & (0xFF, 0x7F, 0xFF)[i]


for _i in range(3):
    define_pcmsk(_i)


# timers: what all three share


def define_timer(i):
    flag_mask = 0x27 if i == 1 else 0x07
    READERS[f"TIFR{i}"] = lambda chip: chip.timers[i].flags
    READERS[f"TIMSK{i}"] = lambda chip: chip.timers[i].mask
    READERS[f"TCCR{i}A"] = lambda chip: (
        chip.timers[i].com[0] << 6 | chip.timers[i].com[1] << 4 | chip.timers[i].mode & 3
    )

    @writer(f"TIFR{i}")
    def write_tifr(chip, value, touched):
        chip.timers[i].flags &= ~(value & touched)

    @writer(f"TIMSK{i}")
    def write_timsk(chip, value, touched):
        chip.timers[i].mask = value & flag_mask

    @writer(f"TCCR{i}A")
    def write_tccra(chip, value, touched):
        t = chip.timers[i]
        t.com = [value >> 6, value >> 4 & 3]
        t.set_mode(t.mode & ~3 | value & 3)


def define_8_bit_timer(i):
    READERS[f"TCCR{i}B"] = lambda chip: chip.timers[i].mode >> 2 << 3 | chip.timers[i].cs
    READERS[f"TCNT{i}"] = lambda chip: chip.timers[i].tcnt
    READERS[f"OCR{i}A"] = lambda chip: chip.timers[i].read_ocr(0)
    READERS[f"OCR{i}B"] = lambda chip: chip.timers[i].read_ocr(1)

    @writer(f"TCCR{i}B")
    def write_tccrb(chip, value, touched):
        t = chip.timers[i]
        t.cs = value & 7
        t.set_mode(t.mode & 3 | (value >> 3 & 1) << 2)
        if value & 0x80:
            t.force(0)
        if value & 0x40:
            t.force(1)

    @writer(f"TCNT{i}")
    def write_tcnt(chip, value, touched):
        chip.timers[i].write_tcnt(value)

    @writer(f"OCR{i}A")
    def write_ocra(chip, value, touched):
        chip.timers[i].write_ocr(0, value)

    @writer(f"OCR{i}B")
    def write_ocrb(chip, value, touched):
        chip.timers[i].write_ocr(1, value)


for _i in range(3):
    define_timer(_i)
define_8_bit_timer(0)
define_8_bit_timer(2)


# timer 1: the shared TEMP byte (3.5)

READERS["TCCR1B"] = lambda chip: (
    chip.tccr1b_high & 0xC0 | chip.timers[1].mode >> 2 << 3 | chip.timers[1].cs
)
READERS["TCNT1L"] = lambda chip: chip.timers[1].tcnt & 0xFF
READERS["TCNT1H"] = lambda chip: chip.temp
READERS["ICR1L"] = lambda chip: chip.timers[1].icr & 0xFF
READERS["ICR1H"] = lambda chip: chip.temp
READERS["OCR1AL"] = lambda chip: chip.timers[1].read_ocr(0) & 0xFF
READERS["OCR1AH"] = lambda chip: chip.timers[1].read_ocr(0) >> 8
READERS["OCR1BL"] = lambda chip: chip.timers[1].read_ocr(1) & 0xFF
READERS["OCR1BH"] = lambda chip: chip.timers[1].read_ocr(1) >> 8


@writer("TCCR1B")
def write_tccr1b(chip, value, touched):
    t = chip.timers[1]
    chip.tccr1b_high = value & 0xC0
    t.cs = value & 7
    t.set_mode(t.mode & 3 | (value >> 3 & 3) << 2)


@writer("TCCR1C")
def write_tccr1c(chip, value, touched):
    if value & 0x80:
        chip.timers[1].force(0)
    if value & 0x40:
        chip.timers[1].force(1)


def write_temp(chip, value, touched):
    chip.temp = value


for _name in ("TCNT1H", "ICR1H", "OCR1AH", "OCR1BH"):
    WRITERS[_name] = write_temp


@writer("TCNT1L")
def write_tcnt1l(chip, value, touched):
    chip.timers[1].write_tcnt(chip.temp << 8 | value)


@writer("ICR1L")
def write_icr1l(chip, value, touched):
    if chip.timers[1].top_is_icr:  # writable only in the modes that use it as TOP
        chip.timers[1].icr = chip.temp << 8 | value


@writer("OCR1AL")
def write_ocr1al(chip, value, touched):
    chip.timers[1].write_ocr(0, chip.temp << 8 | value)


@writer("OCR1BL")
def write_ocr1bl(chip, value, touched):
    chip.timers[1].write_ocr(1, chip.temp << 8 | value)


READERS["GTCCR"] = lambda chip: chip.gtccr


@writer("GTCCR")
def write_gtccr(chip, value, touched):
    """PSRSYNC and PSRASY clear a prescaler and read back 0, unless TSM holds them (3.1)."""
    tsm = bool(value & 0x80)
    for prescaler, bit in ((chip.prescaler01, 0x01), (chip.prescaler2, 0x02)):
        if value & bit or prescaler.held:
            prescaler.counter = 0
        prescaler.held = tsm and bool(value & bit)
    chip.gtccr = value & 0x83 if tsm else 0


# analogue, EEPROM, system

READERS["ACSR"] = lambda chip: chip.comparator.read()
READERS["ADCSRA"] = lambda chip: chip.adc.read_adcsra()
READERS["ADCSRB"] = lambda chip: chip.adc.adcsrb
READERS["ADMUX"] = lambda chip: chip.adc.admux
READERS["ADCL"] = lambda chip: chip.adc.presented() & 0xFF
READERS["ADCH"] = lambda chip: chip.adc.presented() >> 8
READERS["EECR"] = lambda chip: chip.eeprom.read_eecr()
READERS["EEDR"] = lambda chip: chip.eeprom.data
READERS["EEARL"] = lambda chip: chip.eeprom.address & 0xFF
READERS["EEARH"] = lambda chip: chip.eeprom.address >> 8
READERS["WDTCSR"] = lambda chip: chip.watchdog.read()
READERS["MCUSR"] = lambda chip: chip.mcusr
READERS["MCUCR"] = lambda chip: chip.mcucr & 0x12 | int(chip.ivce_left > 0)


@writer("ACSR")
def write_acsr(chip, value, touched):
    chip.comparator.write(value)


@writer("ADCSRA")
def write_adcsra(chip, value, touched):
    chip.adc.write_adcsra(value)


@writer("ADCSRB")
def write_adcsrb(chip, value, touched):
    chip.adc.adcsrb = value & 0x47


@writer("ADMUX")
def write_admux(chip, value, touched):
    chip.adc.admux = value & 0xEF


@writer("EECR")
def write_eecr(chip, value, touched):
    chip.halt = chip.eeprom.write_eecr(value, touched)


@writer("EEDR")
def write_eedr(chip, value, touched):
    if not chip.eeprom.busy:
        chip.eeprom.data = value


@writer("EEARL")
def write_eearl(chip, value, touched):
    if not chip.eeprom.busy:
        chip.eeprom.address = chip.eeprom.address & 0x300 | value


@writer("EEARH")
def write_eearh(chip, value, touched):
    if not chip.eeprom.busy:
        chip.eeprom.address = chip.eeprom.address & 0x0FF | (value & 3) << 8


@writer("WDTCSR")
def write_wdtcsr(chip, value, touched):
    chip.watchdog.write(value, wdrf=chip.mcusr >> 3 & 1)


@writer("MCUSR")
def write_mcusr(chip, value, touched):
    chip.mcusr &= value


@writer("MCUCR")
def write_mcucr(chip, value, touched):
    chip.mcucr = chip.mcucr & ~0x10 | value & 0x10
    if value & 0x01:  # IVCE: interrupts are held off for four cycles
        chip.ivce_left = 4
        chip.iv_hold_until = chip.cycle + 4
    elif chip.ivce_left:
        chip.mcucr = chip.mcucr & ~0x02 | value & 0x02
        chip.ivce_left = 0
        chip.iv_hold_until = -1
        chip.iv_shadow = True  # and one instruction runs first
