"""Do robots agree on the time? Clocks, message times, and time handed on hop by hop.

Robots stand in a line in which each hears only the ones beside it. Several lines are run, with
other clocks (other seeds).

- Drift: every chip's clock against true time, from its count of cycles.
- Message times: from one frame of a robot to its next; and from the last pulse of a frame to the
  comparator edge that it makes at a neighbour.
- Errors of synchronisation, for firmware that has ``sync_offset`` (32 bit, units of 128 us, added
  to the robot's own time) and ``sync_hops``, as ``hop_sync`` has: a robot's time less that of robot
  0 at the same moment. If errors of hops are independent, they grow as the square root
  of hops; if they have the same sign, in proportion. Both are fitted, and a free exponent.

The own time of a robot, ``kilo_ticks`` and TCNT0, is followed between units by its cycle count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.registers import REGISTERS
from avrswarm.program import Program
from avrswarm.study.timing.figures import spread
from avrswarm.study.timing.observe import SYNC_HOPS, SYNC_OFFSET, TICKS, place_of, table_scene
from avrswarm.swarm.simulation import Simulation

Floats = NDArray[np.float64]

NOMINAL_HZ = 8_000_000
UNIT_CYCLES = 1024
UNIT_US = 128.0
PITCH_MM = 70.0
RANGE_MM = 100.0
START_S = 0.6
SAMPLE_S = 0.02
PHASE_LOOKS = 60


def sync_study(
    program: Program, robots: int, seconds: float, repeats: int, seed: int = 1
) -> dict[str, Any]:
    """Run lines of robots; return figures, and columns of all samples and messages."""
    lines = [_Line(program, robots, seed + number) for number in range(repeats)]
    for line in lines:
        line.run(seconds)
    rows = [line.clock_rows() for line in lines]
    return {
        "robots": robots,
        "lines": repeats,
        "seconds": seconds,
        "clocks": [row for part in rows for row in part],
        "drift": _drift([row for part in rows for row in part]),
        "messages": _message_figures(lines),
        "sync": _sync_figures(lines),
        "samples": _samples(lines),
    }


class _Line:
    """One line of robots and what was seen of it."""

    def __init__(self, program: Program, robots: int, seed: int) -> None:
        self.seed = seed
        self.robots = robots
        self.program = program
        assert program.source is not None
        scene = table_scene(
            Path(program.source),
            robots,
            seed,
            optics={"preset": "ideal", "range_mm": RANGE_MM},
            robots=[
                {
                    "firmware": str(program.source.resolve()),
                    "count": robots,
                    "placement": {"kind": "line", "pitch_mm": PITCH_MM},
                }
            ],
        )
        self.simulation = Simulation(scene)
        self.times: list[float] = []
        self.cycles: list[NDArray[np.int64]] = []
        self.offsets: list[NDArray[np.int64]] = []
        self.hops: list[NDArray[np.int64]] = []
        self.sent: list[NDArray[Any]] = []
        self.heard: list[NDArray[Any]] = []
        self._phase = np.full(robots, -np.inf)
        self._looks = 0

    def run(self, seconds: float) -> None:
        self.simulation.run(seconds=START_S)
        self.simulation.drain_sent()
        self.simulation.drain_heard()
        self.simulation.run(seconds=seconds, on_step=self._look)

    def _look(self, simulation: Simulation) -> None:
        self.sent.append(simulation.drain_sent())
        self.heard.append(simulation.drain_heard())
        if self.times and simulation.time_s - self.times[-1] < SAMPLE_S:
            return
        chips = simulation.chips
        self.times.append(simulation.time_s)
        self.cycles.append(chips.cycle.copy())
        self.offsets.append(self._variable(SYNC_OFFSET, signed=True))
        self.hops.append(self._variable(SYNC_HOPS))
        if self._looks < PHASE_LOOKS:
            self._looks += 1
            self._look_at_own_time()

    def _variable(self, name: str, signed: bool = False) -> NDArray[np.int64]:
        place = place_of(self.program, name)
        if place is None:
            return np.zeros(self.robots, np.int64)
        part = self.simulation.chips.memory[:, place].astype(np.int64)
        bits = 8 * part.shape[1]
        value: NDArray[np.int64] = (part << np.arange(0, bits, 8)).sum(axis=1)
        top = 1 << (bits - 1)
        return np.where(value >= top, value - 2 * top, value) if signed else value

    def _look_at_own_time(self) -> None:
        """Find how a robot's time in whole units hangs together with its cycles.

        It is the whole part of cycle / 1024 + phase; a tick that waits for its interrupt makes it
        too small for a moment, never too large.
        """
        ticks = self._variable(TICKS)
        for robot in range(self.robots):
            chip = self.simulation.robots[robot].chip
            count = int(chip.data[REGISTERS["TCNT0"]])
            units = (int(ticks[robot]) << 8) + count - chip.cycle / UNIT_CYCLES
            self._phase[robot] = max(self._phase[robot], units)

    def clock_rows(self) -> list[dict[str, Any]]:
        """Return the clock of each robot, by its cycles from the first to the last look."""
        seconds = self.times[-1] - self.times[0]
        cycles = self.cycles[-1] - self.cycles[0]
        return [
            {
                "line": self.seed,
                "robot": robot,
                "hz": float(cycles[robot] / seconds),
                "ppm": float(1e6 * (cycles[robot] / seconds / NOMINAL_HZ - 1)),
            }
            for robot in range(self.robots)
        ]

    def runs_away(self) -> tuple[Floats, Floats]:
        """Return times, and how far each clock is ahead of true time since then, in ms."""
        times = np.array(self.times)
        cycles = np.array(self.cycles)
        ahead = 1000 * ((cycles - cycles[0]) / NOMINAL_HZ - (times - times[0])[:, None])
        return times, ahead

    def errors(self) -> Floats:
        """Return how far each robot's synchronised time is ahead of robot 0's, in us; NaN: none."""
        hops = np.array(self.hops)
        time = np.array(self.cycles) / UNIT_CYCLES + self._phase + np.array(self.offsets)
        error: Floats = UNIT_US * (time - time[:, :1])
        settled = (hops == np.arange(self.robots)).all(axis=1)
        error[~settled] = np.nan
        return error

    def intervals(self) -> list[Floats]:
        """Return the times between frames of each robot, in ms."""
        sent = np.concatenate(self.sent)
        sent = sent[sent["complete"] == 1]
        return [
            1000 * np.diff(np.sort(sent["start_s"][sent["robot"] == robot]))
            for robot in range(self.robots)
        ]

    def arrivals(self) -> Floats:
        """Return the times from last pulses to the comparator edges of neighbours, in us."""
        sent, heard = np.concatenate(self.sent), np.concatenate(self.heard)
        sent = sent[sent["complete"] == 1]
        if len(sent) == 0 or len(heard) == 0:
            return np.zeros(0)
        order = np.argsort(sent["end_s"])
        place = np.searchsorted(sent["end_s"][order], heard["time_s"]) - 1
        known = place >= 0
        frame = sent[order][np.maximum(place, 0)]
        same = known & (frame["data"] == heard["data"]).all(axis=1)
        late = 1e6 * (heard["time_s"] - frame["end_s"])
        chosen: Floats = late[same & (late < 100)]
        return chosen


def _drift(clocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how far apart clocks run: all of them, and pairs of the same line."""
    ppm = np.array([row["ppm"] for row in clocks])
    line = np.array([row["line"] for row in clocks])
    pairs = [
        abs(float(a - b))
        for number in np.unique(line)
        for place, a in enumerate(ppm[line == number])
        for b in ppm[line == number][place + 1 :]
    ]
    return {
        "ppm": spread(ppm),
        "deviation_ppm": float(ppm.std()),
        "pair_ppm": spread(np.array(pairs)),
        "pair_ms_per_minute": spread(np.array(pairs) * 60 / 1000),
    }


