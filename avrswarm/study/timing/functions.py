"""Where did the time go? Functions, who called whom, and the lines that cost most.

Inclusive time has what a function called, exclusive time has not; neither has interrupts, whose
time stands in a column of its own. Calls that were not seen from beginning to end (main, for one)
count in sums but not in least, median and greatest. Of a function that calls itself, inclusive
sums have the outermost calls only, which have the others in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from avrswarm.study.timing.figures import spread_of_counts
from avrswarm.study.timing.observe import Observed


def function_rows(seen: Observed) -> list[dict[str, Any]]:
    """Return one row per function, the costliest first."""
    rows = [
        {
            "function": seen.names.name(function),
            "address": 2 * function if function >= 0 else None,
            "interrupt": sums.is_interrupt,
            "calls": sums.calls,
            "unfinished": sums.calls - sums.inclusive_times.total(),
            "inclusive_cycles": sums.inclusive,
            "exclusive_cycles": sums.exclusive,
            "exclusive_share": sums.exclusive / max(1, seen.length),
            "interrupted_cycles": sums.interrupted,
            "inclusive": spread_of_counts(sums.inclusive_times),
            "exclusive": spread_of_counts(sums.exclusive_times),
        }
        for function, sums in seen.calls.functions.items()
    ]
    return sorted(rows, key=lambda row: -int(str(row["exclusive_cycles"])))


def call_graph(seen: Observed) -> list[dict[str, Any]]:
    """Return who called whom, how often and for how many cycles, the costliest first."""
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    for (_, caller, callee), (count, cycles) in seen.calls.links.items():
        before = pairs.get((caller, callee), (0, 0))
        pairs[caller, callee] = (before[0] + count, before[1] + cycles)
    rows = [
        {
            "caller": seen.names.name(caller),
            "callee": seen.names.name(callee),
            "calls": count,
            "inclusive_cycles": cycles,
        }
        for (caller, callee), (count, cycles) in pairs.items()
    ]
    return sorted(rows, key=lambda row: -int(str(row["inclusive_cycles"])))


def line_rows(seen: Observed) -> list[dict[str, Any]]:
    """Return cycles by source line, the costliest first; code without lines is listed by address.

    ``address`` is that of a line's first instruction.
    """
    cost: dict[tuple[str | None, int | None, int], list[int]] = {}
    first: dict[tuple[str, int], int] = {}
    for word in np.flatnonzero(seen.cycles).tolist():
        place = seen.names.line(word)
        key = (None, None, word) if place is None else (*place, first.setdefault(place, word))
        entry = cost.setdefault(key, [0, 0])
        entry[0] += int(seen.cycles[word])
        entry[1] = max(entry[1], int(seen.executions[word]))
    return [
        {
            "file": file,
            "line": line,
            "address": 2 * word,
            "function": seen.names.name(seen.names.function_at(word)),
            "cycles": cycles,
            "share": cycles / max(1, seen.length),
            "executions": executions,
        }
        for (file, line, word), (cycles, executions) in sorted(
            cost.items(), key=lambda item: -item[1][0]
        )
    ]
