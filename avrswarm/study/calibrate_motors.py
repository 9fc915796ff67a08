"""Are the motor values right? Each motion of each robot, run and measured, and better values found.

Robots stand far apart on an open table and obey an overhead controller: every motion is ordered by
CALIB frames (hardware reference 8.4), as the calibration window of the real controller sends them,
one robot at a time under the light. What they do is up to their firmware, and how they move to the
scene's model of motors and surface (`avrswarm.robot.motors`, `avrswarm.world.motion`).

Finding values goes as a person does it: try a value, look how fast the robot turns, take the next;
then left and right together until it goes straight, with values from 26 to 90, as motors bear
them. What they cannot reach is remarked, with the nearest that they can. SAVE makes the firmware
write its EEPROM, and that EEPROM is what is kept, and measured once more in a new run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.table import Table

from avrswarm.errors import ProgramError
from avrswarm.program.hexfile import write_hex
from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.scene import Scene, read_scene, scene_of
from avrswarm.scene.columns import read_columns
from avrswarm.scene.model import Command
from avrswarm.study.firmware import firmware_path
from avrswarm.swarm.simulation import Simulation

TABLE_2_2 = Path(__file__).with_name("thesis_table_2_2.csv")
"""Ten real robots."""
FIRMWARE = "move"

TURN_DEG_S, SPEED_MM_S = 45.0, 10.0  # of calibrated robots (hardware reference 6)
MEASURE_S = 5.0
TRIAL_S = 1.0
SETTLE_S = 0.2
"""Until a motion is measured: frames, spin-up; a motion that is not new needs neither."""
BOOT_S = 0.4  # power-on is spread over a quarter of a second
ENTER_S = 0.3  # the idle loop looks for commands every 0.2 s
SAY_S = 0.1  # how long a command is repeated, ten frames
SAVE_S = 0.2
PITCH_MM = 3000.0
AIM_MM = 1000.0  # the light of a command reaches this far
LEAST_MM_S, LEAST_DEG_S = 0.3, 0.5
"""A robot that moves less stands still."""
LEAST_DUTY, MOST_DUTY = 26, 90
"""Motors need a tenth of the power at all, and the library's header says not to run them above 90
for long: what is searched (hardware reference 6)."""
ERASED_DUTY = 255
LAST_UID = 0xFFFE  # 0xFFFF is an erased one
FIRST_STEP = 4  # of a search; doubled until the wanted rate lies between two trials
VEER_DEG_S = 2.0
RATE_TOLERANCE = 0.1
"""What is not remarked."""

Mode = Literal["turn_left", "turn_right", "straight"]
MODES: tuple[Mode, ...] = ("turn_left", "turn_right", "straight")
Kind = Literal["drawn", "average", "own"]
Floats = NDArray[np.float64]


class MotorValues(NamedTuple):
    """The four values of one robot."""

    turn_left: int
    turn_right: int
    straight_left: int
    straight_right: int

    def trial(self, mode: Mode) -> Trial:
        """Return the motion that these values give."""
        if mode == "straight":
            return Trial(mode, self.straight_left, self.straight_right)
        left = mode == "turn_left"
        return Trial(mode, self.turn_left if left else 0, 0 if left else self.turn_right)


class Trial(NamedTuple):
    """A motion with its values, as one CALIB command orders it."""

    mode: Mode
    left: int
    right: int

    def order(self) -> dict[str, Any]:
        """Return the keys of that command."""
        values = self._asdict()
        if self.mode != "straight":
            del values["right" if self.mode == "turn_left" else "left"]
        return values


@dataclass(frozen=True)
class Motion:
    """What a robot did on a trial.

    Attributes
    ----------
    speed_mm_s
        Way of its centre in a second, along the path.
    turn_deg_s
        Turn of its heading in a second, counter-clockwise.
    curvature_per_m
        Turn in radians on a way of a metre; None for turns, and for who stands still.
    stalled
        It did not move, or came to a stop.
    path_mm
        Where its centre was, rows of x and y, seen from its start with its heading along y.
    """

    trial: Trial
    speed_mm_s: float
    turn_deg_s: float
    curvature_per_m: float | None
    stalled: bool
    path_mm: Floats

    @property
    def rate_deg_s(self) -> float:
        """Turn in the wanted sense."""
        return -self.turn_deg_s if self.trial.mode == "turn_right" else self.turn_deg_s

    def as_json(self) -> dict[str, Any]:
        """Return plain data, without the path."""
        return {
            **self.trial._asdict(),
            "speed_mm_s": self.speed_mm_s,
            "turn_deg_s": self.turn_deg_s,
            "curvature_per_m": self.curvature_per_m,
            "stalled": self.stalled,
        }


@dataclass(frozen=True)
class Robot:
    """A robot with its values and what came of them."""

    uid: int
    values: MotorValues
    motions: tuple[Motion, ...] = ()
    eeprom: bytes = b""
    trials: int = 0

    def motion(self, mode: Mode) -> Motion:
        """Return what it did in a mode."""
        return next(motion for motion in self.motions if motion.trial.mode == mode)


@dataclass(frozen=True)
class Wanted:
    """What good values give."""

    turn_deg_s: float = TURN_DEG_S
    speed_mm_s: float = SPEED_MM_S


@dataclass(frozen=True)
class MotorStudy:
    """All that came out; ``fitted`` has values that were found, measured in a run of their own."""

    firmware: Path
    wanted: Wanted
    kind: Kind
    robots: list[Robot]
    fitted: list[Robot]

    def as_json(self) -> dict[str, Any]:
        """Return plain data, in the form that ``avrswarm calibrate motors --json`` prints."""
        return {
            "firmware": str(self.firmware),
            "wanted": asdict(self.wanted),
            "robots_are": self.kind,
            "robots": [describe(robot, self.wanted) for robot in self.robots],
            "fitted": [describe(robot, self.wanted) for robot in self.fitted],
        }


# ---- motor tables --------------------------------------------------------------------------------


def read_motor_table(path: Path) -> list[Robot]:
    """Return the robots of a CSV file: columns ``uid`` and those of ``MotorValues``."""
    names = ["uid", *MotorValues._fields]
    try:
        columns = read_columns(path, names)
    except OSError as error:
        raise ProgramError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ProgramError(str(error)) from None
    robots: dict[int, Robot] = {}
    for row in range(len(columns["uid"])):
        for name in names:
            value, most = columns[name][row], LAST_UID if name == "uid" else 0xFF
            if not (0 <= value <= most and value == int(value)):
                raise ProgramError(
                    f"{path}: row {row + 2}, {name}: {value:g} is not a whole number up to {most}"
                )
        uid = int(columns["uid"][row])
        if uid in robots:
            raise ProgramError(f"{path}: row {row + 2}, uid: robot {uid} is there already")
        robots[uid] = Robot(uid, MotorValues(*(int(columns[n][row]) for n in MotorValues._fields)))
    if not robots:
        raise ProgramError(f"{path}: no robots in it")
    return list(robots.values())


# ---- running -------------------------------------------------------------------------------------


class Session:
    """Robots under the light of an overhead controller, each with commands of its own."""

    def __init__(self, scene: Scene, robots: Sequence[Robot], kind: Kind) -> None:
        self._simulation = Simulation(scene, threads=1)  # a few robots: more would only wait
        self._robots = robots
        if kind == "own":  # what is in the table is what these robots were calibrated to
            least = scene.motion.dead_duty + 1
            self._simulation.motors.calibration[:] = [
                [max(value, least) for value in robot.values] for robot in robots
            ]
        self._simulation.run(BOOT_S)
        self._say({n: {"mode": "uid", "uid": robot.uid} for n, robot in enumerate(robots)}, ENTER_S)

    def run(self, trials: dict[int, Trial], seconds: float) -> dict[int, Motion]:
        """Order motions, robot by robot, and return what came of them; others stand still."""
        orders: dict[int, dict[str, Any]] = {}
        for number, robot in enumerate(self._robots):
            orders[number] = {"mode": "uid", "uid": robot.uid}
            if number in trials:
                trial = trials[number]
                orders[number] = trial.order()
        self._say(orders, SETTLE_S)
        poses = [self._poses()]
        self._simulation.run(seconds, on_step=lambda _: poses.append(self._poses()))
        seen = np.stack(poses)  # [time, robot, (x, y, heading)]
        return {
            number: _measure(trial, seen[:, number], seconds) for number, trial in trials.items()
        }

    def save(self, values: Sequence[MotorValues]) -> list[bytes]:
        """Set the values, let every robot write its EEPROM, and return what is in them then."""
        for mode in MODES:
            self.run({n: own.trial(mode) for n, own in enumerate(values)}, SETTLE_S)
        self._say({number: {"mode": "save"} for number in range(len(self._robots))}, SAVE_S)
        return [robot.chip.eeprom.tobytes() for robot in self._simulation.robots]

    def _poses(self) -> Floats:
        robots = self._simulation.robots
        return np.column_stack([robots.x_mm, robots.y_mm, robots.heading_rad])

    def _say(self, orders: dict[int, dict[str, Any]], wait_s: float) -> None:
        """Send a CALIB command to each robot, with the light on it alone."""
        poses = self._poses()
        self._simulation.command(
            *(
                Command(
                    at_s=self._simulation.time_s,
                    command="calibrate",
                    repeat_s=SAY_S,
                    x_mm=float(poses[number, 0]),
                    y_mm=float(poses[number, 1]),
                    radius_mm=AIM_MM,
                    **order,
                )
                for number, order in orders.items()
            )
        )
        self._simulation.run(wait_s)


def _measure(trial: Trial, poses: Floats, seconds: float) -> Motion:
    steps = np.diff(poses[:, :2], axis=0)
    way = np.hypot(steps[:, 0], steps[:, 1])
    heading = np.unwrap(poses[:, 2])
    turned = float(heading[-1] - heading[0])
    late = len(way) * 3 // 4
    stands = [
        _stands_still(way[part], heading[part], seconds * share)
        for part, share in ((slice(None), 1.0), (slice(late, None), 0.25))
    ]
    along = math.pi / 2 - heading[0]
    turn = np.array([[math.cos(along), math.sin(along)], [-math.sin(along), math.cos(along)]])
    total = float(way.sum())
    goes = trial.mode == "straight" and total > LEAST_MM_S * seconds
    return Motion(
        trial,
        speed_mm_s=total / seconds,
        turn_deg_s=math.degrees(turned) / seconds,
        curvature_per_m=turned / (total / 1000) if goes else None,
        stalled=any(stands),
        path_mm=(poses[:, :2] - poses[0, :2]) @ turn,
    )


def _stands_still(way: Floats, heading: Floats, seconds: float) -> bool:
    turned = math.degrees(abs(float(heading[-1] - heading[0]))) if len(heading) else 0.0
    return bool(way.sum() < LEAST_MM_S * seconds and turned < LEAST_DEG_S * seconds)


# ---- searching, as a person does -----------------------------------------------------------------

Search = Generator[Trial, Motion, MotorValues]


def find_values(start: MotorValues, wanted: Wanted) -> Search:
    """Yield trials, take what came of each, and return the values that are best."""
    turn_left = yield from _find(
        start.turn_left,
        wanted.turn_deg_s,
        lambda value: Trial("turn_left", value, 0),
        lambda motion: motion.rate_deg_s,
    )
    turn_right = yield from _find(
        start.turn_right,
        wanted.turn_deg_s,
        lambda value: Trial("turn_right", 0, value),
        lambda motion: motion.rate_deg_s,
    )
    left, right = yield from _go_straight(start, wanted)
    return MotorValues(turn_left, turn_right, left, right)


def _find(
    start: int,
    target: float,
    trial: Callable[[int], Trial],
    figure: Callable[[Motion], float],
) -> Generator[Trial, Motion, int]:
    """Return the value whose figure, which grows with it, comes closest to the target."""
    seen: dict[int, float] = {}
    slow, fast = LEAST_DUTY - 1, MOST_DUTY + 1  # too little, too much
    value, step = min(max(start, LEAST_DUTY), MOST_DUTY), FIRST_STEP
    while fast - slow > 1:
        seen[value] = figure((yield trial(value)))
        if seen[value] < target:
            slow = max(slow, value)
        else:
            fast = min(fast, value)
        if slow in seen and fast in seen:
            share = (target - seen[slow]) / max(seen[fast] - seen[slow], 1e-9)
            value = slow + round(share * (fast - slow))
        else:
            value += step if seen[value] < target else -step
            step *= 2
        value = min(max(value, slow + 1), fast - 1)
    return min(seen, key=lambda known: abs(seen[known] - target))


def _go_straight(start: MotorValues, wanted: Wanted) -> Generator[Trial, Motion, tuple[int, int]]:
    """Return values of both motors: each left one has a right one that goes straight with it."""
    right_of: dict[int, int] = {}
    speed_of: dict[int, float] = {}
    slow, fast = LEAST_DUTY - 1, MOST_DUTY + 1
    left = min(max(start.straight_left, LEAST_DUTY), MOST_DUTY)
    step, right = FIRST_STEP, start.straight_right
    while fast - slow > 1:
        right, speed_of[left] = yield from _balance(left, right)
        right_of[left] = right
        if speed_of[left] < wanted.speed_mm_s:
            slow = left
        else:
            fast = left
        if slow in speed_of and fast in speed_of:
            gain = max(speed_of[fast] - speed_of[slow], 1e-9)
            left = slow + round((wanted.speed_mm_s - speed_of[slow]) / gain * (fast - slow))
        else:
            left += step if speed_of[left] < wanted.speed_mm_s else -step
            step *= 2
        left = min(max(left, slow + 1), fast - 1)
    best = min(speed_of, key=lambda known: abs(speed_of[known] - wanted.speed_mm_s))
    return best, right_of[best]


def _balance(left: int, right: int) -> Generator[Trial, Motion, tuple[int, float]]:
    """Return the right value that goes straight with a left one, and how fast that is."""
    speeds: dict[int, float] = {}

    def turn(motion: Motion) -> float:
        speeds[motion.trial.right] = motion.speed_mm_s
        return -motion.turn_deg_s

    best = yield from _find(right, 0.0, lambda value: Trial("straight", left, value), turn)
    return best, speeds[best]


# ---- the study -----------------------------------------------------------------------------------


def gather_scene(
    robots: Sequence[Robot],
    *,
    firmware: str = FIRMWARE,
    scene: str | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    kind: Kind = "drawn",
) -> Scene:
    """Return a scene with these robots far apart; motors and surface are those of ``scene``."""
    content: dict[str, Any] = {}
    if scene is not None:
        given = read_scene(scene)
        content = given.model_dump(mode="json", include={"world", "spread", "motion", "scene"})
    binary = str(firmware_path(firmware).resolve())
    columns = math.ceil(math.sqrt(len(robots)))
    content["robots"] = [
        {
            "name": f"robot-{robot.uid}",
            "firmware": binary,
            "placement": {
                "kind": "at",
                "points_mm": [
                    [PITCH_MM * (number % columns), PITCH_MM * (number // columns), 90.0]
                ],
            },
            "eeprom": {"first_uid": robot.uid, **robot.values._asdict()},
        }
        for number, robot in enumerate(robots)
    ]
    content["arena"] = {"shape": "open"}
    content["controller"] = []
    if kind == "average":
        content["spread"] = {**content.get("spread", {}), "motor_values": 0.0, "motor_percent": 0.0}
    world = scene_of(content, Path("calibrate-motors"), overrides)
    return world if seed is None else world.with_seed(seed)


def study_motors(
    scene: Scene,
    robots: list[Robot],
    wanted: Wanted,
    *,
    kind: Kind = "drawn",
    fit: bool = False,
    seconds: float = MEASURE_S,
    trial_s: float = TRIAL_S,
) -> MotorStudy:
    """Measure every motion of every robot, and find better values if wanted.

    Motions are measured for ``seconds``, each trial of the search for ``trial_s``.
    """
    measured = _measured(scene, robots, kind, seconds)
    fitted = []
    if fit:
        session = Session(scene, robots, kind)
        found = _search(session, robots, wanted, trial_s)
        images = session.save([values for values, _ in found])
        for robot, (values, trials), image in zip(robots, found, images, strict=True):
            kept = EepromMap.unpack(image)
            saved = MotorValues(*(getattr(kept, name) for name in MotorValues._fields))
            if (saved, kept.uid) != (values, robot.uid):
                raise ProgramError(
                    f"{scene.robots[0].firmware}: robot {robot.uid} did not save what was found"
                    f" ({tuple(values)}, in EEPROM {tuple(saved)}); does this firmware obey CALIB?"
                )
            fitted.append(replace(robot, values=values, eeprom=image, trials=trials))
        fitted = _measured(scene, fitted, kind, seconds, original=robots)
    return MotorStudy(scene.robots[0].firmware, wanted, kind, measured, fitted)


def _measured(
    scene: Scene,
    robots: list[Robot],
    kind: Kind,
    seconds: float,
    original: Sequence[Robot] | None = None,
) -> list[Robot]:
    """Return the robots with their motions; ``original`` ones have the values of their bodies."""
    session = Session(scene, original or robots, kind)
    motions: list[list[Motion]] = [[] for _ in robots]
    for mode in MODES:
        done = session.run({n: robot.values.trial(mode) for n, robot in enumerate(robots)}, seconds)
        for number, motion in done.items():
            motions[number].append(motion)
    if not any(motion.speed_mm_s or motion.turn_deg_s for one in motions for motion in one):
        values = {value for robot in robots for value in robot.values}
        if max(values) > scene.motion.dead_duty:
            raise ProgramError(
                f"{scene.robots[0].firmware}: no robot obeyed a CALIB command; firmware for this"
                " study has to be built with a Kilobot library"
            )
    return [
        replace(robot, motions=tuple(done)) for robot, done in zip(robots, motions, strict=True)
    ]


def _search(
    session: Session, robots: Sequence[Robot], wanted: Wanted, trial_s: float
) -> list[tuple[MotorValues, int]]:
    """Let every robot search at its own pace; return values and how many trials they took."""
    searches = {n: find_values(robot.values, wanted) for n, robot in enumerate(robots)}
    trials = {number: next(search) for number, search in searches.items()}
    count = dict.fromkeys(searches, 0)
    found: dict[int, MotorValues] = {}
    while trials:
        for number, motion in session.run(trials, trial_s).items():
            count[number] += 1
            try:
                trials[number] = searches[number].send(motion)
            except StopIteration as end:
                found[number] = end.value
                del trials[number]
    return [(found[number], count[number]) for number in range(len(robots))]


# ---- figures -------------------------------------------------------------------------------------


def remarks(robot: Robot, wanted: Wanted) -> list[str]:
    """Return what is wrong with a robot's values, in words."""
    found = []
    if ERASED_DUTY in robot.values:
        names = [n for n, v in robot.values._asdict().items() if v == ERASED_DUTY]
        found.append(f"{', '.join(names)} erased (255: full power)")
    strong = [n for n, v in robot.values._asdict().items() if MOST_DUTY < v < ERASED_DUTY]
    if strong:
        found.append(f"{', '.join(strong)} above {MOST_DUTY}, which wears motors out")
    for motion in robot.motions:
        name = motion.trial.mode
        straight = name == "straight"
        if motion.stalled:
            found.append(f"{name} stalls")
        elif straight and abs(motion.turn_deg_s) > VEER_DEG_S:
            found.append(f"veers {'left' if motion.turn_deg_s > 0 else 'right'}")
        rate, target, unit = (
            (motion.speed_mm_s, wanted.speed_mm_s, "mm/s")
            if straight
            else (motion.rate_deg_s, wanted.turn_deg_s, "degrees/s")
        )
        if abs(rate / target - 1) <= RATE_TOLERANCE:
            continue
        if robot.trials:  # all values were open to the search
            values = "-".join(str(value) for value in motion.trial[1:] if value)
            found.append(
                f"not reachable: {name} {target:g} {unit}; nearest is {rate:.1f} with {values}"
            )
        elif not motion.stalled:
            found.append(f"{name} too {'fast' if rate > target else 'slow'}")
    return found


