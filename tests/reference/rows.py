"""Rows of section 11 of the timing reference as small programs with their expected results.

Each row is a function that gets a `bench`: a callable `bench(words, stimuli=(), eeprom=())` that
makes a chip and returns a view of it with

    view.run(n)        go on to the first instruction boundary at or after n more cycles
    view.until(word)   run until the instruction at that word address is next; gives the cycle
    view.data(a)       data space without side effects
    view.pin("PB3")    level of a pin
    view.eeprom(a)     an EEPROM byte

so that the same rows can be asked of the reference model and of the package.  Rows marked U in the
timing reference are not here, and rows that only need the simulators' verdict neither.
"""

from . import assemble as asm
from .assemble import (
    ACSR,
    ADCH,
    ADCL,
    ADCSRA,
    ADCSRB,
    ADMUX,
    DDRB,
    DDRD,
    EEARL,
    EECR,
    EEDR,
    EICRA,
    EIFR,
    GTCCR,
    MCUCR,
    MCUSR,
    OCR0A,
    OCR0B,
    OCR1AH,
    OCR1AL,
    OCR1BH,
    OCR1BL,
    OCR2A,
    PINB,
    PIND,
    PORTB,
    SMCR,
    SREG,
    TCCR0A,
    TCCR0B,
    TCCR1B,
    TCCR2A,
    TCCR2B,
    TCNT0,
    TCNT1H,
    TCNT1L,
    TCNT2,
    TIFR0,
    TIFR1,
    TIMSK0,
    TIMSK1,
    WDTCSR,
    Assembler,
    in_,
    inc,
    jmp,
    ldi,
    lds,
    nop,
    out,
    program,
    rjmp,
    sbi,
    sei,
    sts,
)  # fmt: skip

ROWS = []  # (id, function)
START_UP = 14 + 512_000  # after a reset, 8.1: SUT = 10, 8192 cycles of 128 kHz
C, Z, N, V, S, H, T, I = (1 << i for i in range(8))  # noqa: E741


def row(name):
    def register(function):
        ROWS.append((name, function))
        return function

    return register


END = rjmp(-1)


def put(address, value, register=16):
    """Write a constant by STS: three cycles."""
    return ldi(register, value) + sts(address, register)


def run(bench, *parts, cycles=200, **outside):
    view = bench(program(*parts, END), **outside)
    view.run(cycles)
    return view


# ---- 11.1 core -----------------------------------------------------------------------------------


def alu(bench, sreg, d, r, instruction, register=16):
    """Run one instruction on r16 = d, r17 = r with SREG given; gives (r16 or another, SREG)."""
    view = run(
        bench,
        ldi(18, sreg),
        ldi(16, d),
        ldi(17, r),
        out(SREG, 18),
        instruction,
        in_(19, SREG),
        cycles=10,
    )
    return view.data(register), view.data(19)


@row("C02 half carry")
def half_carry(bench):
    assert alu(bench, 0, 0x01, 0x01, asm.add(16, 17)) == (0x02, 0)
    assert alu(bench, 0, 0x08, 0x08, asm.add(16, 17)) == (0x10, H)
    assert alu(bench, 0, 0x10, 0x01, asm.sub(16, 17)) == (0x0F, H)
    assert alu(bench, 0, 0x10, 0x00, asm.neg(16)) == (0xF0, C | N | S)
    assert alu(bench, 0, 0x0F, 0x00, asm.neg(16)) == (0xF1, C | N | S | H)


@row("C03 NEG 0x80")
def neg_80(bench):
    assert alu(bench, 0, 0x80, 0, asm.neg(16)) == (0x80, C | N | V)


@row("C04 FMULSU Z, 1.4 FMULS corner")
def fmul_flags(bench):
    assert alu(bench, 0, 0x00, 0x55, asm.fmulsu(16, 17), 1) == (0x00, Z)
    assert alu(bench, Z, 0x40, 0x40, asm.fmulsu(16, 17), 1) == (0x20, 0)
    assert alu(bench, Z | C, 0x80, 0x80, asm.fmuls(16, 17), 1) == (0x80, 0)
    assert alu(bench, 0, 0xFF, 0x80, asm.fmulsu(16, 17), 1) == (0xFF, C)


@row("C05 SBC 00-FF-1")
def sbc_corner(bench):
    assert alu(bench, C | Z, 0x00, 0xFF, asm.sbc(16, 17)) == (0x00, C | Z | H)
    assert alu(bench, C, 0x00, 0xFF, asm.sbc(16, 17)) == (0x00, C | H)
    assert alu(bench, C | Z, 0x00, 0xFF, asm.cpc(16, 17)) == (0x00, C | Z | H)
    assert alu(bench, C | Z, 0x00, 0x00, asm.sbci(16, 0xFF)) == (0x00, C | Z | H)


@row("C06 SBIW keeps H")
def sbiw_h(bench):
    view = run(
        bench,
        ldi(24, 0),
        ldi(25, 0x80),
        ldi(18, H),
        out(SREG, 18),
        asm.sbiw(24, 1),
        in_(19, SREG),
        cycles=10,
    )
    assert (view.data(25), view.data(24), view.data(19)) == (0x7F, 0xFF, H | V | S)


