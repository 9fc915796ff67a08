"""Where did the time go? Functions, who called whom, and the lines that cost most.

Inclusive time has what a function called, exclusive time has not; neither has interrupts, whose
time stands in a column of its own. Calls that were still going on when watching ended (main, for
one) count in sums but not in least, median and greatest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.profile import Call, Kind
from avrswarm.study.timing.figures import spread
from avrswarm.study.timing.observe import Observed


def function_rows(seen: Observed) -> list[dict[str, Any]]:
    """Return one row per function, the costliest first."""
    rows = []
    calls = seen.calls
    order = np.argsort(calls[:, Call.FUNCTION], kind="stable")
    functions, starts = np.unique(calls[order, Call.FUNCTION], return_index=True)
    for function, group in zip(functions.tolist(), np.split(order, starts[1:]), strict=True):
        mine = calls[group]
        done = mine[mine[:, Call.FINISHED] == 1]
        exclusive = int(mine[:, Call.EXCLUSIVE].sum())
        rows.append(
            {
                "function": seen.names.name(function),
                "address": 2 * function if function >= 0 else None,
                "interrupt": bool((mine[:, Call.KIND] == Kind.INTERRUPT).any()),
                "calls": len(mine),
                "unfinished": len(mine) - len(done),
                "inclusive_cycles": int(mine[:, Call.INCLUSIVE].sum()),
                "exclusive_cycles": exclusive,
                "exclusive_share": exclusive / max(1, seen.length),
                "interrupted_cycles": int(mine[:, Call.INTERRUPTED].sum()),
                "inclusive": spread(done[:, Call.INCLUSIVE]),
                "exclusive": spread(done[:, Call.EXCLUSIVE]),
            }
        )
    return sorted(rows, key=lambda row: -row["exclusive_cycles"])


def call_graph(seen: Observed) -> list[dict[str, Any]]:
    """Return who called whom, how often and for how many cycles, the costliest first."""
    calls = seen.calls
    called = calls[(calls[:, Call.KIND] == Kind.CALL) | (calls[:, Call.KIND] == Kind.JUMP)]
    pairs, which = np.unique(called[:, [Call.CALLER, Call.FUNCTION]], axis=0, return_inverse=True)
    counts = np.bincount(which, minlength=len(pairs))
    cycles = np.bincount(which, called[:, Call.INCLUSIVE], minlength=len(pairs))
    rows = [
        {
            "caller": seen.names.name(caller),
            "callee": seen.names.name(callee),
            "calls": int(count),
            "inclusive_cycles": int(spent),
        }
        for (caller, callee), count, spent in zip(pairs.tolist(), counts, cycles, strict=True)
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


def call_columns(seen: Observed) -> dict[str, NDArray[Any]]:
    """Return all calls as columns of a table, one row per call."""
    calls = seen.calls
    unique, which = np.unique(calls[:, [Call.FUNCTION, Call.CALLER]], return_inverse=True)
    names = np.array([seen.names.name(word) for word in unique.tolist()], dtype=object)
    which = which.reshape(-1, 2)
    return {
        "function": names[which[:, 0]],
        "caller": names[which[:, 1]],
        "kind": np.array([kind.name.lower() for kind in Kind], dtype=object)[calls[:, Call.KIND]],
        "begin_cycle": calls[:, Call.BEGIN],
        "end_cycle": calls[:, Call.END],
        "inclusive_cycles": calls[:, Call.INCLUSIVE],
        "exclusive_cycles": calls[:, Call.EXCLUSIVE],
        "interrupted_cycles": calls[:, Call.INTERRUPTED],
        "depth": calls[:, Call.DEPTH],
        "argument": calls[:, Call.ARGUMENT],
        "finished": calls[:, Call.FINISHED].astype(np.bool_),
    }