def describe(robot: Robot, wanted: Wanted) -> dict[str, Any]:
    """Return one robot as plain data."""
    return {
        "uid": robot.uid,
        **robot.values._asdict(),
        "motions": [motion.as_json() for motion in robot.motions],
        "remarks": remarks(robot, wanted),
        "trials": robot.trials,
    }


def report(study: MotorStudy) -> list[Any]:
    """Return what is printed: a row for each robot and set of values, and remarks."""
    wanted = study.wanted
    table = Table(
        title=f"wanted: {wanted.turn_deg_s:g} degrees/s, {wanted.speed_mm_s:g} mm/s and straight on"
    )
    for title in ("uid", "values", "left", "°/s", "right", "°/s", "straight", "mm/s", "°/s", "1/m"):
        table.add_column(title, justify="left" if title == "values" else "right", no_wrap=True)
    lines = []
    for number, robot in enumerate(study.robots):
        rounds = [("given", robot)]
        if study.fitted:
            rounds.append(("fitted", study.fitted[number]))
        for name, one in rounds:
            left, right, straight = (one.motion(mode) for mode in MODES)
            curvature = straight.curvature_per_m
            table.add_row(
                str(one.uid),
                name,
                str(one.values.turn_left),
                f"{left.rate_deg_s:.1f}",
                str(one.values.turn_right),
                f"{right.rate_deg_s:.1f}",
                f"{one.values.straight_left}-{one.values.straight_right}",
                f"{straight.speed_mm_s:.1f}",
                f"{straight.turn_deg_s:+.1f}",
                "-" if curvature is None else f"{curvature:+.1f}",
            )
            if told := remarks(one, wanted):
                lines.append(f"robot {one.uid}, {name}: {'; '.join(told)}")
    return [table, *lines]