def _message_figures(lines: list[_Line]) -> dict[str, Any]:
    intervals = [part for line in lines for part in line.intervals()]
    together = np.concatenate([*intervals, np.zeros(0)])
    jitter = [part - np.median(part) for part in intervals if len(part)]
    return {
        "interval_ms": spread(together),
        "interval_jitter_ms": spread(np.concatenate([*jitter, np.zeros(0)])),
        "arrival_us": spread(np.concatenate([line.arrivals() for line in lines])),
    }


def _sync_figures(lines: list[_Line]) -> dict[str, Any] | None:
    """Return errors by hop and the laws of growth; None if the firmware has no such variables."""
    program = lines[0].program
    if place_of(program, SYNC_OFFSET) is None or place_of(program, SYNC_HOPS) is None:
        return None
    errors = [line.errors() for line in lines]
    rows = []
    for hop in range(1, lines[0].robots):
        part = np.concatenate([error[:, hop] for error in errors])
        part = part[~np.isnan(part)]
        if len(part) == 0:
            continue
        rows.append(
            {
                "hops": hop,
                "samples": len(part),
                "mean_us": float(part.mean()),
                "rms_us": float(np.sqrt((part**2).mean())),
                "deviation_us": float(part.std()),
                "median_absolute_us": float(np.median(np.abs(part))),
                "max_absolute_us": float(np.abs(part).max()),
            }
        )
    return {
        "by_hop": rows,
        "growth": growth(rows, "rms_us"),
        "growth_of_median": growth(rows, "median_absolute_us"),
    }


