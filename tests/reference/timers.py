"""Timers 0, 1 and 2 and their prescalers, stepped one clock cycle at a time (timing reference,
section 3).

`Timer.edge` is called at every clock edge with the state before that edge; CPU writes of the same
edge are applied by the machine afterwards, so hardware always acts with the old settings and a
TCNT write wins over the count.
"""

NORMAL, CTC, FAST, PHASE, PHASE_FREQUENCY, RESERVED = (
    "normal",
    "ctc",
    "fast",
    "phase",
    "phase and frequency",
    "reserved",
)

# mode number -> (kind, TOP); TOP is a number, "A" for OCRnA or "I" for ICR1 (3.3)
MODES_8 = {
    0: (NORMAL, 0xFF),
    1: (PHASE, 0xFF),
    2: (CTC, "A"),
    3: (FAST, 0xFF),
    4: (RESERVED, 0xFF),
    5: (PHASE, "A"),
    6: (RESERVED, 0xFF),
    7: (FAST, "A"),
}
MODES_16 = {
    0: (NORMAL, 0xFFFF),
    1: (PHASE, 0x00FF),
    2: (PHASE, 0x01FF),
    3: (PHASE, 0x03FF),
    4: (CTC, "A"),
    5: (FAST, 0x00FF),
    6: (FAST, 0x01FF),
    7: (FAST, 0x03FF),
    8: (PHASE_FREQUENCY, "I"),
    9: (PHASE_FREQUENCY, "A"),
    10: (PHASE, "I"),
    11: (PHASE, "A"),
    12: (CTC, "I"),
    13: (RESERVED, 0xFFFF),
    14: (FAST, "I"),
    15: (FAST, "A"),
}

# clock select -> prescaler tap; 0 stopped, "fall"/"rise" the Tn pin (3.1)
CLOCKS_01 = {0: 0, 1: 1, 2: 8, 3: 64, 4: 256, 5: 1024, 6: "fall", 7: "rise"}
CLOCKS_2 = {0: 0, 1: 1, 2: 8, 3: 32, 4: 64, 5: 128, 6: 256, 7: 1024}

TOV, OCFA, OCFB, ICF = 0x01, 0x02, 0x04, 0x20  # bits of TIFRn and TIMSKn


class Prescaler:
    """A 10-bit counter of clock cycles.  `held` is TSM holding it in reset."""

    def __init__(self):
        self.counter = 0
        self.held = False

    def edge(self):
        """Count one cycle; afterwards ticks(n) says whether tap n has an active edge now."""
        if not self.held:
            self.counter = (self.counter + 1) % 1024

    def ticks(self, n):
        return not self.held and self.counter % n == 0


