"""How fast is a swarm? Robots that walk and talk, with everything recorded, phase by phase.

All robots run ``random_walk`` of the shipped firmware, which sends at the library's default rate
and is on its way all the time; where nobody shall speak they run ``blink``. Measured is a part of
the run in which all robots are up, recording included, by the clock on the wall: that is what a
user waits for. Processor time stands beside it, for machines that have other work to do.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from avrswarm.engine import EngineName
from avrswarm.record.run_folder import RunRecorder
from avrswarm.scene.model import Scene
from avrswarm.scene.read import check_scene
from avrswarm.study.bench import CLOCK_HZ, Row
from avrswarm.swarm.rounds import Progress
from avrswarm.swarm.simulation import Simulation
from avrswarm.swarm.window import Spent

_UP_S = 1.0  # all robots are switched on and have seen the controller's RUN
_ROBOT_SECONDS = 2000.0  # measured; more for small swarms, less for large ones
_LONGEST_S = 10.0


@dataclass(frozen=True)
class SwarmRow(Row):
    """One swarm; shares are parts of the time on the clock."""

    robots: int
    neighbours: float
    threads: int
    processor_s: float  # of all threads, for one simulated second
    chips_share: float
    medium_share: float
    physics_share: float
    records_share: float
    kib_per_robot: float
    phases: dict[str, float]  # seconds on the clock for one simulated second


class _Case(NamedTuple):
    name: str
    robots: int
    placement: dict[str, object]
    firmware: str = "random_walk"
    threads: int | None = None
    engine: EngineName = "translated"


_TWELVE: dict[str, object] = {"kind": "grid", "pitch_mm": 48}
_SIX: dict[str, object] = {"kind": "hex", "pitch_mm": 62}
_NINETEEN: dict[str, object] = {"kind": "hex", "pitch_mm": 45}

CASES = (
    _Case("1000 robots, 12 neighbours", 1000, _TWELVE),
    _Case("1000 robots, 12 neighbours, 1 thread", 1000, _TWELVE, threads=1),
    _Case("1000 robots, 12 neighbours, interpreter", 1000, _TWELVE, engine="interpreter"),
    _Case("1000 robots, 6 neighbours", 1000, _SIX),
    _Case("1000 robots, 19 neighbours", 1000, _NINETEEN),
    _Case("1000 robots, no traffic", 1000, _TWELVE, "blink"),
    _Case("100 robots, 12 neighbours", 100, _TWELVE),
    _Case("4000 robots, 12 neighbours", 4000, _TWELVE),
)


def bench_swarm(threads: int | None = None, cases: tuple[_Case, ...] = CASES) -> Iterator[SwarmRow]:
    """Measure swarms, case by case; ``threads`` replaces the default of one per core."""
    for case in cases:
        yield _measure(case, case.threads or threads)


def _scene(case: _Case) -> Scene:
    columns = math.isqrt(case.robots - 1) + 1
    placement = dict(case.placement)
    if placement["kind"] == "grid":
        placement["columns"] = columns
    side_mm = 200 + 70 * columns
    robots = {
        "count": case.robots,
        "firmware": case.firmware,
        "placement": placement,
        "heading_deg": "random",
    }
    arena = {"width_mm": side_mm, "height_mm": side_mm}
    return check_scene({"arena": arena, "robots": [robots]}, Path("bench.toml"))


class _Stopwatch:
    """Adds up the time that functions take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def watch(self, owner: object, name: str, phase: str) -> None:
        """Time a method of an object."""
        function: Callable[..., Any] = getattr(owner, name)
        self.seconds[phase] = 0.0

        def timed(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds[phase] += time.perf_counter() - start

        setattr(owner, name, timed)


def _measure(case: _Case, threads: int | None) -> SwarmRow:
    simulation = Simulation(_scene(case), threads=threads, engine=case.engine)
    seconds = min(_ROBOT_SECONDS / case.robots, _LONGEST_S)
    with tempfile.TemporaryDirectory() as folder:
        recorder = RunRecorder(simulation, Path(folder) / "run", pictures=False)
        recorder.start()
        simulation.run(_UP_S, on_step=lambda _: recorder.sample())
        watch = _Stopwatch()
        watch.watch(simulation, "_run_chips", "compiled")
        watch.watch(recorder, "sample", "records")
        edges = int(simulation._plan.progress[Progress.EDGES])
        spent = simulation._desks[0].spent.copy()
        processor, start = time.process_time(), time.perf_counter()
        simulation.run(seconds, on_step=lambda _: recorder.sample())
        wall, processor = time.perf_counter() - start, time.process_time() - processor
        edges = int(simulation._plan.progress[Progress.EDGES]) - edges
        spent = simulation._desks[0].spent - spent
        recorder.finish("bench")
    compiled, records = watch.seconds["compiled"], watch.seconds["records"]
    ticks = float(spent[[Spent.WINDOWS, Spent.SENSES, Spent.MOTION]].sum()) or 1.0
    chips, windows, senses, motion = (
        compiled * float(spent[part]) / ticks
        for part in (Spent.CHIPS, Spent.WINDOWS, Spent.SENSES, Spent.MOTION)
    )
    medium, physics = windows - chips, senses + motion
    phases = {
        "chips": chips,
        "light and rounds": medium,
        "sensors": senses,
        "motors, battery, motion": motion,
        "records": records,
        "between steps": wall - compiled - records,
    }
    pairs = int(simulation._neighbours.first[-1])
    factor = seconds / wall
    return SwarmRow(
        name=case.name,
        mhz=case.robots * CLOCK_HZ * factor / 1e6,
        simavr_mhz=None,
        ratio=None,
        realtime_factor=factor,
        us_per_pulse=processor / edges * 1e6 if edges else None,
        interpreter_mhz=None,
        robots=case.robots,
        neighbours=pairs / case.robots,
        threads=simulation.threads,
        processor_s=processor / seconds,
        chips_share=chips / wall,
        medium_share=medium / wall,
        physics_share=physics / wall,
        records_share=records / wall,
        kib_per_robot=_bytes_of(simulation) / case.robots / 1024,
        phases={name: value / seconds for name, value in phases.items()},
    )


_PER_PROGRAM = {"flash", "code", "blocks", "flash_before", "page_before"}
"""Arrays of a swarm that do not grow with the number of robots."""


def _bytes_of(simulation: Simulation) -> int:
    """Return the size of all arrays that grow with the number of robots."""
    parts: list[Any] = [
        *(part for name, part in simulation._swarm._asdict().items() if name not in _PER_PROGRAM),
        *simulation._plan,
        *simulation._traffic,
        *simulation._neighbours,
        *simulation.world,
        *simulation.motors,
        *simulation.battery,
        *simulation.traits,
        *simulation._surroundings,
    ]
    seen: dict[int, int] = {}
    while parts:
        part = parts.pop()
        if isinstance(part, tuple):
            parts.extend(part)
        elif isinstance(part, np.ndarray):
            while isinstance(part.base, np.ndarray):  # a view of another one
                part = part.base
            seen[id(part)] = part.nbytes
    return sum(seen.values())