@row("C07 C08 cycle counts")
def cycle_counts(bench):
    y = ldi(28, 0) + ldi(29, 2)
    z = ldi(30, 0) + ldi(31, 2)
    x = ldi(26, 0) + ldi(27, 2)
    table = [
        (1, [], asm.add(0, 1)), (1, [], asm.swap(3)), (2, [], asm.adiw(24, 1)),
        (2, [], asm.sbiw(26, 1)), (2, [], asm.mul(1, 2)), (2, [], asm.muls(16, 17)),
        (2, [], asm.mulsu(16, 17)), (2, [], asm.fmul(16, 17)), (2, [], asm.fmuls(16, 17)),
        (2, [], asm.fmulsu(16, 17)), (2, [], lds(0, 0x200)), (2, [], sts(0x200, 0)),
        (2, x, asm.ld(0, "X")), (2, x, asm.ld(0, "X+")), (2, x, asm.ld(0, "-X")),
        (2, y, asm.ld(0, "Y+")), (2, y, asm.ld(0, "-Y")), (2, y, asm.ldd(0, "Y", 5)),
        (2, z, asm.ld(0, "Z+")), (2, z, asm.ld(0, "-Z")), (2, z, asm.ldd(0, "Z", 5)),
        (2, x, asm.st("X", 0)), (2, x, asm.st("X+", 0)), (2, x, asm.st("-X", 0)),
        (2, y, asm.st("Y+", 0)), (2, y, asm.st("-Y", 0)), (2, y, asm.std("Y", 5, 0)),
        (2, z, asm.st("Z+", 0)), (2, z, asm.st("-Z", 0)), (2, z, asm.std("Z", 5, 0)),
        (2, [], asm.push(0)), (2, [], asm.pop(0)), (1, [], in_(0, SREG)), (1, [], out(0x1E, 0)),
        (2, [], sbi(PORTB, 0)), (2, [], asm.cbi(PORTB, 0)), (3, z, asm.lpm()), (3, z, asm.lpm(5)),
        (3, z, asm.lpm(5, "Z+")), (2, [], rjmp(0)), (3, [], None), (3, [], asm.rcall(0)),
        (1, [], asm.breq(0)), (2, [], asm.brne(0)), (1, [], asm.sleep()), (1, [], asm.wdr()),
        (1, [], asm.break_()), (1, [], nop()), (1, [], asm.movw(0, 2)), (1, [], asm.bset(0)),
        (1, [], asm.bst(0, 0)), (1, [], asm.bld(0, 0)),
    ]  # fmt: skip
    for cycles, before, instruction in table:
        at = len(before)
        if instruction is None:
            instruction = jmp(at + 2)
        view = bench(program(before, instruction, END))
        start = view.until(at)
        assert view.until(at + len(instruction)) - start == cycles, instruction


@row("C09 C10 skips")
def skips(bench):
    for cycles, skipped in [
        (2, nop()),
        (2, asm.adiw(24, 12)),
        (2, asm.sbiw(24, 63)),
        (3, lds(0, 0x200)),
        (3, sts(0x200, 0)),
        (3, jmp(0)),
        (3, asm.call(0)),
    ]:
        for skip in (asm.cpse(0, 1), asm.sbrc(0, 7), asm.sbic(0x1E, 0)):
            view = bench(program(skip, skipped, END))
            assert view.until(1 + len(skipped)) == cycles, (skip, skipped)
        view = bench(program(asm.sbrs(0, 7), skipped, END))
        assert view.until(1) == 1


@row("C07 calls and returns")
def calls(bench):
    view = bench(program(asm.call(4), END, nop(), asm.ret()))
    assert view.until(4) == 4
    assert (view.data(0x8FF), view.data(0x8FE)) == (0x02, 0x00)  # low byte at the higher address
    assert view.until(2) == 8
    view = bench(program(ldi(30, 5), asm.icall(), END, END, END, asm.reti()))
    assert view.until(5) == 4
    assert view.until(2) == 8
    assert view.data(0x5F) == I


@row("C13 PC wraps")
def pc_wraps(bench):
    view = bench(program(jmp(0x3FFF), [0] * (0x3FFF - 2), nop()))
    assert view.until(0x3FFF) == 3
    assert view.until(0) == 4


@row("C15 SLEEP with SE=0")
def sleep_nop(bench):
    view = bench(program(asm.sleep(), END))
    assert view.until(1) == 1


@row("C16 SBI PINB")
def sbi_pin(bench):
    view = run(bench, ldi(16, 0xF0), out(DDRB, 16), out(PORTB, 16), sbi(PINB, 0), cycles=10)
    assert view.data(PORTB) == 0xF1


def all_flags_of_timer_0():
    """TIFR0 = 07 with the timer stopped: OCF0A and OCF0B at the first tick, TOV0 after a wrap."""
    return program(
        ldi(16, 0xFE),
        out(TCNT0, 16),
        ldi(16, 0xFF),
        out(OCR0A, 16),
        out(OCR0B, 16),
        ldi(16, 1),
        out(TCCR0B, 16),
        nop(),
        nop(),
        nop(),
        nop(),
        ldi(16, 0),
        out(TCCR0B, 16),
    )


@row("C17 SBI TIFR0 clears one flag")
def sbi_flag(bench):
    view = run(
        bench, all_flags_of_timer_0(), in_(20, TIFR0), sbi(TIFR0, 0), in_(21, TIFR0), cycles=40
    )
    assert (view.data(20), view.data(21)) == (0x07, 0x06)


@row("I12 TIFR0 write 1 to clear")
def tifr_write(bench):
    view = run(
        bench,
        all_flags_of_timer_0(),
        ldi(16, 2),
        out(TIFR0, 16),
        in_(20, TIFR0),
        ldi(16, 0),
        out(TIFR0, 16),
        in_(21, TIFR0),
        cycles=40,
    )
    assert (view.data(20), view.data(21)) == (0x05, 0x05)


# ---- 11.2 interrupts -----------------------------------------------------------------------------


def with_vectors(main, handlers):
    """Vectors at word 2n, then the main program at word 0x40; labels: "main" and "v<n>"."""
    a = Assembler()
    a.absolute(jmp, "main")
    for n, handler in handlers.items():
        a.org(2 * n).label(f"v{n}")
        if len(handler) <= 2:
            a(handler)
        else:
            a.absolute(jmp, f"handler{n}")
    a.org(0x40).label("main")
    main(a)
    for n, handler in handlers.items():
        if len(handler) > 2:
            a.label(f"handler{n}")(handler)
    return a


