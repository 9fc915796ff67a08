"""A run on disk: what was run, where robots went, what became of their messages, what they printed.

``RunRecorder`` writes a run folder while the simulation goes on, ``read_run`` reads it back:

=======================  =========================================================================
``run.json``             resolved scene, seed, versions, firmware digests; state digest, speed and
                         faults once the run has ended, ``"state": "running"`` before
``trajectory.parquet``   time_s, robot, x_mm, y_mm, heading_rad, led (r | g << 2 | b << 4, what it
                         shows at that very moment), duty_left, duty_right
``watch.parquet``        time_s, robot, and the variables that the scene watches, if any
``frames.parquet``       every frame sent: start and end, sender, its place, whether it was
                         complete, how many robots were in earshot and how many received it
``messages.parquet``     every frame at every robot in earshot, and its fate (`fates.Fate`) for an
                         attentive receiver in the robot's place; what the overhead controller
                         said has sender -1
``objects.parquet``      where pushable discs went, if there are any
``uart/<robot>.txt``     what a robot printed, byte by byte
=======================  =========================================================================

and pictures. Fates are judged from the comparator's edges by a receiver that is always ready. The
robot's own firmware may do worse: a program that switches interrupts off, sleeps, or is busy in a
callback misses frames that are ``received`` here. What firmware made of them is in its variables
(``[record] watch``). Gains in ``messages`` are those of the light, without the noise of the robot's
own ADC, so ``estimate_mm`` may differ by a millimetre or two from what the firmware found.

Nothing is ever overwritten. All that is older than a few seconds is safe on disk, and a killed run
leaves a folder that ``read_run`` reads.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import signal
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import TypeAdapter

from avrswarm import __version__
from avrswarm.chip.state import Chips
from avrswarm.errors import RecordError
from avrswarm.program import Program
from avrswarm.record.fates import (
    FRAMES_SCHEMA,
    MESSAGES_SCHEMA,
    PAYLOAD,
    SETTLE_S,
    Earshot,
    Ledger,
    Records,
)
from avrswarm.record.tables import GrowingTable, read_growing
from avrswarm.record.watch import Watch
from avrswarm.robot.motors import MotorState
from avrswarm.scene.build import Robots
from avrswarm.scene.model import Arena, Disc, LightSource, Scene, Thing
from avrswarm.world.state import WorldState

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
RUNS = Path("runs")
"""Where run folders go that are not given a place."""

FLUSH_WALL_S = 2.0
FLUSH_ROWS = 400_000
"""Rows are written when the last ones are so old, or so many."""

SETTLE_ROBOT_S = 1000.0
SETTLE_MOST_S = 10.0
"""Fates of messages are settled after so many robot-seconds, or so many simulated seconds."""
MOST_SETTLING = 4
"""Parts of the run whose fates are being worked out, beside the simulation, at most."""

TRAJECTORY_SCHEMA = pa.schema(
    [
        ("time_s", pa.float64()),
        ("robot", pa.int32()),
        ("x_mm", pa.float64()),
        ("y_mm", pa.float64()),
        ("heading_rad", pa.float64()),
        ("led", pa.uint8()),
        ("duty_left", pa.uint8()),
        ("duty_right", pa.uint8()),
    ]
)
WATCH_SCHEMA = pa.schema([("time_s", pa.float64()), ("robot", pa.int32())])
"""The columns before those of the watched variables."""
OBJECTS_SCHEMA = pa.schema(
    [
        ("time_s", pa.float64()),
        ("object", pa.int32()),
        ("x_mm", pa.float64()),
        ("y_mm", pa.float64()),
    ]
)


class RecordedRobot(Protocol):
    """What is asked of one robot."""

    @property
    def program(self) -> Program: ...  # noqa: D102


class RecordedSimulation(Protocol):
    """What is asked of a simulation; `avrswarm.Simulation` has it."""

    scene: Scene
    world: WorldState
    motors: MotorState
    traits: Robots
    group: NDArray[np.int64]
    faults: list[tuple[int, str]]

    @property
    def chips(self) -> Chips: ...  # noqa: D102
    @property
    def time_s(self) -> float: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102
    @property
    def robots(self) -> Sequence[RecordedRobot]: ...  # noqa: D102
    def led_colours(self) -> NDArray[np.int64]: ...  # noqa: D102
    def drain_sent(self) -> Records: ...  # noqa: D102
    def drain_heard(self) -> Records: ...  # noqa: D102
    def drain_uart(self) -> list[tuple[int, bytes]]: ...  # noqa: D102
    def digest(self) -> str: ...  # noqa: D102


class _Sample(NamedTuple):
    """The robots at one time."""

    time_s: float
    columns: tuple[NDArray[Any], ...]
    watched: list[pa.Array]


class _Step(NamedTuple):
    """Where robots were in a step, and what ended in it."""

    x_mm: NDArray[np.float64]
    y_mm: NDArray[np.float64]
    sent: NDArray[Any]
    heard: NDArray[Any]


def _settle_steps(
    ledger: Ledger, steps: Sequence[_Step], until_s: float
) -> tuple[pa.Table, pa.Table]:
    for step in steps:
        ledger.add(*step)
    return ledger.settle(until_s)


class RunRecorder:
    """Writes the run folder of one run.

    Parameters
    ----------
    simulation
        What is run. The recorder only looks at it.
    folder
        Where to write: a new or empty folder. Default: a new one in ``runs/``, named as the scene.
    pictures, film
        Whether to draw pictures and a film at the end. Default: pictures if the scene says so.

    Use as ``start()``, then ``sample()`` after every step of the world, then ``finish(reason)``.
    """

    def __init__(
        self,
        simulation: RecordedSimulation,
        folder: str | Path | None = None,
        *,
        pictures: bool | None = None,
        film: bool = False,
    ) -> None:
        self._simulation = simulation
        self._wanted_folder = None if folder is None else Path(folder)
        wanted = simulation.scene.record
        self._pictures = wanted.pictures if pictures is None else pictures
        self._film = film
        self._count = len(simulation.robots)
        self._discs = pushable_discs(simulation.scene)
        self._watch = Watch(simulation.scene, [robot.program for robot in simulation.robots])
        self._samples: list[_Sample] = []
        self._uart: defaultdict[int, list[bytes]] = defaultdict(list)
        self._steps: list[_Step] = []
        self._clerk = ThreadPoolExecutor(1, "avrswarm-records")
        self._settling: deque[Future[tuple[pa.Table, pa.Table]]] = deque()
        self._rows = 0
        self._sampled = 0  # trajectory samples taken so far
        self._settled_s = 0.0
        self._settle_every_s = min(SETTLE_MOST_S, SETTLE_ROBOT_S / self._count)
        self.folder: Path | None = None
        self.info: dict[str, Any] = {}
        """What ``run.json`` holds."""

    def start(self) -> Path:
        """Make the folder, write what is known before the run, and return the folder."""
        simulation = self._simulation
        folder = make_folder(self._wanted_folder, simulation.scene.scene.name)
        self.folder = folder
        self._ledger = Ledger(self._count, Earshot.of(simulation.scene, simulation.traits))
        self._trajectory = GrowingTable(folder / "trajectory.parquet", TRAJECTORY_SCHEMA)
        self._watch_schema = pa.schema([*WATCH_SCHEMA, *self._watch.fields])
        self._watched = GrowingTable(folder / "watch.parquet", self._watch_schema)
        self._objects = GrowingTable(folder / "objects.parquet", OBJECTS_SCHEMA)
        self._frames = GrowingTable(folder / "frames.parquet", FRAMES_SCHEMA)
        self._messages = GrowingTable(folder / "messages.parquet", MESSAGES_SCHEMA)
        self._start_s = simulation.time_s
        self._settled_s = simulation.time_s
        self._ledger.warm_up()
        self._started = self._flushed = time.perf_counter()
        self.info = _describe(simulation, self._count)
        self._write_info()
        self._remember_place()
        self._take_sample()
        return folder

    def sample(self) -> None:
        """Take what happened since the last call; call it after each step of the world."""
        with _interrupt_later():
            simulation = self._simulation
            self._collect()
            due = self._start_s + self._sampled / simulation.scene.record.trajectory_hz
            if simulation.time_s >= due - 1e-9:
                self._take_sample()
            late = time.perf_counter() - self._flushed > FLUSH_WALL_S
            flush = late or self._rows > FLUSH_ROWS
            if flush or simulation.time_s - self._settled_s >= self._settle_every_s:
                self._settle(simulation.time_s - SETTLE_S)
            if flush:
                self._flush()

    def finish(
        self,
        reason: str = "finished",
        compile_s: float = 0.0,
        compiled_before_s: float = 0.0,
        shown_s: float = 0.0,
    ) -> Path:
        """Write all that is left, then the pictures; return the folder.

        Parameters
        ----------
        reason
            Why the run ended: ``finished``, ``interrupted``, ``fault``, ``error`` or other words.
        compile_s
            Part of the time since ``start`` that went into compiling; not counted as speed.
        compiled_before_s
            Time that went into compiling before ``start``; only told.
        shown_s
            Part of the time since ``start`` that went into a live window; not counted as speed.
        """
        assert self.folder is not None, "finish before start"
        with _interrupt_later():
            simulation = self._simulation
            wall_s = time.perf_counter() - self._started - compile_s - shown_s
            self._collect()
            if self._last_sample_s < simulation.time_s:
                self._take_sample()
            self._settle(np.inf)
            wait(self._settling)
            self._flush()
            self._clerk.shutdown()
            for table in (self._trajectory, self._frames, self._messages):
                table.close()
            if self._discs:
                self._objects.close()
            if len(self._watch.robots):
                self._watched.close()
            simulated_s = simulation.time_s - self._start_s
            self.info |= {
                "state": "ended",
                "reason": reason,
                "ended": _now(),
                "wall_s": round(wall_s, 3),
                "compile_s": round(compiled_before_s + compile_s, 3),
                "realtime_factor": round(simulated_s / wall_s, 4) if wall_s > 0 else None,
                "digest": simulation.digest(),
            }
            self._write_info()
        self._draw()
        return self.folder

    # ---- inside ----------------------------------------------------------------------------------

    def _collect(self) -> None:
        simulation = self._simulation
        sent, heard = simulation.drain_sent(), simulation.drain_heard()
        if simulation.scene.record.messages:
            if len(sent) or len(heard):
                self._steps.append(_Step(*self._place, sent, heard))
            self._rows += 8 * len(sent) + len(heard)
        self._remember_place()
        for robot, printed in simulation.drain_uart():
            if simulation.scene.record.uart:
                self._uart[robot].append(printed)
                self._rows += len(printed) // 32 + 1

    def _remember_place(self) -> None:
        """Keep where robots are: they stay there for a step, and then the simulation moves them."""
        world = self._simulation.world
        self._place = world.x_mm.copy(), world.y_mm.copy()

    def _take_sample(self) -> None:
        simulation, n = self._simulation, self._count
        world = simulation.world
        duty = simulation.motors.duty
        columns = (
            world.x_mm.copy(),
            world.y_mm.copy(),
            world.heading_rad[:n].copy(),
            simulation.led_colours().astype(np.uint8),
            duty[:, 0].astype(np.uint8),
            duty[:, 1].astype(np.uint8),
        )
        # Asking for chips makes those that rest catch up.
        watched = self._watch.read(simulation.chips.memory) if self._watch.fields else []
        self._samples.append(_Sample(simulation.time_s, columns, watched))
        self._last_sample_s = simulation.time_s
        self._rows += n
        self._sampled += 1
        hz = simulation.scene.record.trajectory_hz
        while (
            self._start_s + self._sampled / hz <= simulation.time_s
        ):  # finer than the world's step
            self._sampled += 1

    def _settle(self, until_s: float) -> None:
        """Have it worked out what became of messages, while the simulation goes on."""
        if self._simulation.scene.record.messages:
            steps, self._steps = self._steps, []
            self._settling.append(self._clerk.submit(_settle_steps, self._ledger, steps, until_s))
            if len(self._settling) > MOST_SETTLING:
                wait([self._settling[0]])
        self._settled_s = self._simulation.time_s

    def _flush(self) -> None:
        """Write everything to disk that is waiting and settled."""
        assert self.folder is not None
        try:
            self._write_samples()
            settled = []
            while self._settling and self._settling[0].done():
                settled.append(self._settling.popleft().result())
            if settled:
                frames, messages = zip(*settled, strict=True)
                self._frames.append(pa.concat_tables(frames))
                self._messages.append(pa.concat_tables(messages))
            for robot, parts in self._uart.items():
                place = self.folder / "uart" / f"{robot}.txt"
                place.parent.mkdir(exist_ok=True)
                with place.open("ab") as file:
                    file.write(b"".join(parts))
            self._uart.clear()
        except OSError as error:
            raise RecordError(f"{self.folder}: cannot be written: {error.strerror}") from None
        self._rows = 0
        self._flushed = time.perf_counter()
        self._write_info()

    def _write_samples(self) -> None:
        if not self._samples:
            return
        times = np.array([sample.time_s for sample in self._samples])
        x, y, heading, colour, left, right = (
            np.stack(column)
            for column in zip(*(sample.columns for sample in self._samples), strict=True)
        )
        n = self._count
        robots = np.tile(np.arange(n, dtype=np.int32), len(times))
        columns: list[Any] = [np.repeat(times, n), robots, x[:, :n].ravel(), y[:, :n].ravel()]
        columns += [values.ravel() for values in (heading, colour, left, right)]
        self._trajectory.append(pa.table(columns, schema=TRAJECTORY_SCHEMA))
        if len(self._watch.robots):
            watched = zip(*(sample.watched for sample in self._samples), strict=True)
            numbers = self._watch.robots.astype(np.int32)
            columns = [np.repeat(times, len(numbers)), np.tile(numbers, len(times))]
            columns += [pa.chunked_array(list(values)) for values in watched]
            self._watched.append(pa.table(columns, schema=self._watch_schema))
        if self._discs:
            numbers = np.array(list(self._discs.values()), np.int32)
            bodies = n + np.array(list(self._discs))
            columns = [np.repeat(times, len(bodies)), np.tile(numbers, len(times))]
            columns += [x[:, bodies].ravel(), y[:, bodies].ravel()]
            self._objects.append(pa.table(columns, schema=OBJECTS_SCHEMA))
        self._samples.clear()

    def _write_info(self) -> None:
        assert self.folder is not None
        self.info["simulated_s"] = round(self._simulation.time_s - self._start_s, 9)
        self.info["faults"] = [
            {"robot": robot, "message": message} for robot, message in self._simulation.faults
        ]
        text = json.dumps(self.info, indent=2) + "\n"
        unfinished = self.folder / ".run.json"
        try:
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, self.folder / "run.json")
        except OSError as error:
            raise RecordError(f"{self.folder}: cannot be written: {error.strerror}") from None

    def _draw(self) -> None:
        if not (self._pictures or self._film):
            return
        assert self.folder is not None
        run = read_run(self.folder)
        if self._pictures:
            from avrswarm.record.pictures import draw_run

            self.info["pictures"] = [path.name for path in draw_run(run)]
        if self._film:
            from avrswarm.record.film import make_film

            self.info["film"] = make_film(run).name
        self._write_info()


# ---- reading ---------------------------------------------------------------------------------


class Run:
    """A run folder, read when asked. Tables are pandas data frames.

    Attributes
    ----------
    path
        The folder.
    info
        Content of ``run.json``.
    """

    def __init__(self, path: Path, info: dict[str, Any]) -> None:
        self.path = path
        self.info = info

    def __repr__(self) -> str:
        return f"<Run {self.path}: {self.info['robots']} robots, {self.info['simulated_s']} s>"

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table, such as ``trajectory``, ``messages`` or ``watch``, as an Arrow table."""
        try:
            table = read_growing(self.path / f"{name}.parquet", columns)
        except FileNotFoundError:
            schema = _SCHEMAS.get(name)
            if schema is None or (self.info["state"] == "ended" and name not in _OPTIONAL):
                raise RecordError(f"{self.path}: has no table '{name}'") from None
            empty = schema.empty_table()  # nothing was recorded yet
            return empty if columns is None else empty.select(columns)
        except (OSError, pa.ArrowException) as error:
            raise RecordError(f"{self.path}: table '{name}' cannot be read: {error}") from None
        plain = [
            field.with_type(pa.string()) if field.type == PAYLOAD else field
            for field in table.schema
        ]
        return table.cast(pa.schema(plain))

    @cached_property
    def trajectory(self) -> pd.DataFrame:
        """Where robots were, what their LEDs showed and what their motors were told."""
        return self._frame("trajectory")

    @cached_property
    def messages(self) -> pd.DataFrame:
        """What became of every frame at every robot in earshot."""
        return self._frame("messages")

    @cached_property
    def frames(self) -> pd.DataFrame:
        """Every frame sent."""
        return self._frame("frames")

    @cached_property
    def objects(self) -> pd.DataFrame:
        """Where pushable discs were."""
        return self._frame("objects")

    @cached_property
    def watch(self) -> pd.DataFrame:
        """Variables of the firmware that the scene watches."""
        return self._frame("watch")

    @cached_property
    def uart(self) -> dict[int, str]:
        """What robots printed, one character for each byte."""
        texts = {int(path.stem): path for path in (self.path / "uart").glob("*.txt")}
        return {robot: texts[robot].read_bytes().decode("latin-1") for robot in sorted(texts)}

    @cached_property
    def stage(self) -> Scene:
        """What robots stood on: a scene with arena, objects and lights, and nothing else."""
        content = self.info["scene"]
        kinds: dict[str, Any] = {
            "arena": Arena,
            "objects": list[Thing],
            "lights": list[LightSource],
        }
        parts = {
            name: TypeAdapter(kind).validate_python(
                content[name], strict=False, context={"folder": self.path}
            )
            for name, kind in kinds.items()
        }
        return Scene.model_construct(**parts)

    @cached_property
    def radius_mm(self) -> NDArray[np.float64]:
        """Radius of every robot."""
        radius = np.zeros(self.info["robots"])
        for group in self.info["groups"]:
            first, last = group["robots"]
            radius[first : last + 1] = group["radius_mm"]
        return radius

    def _frame(self, name: str) -> pd.DataFrame:
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise RecordError(
                "tables of a run are pandas data frames: install pandas (pip install"
                " 'avrswarm[tables]'), or use run.table(name) for Arrow tables"
            ) from None
        frame: pd.DataFrame = self.table(name).to_pandas()
        return frame


