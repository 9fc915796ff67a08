"""Comparator, ADC, EEPROM and watchdog, stepped one clock cycle at a time (timing reference,
sections 4, 5, 6, 8.2).
"""

from typing import ClassVar


class Comparator:
    """Two flip-flops in a row behind the analogue output: a level change in cycle x is seen in ACO
    from edge x+2.
    """

    def __init__(self):
        self.level = 0  # analogue output in the present cycle, given from outside
        self.first = 0
        self.aco = 0
        self.aci = 0
        self.acie = 0
        self.other = 0  # ACD, ACBG, ACIC and ACIS as written
        self.rose = self.fell = False  # at the latest edge

    def edge(self):
        old = self.aco
        self.aco, self.first = self.first, self.level
        self.rose, self.fell = old == 0 and self.aco == 1, old == 1 and self.aco == 0
        mode = self.other & 0x03
        if (
            (mode == 0 and (self.rose or self.fell))
            or (mode == 2 and self.fell)
            or (mode == 3 and self.rose)
        ):
            self.aci = 1

    def read(self):
        return self.other | self.aco << 5 | self.aci << 4 | self.acie << 3

    def write(self, value):
        """ACO is read only; ACI is cleared by writing 1 (section 5)."""
        self.other = value & 0xC7
        self.acie = value >> 3 & 1
        if value & 0x10:
            self.aci = 0


class Adc:
    """Conversions counted in CPU cycles; N CPU cycles make one ADC clock (section 4)."""

    def __init__(self, aref, avcc):
        self.references = {0: aref, 1: avcc, 3: 1.1}
        self.volts = dict.fromkeys(range(8), 0.0)  # present input voltages
        self.volts[8] = 0.314  # temperature sensor at 25 C
        self.volts[14], self.volts[15] = 1.1, 0.0  # bandgap, ground
        self.admux = 0
        self.adcsrb = 0
        self.aden = self.adate = self.adif = self.adie = self.adps = 0
        self.result = 0
        self.adch_locked = False
        self.prescaler = 0  # CPU cycles since the last rising ADC clock edge
        self.first = True  # the next conversion is the long one
        self.waiting = False  # ADSC written, waiting for the ADC clock edge
        self.synchroniser = 0  # CPU cycles until an auto-triggered conversion starts
        self.running = False
        self.elapsed = 0  # CPU cycles since the start of the conversion
        self.sample_at = self.done_at = 0
        self.channel = self.reference = 0
        self.sampled = 0

    @property
    def n(self):
        return max(2, 1 << self.adps)

    @property
    def adsc(self):
        """1 during any conversion however started, from the request on."""
        return int(self.waiting or self.running or self.synchroniser > 0)

    def begin(self, triggered):
        """The first ADC clock edge of a conversion: MUX and REFS are locked here."""
        n = self.n
        self.waiting, self.running, self.elapsed = False, True, 0
        self.channel, self.reference = self.admux & 0x0F, self.admux >> 6
        if self.first:
            self.sample_at, self.done_at = 27 * n // 2, 25 * n  # 13.5 and 25 ADC clocks
        elif triggered:
            self.sample_at, self.done_at = 2 * n, 27 * n // 2  # 2 and 13.5
        else:
            self.sample_at, self.done_at = 3 * n // 2, 13 * n  # 1.5 and 13
        self.first = False

    def convert(self):
        """floor(Vin * 1024 / Vref), in whole microvolts."""
        volts, reference = self.volts.get(self.channel, 0.0), self.references[self.reference]
        value = round(volts * 1e6) * 1024 // round(reference * 1e6)
        return min(max(value, 0), 1023)

    def edge(self):
        if not self.aden:
            return
        self.prescaler = (self.prescaler + 1) % self.n
        if self.running:
            self.elapsed += 1
            if self.elapsed == self.sample_at:
                self.sampled = self.convert()
            if self.elapsed == self.done_at:
                self.running = False
                self.adif = 1
                if not self.adch_locked:
                    self.result = self.sampled
                if (
                    self.adate and self.adcsrb & 7 == 0
                ):  # free running: the next one starts right here
                    self.begin(triggered=False)
        elif self.synchroniser > 0:
            self.synchroniser -= 1
            if self.synchroniser == 0:
                self.prescaler = 0
                self.begin(triggered=True)
        elif self.waiting and self.prescaler == 0:
            self.begin(triggered=False)

    def trigger(self):
        """A positive edge of the selected flag at this clock edge."""
        if self.aden and self.adate and not self.adsc:
            self.synchroniser = 3

    def start(self):
        """ADSC written 1 at this clock edge (or idle sleep entered)."""
        if self.aden and not self.adsc:
            self.waiting = True
            if self.prescaler == 0:
                self.begin(triggered=False)

    def read_adcsra(self):
        return (
            self.aden << 7
            | self.adsc << 6
            | self.adate << 5
            | self.adif << 4
            | self.adie << 3
            | self.adps
        )

    def write_adcsra(self, value):
        old_aden = self.aden
        self.aden, self.adate, self.adie, self.adps = (
            value >> 7 & 1,
            value >> 5 & 1,
            value >> 3 & 1,
            value & 7,
        )
        if value & 0x10:
            self.adif = 0
        if not self.aden:  # aborts at once
            self.waiting = self.running = False
            self.synchroniser = 0
            self.first = True
        elif not old_aden:
            self.prescaler = 0  # the prescaler was held at 0 while ADEN = 0
        if value & 0x40:
            self.start()

    def presented(self):
        return self.result << 6 if self.admux & 0x20 else self.result

    def read_adcl(self):
        self.adch_locked = True
        return self.presented() & 0xFF

    def read_adch(self):
        self.adch_locked = False
        return self.presented() >> 8