ENTRY = 3  # dead cycles, recommended (2.2)


def set_i_shadow(bench, set_i):
    def main(a):
        a(all_flags_of_timer_0(), put(TIMSK0, 1), ldi(17, 0x80))
        a.label("set")(set_i)
        a(inc(20), inc(20), inc(20), END)

    a = with_vectors(main, {16: inc(21) + END})
    view = bench(a.words())
    k = view.until(a.word_address("set"))
    assert view.until(0x20) == k + 2 + ENTRY
    assert view.data(20) == 1


@row("I01 SEI shadow")
def sei_shadow(bench):
    set_i_shadow(bench, sei())


@row("I02 OUT SREG shadow")
def out_sreg_shadow(bench):
    set_i_shadow(bench, out(SREG, 17))


@row("I03 I07 RETI lets one instruction run; lowest vector first")
def reti_shadow(bench):
    def main(a):
        a(all_flags_of_timer_0(), put(TIMSK0, 7), sei(), inc(20), inc(20), inc(20), inc(20), END)

    # Each handler keeps r20 as it found it.
    handlers = {n: asm.mov(n, 20) + asm.reti() for n in (14, 15, 16)}
    view = bench(with_vectors(main, handlers).words())
    view.run(100)
    assert [view.data(n) for n in (14, 15, 16)] == [1, 2, 3]


@row("CLI lets nothing in")
def cli(bench):
    def main(a):
        a(all_flags_of_timer_0(), put(TIMSK0, 1), sei(), asm.cli(), inc(20), inc(20), END)

    view = bench(with_vectors(main, {16: inc(21) + END}).words())
    view.run(100)
    assert (view.data(20), view.data(21)) == (2, 0)


@row("I05 timer 1 to the cycle")
def i05(bench):
    def main(a):
        # JMP takes cycles 0-2; the STS to TCCR1B is to take cycles 24 and 25
        a(
            ldi(16, 2959 >> 8),
            sts(OCR1AH, 16),
            ldi(16, 2959 & 0xFF),
            sts(OCR1AL, 16),
            ldi(16, 2),
            sts(TIMSK1, 16),
            ldi(16, 1),
            sei(),
        )
        a(nop() * (24 - 3 - 11))
        a.label("start")(sts(TCCR1B, 16))
        a.label("loop")(nop())
        a.branch(rjmp, "loop")

    a = with_vectors(main, {11: rjmp(0) + out(0x1E, 16)})
    a.org(0x18)(lds(20, TCNT1L), lds(21, TCNT1H), END)
    view = bench(a.words())
    assert view.until(a.word_address("start")) == 24
    assert view.until(0x16) == 2990
    assert view.until(0x17) == 2992
    view.run(10)
    assert (view.data(21), view.data(20)) == (0x0B, 0x98)


@row("I06 enable after the flag")
def late_enable(bench):
    def main(a):
        a(all_flags_of_timer_0(), sei(), nop(), nop(), ldi(16, 1))
        a.label("enable")(sts(TIMSK0, 16))
        a(inc(20), inc(20), inc(20), END)

    a = with_vectors(main, {16: inc(21) + END})
    view = bench(a.words())
    k = view.until(a.word_address("enable"))
    # lands at k+2, so the request is first sampled in the next instruction's cycle
    assert view.until(0x20) == k + 3 + ENTRY
    assert view.data(20) == 1


@row("I08 cleared with I=0")
def cleared(bench):
    def main(a):
        a(
            all_flags_of_timer_0(),
            put(TIMSK0, 7),
            ldi(16, 7),
            out(TIFR0, 16),
            sei(),
            nop(),
            nop(),
            END,
        )

    view = bench(with_vectors(main, {n: inc(21) + END for n in (14, 15, 16)}).words())
    view.run(100)
    assert view.data(21) == 0


@row("I09 flag in the first cycle of CALL")
def during_call(bench):
    for before in range(4):

        def main(a, before=before):
            a(put(TIMSK0, 1), ldi(16, 0xFE - before), out(TCNT0, 16), ldi(16, 1), sei())
            a(out(TCCR0B, 16), nop())  # lands at e, the wrap is visible from e + 2 + before
            a(nop() * (before + 1 - 1))
            a.label("call").absolute(asm.call, "far")
            a.label("far")(nop(), END)

        a = with_vectors(main, {16: inc(21) + END})
        view = bench(a.words())
        k = view.until(a.word_address("call"))
        assert view.until(0x20) == k + 4 + ENTRY


@row("I10 IVSEL, I11 IVCE holds interrupts")
def ivsel(bench):
    def main(a):
        a(all_flags_of_timer_0(), put(TIMSK0, 1), ldi(16, 1), ldi(17, 2), sei())
        a.label("ivce")(out(MCUCR, 16), out(MCUCR, 17), inc(20), inc(20), END)

    a = with_vectors(main, {16: inc(21) + END})
    a.org(0x3800 + 32)(inc(22), END)
    view = bench(a.words())
    k = view.until(a.word_address("ivce"))
    assert view.until(0x3800 + 32) == k + 3 + ENTRY
    assert (view.data(20), view.data(21)) == (1, 0)


@row("I13 idle sleep ended by T0 overflow")
def idle(bench):
    def main(a):
        a(put(TIMSK0, 1), ldi(16, 1), out(SMCR, 16), ldi(17, 0xF0), out(TCNT0, 17), sei())
        a.label("start")(out(TCCR0B, 16), asm.sleep(), inc(20), END)

    a = with_vectors(main, {16: inc(21) + asm.reti()})
    view = bench(a.words())
    flag = view.until(a.word_address("start")) + 1 + 16
    assert view.until(0x20) == flag + 8
    assert view.data(20) == 0
    view.run(10)
    assert view.data(20) == 1