def growth(rows: list[dict[str, Any]], what: str) -> dict[str, Any] | None:
    """Fit a sqrt(n), a n and a n^p to errors by hop; ``off`` is the relative misfit.

    Root mean squares show what goes wrong now and then (two robots that talk at once, again and
    again), medians of absolute errors what is usual.
    """
    hops = np.array([row["hops"] for row in rows], float)
    error = np.array([row[what] for row in rows])
    if len(rows) < 3 or not (error > 0).all():
        return None
    found: dict[str, Any] = {}
    for name, exponent in (("sqrt", 0.5), ("linear", 1.0)):
        found[name] = _fit(hops, error, exponent)
    exponent, _ = np.polyfit(np.log(hops), np.log(error), 1)
    found["free"] = {"exponent": float(exponent), **_fit(hops, error, float(exponent))}
    found["closer"] = min(("sqrt", "linear"), key=lambda name: found[name]["off"])
    return found


def _fit(hops: Floats, error: Floats, exponent: float) -> dict[str, float]:
    factor = float(np.exp(np.mean(np.log(error) - exponent * np.log(hops))))
    misfit = np.log(error) - np.log(factor * hops**exponent)
    return {"us_at_one_hop": factor, "off": float(np.sqrt(np.mean(misfit**2)))}


def _samples(lines: list[_Line]) -> dict[str, NDArray[Any]]:
    """Return all looks at all robots as columns of a table."""
    parts: dict[str, list[NDArray[Any]]] = {}
    for line in lines:
        times, ahead = line.runs_away()
        count = len(times)
        columns = {
            "line": np.full(count * line.robots, line.seed),
            "time_s": np.repeat(times, line.robots),
            "robot": np.tile(np.arange(line.robots), count),
            "cycle": np.array(line.cycles).ravel(),
            "clock_ahead_ms": ahead.ravel(),
            "hops": np.array(line.hops).ravel(),
            "sync_error_us": line.errors().ravel(),
        }
        for name, column in columns.items():
            parts.setdefault(name, []).append(column)
    return {name: np.concatenate(columns) for name, columns in parts.items()}
