"""What do interrupts cost? Latency, duration, load, and who keeps interrupts off for how long.

Latency is from the cycle at which flag and enable bit are both set to the first instruction at the
vector: 4 cycles at least (a cycle until the flag is seen, 3 of entry), more while an instruction
ends, a higher interrupt runs, or interrupts are off. Duration is from the boundary at which the CPU
turned to the interrupt to the end of RETI, without interrupts that interrupted it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.profile import NOBODY, Blackout, Served
from avrswarm.chip.vectors import Vector
from avrswarm.study.timing.figures import spread
from avrswarm.study.timing.observe import Observed


def vector_rows(seen: Observed) -> list[dict[str, Any]]:
    """Return one row per interrupt that was served, by vector number."""
    rows = []
    for vector in np.unique(seen.served[:, Served.VECTOR]).tolist():
        mine = seen.interrupts(vector)
        known = mine[mine[:, Served.RAISED] >= 0]
        spent = int(mine[:, Served.OWN].sum())
        rows.append(
            {
                "vector": vector,
                "name": seen.names.vector(vector),
                "handler": seen.names.name(int(mine[0, Served.FUNCTION])),
                "count": len(mine),
                "per_second": len(mine) / seen.seconds if seen.seconds else None,
                "cycles": spent,
                "load": spent / max(1, seen.length),
                "latency": spread(known[:, Served.ENTERED] - known[:, Served.RAISED]),
                "duration": spread(mine[:, Served.OWN]),
            }
        )
    return rows


def blackout_rows(seen: Observed) -> list[dict[str, Any]]:
    """Return who switched interrupts off, the longest stretch first.

    A stretch that had not ended when watching did is as long as it was seen, and ``unfinished``.
    """
    causes: dict[str, list[NDArray[np.int64]]] = {}
    for row in seen.blackouts:
        causes.setdefault(_cause(seen, row), []).append(row)
    rows = []
    for cause, stretches in causes.items():
        table = np.array(stretches)
        lengths = table[:, Blackout.END] - table[:, Blackout.BEGIN]
        longest = int(lengths.argmax())
        rows.append(
            {
                "cause": cause,
                "function": _function(seen, table[longest]),
                "count": len(table),
                "longest_cycles": int(lengths[longest]),
                "longest_at_cycle": int(table[longest, Blackout.BEGIN]),
                "unfinished": int((table[:, Blackout.FINISHED] == 0).sum()),
                "total_cycles": int(lengths.sum()),
                "share": int(lengths.sum()) / max(1, seen.length),
                "length": spread(lengths),
            }
        )
    return sorted(rows, key=lambda row: -int(str(row["longest_cycles"])))


def _function(seen: Observed, row: NDArray[np.int64]) -> str:
    place = _place(seen, row)
    return "reset" if place == NOBODY else seen.names.name(seen.names.function_at(place))


def _place(seen: Observed, row: NDArray[np.int64]) -> int:
    vector = int(row[Blackout.VECTOR])
    if vector == Vector.RESET:
        return int(row[Blackout.PLACE])
    served = seen.interrupts(vector)
    return int(served[0, Served.FUNCTION]) if len(served) else 2 * vector


def _cause(seen: Observed, row: NDArray[np.int64]) -> str:
    vector = int(row[Blackout.VECTOR])
    if vector != Vector.RESET:
        return f"interrupt {seen.names.vector(vector)} ({seen.names.name(_place(seen, row))})"
    place = int(row[Blackout.PLACE])
    if place == NOBODY:
        return "reset"
    if int(row[Blackout.BEGIN]) == seen.first_cycle:
        return "start" if seen.first_cycle == 0 else "off when watching began"
    return f"cli in {seen.names.name(seen.names.function_at(place))}"


def served_columns(seen: Observed) -> dict[str, NDArray[Any]]:
    """Return all interrupts as columns of a table."""
    served = seen.served
    vectors = np.array([vector.name for vector in Vector], dtype=object)
    return {
        "vector": vectors[served[:, Served.VECTOR]],
        "raised_cycle": served[:, Served.RAISED],
        "taken_cycle": served[:, Served.TAKEN],
        "entered_cycle": served[:, Served.ENTERED],
        "end_cycle": served[:, Served.END],
        "own_cycles": served[:, Served.OWN],
        "interrupted_function": np.array(
            [seen.names.name(word) for word in served[:, Served.INTERRUPTED].tolist()],
            dtype=object,
        ),
    }
