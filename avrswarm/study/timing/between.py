"""How long from here to there? Cycles between two places of the program, or edges of pins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.errors import UsageError
from avrswarm.program import Program
from avrswarm.study.timing.figures import spread
from avrswarm.study.timing.observe import Observed

Integers = NDArray[np.int64]

_EDGE = re.compile(r"P(B[0-7]|C[0-6]|D[0-7])([+-])", re.IGNORECASE)
_PIN = re.compile(r"P[A-Z][0-9][+-]", re.IGNORECASE)


@dataclass(frozen=True)
class Point:
    """A place in the program (a word address), or an edge of a pin."""

    text: str
    word: int | None = None
    pin: str = ""
    level: int = 0


def read_point(text: str, program: Program) -> Point:
    """Return what ``text`` means: ``delay``, ``loop+0x10``, ``0x310``, ``PB0+`` or ``PD5-``."""
    edge = _EDGE.fullmatch(text)
    if edge is not None:
        return Point(text, pin=text[:3].upper(), level=int(edge[2] == "+"))
    if _PIN.fullmatch(text):
        raise UsageError(f"'{text}': there is no such pin; pins are PB0-PB7, PC0-PC6 and PD0-PD7")
    return Point(text, word=program.symbols.resolve(text) // 2)


def happened(seen: Observed, point: Point, number: int) -> Integers:
    """Return the cycles at which the point with this number in ``seen.passes`` was passed."""
    if point.pin:
        rows = seen.pin_edges(point.pin)
        chosen = rows[:, 1] == point.level
    else:
        rows = seen.passes
        chosen = rows[:, 1] >> number & 1 == 1
    cycles: Integers = rows[chosen, 0]
    return cycles


def pair(first: Integers, second: Integers) -> Integers:
    """Return rows of a first and the second that follows it before the next first.

    With the same point twice, each time is paired with the next.
    """
    if np.array_equal(first, second):
        return np.column_stack([first[:-1], first[1:]])
    place = np.searchsorted(second, first)  # at the same cycle: no time between
    nothing = np.iinfo(np.int64).max
    after = np.append(second, nothing)[place]
    following = np.append(first[1:], nothing)
    paired = (after != nothing) & (after <= following)
    rows: Integers = np.column_stack([first, after])[paired]
    return rows


def between(seen: Observed, a: Point, b: Point) -> tuple[dict[str, Any], Integers]:
    """Return the figures of the time from ``a`` to ``b``, and all pairs of cycles."""
    first, second = happened(seen, a, 0), happened(seen, b, 1)
    pairs = pair(first, second)
    figures = {
        "from": a.text,
        "to": b.text,
        "times_from": len(first),
        "times_to": len(second),
        "cycles": spread(pairs[:, 1] - pairs[:, 0]),
    }
    return figures, pairs