@row("SEI ; SLEEP with an interrupt pending")
def sei_sleep(bench):
    def main(a):
        a(all_flags_of_timer_0(), put(TIMSK0, 1), ldi(16, 1), out(SMCR, 16), sei())
        a.label("sleep")(asm.sleep(), inc(20), END)

    a = with_vectors(main, {16: inc(21) + asm.reti()})
    view = bench(a.words())
    k = view.until(a.word_address("sleep"))
    assert view.until(0x20) == k + 1 + 4 + ENTRY  # it sleeps first
    assert view.data(20) == 0


# ---- 11.3 timers ---------------------------------------------------------------------------------


@row("T01 T02 T03 timer 2 start and stop")
def t2_start(bench):
    start = ldi(16, 1) + sts(TCCR2B, 16)
    assert run(bench, start, nop(), lds(20, TCNT2)).data(20) == 2
    assert run(bench, start, lds(20, TCNT2)).data(20) == 1
    view = run(bench, ldi(17, 0), start, sts(TCCR2B, 17), nop(), nop(), lds(20, TCNT2))
    assert view.data(20) == 2


@row("T04 T05 TCNT written while running; issue 40")
def tcnt_write(bench):
    start = ldi(16, 1) + out(TCCR0B, 16) + ldi(17, 30) + nop()
    assert run(bench, start, out(TCNT0, 17), in_(20, TCNT0)).data(20) == 30
    assert run(bench, start, out(TCNT0, 17), nop(), in_(20, TCNT0)).data(20) == 31
    view = run(
        bench, ldi(16, 1), ldi(17, 0), sts(TCCR2B, 16), sts(TCNT2, 17), nop(), lds(20, TCNT2)
    )
    assert view.data(20) == 2


@row("T06 T07 start and clock change keep TCNT")
def start_keeps(bench):
    set_30 = ldi(17, 30) + out(TCNT0, 17) + ldi(16, 1)
    view = run(
        bench,
        set_30,
        out(TCCR0B, 16),
        in_(20, TCNT0),
        in_(21, TCNT0),
        ldi(16, 5),
        out(TCCR0B, 16),
        in_(22, TCNT0),
        nop(),
        in_(23, TCNT0),
    )
    assert [view.data(n) for n in (20, 21, 22, 23)] == [30, 31, 34, 34]


@row("T08 TCNT0=FF at /8")
def tov_soon(bench):
    view = bench(program(ldi(16, 2), out(TCCR0B, 16), ldi(17, 0xFF), out(TCNT0, 17), nop() * 20))
    view.run(4)
    view.run(8)
    assert view.data(TIFR0) & 1


@row("T09 time to TOV0 at /1024")
def tov_time(bench):
    view = bench(
        program(ldi(16, 128), out(TCNT0, 16), ldi(16, 5), out(TCCR0B, 16), nop(), rjmp(-2))
    )
    view.run(131072 - 4)
    assert view.data(TIFR0) & 1 == 0
    view.run(4)
    assert view.data(TIFR0) & 1 == 1


@row("T10 OCF0A one tick after the match")
def ocf_time(bench):
    view = run(
        bench,
        ldi(17, 5),
        out(OCR0A, 17),
        ldi(16, 1),
        out(TCCR0B, 16),
        *(in_(n, TIFR0) for n in range(10)),
    )
    assert [view.data(n) >> 1 & 1 for n in range(10)] == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]


@row("T11 OCF0A at /1024 with OCR0A=FF")
def ocf_slow(bench):
    view = bench(
        program(
            ldi(16, 0xFE),
            out(TCNT0, 16),
            ldi(16, 0xFF),
            out(OCR0A, 16),
            ldi(16, 5),
            out(TCCR0B, 16),
            nop() * 3000,
        )
    )
    view.run(2047)
    assert (view.data(TCNT0), view.data(TIFR0) & 2) == (0xFF, 0)
    view.run(1)
    assert (view.data(TCNT0), view.data(TIFR0) & 2) == (0x00, 2)


@row("T12 T13 T14 CTC")
def ctc(bench):
    view = run(
        bench,
        ldi(17, 5),
        out(OCR0A, 17),
        ldi(17, 9),
        out(OCR0B, 17),
        ldi(16, 2),
        out(TCCR0A, 16),
        ldi(16, 1),
        out(TCCR0B, 16),
        *(in_(n, TCNT0) for n in range(14)),
        cycles=600,
    )
    assert [view.data(n) for n in range(14)] == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1]
    assert view.data(TIFR0) == 0x02


@row("T15 CTC: OCR0A lowered below TCNT")
def ctc_missed(bench):
    view = bench(
        program(
            ldi(16, 2),
            out(TCCR0A, 16),
            ldi(16, 0x80),
            out(OCR0A, 16),
            ldi(16, 0x40),
            out(TCNT0, 16),
            ldi(16, 1),
            out(TCCR0B, 16),
            ldi(16, 0x20),
            out(OCR0A, 16),
            nop() * 400,
        )
    )
    view.run(8 + 0xFF - 0x40)  # the counter was 0x40 at edge 8
    assert (view.data(TCNT0), view.data(TIFR0) & 3) == (0xFF, 0)
    view.run(1)
    assert (view.data(TCNT0), view.data(TIFR0) & 3) == (0, 1)
    view.run(0x21)
    assert (view.data(TCNT0), view.data(TIFR0) & 3) == (0, 3)


@row("T16 T17 TCNT write blocks the next compare")
def blocking(bench):
    start = ldi(16, 30) + out(OCR0A, 16) + ldi(16, 1) + out(TCCR0B, 16) + nop() * 3
    view = run(bench, start, ldi(17, 30), out(TCNT0, 17), nop() * 5, in_(20, TIFR0), cycles=20)
    assert view.data(20) & 2 == 0
    view = run(
        bench,
        start,
        ldi(17, 29),
        out(TCNT0, 17),
        in_(19, TIFR0),
        in_(20, TIFR0),
        in_(21, TIFR0),
        cycles=20,
    )
    assert [view.data(n) & 2 for n in (19, 20, 21)] == [0, 0, 2]