class Timer:
    def __init__(self, bits, modes, clocks, prescaler):
        self.max = (1 << bits) - 1
        self.modes, self.clocks, self.prescaler = modes, clocks, prescaler
        self.mode = 0  # WGM
        self.cs = 0
        self.com = [0, 0]  # COMA, COMB
        self.tcnt = 0
        self.up = True  # counting direction in the phase modes
        self.ocr = [0, 0]  # the compare values in use
        self.buffer = [0, 0]  # what the CPU sees in PWM modes
        self.icr = 0
        self.blocked = False  # a TCNT write blocks compares at the next timer clock
        self.flags = 0
        self.mask = 0  # TIMSK
        self.oc = [0, 0]  # the internal OC registers

    # ---- what the mode means ----

    @property
    def kind(self):
        kind = self.modes[self.mode][0]
        return NORMAL if kind == RESERVED else kind  # our choice for the reserved modes

    @property
    def is_pwm(self):
        return self.kind in (FAST, PHASE, PHASE_FREQUENCY)

    @property
    def top(self):
        top = self.modes[self.mode][1]
        return self.ocr[0] if top == "A" else self.icr if top == "I" else top

    @property
    def top_is_icr(self):
        return self.modes[self.mode][1] == "I"

    def toggles_in_pwm(self, x):
        """COM = 1 in a PWM mode: only OCnA, and only in T0, T2 modes 5, 7 and T1 modes 9, 11, 14,
        15 (3.4).
        """
        if x != 0:
            return False
        return self.mode in ((5, 7) if self.max == 0xFF else (9, 11, 14, 15))

    def connected(self, x):
        """Does OCnx replace the PORT bit?"""
        if self.com[x] == 0:
            return False
        if self.is_pwm and self.com[x] == 1:
            return self.toggles_in_pwm(x)
        return True

    # ---- output compare actions ----

    def match_level(self, x, down):
        """What a compare match does to OCnx; `down` only matters in the phase modes."""
        com = self.com[x]
        if com == 0:
            return
        if com == 1:
            if not self.is_pwm or self.toggles_in_pwm(x):
                self.oc[x] ^= 1
            return
        level = 0 if com == 2 else 1  # clear on match, set on match
        if down:
            level ^= 1
        self.oc[x] = level

    def bottom_level(self, x):
        """Fast PWM: the opposite of the match happens at BOTTOM."""
        if self.com[x] in (2, 3):
            self.oc[x] = 1 if self.com[x] == 2 else 0

    def force(self, x):
        """FOCnx: acts like a match in the non-PWM modes, without flag or clear."""
        if not self.is_pwm:
            self.match_level(x, down=False)

    # ---- one timer clock (3.2) ----

    def compare(self, t, down):
        for x, flag in ((0, OCFA), (1, OCFB)):
            if t == self.ocr[x] and not self.blocked:
                self.flags |= flag
                self.match_level(x, down)

    def tick(self):
        kind, t, top = self.kind, self.tcnt, self.top
        if kind in (NORMAL, CTC):
            self.compare(t, down=False)
            if t == self.max:
                self.flags |= TOV
            if self.top_is_icr and t == top:
                self.flags |= ICF
            self.tcnt = 0 if t == top or t == self.max else t + 1
            self.up = True
        elif kind == FAST:
            self.compare(t, down=False)
            if t == top:
                self.flags |= TOV
                if self.top_is_icr:
                    self.flags |= ICF
            if t == top or t == self.max:  # TOP -> BOTTOM (or from beyond TOP through MAX)
                self.tcnt = 0
                self.bottom_level(0)  # set at BOTTOM wins over a match at TOP
                self.bottom_level(1)
                self.ocr = list(self.buffer)
            else:
                self.tcnt = t + 1
            self.up = True
        else:
            self.tick_dual_slope(kind, t, top)
        self.blocked = False

    def tick_dual_slope(self, kind, t, top):
        if t == top or t == self.max:
            self.up = False
        if t == 0:
            self.up = True
            self.flags |= TOV  # leaving BOTTOM
        if t == top:
            if self.top_is_icr:
                self.flags |= ICF
            if kind == PHASE:
                # an OCR that leaves TOP: the pin takes the up-counting level at once (3.4 (a))
                self.load_buffers(t, down=False)
        if t == 0 and kind == PHASE_FREQUENCY:
            # our choice: the mirror image at BOTTOM
            self.load_buffers(t, down=True)
        self.compare(t, down=not self.up)
        if top == 0 and t == 0:
            self.tcnt = 0
        else:
            self.tcnt = t + 1 if self.up else t - 1

    def load_buffers(self, t, down):
        """Take over the buffered OCRs; an output whose old value was matched here and whose new one
        is not gets the level of the match it will now have had (or have) elsewhere.
        """
        old, self.ocr = self.ocr, list(self.buffer)
        for x in (0, 1):
            if old[x] == t and self.ocr[x] != t and self.com[x] in (2, 3):
                self.match_level(x, down)

    def edge(self, pin_edge):
        """One clock edge; `pin_edge` is "rise", "fall" or None, as the Tn edge detector delivers
        it at this edge.
        """
        clock = self.clocks[self.cs]
        if clock == 0:
            return
        if clock in ("rise", "fall"):
            if pin_edge == clock:
                self.tick()
        elif clock == 1 or self.prescaler.ticks(clock):
            self.tick()

    # ---- CPU access ----

    def write_tcnt(self, value):
        self.tcnt = value
        self.blocked = True

    def write_ocr(self, x, value):
        self.buffer[x] = value
        if not self.is_pwm:
            self.ocr[x] = value

    def read_ocr(self, x):
        return self.buffer[x] if self.is_pwm else self.ocr[x]

    def set_mode(self, mode):
        """TCNT is kept.  Outside the PWM modes the double buffer is transparent (3.3)."""
        self.mode = mode
        if not self.is_pwm:
            self.ocr = list(self.buffer)