class Eeprom:
    """Section 6; the halts of the CPU are returned by write()."""

    TIMES: ClassVar = {0: 26368, 1: 14400, 2: 14400, 3: 26368}  # programming time by EEPM

    def __init__(self):
        self.memory = [0xFF] * 1024
        self.address = self.data = 0
        self.eepm = self.eerie = 0
        self.eempe_left = 0  # cycles until EEMPE clears itself; EEMPE reads 1 while not 0
        self.busy_left = 0  # cycles until EEPE clears itself

    def edge(self):
        if self.eempe_left:
            self.eempe_left -= 1
        if self.busy_left:
            self.busy_left -= 1

    @property
    def busy(self):
        return self.busy_left > 0

    def read_eecr(self):
        return (
            self.eepm << 4 | self.eerie << 3 | int(self.eempe_left > 0) << 2 | int(self.busy) << 1
        )

    def write_eecr(self, value, touched=0xFF):
        """`touched` are the bits written (only one for SBI and CBI).  Returns for how many cycles
        the CPU is halted.
        """
        if touched & 0x08:
            self.eerie = value >> 3 & 1
        if not self.busy:
            self.eepm = self.eepm & ~(touched >> 4) & 3 | (value & touched) >> 4 & 3
        enabled = self.eempe_left > 0
        if value & touched & 0x04 and not enabled:
            self.eempe_left = 4  # open for writes 1, 2 and 3 cycles later
        if value & touched & 0x02 and enabled and not self.busy:
            self.program()
            return 2
        if value & touched & 0x01 and not self.busy:
            self.data = self.memory[self.address]
            return 4
        return 0

    def program(self):
        self.busy_left = self.TIMES[self.eepm]
        old = self.memory[self.address]
        self.memory[self.address] = {0: self.data, 1: 0xFF, 2: old & self.data, 3: old}[self.eepm]


class Watchdog:
    """Section 8.2, with the 128 kHz oscillator at its nominal 62.5 CPU cycles."""

    def __init__(self):
        self.count = 0  # CPU cycles since WDR, reset or time-out
        self.wdif = self.wdie = self.wde = self.wdp = 0
        self.wdce_left = 0
        self.wants_reset = False

    @property
    def timeout(self):
        return 128000 << min(self.wdp, 9)

    def edge(self):
        if self.wdce_left:
            self.wdce_left -= 1
        self.count += 1
        if self.count >= self.timeout:
            self.count = 0
            if self.wdie:
                if self.wdif and self.wde:  # the vector never ran: the next time-out resets
                    self.wants_reset = True
                self.wdif = 1
            elif self.wde:
                self.wants_reset = True

    def reset_count(self):
        self.count = 0

    def acknowledge(self):
        self.wdif = 0
        if self.wde:
            self.wdie = 0

    def read(self):
        return (
            self.wdif << 7
            | self.wdie << 6
            | (self.wdp >> 3) << 5
            | int(self.wdce_left > 0) << 4
            | self.wde << 3
            | self.wdp & 7
        )

    def write(self, value, wdrf):
        if value & 0x80:
            self.wdif = 0
        self.wdie = value >> 6 & 1
        if self.wdce_left > 0 and not value & 0x10:
            self.wdp = (value >> 5 & 1) << 3 | value & 7
            self.wde = value >> 3 & 1 | wdrf
            self.wdce_left = 0
        else:
            if value & 0x08:
                self.wde = 1
            if value & 0x10 and value & 0x08:
                self.wdce_left = 4
