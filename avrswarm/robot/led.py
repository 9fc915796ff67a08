"""The RGB LED, from pin directions to a colour.

Each colour has two resistors to pins of the chip, 1.6 kOhm and 820 Ohm; a pin that is an output
and low lets current flow (hardware reference 2.2). Two bits per colour make 0 : 1 : 1.95 : 2.95
of brightness.
"""

from __future__ import annotations

from avrswarm.chip.registers import DDRC, DDRD, PORTC, PORTD
from avrswarm.chip.state import ChipRow
from avrswarm.jit import kernel

BRIGHTNESS = (0.0, 1.0, 1.95, 2.95)
"""Currents through 1.6 kOhm, 820 Ohm and both, as multiples of the first."""

NAMES = {
    0b000000: "off",
    0b000011: "red",
    0b001100: "green",
    0b110000: "blue",
    0b001111: "yellow",
    0b111100: "cyan",
    0b110011: "magenta",
    0b111111: "white",
}


@kernel
def colour(c: ChipRow) -> int:
    """Return what the LED shows now: red | green << 2 | blue << 4, each 0 to 3."""
    d = int(c.memory[DDRD]) & ~int(c.memory[PORTD])
    p = int(c.memory[DDRC]) & ~int(c.memory[PORTC])
    red = (d >> 5 & 1) | (d >> 4 & 1) << 1  # PD5 = 1.6 k, PD4 = 820 Ohm
    green = (p >> 3 & 1) | (p >> 2 & 1) << 1  # PC3, PC2
    blue = (p >> 5 & 1) | (p >> 4 & 1) << 1  # PC5, PC4
    return red | green << 2 | blue << 4


def name_of(colour: int) -> str:
    """Return a colour in words, ignoring how bright it is: ``red``, ``dim red``, ``r1g2b0``.

    >>> name_of(0b000001), name_of(0b111111), name_of(0b001001)
    ('dim red', 'white', 'r1g2b0')
    """
    parts = [colour >> shift & 3 for shift in (0, 2, 4)]
    lit = {part for part in parts if part}
    full = sum(3 << 2 * k for k, part in enumerate(parts) if part)
    if len(lit) > 1:
        return "r{}g{}b{}".format(*parts)
    return NAMES[full] if lit != {1} else f"dim {NAMES[full]}"
