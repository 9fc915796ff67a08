"""Programs that wait for something an interrupt handler or the outside changes.

Idle skipping must see each of these changes.  All share one frame: timer 0 interrupts regularly
(vector 14), the handler does one thing, the main loop waits for it and counts in r20.
"""

from tests.reference import assemble as asm
from tests.reference.assemble import (
    breq,
    brne,
    cbi,
    cpi,
    dec,
    in_,
    inc,
    jmp,
    ldi,
    lds,
    nop,
    out,
    pop,
    push,
    reti,
    rjmp,
    sbic,
    sbis,
    sbiw,
    sbrc,
    sbrs,
    sei,
    sleep,
    sts,
    tst,
)  # fmt: skip
from tests.reference.generate import Case

PROGRAMS = {}
FLAG = 0x0150  # an SRAM variable


def waiting(function):
    """Register a program; the function fills in (main, handler) as callables on an Assembler."""
    PROGRAMS[function.__name__] = function
    return function


def build(name, clock, top=99, cycles=40_000):
    main, handler, *rest = PROGRAMS[name]()
    a = asm.Assembler()
    a.absolute(jmp, "main")
    a.org(28).absolute(jmp, "handler")
    a.org(0x40).label("main")
    a(ldi(16, top), out(asm.OCR0A, 16), ldi(16, 2), out(asm.TCCR0A, 16), sts(asm.TIMSK0, 16))
    a(ldi(16, clock), out(asm.TCCR0B, 16), ldi(16, 1), out(asm.SMCR, 16), sei())
    a.label("again")
    main(a)
    a(inc(20))
    a.branch(rjmp, "again")
    a.label("handler")
    handler(a)
    a(reti())
    return Case(
        seed=len(name),
        words=a.words(),
        stimuli=rest[0] if rest else [],
        eeprom=[],
        cycles=cycles,
        themes={name},
        listing=[],
    )


def poll(*test):
    """Repeat a skip instruction until it skips the jump back."""

    def main(a):
        label = f"poll{a.here}"
        a.label(label)(*test)
        a.branch(rjmp, label)

    return main


def after(first, then):
    def main(a):
        a(*first)
        then(a)

    return main


def do(*parts):
    return lambda a: a(*parts)


@waiting
def io_flag():
    return after([cbi(asm.GPIOR0, 7)], poll(sbis(asm.GPIOR0, 7))), do(asm.sbi(asm.GPIOR0, 7))


@waiting
def io_flag_by_out():
    main = after([ldi(16, 0), out(asm.GPIOR1, 16)], poll(in_(17, asm.GPIOR1), sbrs(17, 0)))
    return main, do(ldi(25, 1), out(asm.GPIOR1, 25))


@waiting
def register_flag():
    return after([ldi(18, 0)], poll(sbrs(18, 3))), do(ldi(18, 8))


@waiting
def sram_flag():
    def main(a):
        a(ldi(16, 0), sts(FLAG, 16)).label("poll")(lds(17, FLAG), tst(17)).branch(breq, "poll")

    return main, do(ldi(25, 1), sts(FLAG, 25))


def _given_back(*parts):
    """A handler that leaves all registers, and flags that it does not touch, as they were."""
    return do(push(24), push(26), push(27), ldi(24, 1), *parts, pop(27), pop(26), pop(24))


@waiting
def sram_flag_by_an_address():
    main, _ = sram_flag()
    return main, _given_back(sts(FLAG, 24))


@waiting
def sram_flag_by_a_pointer():
    main, _ = sram_flag()
    pointer = ldi(26, FLAG & 0xFF), ldi(27, FLAG >> 8)
    return main, _given_back(*pointer, asm.st("X", 24))


@waiting
def ticks_until():
    """Wait until a 16-bit tick count has moved on by three, as delay(ms) functions do."""

    def main(a):
        a(lds(18, FLAG), asm.subi(18, -3)).label("poll")(lds(17, FLAG), asm.cp(17, 18))
        a.branch(brne, "poll")

    def handler(a):
        a(push(24), push(25), in_(24, asm.SREG), push(24), lds(24, FLAG), lds(25, FLAG + 1))
        a(asm.adiw(24, 1), sts(FLAG + 1, 25), sts(FLAG, 24), pop(24), out(asm.SREG, 24))
        a(pop(25), pop(24))

    return main, handler


@waiting
def handler_leaves_no_trace():
    """The loop polls a flag that only every fourth handler sets; the others change nothing."""

    def handler(a):
        a(push(24), in_(24, asm.SREG), push(24), inc(3), asm.bst(3, 1), sbrc(3, 0))
        a.branch(rjmp, "leave")
        a(sbrs(3, 1)).branch(rjmp, "leave")
        a(asm.sbi(asm.GPIOR0, 7)).label("leave")(pop(24), out(asm.SREG, 24), pop(24))

    return after([cbi(asm.GPIOR0, 7)], poll(sbis(asm.GPIOR0, 7))), handler


