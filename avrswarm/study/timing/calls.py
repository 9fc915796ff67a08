"""Every call of a chip: sums and distributions by function, who called whom, and a table of all.

Programs make hundreds of thousands of calls in a second. So they are worked in batch by batch as
they come, and what stays is small: sums, how often each duration occurred, the first calls for
viewers, and the table, compressed as the Parquet file that it will be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from avrswarm.chip.profile import Call, Kind
from avrswarm.study.timing.names import Names

Integers = NDArray[np.int64]

MOST_LISTED = 20_000_000
"""The table has the first so many calls, some ten bytes each; figures have all."""
MOST_SHOWN = 100_000
"""A speedscope file has the first so many calls: browsers do not like more."""

_TEXT = ("function", "caller", "kind")
_NUMBERS = {
    "begin_cycle": Call.BEGIN,
    "end_cycle": Call.END,
    "inclusive_cycles": Call.INCLUSIVE,
    "exclusive_cycles": Call.EXCLUSIVE,
    "interrupted_cycles": Call.INTERRUPTED,
    "depth": Call.DEPTH,
    "argument": Call.ARGUMENT,
}
_SCHEMA = pa.schema(
    [(name, pa.string()) for name in _TEXT]
    + [(name, pa.int64()) for name in _NUMBERS]
    + [("finished", pa.bool_())]
)


@dataclass
class Sums:
    """All calls of one function; calls out of itself (recursion) add to ``exclusive`` only."""

    calls: int = 0
    is_interrupt: bool = False
    inclusive: int = 0
    exclusive: int = 0
    interrupted: int = 0
    inclusive_times: Counter[int] = field(default_factory=Counter)  # of finished calls
    exclusive_times: Counter[int] = field(default_factory=Counter)


class Calls:
    """The calls of one chip, taken in batch by batch."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.count = 0
        self.listed = 0
        self.functions: dict[int, Sums] = {}
        self.links: dict[tuple[int, int, int], tuple[int, int]] = {}
        """(site, caller, callee), all word addresses: how often, and for how many cycles."""
        self.shown_until: int | None = None
        """The cycle at which what viewers are shown ends; None: they are shown all."""
        self._shown: list[Integers] = []
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, _SCHEMA, compression="zstd")

    def add(self, rows: Integers) -> None:
        """Take in finished calls, with the columns of ``profile.Call``, in the order they ended."""
        if len(rows) == 0:
            return
        self._add_functions(rows)
        self._add_links(rows)
        self._show(rows)
        self.count += len(rows)
        rows = rows[: MOST_LISTED - self.listed]
        self.listed += len(rows)
        self._writer.write_table(self._table(rows))

    def close(self) -> None:
        """Finish the table."""
        self._writer.close()
        self._file = self._sink.getvalue()

    def write(self, path: Path) -> None:
        """Write the table as a Parquet file."""
        path.write_bytes(self._file)

    def of(self, function: str) -> dict[str, Integers]:
        """Return the table's numbers of one function's finished calls."""
        chosen = [("function", "==", function), ("finished", "==", True)]
        table = pq.read_table(pa.BufferReader(self._file), filters=chosen)
        return {name: table[name].to_numpy() for name in _NUMBERS}

    @property
    def shown(self) -> Integers:
        """The first calls; those that lasted longer are cut off."""
        rows = np.concatenate([*self._shown, np.zeros((0, len(Call)), np.int64)])
        if self.shown_until is not None:
            rows[:, Call.END] = np.minimum(rows[:, Call.END], self.shown_until)
        return rows[rows[:, Call.BEGIN] < rows[:, Call.END]]

    def _add_functions(self, rows: Integers) -> None:
        order = np.argsort(rows[:, Call.FUNCTION], kind="stable")
        functions, starts = np.unique(rows[order, Call.FUNCTION], return_index=True)
        for function, group in zip(functions.tolist(), np.split(order, starts[1:]), strict=True):
            mine = rows[group]
            sums = self.functions.setdefault(function, Sums())
            outermost = mine[mine[:, Call.OUTERMOST] == 1]
            sums.calls += len(mine)
            sums.is_interrupt |= bool((mine[:, Call.KIND] == Kind.INTERRUPT).any())
            sums.inclusive += int(outermost[:, Call.INCLUSIVE].sum())
            sums.exclusive += int(mine[:, Call.EXCLUSIVE].sum())
            sums.interrupted += int(outermost[:, Call.INTERRUPTED].sum())
            done = mine[mine[:, Call.FINISHED] == 1]
            for times, column in (
                (sums.inclusive_times, Call.INCLUSIVE),
                (sums.exclusive_times, Call.EXCLUSIVE),
            ):
                values, counts = np.unique(done[:, column], return_counts=True)
                times.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def _add_links(self, rows: Integers) -> None:
        called = rows[np.isin(rows[:, Call.KIND], (Kind.CALL, Kind.JUMP))]
        site, caller, callee = called[:, [Call.SITE, Call.CALLER, Call.FUNCTION]].T
        keys, which = np.unique(site << 32 | (caller + 1) << 16 | callee, return_inverse=True)
        counts = np.bincount(which, minlength=len(keys))
        spent = called[:, Call.INCLUSIVE] * called[:, Call.OUTERMOST]
        cycles = np.bincount(which, spent, minlength=len(keys))
        for key, count, total in zip(keys.tolist(), counts.tolist(), cycles.tolist(), strict=True):
            link = (key >> 32, (key >> 16 & 0xFFFF) - 1, key & 0xFFFF)
            before = self.links.get(link, (0, 0))
            self.links[link] = (before[0] + count, before[1] + int(total))

    def _show(self, rows: Integers) -> None:
        room = MOST_SHOWN - sum(len(part) for part in self._shown)
        if self.shown_until is None and len(rows) > room:
            self.shown_until = int(rows[max(room - 1, 0), Call.END])
        if self.shown_until is not None:  # what is under way then ends later, and is shown too
            rows = rows[rows[:, Call.BEGIN] < self.shown_until]
        self._shown.append(rows.copy())

    def _table(self, rows: Integers) -> pa.Table:
        words, which = np.unique(rows[:, [Call.FUNCTION, Call.CALLER]], return_inverse=True)
        which = which.reshape(-1, 2)
        names = [self._names.name(word) for word in words.tolist()]
        kinds = [kind.name.lower() for kind in Kind]
        columns = [
            pa.DictionaryArray.from_arrays(indices, texts).cast(pa.string())
            for indices, texts in (
                (which[:, 0], names),
                (which[:, 1], names),
                (rows[:, Call.KIND], kinds),
            )
        ]
        columns += [pa.array(rows[:, column]) for column in _NUMBERS.values()]
        columns.append(pa.array(rows[:, Call.FINISHED] == 1))
        return pa.table(columns, schema=_SCHEMA)
