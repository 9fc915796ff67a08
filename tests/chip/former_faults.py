"""Small programs on which the package once differed from the reference, kept for good."""

from tests.reference import assemble as asm
from tests.reference.assemble import (
    ADCSRA,
    ADMUX,
    DDRB,
    DDRD,
    EICRA,
    EIFR,
    ICR1H,
    ICR1L,
    OCR0A,
    OCR2A,
    PCIFR,
    PCMSK0,
    PCMSK2,
    PINB,
    PIND,
    PORTD,
    SMCR,
    TCCR0A,
    TCCR0B,
    TCCR1A,
    TCCR1B,
    TCCR2A,
    TCCR2B,
    TCNT0,
    TCNT1H,
    TCNT1L,
    TCNT2,
    TIFR0,
    TIMSK0,
    brne,
    clz,
    dec,
    in_,
    inc,
    jmp,
    ldi,
    nop,
    out,
    pop,
    push,
    reti,
    rjmp,
    sei,
    sleep,
    sts,
)  # fmt: skip
from tests.reference.generate import Case

PROGRAMS = {}
CYCLES = {"edges_before_anybody_listened": 9000}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def build(name):
    a = asm.Assembler()
    a.absolute(jmp, "main")
    for vector in range(1, 26):
        a.org(2 * vector)(inc(20), reti())
    a.org(0x40).label("main")
    stimuli = PROGRAMS[name](a) or []
    a.label("end").branch(rjmp, "end")
    return Case(
        seed=len(name),
        words=a.words(),
        stimuli=stimuli,
        eeprom=[],
        cycles=CYCLES.get(name, 4000),
        themes={name},
        listing=[],
    )


def put(register, value):
    return ldi(16, value) + sts(register, 16)


@program
def timer_interrupts_again_and_again(a):
    a(put(OCR0A, 0xFF), put(TIMSK0, 2), put(TCCR0B, 2), sei())


@program
def count_above_top_turns_at_maximum_only(a):
    """Dual slope: MAX is not TOP, so no ICF1 and no OCR update there (3.3)."""
    a(put(TCCR1A, 2), put(TCCR1B, 0x10), put(ICR1H, 1), put(ICR1L, 0), put(TCCR1B, 0x11))
    a(nop() * 20, put(TCNT1H, 0xFF), put(TCNT1L, 0xFE), nop() * 10)


@program
def counts_down_still_after_a_visit_to_another_mode(a):
    """The direction turns with a timer clock, not with the write of WGM; at clk/32 few come."""
    a(put(TCCR2A, 1), put(TCNT2, 0xFD), put(TCCR2B, 3), nop() * 200)
    for wait in range(0, 33, 3):
        a(put(TCCR2A, 2), nop() * wait, put(TCCR2A, 1), nop() * 70)


@program
def fast_pwm_reaches_bottom_from_above_top(a):
    """The pin is set, and the OCR taken over, at BOTTOM from wherever it is reached (3.3, 3.4)."""
    a(put(DDRD, 0x40), put(OCR0A, 100), put(TCCR0A, 0x83), put(TCCR0B, 9), nop() * 150)
    a(put(TCNT0, 0x70), nop() * 3, put(TCNT0, 0xF0), put(OCR0A, 20), nop() * 60)


@program
def blocked_compare_at_top_leaves_the_pin(a):
    a(put(DDRB, 8), put(OCR2A, 0xFF), put(TCCR2A, 0x81), put(TCCR2B, 1), nop() * 900)
    a(put(TCNT2, 0xFF), nop() * 50, put(TCNT2, 0xFE), nop() * 50)


@program
def pin_one_cycle_late_with_two_causes(a):
    """OC2A moves PB3 in one cycle, the outside PB0 in the next, at every distance."""
    a(put(DDRB, 8), put(OCR2A, 10), put(TCCR2A, 0x42), put(TCCR2B, 1))
    a.label("look")(in_(17, PINB), sts(0x0150, 17)).branch(rjmp, "look")
    return [(cycle, "pin", "PB0", i & 1) for i, cycle in enumerate(range(100, 4000, 7))]


@program
def pin_toggled_twice_since_it_was_looked_at(a):
    a(put(DDRD, 0x40), put(OCR0A, 11), put(TCCR0A, 0x42), put(TCCR0B, 1))
    a.label("look")(nop() * 23, ldi(16, 1), sts(TIFR0, 16), in_(17, PIND), sts(0x0150, 17))
    a.branch(rjmp, "look")


