"""Which source line an instruction came from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class LineRange:
    """The instructions from byte address ``start`` to ``end`` came from ``line`` of ``file``.

    A range may be empty: a function's first line often has no code, but a place where it starts.
    """

    start: int
    end: int
    file: str
    line: int


class LineTable:
    """Line ranges by flash byte address; iterates in ascending order."""

    def __init__(self, ranges: Iterable[LineRange]) -> None:
        self._ranges = sorted(ranges, key=lambda r: (r.start, r.end))
        self._starts = [r.start for r in self._ranges]

    def __iter__(self) -> Iterator[LineRange]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def at(self, address: int) -> LineRange | None:
        """Return the range that holds this flash byte address."""
        position = bisect_right(self._starts, address) - 1
        if position >= 0 and address < self._ranges[position].end:
            return self._ranges[position]
        return None

    def addresses(self, file: str, line: int) -> list[int]:
        """Return where the code of a line starts; ``file`` may be its last part ('main.c')."""
        wanted = PurePath(file).parts
        return [
            r.start
            for r in self._ranges
            if r.line == line and PurePath(r.file).parts[-len(wanted) :] == wanted
        ]
