"""How long do delays really take? Alone, and among k neighbours whose messages interrupt.

A delay is too long for three reasons that are told apart: its code takes more cycles than the
milliseconds it is asked for, the chip's clock is not exactly 8 MHz, and interrupts come in between.
Busy waits (counted loops that the compiler made of ``_delay_ms``, longer than 0.1 ms) are listed by
their place; what they are meant to last is not known, and is counted from their own cycles.

All robots run the same firmware, close together, without noise. The robot in the middle is watched,
from a second after the swarm was started.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.profile import Served, Wait
from avrswarm.chip.state import TIME_UNITS_PER_SECOND
from avrswarm.chip.vectors import Vector
from avrswarm.program import Program
from avrswarm.program.space import Space
from avrswarm.study.timing.figures import spread
from avrswarm.study.timing.interrupts import vector_rows
from avrswarm.study.timing.names import Names
from avrswarm.study.timing.observe import TICKS, Observed, table_scene, watch_robots
from avrswarm.swarm.simulation import Simulation

Floats = NDArray[np.float64]

DELAY = "delay"
NOMINAL_HZ = 8_000_000
TICK_CYCLES = 256 * 1024
"""A tick of Kilobot libraries: Timer0 at clk/1024 (hardware reference 3.4)."""
SETTLE_S = 1.6
"""Robots are switched on within 0.5 s, told to run, and may blink for another 0.2 s first."""


def delay_study(
    program: Program, neighbours: Sequence[int], seconds: float, seed: int = 1
) -> dict[str, Any]:
    """Watch a robot with each number of neighbours; return figures, and columns of all waits.

    A program that has no function of the name ``delay`` is watched for the rest; ``note`` says so.
    """
    note = None
    if _delay_of(program) is None:
        note = (
            f"{program.name} has no function '{DELAY}': the linker dropped it, or its name is not"
            " known (--symbols); busy waits, load and ticks are told"
        )
    cases, tables = [], []
    for count in neighbours:
        case, columns = _measure(program, count, seconds, seed)
        cases.append(case)
        tables.append(columns)
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return {"note": note, "cases": cases, "columns": columns}


def _delay_of(program: Program) -> int | None:
    """Return the word address of the delay function."""
    found = program.symbols.find(DELAY, Space.FLASH)
    return None if found is None else found.address // 2


def _measure(
    program: Program, neighbours: int, seconds: float, seed: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    assert program.source is not None
    simulation = Simulation(table_scene(Path(program.source), neighbours + 1, seed))
    sent: list[NDArray[Any]] = []
    simulation.run(seconds=SETTLE_S)
    simulation.drain_sent()
    (seen,) = watch_robots(
        simulation,
        [0],
        seconds,
        names=Names(program),
        on_step=lambda swarm: sent.append(swarm.drain_sent()),
    )
    waits = _waits(seen, neighbours)
    case = {
        "neighbours": neighbours,
        "seconds": seen.seconds,
        "clock_ppm": 1e6 * (seen.length / seen.seconds / NOMINAL_HZ - 1),
        "delays": _group(waits),
        "load": _load(seen, np.concatenate(sent)),
        "ticks": _ticks(seen),
        "tick_error": _tick_error(seen),
    }
    return case, waits


def _waits(seen: Observed, neighbours: int) -> dict[str, NDArray[Any]]:
    """Return all delays and busy waits outside of them as columns of a table."""
    delay = _delay_of(seen.program)
    calls = seen.calls.of(DELAY if delay is None else seen.names.name(delay))
    owner = np.array(
        [seen.names.function_at(place) for place in seen.waits[:, Wait.PLACE].tolist()]
    )
    first = seen.first_cycle + 10  # a wait that was under way when watching began is not whole
    loops = seen.waits[(owner != delay) & (seen.waits[:, Wait.BEGIN] > first)]
    begin = np.concatenate([calls["begin_cycle"], loops[:, Wait.BEGIN]])
    end = np.concatenate([calls["end_cycle"], loops[:, Wait.END]])
    interrupted = np.concatenate([calls["interrupted_cycles"], loops[:, Wait.INTERRUPTED]])
    asked = calls["argument"].astype(float)
    counted = (loops[:, Wait.END] - loops[:, Wait.BEGIN] - loops[:, Wait.INTERRUPTED]) / 8000
    names = [f"{DELAY}({ms})" for ms in calls["argument"].tolist()]
    names += [f"busy wait at {seen.names.name(place)}" for place in loops[:, Wait.PLACE].tolist()]
    real = (seen.times(end) - seen.times(begin)) / TIME_UNITS_PER_SECOND * 1e3
    return {
        "neighbours": np.full(len(begin), neighbours),
        "wait": np.array(names, dtype=object),
        "nominal_is": np.array(["asked"] * len(asked) + ["counted"] * len(counted), dtype=object),
        "nominal_ms": np.concatenate([asked, counted]),
        "real_ms": real,
        "begin_cycle": begin,
        "code_cycles": end - begin - interrupted,
        "interrupt_cycles": interrupted,
    }


def _group(waits: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    rows = []
    columns = (waits["nominal_is"], waits["nominal_ms"].tolist(), waits["wait"])
    for kind, nominal, name in sorted(set(zip(*columns, strict=True))):
        mine = (waits["wait"] == name) & (waits["nominal_ms"] == nominal)
        if nominal == 0:
            continue
        code = waits["code_cycles"][mine]
        cycles = code + waits["interrupt_cycles"][mine]
        rows.append(
            {
                "wait": name,
                "nominal_is": kind,
                "nominal_ms": nominal,
                "count": int(mine.sum()),
                "code_cycles": spread(code),
                "real_ms": spread(waits["real_ms"][mine]),
                "longer_percent": spread(100 * (waits["real_ms"][mine] / nominal - 1)),
                "of_that_code_percent": 100 * (float(np.median(code)) / (8000 * nominal) - 1),
                "of_that_interrupts_percent": spread(
                    100 * waits["interrupt_cycles"][mine] / (8000 * nominal)
                ),
                "mean_cycles": float(cycles.mean()),
            }
        )
    return rows


def _load(seen: Observed, sent: NDArray[Any]) -> dict[str, Any]:
    """Return what interrupts take, by vector, and how busy the channel is."""
    rows = vector_rows(seen)
    whole = sent[sent["complete"] == 1]
    own = whole["robot"] == 0
    airtime = float((sent["end_s"] - sent["start_s"]).sum())
    served = seen.served
    nested = served[:, Served.END] - served[:, Served.TAKEN] - served[:, Served.OWN]
    cycles = sum(row["cycles"] for row in rows)
    comparator = [row["per_second"] for row in rows if row["vector"] == Vector.ANALOG_COMP]
    pulses = whole["pulses"][~own]
    return {
        "kilocycles_per_second": cycles / seen.length * NOMINAL_HZ / 1000,
        "percent": 100 * cycles / seen.length,
        "nested_cycles": int(nested.sum()),
        "comparator_per_second": sum(comparator),
        "own_messages_per_second": float(own.sum()) / seen.seconds,
        "neighbours_messages_per_second": float((~own).sum()) / seen.seconds,
        "pulses_per_message": float(pulses.mean()) if len(pulses) else None,
        "airtime_percent": 100 * airtime / seen.seconds,
        "by_vector": {row["name"]: 100 * row["load"] for row in rows},
    }


def _ticks(seen: Observed) -> dict[str, Any] | None:
    """Return how wrong kilo_ticks is from the first to the last tick; None if there is none."""
    before, after = seen.variable(TICKS, after=False), seen.variable(TICKS)
    served = seen.interrupts(Vector.TIMER0_COMPA)
    if before is None or after is None or len(served) < 2:
        return None
    by_cycles = 1 + (seen.last_cycle - int(served[0, Served.RAISED])) // TICK_CYCLES
    error = _tick_error(seen)
    return {
        "ticks": after - before,
        "by_own_cycles": by_cycles,
        "extra_ticks": after - before - by_cycles,
        "error_ms": error["error_ms"][-1],
        "error_ppm": 1000 * error["error_ms"][-1] / error["time_s"][-1],
    }


def _tick_error(seen: Observed) -> dict[str, list[float]]:
    """Return how far ticks are ahead of true time, at each tick's interrupt."""
    ticks = seen.interrupts(Vector.TIMER0_COMPA)
    if len(ticks) == 0:
        return {"time_s": [], "error_ms": []}
    times = seen.times(ticks[:, Served.ENTERED])
    true_s = (times - times[0]) / TIME_UNITS_PER_SECOND
    nominal_s = np.arange(len(ticks)) * TICK_CYCLES / NOMINAL_HZ
    return {"time_s": true_s.tolist(), "error_ms": (1000 * (nominal_s - true_s)).tolist()}