@row("T18 OCR0A written equal to TCNT")
def level_compare(bench):
    view = bench(program(ldi(17, 77), out(TCNT0, 17), ldi(16, 5), out(TCCR0B, 16), nop() * 1200))
    view.run(1100)
    assert view.data(TCNT0) == 78
    view = bench(
        program(
            ldi(17, 77),
            out(TCNT0, 17),
            ldi(16, 5),
            out(TCCR0B, 16),
            nop() * 1100,
            ldi(16, 78),
            out(OCR0A, 16),
            nop() * 2000,
        )
    )
    view.run(2047)
    assert view.data(TIFR0) & 2 == 0
    view.run(1)
    assert view.data(TIFR0) & 2 == 2


@row("T19 the prescaler runs freely")
def prescaler_phase(bench):
    for delay in range(8):
        view = bench(program(ldi(16, 2), nop() * delay, out(TCCR0B, 16), nop() * 60))
        lands = view.until(2 + delay)
        first = lands // 8 * 8 + 8
        view.run(first - 1 - lands)
        assert view.data(TCNT0) == 0
        view.run(1)
        assert view.data(TCNT0) == 1


@row("T20 timers on the same tap step at the same edges")
def prescaler_shared(bench):
    a = program(ldi(16, 3), out(TCCR0B, 16), nop() * 100, sts(TCCR1B, 16), nop() * 300)
    view = bench(a)
    view.until(104)
    counts = []
    for _ in range(250):
        counts.append((view.data(TCNT0), view.data(TCNT1L)))
        view.run(1)
    assert len({t0 - t1 for t0, t1 in counts}) == 1
    assert len(set(counts)) > 3


@row("T21 GTCCR PSRSYNC")
def psrsync(bench):
    view = bench(
        program(
            ldi(16, 2),
            out(TCCR0B, 16),
            ldi(16, 1),
            nop(),
            nop(),
            out(GTCCR, 16),
            in_(20, GTCCR),
            nop() * 40,
        )
    )
    view.run(6 + 7)  # the prescaler was cleared at edge 6
    assert (view.data(20), view.data(TCNT0)) == (0, 0)
    view.run(1)
    assert view.data(TCNT0) == 1


@row("T22 GTCCR TSM")
def tsm(bench):
    view = bench(
        program(
            ldi(16, 5),
            out(TCCR0B, 16),
            ldi(16, 0x81),
            out(GTCCR, 16),
            in_(20, GTCCR),
            ldi(16, 0),
            nop() * 4096,
            out(GTCCR, 16),
            nop() * 1100,
        )
    )
    view.until(6 + 4096)
    assert (view.data(20), view.data(TCNT0)) == (0x81, 0)
    view.run(1)
    view.run(1023)
    assert view.data(TCNT0) == 0
    view.run(1)
    assert view.data(TCNT0) == 1


@row("T23 phase correct")
def phase_correct(bench):
    view = bench(program(put(TCCR2A, 1), put(TCCR2B, 2), nop(), rjmp(-2)))
    view.run(8 * 128)
    assert view.data(TCNT2) == 0x80
    view.run(8 * 256)
    assert view.data(TCNT2) == 0x7E


def levels_over_a_period(bench, ocr):
    """OC2A (PB3) sampled every 4 cycles over more than one period of mode 1 at clk/1."""
    view = bench(
        program(
            ldi(16, 8),
            out(DDRB, 16),
            put(OCR2A, ocr),
            put(TCCR2A, 0x81),
            put(TCCR2B, 1),
            nop(),
            rjmp(-2),
        )
    )
    view.run(600)
    levels = []
    for _ in range(200):
        view.run(3)
        levels.append(view.pin("PB3"))
    return levels


@row("T24 phase correct extremes")
def phase_extremes(bench):
    assert set(levels_over_a_period(bench, 0)) == {0}
    assert set(levels_over_a_period(bench, 0xFF)) == {1}
    assert set(levels_over_a_period(bench, 0x80)) == {0, 1}


@row("T25 T26 OCR2A from FF to 64 takes effect at TOP")
def ocr_at_top(bench):
    view = bench(
        program(
            ldi(16, 8),
            out(DDRB, 16),
            put(OCR2A, 0xFF),
            put(TCCR2A, 0x81),
            put(TCCR2B, 1),
            nop() * 1200,
            put(OCR2A, 0x64),
            nop() * 1200,
        )
    )
    # The CS write lands at edge 11 (ldi, out, three pairs of three): TCNT = c - 11 going up.
    base = 11
    view.until(11 + 1200 + 3)  # 1200 NOPs later OCR2A is written, at 1200 + 14 cycles
    top = base + 510 * 2 + 255 + 1  # the edge on which the counter leaves TOP
    written = view.cycle
    assert written < top
    view.run(top - 1 - written)
    assert (view.data(TCNT2), view.pin("PB3")) == (0xFF, 1)
    view.run(1)
    assert (view.data(TCNT2), view.pin("PB3")) == (0xFE, 0)
    view.run(0xFE - 0x64)
    assert (view.data(TCNT2), view.pin("PB3")) == (0x64, 0)
    view.run(1)
    assert (view.data(TCNT2), view.pin("PB3")) == (0x63, 1)


@row("T28 TEMP")
def temp(bench):
    view = run(
        bench,
        put(OCR1AH, 0xAB),
        put(OCR1BL, 0xCD),
        lds(20, OCR1BH),
        lds(21, OCR1BL),
        lds(22, OCR1AH),
        lds(23, OCR1AL),
    )
    assert [view.data(n) for n in (20, 21, 22, 23)] == [0xAB, 0xCD, 0, 0]