@waiting
def status_flag():
    """The handler answers in the T flag of SREG, which it does not restore."""

    def main(a):
        a(asm.clt()).label("poll")(nop()).branch(asm.brtc, "poll")

    return main, do(asm.set_())


@waiting
def delay_with_busy_handler():
    """A delay loop whose flags and counter the handler changes between any two instructions."""

    def main(a):
        a(ldi(22, 0)).label("delay")(dec(22)).branch(brne, "delay")

    return main, do(cpi(22, 0), asm.subi(23, 7), asm.sbrc(23, 6), asm.subi(22, 5))


@waiting
def long_delay_with_handler():
    def main(a):
        a(ldi(24, 0), ldi(25, 9)).label("delay")(sbiw(24, 1)).branch(brne, "delay")

    return main, do(push(24), ldi(24, 3), sts(FLAG, 24), pop(24))


@waiting
def nested_delay():
    def main(a):
        a(ldi(21, 7)).label("outer")(ldi(22, 200)).label("inner")(dec(22)).branch(brne, "inner")
        a(dec(21)).branch(brne, "outer")

    return main, do(inc(2))


@waiting
def spin_for_ever():
    """Nothing but interrupts happens."""

    def main(a):
        a.label("spin").branch(rjmp, "spin")

    return main, do(inc(20), lds(21, asm.TCNT0), sts(FLAG, 21))


@waiting
def counter_poll():
    """Wait for a moving timer count."""

    def main(a):
        a.label("poll")(in_(17, asm.TCNT0), cpi(17, 50)).branch(brne, "poll")

    return main, do(inc(2))


@waiting
def timer_flag_poll():
    """Wait for a flag that is no interrupt, and clear it."""

    def main(a):
        a(ldi(16, 20), out(asm.OCR0B, 16))
        poll(sbis(asm.TIFR0, 2))(a)
        a(asm.sbi(asm.TIFR0, 2))

    return main, do(inc(2))


@waiting
def stack_poll():
    """The loop reads a byte of the stack area that the handler's pushes overwrite."""

    def main(a):
        a(ldi(16, 0x55), sts(0x08FD, 16)).label("poll")(lds(17, 0x08FD), cpi(17, 0x55))
        a.branch(breq, "poll")

    return main, do(push(20), pop(20))


@waiting
def frame_poll():
    """The loop pushes a byte and writes it in another way, as small frames of functions are."""

    def main(a):
        a(ldi(16, 0x77), ldi(21, 0)).label("poll")(push(21), sts(0x08FF, 16))
        a(push(16), pop(18), nop(), nop(), nop(), nop(), nop(), nop(), pop(17), cpi(17, 0x77))
        a.branch(breq, "poll")

    return main, do(push(20), pop(20))


@waiting
def pin_poll():
    """The outside moves a pin; the handler has nothing to do with it."""
    edges = [(cycle, "pin", "PC1", i % 2) for i, cycle in enumerate(range(500, 40_000, 3173))]

    def main(a):
        poll(sbis(asm.PINC, 1))(a)
        poll(sbic(asm.PINC, 1))(a)

    return main, do(inc(2)), edges


@waiting
def comparator_poll():
    edges = [(cycle, "comparator", None, i % 2) for i, cycle in enumerate(range(700, 40_000, 2711))]

    def main(a):
        poll(in_(17, asm.ACSR), sbrs(17, 5))(a)
        poll(in_(17, asm.ACSR), sbrc(17, 5))(a)

    return main, do(inc(2)), edges


@waiting
def pin_driven_by_handler():
    """The loop reads back a pin that the handler toggles."""

    def main(a):
        a(asm.sbi(asm.DDRB, 0))
        poll(sbis(asm.PINB, 0))(a)
        poll(sbic(asm.PINB, 0))(a)

    return main, do(asm.sbi(asm.PINB, 0))


@waiting
def output_compare_pin():
    """The loop waits for an OC pin that only the timer moves."""

    def main(a):
        a(asm.sbi(asm.DDRD, 6), ldi(16, 0x42), out(asm.TCCR0A, 16))
        poll(sbis(asm.PIND, 6))(a)
        poll(sbic(asm.PIND, 6))(a)

    return main, do(inc(2))


@waiting
def sleep_until_flag():
    def main(a):
        a(cbi(asm.GPIOR0, 7)).label("sleep")(sleep(), sbis(asm.GPIOR0, 7)).branch(rjmp, "sleep")

    return main, do(inc(3), sbrc(3, 1), asm.sbi(asm.GPIOR0, 7))


@waiting
def adc_wait():
    def main(a):
        a(ldi(16, 0xC7), sts(asm.ADCSRA, 16))
        poll(lds(17, asm.ADCSRA), sbrc(17, 6))(a)

    return main, do(inc(2))


@waiting
def eeprom_wait():
    def main(a):
        a(asm.cli(), asm.sbi(asm.EECR, 2), asm.sbi(asm.EECR, 1), sei())
        poll(sbic(asm.EECR, 1))(a)

    return main, do(inc(2))