def write_study(study: MotorStudy, folder: Path) -> list[Path]:
    """Write JSON, motions and paths as Parquet, the picture, and what was found; return files."""
    from avrswarm.study.calibration_pictures import draw_motors

    names = ("motors.json", "motions.parquet", "paths.parquet", "motors.png")
    files = [folder / name for name in names]
    files[0].write_text(json.dumps(study.as_json(), indent=2) + "\n", encoding="utf-8")
    rounds = (("given", study.robots), ("fitted", study.fitted))
    rows = [
        {"uid": robot.uid, "values": name, **motion.as_json()}
        for name, robots in rounds
        for robot in robots
        for motion in robot.motions
    ]
    pq.write_table(pa.Table.from_pylist(rows), files[1], compression="zstd")
    pq.write_table(pa.concat_tables(_paths(study)), files[2], compression="zstd")
    draw_motors(study, files[3])
    if study.fitted:
        table = folder / "fitted.csv"
        header = ",".join(["uid", *MotorValues._fields])
        lines = [f"{r.uid},{','.join(str(value) for value in r.values)}" for r in study.fitted]
        table.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        files.append(table)
    for robot in study.fitted:
        image = folder / f"robot-{robot.uid}.hex"
        write_hex(image, robot.eeprom)
        files.append(image)
    return files


def _paths(study: MotorStudy) -> list[pa.Table]:
    tables = []
    for name, robots in (("given", study.robots), ("fitted", study.fitted)):
        for robot in robots:
            for motion in robot.motions:
                count = len(motion.path_mm)
                tables.append(
                    pa.table(
                        {
                            "uid": pa.array([robot.uid] * count),
                            "values": pa.array([name] * count),
                            "mode": pa.array([motion.trial.mode] * count),
                            "x_mm": motion.path_mm[:, 0],
                            "y_mm": motion.path_mm[:, 1],
                        }
                    )
                )
    return tables