@row("T29 TCNT1 read low, high, low, high")
def tcnt1_reads(bench):
    view = run(
        bench,
        put(TCNT1H, 0),
        put(TCNT1L, 0xFD),
        ldi(16, 1),
        sts(TCCR1B, 16),
        lds(20, TCNT1L),
        lds(21, TCNT1H),
        lds(22, TCNT1L),
        lds(23, TCNT1H),
    )
    assert [view.data(n) for n in (20, 21, 22, 23)] == [0xFE, 0x00, 0x02, 0x01]


@row("T30 FOC0A")
def foc(bench):
    view = run(
        bench,
        ldi(16, 0x40),
        out(DDRD, 16),
        out(TCCR0A, 16),
        nop(),
        in_(20, PIND),
        ldi(16, 0x80),
        out(TCCR0B, 16),
        in_(22, TCCR0B),
        nop(),
        in_(21, PIND),
        in_(23, TIFR0),
        cycles=30,
    )
    assert [view.data(n) for n in (20, 21, 22, 23)] == [0, 0x40, 0, 0]


@row("T31 OCR1B=0: flag at the first tick")
def first_tick(bench):
    view = run(bench, ldi(16, 1), sts(TCCR1B, 16), in_(20, TIFR1), in_(21, TIFR1), cycles=10)
    assert (view.data(20) & 4, view.data(21) & 4) == (0, 4)


@row("T32 T0 overflow period, shortened: OCR0A=FF at /8")
def t0_period(bench):
    def main(a):
        a(ldi(16, 0xFF), out(OCR0A, 16), put(TIMSK0, 2), ldi(16, 2), out(TCCR0B, 16), sei())
        a.label("loop").branch(rjmp, "loop")

    view = bench(with_vectors(main, {14: inc(21) + asm.reti()}).words())
    # 2-cycle loop: the same phase each time, as the period is even
    first = view.until(28)
    view.run(10)
    assert view.until(28) - first == 2048


# ---- 11.4 ADC and comparator ---------------------------------------------------------------------


def adc_start(value, mux=0):
    return put(ADMUX, mux) + ldi(16, value) + ldi(17, value | 0x40)


@row("A01 first conversion")
def adc_first(bench):
    view = bench(program(put(ADMUX, 0), ldi(16, 0xC3), sts(ADCSRA, 16), nop(), rjmp(-2)))
    lands = view.until(6)
    view.run(197)
    assert view.data(ADCSRA) & 0x50 == 0x40
    view.run(200 + 8 - (view.cycle - lands))
    assert view.data(ADCSRA) & 0x50 == 0x10


@row("A02 A14 normal conversion; long again after ADEN 0 -> 1")
def adc_normal(bench):
    for gap in range(9):
        a = Assembler()
        a(adc_start(0x83), sts(ADCSRA, 17)).label("wait")(lds(18, ADCSRA), asm.sbrc(18, 6))
        a.branch(rjmp, "wait")
        a(nop() * gap).label("start")(sts(ADCSRA, 17)).label("spin")(nop())
        a.branch(rjmp, "spin")
        view = bench(a.words())
        lands = view.until(a.word_address("spin"))
        view.run(99)
        assert view.data(ADCSRA) & 0x40
        view.run(104 + 8 - (view.cycle - lands))
        assert view.data(ADCSRA) & 0x40 == 0


@row("A03 A04 ADIF by writing 1; ADSC=0 is ignored")
def adc_bits(bench):
    view = bench(
        program(
            adc_start(0x83),
            sts(ADCSRA, 17),
            nop(),
            sts(ADCSRA, 16),
            lds(20, ADCSRA),
            nop() * 250,
            lds(21, ADCSRA),
            ldi(18, 0x93),
            sts(ADCSRA, 18),
            lds(22, ADCSRA),
            END,
        )
    )
    view.run(400)
    assert [view.data(n) for n in (20, 21, 22)] == [0xC3, 0x93, 0x83]


@row("A05 ACI written 1 with I=0")
def aci_cleared(bench):
    def main(a):
        a(
            ldi(16, 0x0B),
            out(ACSR, 16),
            nop() * 40,
            in_(20, ACSR),
            ldi(16, 0x1B),
            out(ACSR, 16),
            in_(21, ACSR),
            sei(),
            nop() * 5,
            END,
        )

    view = bench(
        with_vectors(main, {23: inc(22) + END}).words(), stimuli=[(20, "comparator", None, 1)]
    )
    view.run(100)
    assert (view.data(20), view.data(21), view.data(22)) == (0x3B, 0x2B, 0)


@row("A06 ACSR written with ACO=0 makes no event")
def aco_read_only(bench):
    view = run(
        bench,
        ldi(16, 0x03),
        nop() * 20,
        ldi(16, 0x13),
        out(ACSR, 16),
        ldi(16, 0x03),
        out(ACSR, 16),
        nop() * 5,
        in_(20, ACSR),
        stimuli=[(5, "comparator", None, 1)],
    )
    assert view.data(20) == 0x23


@row("A15 ACO one to two cycles after the input")
def aco_delay(bench):
    view = run(
        bench, nop() * 10, *(in_(n, ACSR) for n in range(8)), stimuli=[(12, "comparator", None, 1)]
    )
    values = [view.data(n) >> 5 & 1 for n in range(8)]  # cycles 10 to 17
    assert values[:3] == [0, 0, 0]
    assert values[4:] == [1, 1, 1, 1]