@program
def two_timers_move_pins_of_one_port(a):
    """OC2B is looked at after OC0A has moved: PIND shows each as it was a cycle ago."""
    a(put(DDRD, 0x48), put(OCR0A, 10), put(TCCR0A, 0x42), put(OCR2A, 6), put(TCCR2A, 0x12))
    a(put(TCCR0B, 1), put(TCCR2B, 1))
    a.label("look")(sts(TIFR0, 18), in_(17, PIND), sts(0x0150, 17), nop()).branch(rjmp, "look")


@program
def edges_before_anybody_listened(a):
    """OC0B on PD5 moves for long; then it becomes T1's clock, and then a pin-change pin."""
    a(put(DDRD, 0x28), put(OCR0A, 40), put(TCCR0A, 0x12), put(OCR2A, 30), put(TCCR2A, 0x12))
    a(put(TCCR0B, 1), put(TCCR2B, 1), put(PCMSK2, 1), nop() * 300)
    for wait in range(45):  # all distances between the last edge and the write
        a(put(TCCR1B, 7), nop() * (50 + wait), put(TCCR1B, 0))
        a(put(PCMSK2, 0x20), nop(), put(PCMSK2, 0), put(PCIFR, 7), nop() * wait)
        a(put(EICRA, 0x0C), nop(), put(EICRA, 0), put(EIFR, 3))


@program
def many_edges_on_their_way(a):
    """Every cycle pins of two ports move that interrupt, and one of them clocks timer 1."""
    a(put(DDRD, 0x68), put(DDRB, 0x08), put(PCMSK0, 0x09), put(PCMSK2, 0x7C), put(EICRA, 0x0D))
    a(put(TCCR0A, 0x52), put(TCCR2A, 0x52), put(TCCR0B, 1), put(TCCR2B, 1), put(TCCR1B, 0x47))
    a.label("look")(put(EIFR, 3), put(PCIFR, 7), nop()).branch(rjmp, "look")
    return [
        (cycle, "pin", pin, cycle // 3 & 1)
        for cycle in range(100, 4000, 3)
        for pin in ("PB0", "PD2", "PD4", "PC1")
    ]


@program
def output_pin_sets_a_masked_external_flag(a):
    """OC2B drives PD3, which is INT1; INTF1 is set although EIMSK is 0 (section 9)."""
    a(put(DDRD, 8), put(EICRA, 0x0C), put(OCR2A, 60), put(TCCR2A, 0x12), put(TCCR2B, 1))


@program
def sleep_begins_as_the_adc_completes(a):
    """ADIF at the very edge on which SLEEP takes effect: vector 8 cycles after it (2.2)."""
    a(put(ADMUX, 0xC0 | 15), put(SMCR, 1), sei())
    for wait in range(98, 114):
        a(put(ADCSRA, 0xDB), nop() * wait, sleep(), nop())


@program
def write_that_changes_nothing_after_reti(a):
    a(put(OCR0A, 7), put(TCCR0A, 2), put(TIMSK0, 2), put(TCCR0B, 1), sei())
    a.label("loop")(out(PORTD, 17)).absolute(jmp, "loop")


@program
def delay_loop_entered_at_its_branch(a):
    a(ldi(23, 0), clz()).branch(rjmp, "branch")
    a.label("delay")(dec(23)).label("branch").branch(brne, "delay")
    a(push(23), pop(22))


@program
def multiplexer_written_as_a_conversion_starts(a):
    """MUX and REFS lock at the first ADC clock edge; a write landing there comes too late."""
    a(put(ADMUX, 0xC0 | 15), put(ADCSRA, 0xE2), ldi(16, 0xC0 | 14), ldi(17, 0xC0 | 15))
    a.label("loop")(sts(ADMUX, 16), nop() * 24, sts(ADMUX, 17), nop() * 23).branch(rjmp, "loop")


@program
def capture_and_noise_canceler(a):
    """ICR1 takes the count before the edge; the filter wants four equal samples."""
    a(put(TCCR1B, 0x41), nop() * 200, put(TCCR1B, 0xC1), nop() * 600, put(TCCR1B, 0x81))
    lengths = [20, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 1, 2, 1, 3, 1, 4, 3, 3, 4, 4, 30]
    edges, cycle, level = [], 50, 0
    while cycle < 3900:
        for length in lengths:
            level ^= 1
            edges.append((cycle, "pin", "PB0", level))
            cycle += length
    return edges
