"""The test assembler against words taken from the encoding table (timing reference 1.1-1.3) and
from binutils.
"""

from tests.reference import assemble as asm


def test_known_words():
    # Each pair was checked against avr-as -mmcu=atmega328p.
    table = [
        (asm.add(31, 17), [0x0FF1]),
        (asm.ldi(16, 5), [0xE005]),
        (asm.ldi(31, -1), [0xEFFF]),
        (asm.cpi(20, 0xA5), [0x3A45]),
        (asm.adiw(26, 63), [0x96DF]),
        (asm.sbiw(30, 17), [0x9771]),
        (asm.movw(30, 2), [0x01F1]),
        (asm.muls(31, 16), [0x02F0]),
        (asm.fmulsu(17, 23), [0x039F]),
        (asm.sei(), [0x9478]),
        (asm.cli(), [0x94F8]),
        (asm.bst(7, 3), [0xFA73]),
        (asm.lds(5, 0x123), [0x9050, 0x0123]),
        (asm.sts(0xB1, 16), [0x9300, 0x00B1]),
        (asm.ldd(5, "Y", 63), [0xAC5F]),
        (asm.std("Z", 33, 5), [0xA251]),
        (asm.ld(3, "-X"), [0x903E]),
        (asm.st("Y+", 3), [0x9239]),
        (asm.push(1), [0x921F]),
        (asm.in_(4, asm.SREG), [0xB64F]),
        (asm.out(asm.TCNT0, 16), [0xBD06]),
        (asm.sbi(asm.PORTB, 3), [0x9A2B]),
        (asm.lpm(), [0x95C8]),
        (asm.lpm(3, "Z+"), [0x9035]),
        (asm.rjmp(-1), [0xCFFF]),
        (asm.jmp(0x3800), [0x940C, 0x3800]),
        (asm.brne(-3), [0xF7E9]),
        (asm.brlt(5), [0xF02C]),
        (asm.sbrs(16, 7), [0xFF07]),
        (asm.reti(), [0x9518]),
    ]
    for got, expected in table:
        assert got == expected, ([hex(w) for w in got], [hex(w) for w in expected])


def test_register_names_are_data_addresses():
    assert asm.TCNT0 == 0x46
    assert asm.out(asm.TCNT0, 16) == asm.out(0x26, 16)
    assert len(asm.REGISTERS) == 87


def test_labels():
    a = asm.Assembler()
    a.label("start")(asm.nop())
    a.branch(asm.brne, "start")
    a.absolute(asm.jmp, "end")
    a.org(8).label("end").branch(asm.rjmp, "start")
    assert a.words() == [0, 0xF7F1, 0x940C, 8, 0, 0, 0, 0, 0xCFF7]