@row("A07 A08 A09 conversion triggered by the comparator")
def adc_triggered(bench):
    a = Assembler()
    a(ldi(16, 0x03), out(ACSR, 16), adc_start(0x83), sts(ADCSRA, 17))  # a first, long conversion
    a(nop() * 250, put(ADCSRB, 1), put(ADCSRA, 0xB3))
    a.label("spin")(nop())
    a.branch(rjmp, "spin")
    events = [(500, 1), (540, 0), (560, 1), (700, 0), (720, 1)]
    view = bench(a.words(), stimuli=[(cycle, "comparator", None, level) for cycle, level in events])
    view.run(499)
    assert view.data(ADCSRA) & 0x50 == 0
    view.run(505 - view.cycle)
    assert view.data(ADCSRA) & 0x50 == 0x40
    view.run(605 - view.cycle)
    assert view.data(ADCSRA) & 0x50 == 0x40
    view.run(620 - view.cycle)
    assert view.data(ADCSRA) & 0x50 == 0x10
    view.run(740 - view.cycle)  # ACI is still set: the second rise starts nothing
    assert view.data(ADCSRA) & 0x50 == 0x10


@row("A10 free running")
def adc_free(bench):
    def main(a):
        a(put(ADMUX, 0), put(ADCSRB, 0), ldi(16, 0xEB), sei(), sts(ADCSRA, 16))
        a.label("loop").branch(rjmp, "loop")

    view = bench(with_vectors(main, {21: inc(20) + asm.reti()}).words())
    first = view.until(42)
    for _ in range(4):
        view.run(10)
        assert view.data(ADCSRA) & 0x40
        second = view.until(42)
        assert second - first == 104
        first = second


@row("A11 half scale with the 1.1 V reference")
def adc_half(bench):
    view = bench(
        program(
            put(ADMUX, 0xC3), put(ADCSRA, 0xC3), nop() * 250, lds(20, ADCL), lds(21, ADCH), END
        ),
        stimuli=[(0, "adc", 3, 0.55)],
    )
    view.run(400)
    assert (view.data(21), view.data(20)) == (0x02, 0x00)


@row("A13 ADCL locks the result")
def adc_lock(bench):
    def converted(volts):
        return int(volts * 1024 / 1.1)

    view = bench(
        program(
            put(ADMUX, 0xC3),
            put(ADCSRA, 0xC3),
            nop() * 250,
            lds(20, ADCL),
            put(ADCSRA, 0xC3),
            nop() * 150,
            lds(21, ADCH),
            lds(22, ADCL),
            lds(23, ADCH),
            put(ADCSRA, 0xC3),
            nop() * 150,
            lds(24, ADCL),
            lds(25, ADCH),
            END,
        ),
        stimuli=[(0, "adc", 3, 0.2), (240, "adc", 3, 0.9)],
    )
    view.run(800)
    old, new = converted(0.2), converted(0.9)
    assert view.data(21) << 8 | view.data(20) == old
    assert view.data(23) << 8 | view.data(22) == old  # the second result was lost
    assert view.data(25) << 8 | view.data(24) == new


# ---- 11.5 EEPROM and watchdog --------------------------------------------------------------------


@row("E01 read halts four cycles")
def eeprom_read(bench):
    view = bench(
        program(
            ldi(16, 3),
            out(EEARL, 16),
            out(0x1E, 16),
            sbi(EECR, 0),
            out(0x1E, 16),
            in_(20, EEDR),
            END,
        ),
        eeprom=[1, 2, 3, 0x5A],
    )
    start = view.until(2)
    assert view.until(4) - start == 7
    view.run(3)
    assert view.data(20) == 0x5A


def eeprom_write(distance_nops, mode=0, use_out=False):
    prepare = program(
        ldi(16, 7),
        out(EEARL, 16),
        ldi(16, 0x3C),
        out(EEDR, 16),
        ldi(18, mode << 4),
        out(EECR, 18),
        ldi(18, mode << 4 | 4),
        ldi(19, mode << 4 | 2),
    )
    if use_out:
        return program(prepare, out(EECR, 18), nop() * distance_nops, out(EECR, 19))
    return program(prepare, sbi(EECR, 2), nop() * distance_nops, sbi(EECR, 1))


@row("E02 starting a write halts two cycles; E04 window; E07 nothing changes during it")
def eeprom_start(bench):
    view = bench(
        program(
            eeprom_write(0),
            in_(20, EECR),
            ldi(16, 9),
            out(EEARL, 16),
            out(EEDR, 16),
            sbi(EECR, 0),
            in_(21, EEARL),
            in_(22, EEDR),
            END,
        )
    )
    start = view.until(9)
    assert view.until(10) - start == 4
    start = view.until(14)
    assert view.until(15) - start == 2  # EERE has no effect
    view.run(10)
    assert (view.data(20) & 2, view.data(21), view.data(22)) == (2, 7, 0x3C)
    for nops, works in [(0, True), (1, True), (2, True), (5, False), (9, False)]:
        view = bench(program(eeprom_write(nops, use_out=True), in_(20, EECR), END))
        view.run(50)
        assert view.data(20) & 2 == (2 if works else 0), nops


@row("E03 programming time")
def eeprom_time(bench):
    view = bench(program(eeprom_write(0), nop(), rjmp(-2)))
    lands = view.until(10) - 2
    view.run(lands + 26368 - 5 - view.cycle)
    assert view.data(EECR) & 2 == 2
    view.run(lands + 27200 - view.cycle)
    assert view.data(EECR) & 2 == 0
    assert view.eeprom(7) == 0x3C


@row("E05 EEPM")
def eeprom_modes(bench):
    for mode, expected in [(1, 0xFF), (2, 0x0F & 0x3C)]:
        view = bench(program(eeprom_write(0, mode), nop(), rjmp(-2)), eeprom=[0x0F] * 16)
        view.run(14500)
        assert view.eeprom(7) == expected
        assert view.data(EECR) & 2 == 0