_SCHEMAS = {
    "trajectory": TRAJECTORY_SCHEMA,
    "messages": MESSAGES_SCHEMA,
    "frames": FRAMES_SCHEMA,
    "objects": OBJECTS_SCHEMA,
    "watch": WATCH_SCHEMA,
}
_OPTIONAL = ("objects", "watch")
"""Tables that a run has only where there is something to put in."""


def read_run(path: str | Path) -> Run:
    """Return a run from its folder; also one that is going on, or that was killed."""
    folder = Path(path)
    try:
        info = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = "has no run.json" if folder.is_dir() else "there is no such folder"
        raise RecordError(f"{folder}: {what}; a run folder is what avrswarm run writes") from None
    except (OSError, ValueError) as error:
        raise RecordError(f"{folder / 'run.json'}: cannot be read: {error}") from None
    if not isinstance(info, dict) or info.get("format") != FORMAT:
        found = info.get("format") if isinstance(info, dict) else None
        raise RecordError(f"{folder}: has format {found}, this version reads format {FORMAT}")
    return Run(folder, info)


# ---- beginning -------------------------------------------------------------------------------


def make_folder(wanted: Path | None, name: str) -> Path:
    """Return the wanted folder, made if need be and empty, or a new one of that name in runs/."""
    try:
        if wanted is not None:
            wanted.mkdir(parents=True, exist_ok=True)
            if any(wanted.iterdir()):
                raise RecordError(
                    f"{wanted}: is not empty, and runs are never overwritten; give another folder"
                )
            return wanted
        RUNS.mkdir(exist_ok=True)
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).lstrip(".") or "run"
        number = 1
        while True:
            folder = RUNS / (safe if number == 1 else f"{safe}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
    except OSError as error:
        place = wanted if wanted is not None else RUNS
        raise RecordError(f"{place}: cannot be written: {error.strerror}") from None


def _describe(simulation: RecordedSimulation, count: int) -> dict[str, Any]:
    packages = ("numpy", "numba", "llvmlite", "pyarrow")
    return {
        "format": FORMAT,
        "state": "running",
        "reason": None,
        "name": simulation.scene.scene.name,
        "started": _now(),
        "ended": None,
        "digest": None,
        "seed": simulation.seed,
        "robots": count,
        "groups": _groups(simulation),
        "firmware": _firmware(simulation),
        "versions": {
            "avrswarm": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
        "scene": simulation.scene.model_dump(mode="json"),
    }


def _groups(simulation: RecordedSimulation) -> list[dict[str, Any]]:
    """Return the scene's groups of robots, with the numbers and UIDs of their members."""
    groups = []
    for number, group in enumerate(simulation.scene.robots):
        members = np.flatnonzero(simulation.group == number)
        if len(members):
            first, last = int(members[0]), int(members[-1])
            groups.append(
                {
                    "name": group.name or group.firmware.stem,
                    "robots": [first, last],
                    "first_uid": int(simulation.traits.uid[first]),
                    "radius_mm": group.radius_mm,
                }
            )
    return groups


def _firmware(simulation: RecordedSimulation) -> list[dict[str, Any]]:
    """Return each program with the robots that run it, as ranges of first and last."""
    found: dict[str, dict[str, Any]] = {}
    for number, robot in enumerate(simulation.robots):
        program = robot.program
        source = program.source
        entry = found.setdefault(
            program.digest,
            {
                "name": source.stem if source else "",
                "file": str(source) if source else None,
                "digest": program.digest,
                "robots": [],
            },
        )
        ranges = entry["robots"]
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return list(found.values())


def pushable_discs(scene: Scene) -> dict[int, int]:
    """Return which of the world's discs can move, with their numbers among the scene's objects."""
    discs = [number for number, thing in enumerate(scene.objects) if isinstance(thing, Disc)]
    return {
        place: number
        for place, number in enumerate(discs)
        if isinstance(thing := scene.objects[number], Disc) and thing.pushable
    }


def radii_mm(simulation: RecordedSimulation) -> NDArray[np.float64]:
    """Return the radius of every robot."""
    radius = np.array([group.radius_mm for group in simulation.scene.robots])
    return np.asarray(radius[simulation.group], np.float64)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done, so that what is recorded stays whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
