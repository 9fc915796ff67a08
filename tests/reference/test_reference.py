"""The reference model keeps to the rows of section 11 of the timing reference."""

import pytest

from . import assemble, instructions
from .bench import RefView
from .rows import ROWS


@pytest.mark.parametrize(
    "check", [function for _, function in ROWS], ids=[name for name, _ in ROWS]
)
def test_row(check):
    check(RefView)


def test_1766_undefined_words():
    """Section 1.4 counts them; no word has two meanings."""
    undefined = 0
    for word in range(0x10000):
        matches = [entry for entry in instructions.TABLE if word & entry[1] == entry[0]]
        assert len(matches) <= 1
        undefined += not matches
    assert undefined == 1766


class Bare:
    """Just registers and flags, for the arithmetic instructions."""

    def __init__(self):
        self.r = [0] * 32
        self.f = [0] * 8


@pytest.mark.parametrize("name", ["add", "adc", "sub", "sbc", "cp", "cpc"])
def test_carries_by_arithmetic(name):
    """C01: the Boolean flag formulas against plain arithmetic on the operands (1.4)."""
    word = getattr(assemble, name)(16, 17)[0]
    function = instructions.decode(word)
    sign = 1 if name in ("add", "adc") else -1
    uses_carry = name in ("adc", "sbc", "cpc")
    chained = name in ("sbc", "cpc")
    cpu = Bare()
    for d in range(256):
        for r in range(256):
            carry, zero = (d ^ r) & 1, (d >> 1 ^ r) & 1
            cpu.r[16], cpu.r[17] = d, r
            cpu.f = [carry, zero, 0, 0, 0, 0, 0, 0]
            assert function(cpu, word) == 1
            c = carry if uses_carry else 0
            full = d + sign * (r + c)
            result = full & 0xFF
            in_signed = instructions.signed(d, 8) + sign * (instructions.signed(r, 8) + c)
            half = (d & 15) + sign * ((r & 15) + c)
            n, v = result >> 7, int(not -128 <= in_signed <= 127)
            z = int(result == 0) & (zero if chained else 1)
            expected = [int(not 0 <= full <= 255), z, n, v, n ^ v, int(not 0 <= half <= 15), 0, 0]
            assert cpu.f == expected, (d, r, carry, zero)
            assert cpu.r[16] == (d if name in ("cp", "cpc") else result)