@row("E06 EERIE is a level interrupt")
def eeprom_interrupt(bench):
    def main(a):
        a(sei(), sbi(EECR, 3)).label("loop").branch(rjmp, "loop")

    view = bench(with_vectors(main, {22: inc(20) + asm.reti()}).words())
    view.run(200)
    assert view.data(20) > 10


@row("W01 plain write")
def wdt_plain(bench):
    assert run(bench, put(WDTCSR, 0x41), lds(20, WDTCSR)).data(20) == 0x40


@row("W02 W03 timed sequence")
def wdt_sequence(bench):
    unlock = ldi(16, 0x18) + sts(WDTCSR, 16)
    view = run(bench, unlock, put(WDTCSR, 0x41), lds(20, WDTCSR), cycles=30)
    assert view.data(20) == 0x41
    view = run(
        bench,
        unlock,
        put(WDTCSR, 0x41),
        unlock,
        nop() * 6,
        put(WDTCSR, 0x42),
        lds(20, WDTCSR),
        cycles=40,
    )
    assert view.data(20) == 0x49


@row("W04 W06 interrupt mode")
def wdt_interrupt(bench):
    def main(a):
        a(asm.wdr(), put(WDTCSR, 0x40), sei()).label("loop").branch(rjmp, "loop")

    view = bench(with_vectors(main, {6: inc(20) + asm.reti()}).words())
    view.run(127900)
    assert view.data(20) == 0
    first = view.until(12)
    view.run(20)
    assert (view.data(20), view.data(WDTCSR)) == (1, 0x40)
    assert abs(view.until(12) - first - 128000) <= 2


def unlock_watchdog(value):
    """The timed sequence that writes all of WDTCSR: distance 3 between the stores."""
    return put(WDTCSR, 0x18) + put(WDTCSR, value)


def after_watchdog_reset(a):
    """At the start of main: stay at "done" if this is a watchdog reset."""
    a(in_(22, MCUSR), asm.sbrc(22, 3)).label("done").branch(rjmp, "done")


@row("W05 C18 both modes: one interrupt, then a reset that keeps registers and SRAM")
def wdt_both(bench):
    def main(a):
        after_watchdog_reset(a)
        a(asm.wdr(), unlock_watchdog(0x48), put(0x0123, 0x5A), sei())
        a.label("loop").branch(rjmp, "loop")

    a = with_vectors(main, {6: inc(20) + asm.reti()})
    view = bench(a.words())
    view.run(129_000)
    assert (view.data(20), view.data(WDTCSR)) == (1, 0x08)
    view.until(a.word_address("done"), limit=900_000)
    assert 256_000 <= view.cycle - START_UP <= 256_100
    assert (view.data(20), view.data(0x0123)) == (1, 0x5A)
    assert view.data(22) & 0x08
    assert view.data(WDTCSR) & ~0x10 == 0x08
    assert (view.data(0x5E), view.data(0x5D), view.data(SREG)) == (0x08, 0xFF, 0)


@row("W07 WDRF forces WDE")
def wdrf_forces_wde(bench):
    def main(a):
        a(in_(22, MCUSR), asm.sbrc(22, 3)).branch(rjmp, "again")
        a(asm.wdr(), unlock_watchdog(0x08)).label("loop").branch(rjmp, "loop")
        a.label("again")(asm.wdr(), unlock_watchdog(0x00), lds(20, WDTCSR), ldi(16, 0))
        a(out(MCUSR, 16), unlock_watchdog(0x00), lds(21, WDTCSR)).label("end")(END)

    a = with_vectors(main, {})
    view = bench(a.words())
    view.until(a.word_address("end"), limit=900_000)
    assert (view.data(20), view.data(21)) == (0x08, 0x00)


@row("8.1 power-down ended by the watchdog; timers stand still")
def power_down(bench):
    def main(a):
        a(asm.wdr(), put(WDTCSR, 0x40), ldi(16, 5), out(SMCR, 16), ldi(16, 1), out(TCCR0B, 16))
        a(sei(), in_(20, TCNT0)).label("sleep")(asm.sleep())
        a.label("loop").branch(rjmp, "loop")

    a = with_vectors(main, {6: in_(21, TCNT0) + asm.reti()})
    view = bench(a.words())
    asleep = view.until(a.word_address("sleep")) + 1
    awake = view.until(12)
    assert 127_900 < awake - asleep < 128_020
    view.run(1)
    # IN TCNT0 is one cycle before SLEEP, which lands one cycle after its start: two counts.  Then
    # clk_IO is back 4 + 3 cycles before the vector's instruction.
    assert view.data(21) == view.data(20) + 2 + 7


# ---- 11.6 pins -----------------------------------------------------------------------------------


@row("P01 PIN is one cycle late")
def pin_latency(bench):
    view = run(
        bench,
        ldi(16, 0xFF),
        out(DDRB, 16),
        nop(),
        nop(),
        out(PORTB, 16),
        in_(20, PINB),
        in_(21, PINB),
    )
    assert (view.data(20), view.data(21)) == (0x00, 0xFF)


@row("P02 writing PIN toggles PORT")
def pin_toggle(bench):
    view = run(bench, ldi(16, 0xF3), out(PORTB, 16), ldi(16, 0x0F), out(PINB, 16))
    assert view.data(PORTB) == 0xFC


@row("P03 pull-up")
def pull_up(bench):
    view = run(
        bench,
        ldi(16, 0x01),
        out(PORTB, 16),
        nop(),
        nop(),
        in_(20, PINB),
        stimuli=[(0, "pin", "PB0", None)],
    )
    assert view.data(20) & 1 == 1


@row("P04 INT0 edge with EIMSK=0")
def int0(bench):
    view = run(
        bench,
        put(EICRA, 3),
        nop() * 30,
        in_(20, EIFR),
        stimuli=[(0, "pin", "PD2", 0), (15, "pin", "PD2", 1)],
    )
    assert view.data(20) == 1
