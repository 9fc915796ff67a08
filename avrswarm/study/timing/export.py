"""Profiles for viewers: speedscope (flame graphs over time) and callgrind (KCachegrind)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from avrswarm.chip.profile import Call
from avrswarm.study.timing.observe import Observed


def write_speedscope(seen: Observed, path: Path) -> dict[str, int]:
    """Write calls and interrupts in their place in time; values are cycles.

    Returns how many there are in the file, of how many.
    """
    calls = seen.calls.shown
    end = seen.last_cycle if seen.calls.shown_until is None else seen.calls.shown_until
    functions, frame = np.unique(calls[:, Call.FUNCTION], return_inverse=True)
    at = np.concatenate([calls[:, Call.END], calls[:, Call.BEGIN]])
    opens = np.arange(2).repeat(len(calls))
    depth = np.concatenate([-calls[:, Call.DEPTH], calls[:, Call.DEPTH]])
    # At one cycle inner calls end first, then outer ones, then new ones begin, outer first.
    order = np.lexsort((depth, opens, at))
    columns = (opens[order], np.tile(frame, 2)[order], at[order])
    events = [
        {"type": "CO"[kind], "frame": number, "at": cycle}
        for kind, number, cycle in zip(*(column.tolist() for column in columns), strict=True)
    ]
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "avrswarm",
        "name": f"{seen.program.name}, {seen.label}",
        "shared": {"frames": [_frame(seen, function) for function in functions.tolist()]},
        "profiles": [
            {
                "type": "evented",
                "name": f"{seen.label} (cycles)",
                "unit": "none",
                "startValue": seen.first_cycle,
                "endValue": end,
                "events": events,
            }
        ],
    }
    path.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
    return {"calls": len(calls), "of": seen.calls.count, "to_cycle": end}


def _frame(seen: Observed, function: int) -> dict[str, Any]:
    place = seen.names.line(function) if function >= 0 else None
    frame: dict[str, Any] = {"name": seen.names.name(function)}
    if place is not None:
        frame |= {"file": place[0], "line": place[1]}
    return frame


def write_callgrind(seen: Observed, path: Path) -> None:
    """Write cycles by instruction and line, and who called whom from where."""
    names = seen.names
    lines = [
        "# callgrind format",
        "version: 1",
        "creator: avrswarm",
        f"cmd: {seen.program.name} ({seen.label})",
        "positions: instr line",
        "events: Cycles",
        f"summary: {int(seen.cycles.sum())}",
    ]
    sites = _call_sites(seen)
    words = sorted({*np.flatnonzero(seen.cycles).tolist(), *sites})
    function, file = -2, ""
    for word in words:
        owner = names.function_at(word)
        here, line = names.line(word) or ("???", 0)
        if owner != function:
            function, file = owner, here
            lines += ["", f"fl={here}", f"fn={names.name(owner)}"]
        elif here != file:
            file = here
            lines.append(f"fi={here}")
        if seen.cycles[word]:
            lines.append(f"{2 * word:#x} {line} {int(seen.cycles[word])}")
        for callee, (count, cycles) in sorted(sites.get(word, {}).items()):
            there, its_line = names.line(callee) or ("???", 0)
            lines += [
                f"cfi={there}",
                f"cfn={names.name(callee)}",
                f"calls={count} {2 * callee:#x} {its_line}",
                f"{2 * word:#x} {line} {cycles}",
            ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _call_sites(seen: Observed) -> dict[int, dict[int, tuple[int, int]]]:
    """Return, by word address of the call and of the callee, how often and for how many cycles."""
    sites: dict[int, dict[int, tuple[int, int]]] = {}
    for (site, _, callee), (count, cycles) in seen.calls.links.items():
        before = sites.setdefault(site, {}).get(callee, (0, 0))
        sites[site][callee] = (before[0] + count, before[1] + cycles)
    return sites
