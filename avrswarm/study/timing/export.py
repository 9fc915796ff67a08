"""Profiles for viewers: speedscope (flame graphs over time) and callgrind (KCachegrind)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from avrswarm.chip.profile import Call, Kind
from avrswarm.study.timing.observe import Observed

MOST_CALLS = 100_000
"""A speedscope file keeps the first so many calls: browsers do not like more."""


def write_speedscope(seen: Observed, path: Path) -> None:
    """Write every call and interrupt in its place in time; values are cycles."""
    calls = seen.calls[np.argsort(seen.calls[:, Call.BEGIN], kind="stable")]
    if len(calls) > MOST_CALLS:  # calls that last longer than what is kept end with it
        end = int(calls[MOST_CALLS, Call.BEGIN])
        calls = calls[calls[:, Call.BEGIN] < end]
        calls = calls.copy()
        calls[:, Call.END] = np.minimum(calls[:, Call.END], end)
    else:
        end = seen.last_cycle
    frames: dict[int, int] = {}
    opened, closed = [], []
    for row in calls.tolist():
        frame = frames.setdefault(row[Call.FUNCTION], len(frames))
        # At one cycle inner calls end first, then outer ones, then new ones begin, outer first.
        closed.append((row[Call.END], 0, -row[Call.DEPTH], "C", frame))
        opened.append((row[Call.BEGIN], 1, row[Call.DEPTH], "O", frame))
    events = [
        {"type": kind, "frame": frame, "at": cycle}
        for cycle, _, _, kind, frame in sorted(opened + closed)
    ]
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "avrswarm",
        "name": f"{seen.program.name}, {seen.label}",
        "shared": {"frames": [_frame(seen, function) for function in frames]},
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
    called = np.isin(seen.calls[:, Call.KIND], (Kind.CALL, Kind.JUMP))
    columns = [Call.SITE, Call.FUNCTION, Call.INCLUSIVE]
    for site, callee, cycles in seen.calls[called][:, columns].tolist():
        count, total = sites.setdefault(site, {}).get(callee, (0, 0))
        sites[site][callee] = (count + 1, total + cycles)
    return sites
