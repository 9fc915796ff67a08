"""Are the distance tables right? Messages from known distances, and what a binary makes of them.

One robot receives; it hears frames of a sender that stands at each distance in turn. How strong
they are there is the scene's model of light (curve, gains of the robots, noise of messages and of
the ADC), or comes from readings that were measured on real robots. What the messages become is up
to the binary: it receives them and estimates (`listening_chip`). Tables are examined by name
(`distance_faults`), and new ones are made from readings (`distance_fit`) and proven by running
again, with fresh noise, or with measured readings that were held out of the fit.

The sender is its light: frames to the cycle of an 8 MHz robot. A test holds readings and estimates
against pairs of robots in a `Simulation`: they are the same to the count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.table import Table

from avrswarm.errors import AvrSwarmError, ProgramError, UsageError
from avrswarm.program import Program, load_eeprom
from avrswarm.program.hexfile import write_hex
from avrswarm.randomness import Stream, draw_gaussian, draw_uniform
from avrswarm.robot.distance import CONTACT_MM, STEP_MM
from avrswarm.robot.distance_tables import DISTANCES_MM, fill_high_gain
from avrswarm.robot.eeprom_map import EEPROM_BYTES, ERASED, TABLE_POINTS, EepromMap
from avrswarm.robot.infrared import led_power
from avrswarm.robot.messages import Message, MessageType, pulse_cycles
from avrswarm.scene import Scene, build, place_robots, read_scene, scene_of
from avrswarm.scene.columns import read_columns
from avrswarm.study.distance_faults import Finding, Tables, examine_readings, examine_tables
from avrswarm.study.distance_fit import fit_table
from avrswarm.study.listening_chip import ESTIMATE, ListeningChip, Method
from avrswarm.swarm.window import PULSE_NOISE_REACH
from avrswarm.world.optics import LIMIT_COUNTS, amplitudes

FIRST_MM, LAST_MM, STEP_OF_STUDY_MM = 33.0, 140.0, 2.5
CALIBRATED_MM = (DISTANCES_MM[0], DISTANCES_MM[-1])
MESSAGES = 20
LAST_COUNT = 1023
SENDER_UID = 1
LEAST_ARRIVED = 10
"""After so many messages without any estimate something else is wrong."""
LEAST_PULSES = 26  # of a message, all zero
MOST_ROWS = 20  # of the printed table of distances

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Readings(NamedTuple):
    """Both gains at known distances, one entry per message.

    ``low`` and ``high`` are what the ADC shows; ``arrives`` is False for what is too weak or lost.
    """

    distance_mm: Floats
    low: Integers
    high: Integers
    arrives: NDArray[np.bool_]

    def where(self, chosen: NDArray[np.bool_]) -> Readings:
        """Return some of them."""
        return Readings(
            self.distance_mm[chosen], self.low[chosen], self.high[chosen], self.arrives[chosen]
        )


@dataclass(frozen=True)
class Subject:
    """A robot whose tables are put to the test.

    Attributes
    ----------
    name
        How files and tables call it.
    eeprom
        1024 bytes.
    receive_gain, threshold_gain
        Its receiver in relation to nominal.
    clock_hz
        Frequency of its chip.
    measured
        Readings of the real robot, in place of modelled ones.
    """

    name: str
    eeprom: bytes
    receive_gain: float = 1.0
    threshold_gain: float = 1.0
    clock_hz: float = build.CLOCK_HZ
    measured: Readings | None = None

    @property
    def map(self) -> EepromMap:
        """The EEPROM's fields."""
        return EepromMap.unpack(self.eeprom)

    @property
    def tables(self) -> Tables:
        """Low and high gain."""
        return self.map.low_gain, self.map.high_gain

    def with_tables(self, tables: Tables) -> Subject:
        """Return the same robot with other tables."""
        fields = replace(self.map, low_gain=tables[0], high_gain=tables[1])
        return replace(self, eeprom=fields.pack(self.eeprom))


class Proof(StrEnum):
    """What a fitted table was put to the test with."""

    FRESH = "fresh noise"
    HELD_OUT = "readings held out of the fit"
    SAME = "the readings it was fitted to: not an independent proof"


@dataclass(frozen=True)
class Outcome:
    """What one robot made of all messages; arrays have one entry per message."""

    subject: Subject
    sent: Readings
    estimated: NDArray[np.bool_]
    low: Integers
    high: Integers
    estimate_mm: Integers
    findings: list[Finding]
    proof: Proof | None = None  # of fitted tables

    @property
    def error_mm(self) -> Floats:
        """Estimate minus true distance, of the messages that were estimated."""
        return np.asarray((self.estimate_mm - self.sent.distance_mm)[self.estimated])

    def figures(self) -> dict[str, Any]:
        """Return the summary over the calibrated range, 33 to 98 mm."""
        distance = self.sent.distance_mm
        inside = (distance >= CALIBRATED_MM[0]) & (distance <= CALIBRATED_MM[1])
        error = (self.estimate_mm - distance)[inside & self.estimated]
        rows = self.by_distance()
        heard = [row["distance_mm"] for row in rows if row["failures_percent"] <= 50]
        spreads = [
            row["spread_mm"]
            for row in rows
            if row["distance_mm"] <= CALIBRATED_MM[1] and row["spread_mm"] is not None
        ]
        return {
            "robot": self.subject.name,
            "uid": self.subject.map.uid,
            "bias_mm": _mean(error),
            "spread_mm": _mean(np.array(spreads)),
            "rms_mm": float(np.sqrt(np.mean(error**2))) if len(error) else None,
            "failures_percent": 100 * (1 - float(np.mean(self.estimated[inside])))
            if inside.any()
            else None,
            "range_mm": max(heard) if heard else None,
            "findings": [finding.as_json() for finding in self.findings],
        }

    def by_distance(self) -> list[dict[str, Any]]:
        """Return bias, spread, failures and readings for each distance."""
        rows = []
        low_table, high_table = (
            np.interp(np.unique(self.sent.distance_mm), DISTANCES_MM, table, right=np.nan)
            for table in self.subject.tables
        )
        for number, distance in enumerate(np.unique(self.sent.distance_mm)):
            here = self.sent.distance_mm == distance
            told = here & self.estimated
            error = self.estimate_mm[told] - distance
            rows.append(
                {
                    "distance_mm": float(distance),
                    "messages": int(here.sum()),
                    "failures_percent": 100 * (1 - float(told.sum() / here.sum())),
                    "bias_mm": _mean(error),
                    "spread_mm": float(np.std(error)) if len(error) else None,
                    "estimate_mm": _mean(self.estimate_mm[told]),
                    "low_gain": _mean(self.low[told]),
                    "high_gain": _mean(self.high[told]),
                    "low_gain_table": _finite(low_table[number]),
                    "high_gain_table": _finite(high_table[number]),
                }
            )
        return rows


@dataclass(frozen=True)
class DistanceStudy:
    """All that came out; ``fitted`` is the second run, with tables made from the first."""

    program: Program
    method: Method
    outcomes: list[Outcome]
    fitted: list[Outcome]

    def as_json(self) -> dict[str, Any]:
        """Return plain data, in the form that ``avrswarm calibrate distance --json`` prints."""
        return {
            "firmware": str(self.program.source),
            "method": str(self.method),
            "robots": [_described(outcome) for outcome in self.outcomes],
            "fitted": [
                {
                    **_described(outcome),
                    "proof": outcome.proof,
                    "low_gain": list(outcome.subject.tables[0]),
                    "high_gain": list(outcome.subject.tables[1]),
                }
                for outcome in self.fitted
            ],
        }


# ---- what to test --------------------------------------------------------------------------------


def gather(
    *,
    eeproms: Sequence[Path] = (),
    tables: Path | None = None,
    scene: str | None = None,
    readings: Path | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    robots: int = 4,
) -> tuple[Scene, list[Subject]]:
    """Return the scene that light comes from, and the robots to be tested in it.

    Robots with given tables are average ones otherwise: what their receivers are like is not known.
    """
    if scene is not None:
        world = read_scene(scene, overrides)
    else:
        content = {"robots": [{"firmware": "distance_reporter", "count": robots}]}
        world = scene_of(content, Path("calibrate-distance"), overrides)
    if seed is not None:
        world = world.with_seed(seed)
    if eeproms:
        subjects = subjects_of_eeproms(eeproms)
    elif tables is not None:
        subjects = subjects_of_tables(tables)
    else:
        subjects = subjects_of_scene(world, robots)
    return world, subjects if readings is None else with_measured(subjects, readings)


def subjects_of_scene(scene: Scene, most: int) -> list[Subject]:
    """Return the robots of a scene as they are there, or ``most`` of them, evenly chosen."""
    placed = place_robots(scene)
    robots = build.make_robots(scene, placed)
    count = len(robots.uid)
    chosen = range(count) if count <= most else np.linspace(0, count - 1, most).astype(int)
    return [
        Subject(
            name=f"robot-{robot}",
            eeprom=robots.eeprom[robot].tobytes(),
            receive_gain=float(robots.receive_gain[robot]),
            threshold_gain=float(robots.threshold_gain[robot]),
            clock_hz=float(robots.clock_hz[robot]),
        )
        for robot in chosen
    ]


def subjects_of_eeproms(paths: Iterable[Path]) -> list[Subject]:
    """Return average robots with these EEPROM files (Intel HEX)."""
    subjects = []
    for path in paths:
        content = bytearray([ERASED] * EEPROM_BYTES)
        for address, byte in load_eeprom(path).items():
            content[address] = byte
        subjects.append(Subject(path.stem, bytes(content)))
    return _named_once(subjects)


def subjects_of_tables(path: Path) -> list[Subject]:
    """Return average robots with the tables of a CSV file, 14 rows for each value of ``uid``."""
    columns = _read(path, ["low_gain", "high_gain"], ["uid", "distance_mm"])
    subjects = []
    for uid, rows in _by_uid(path, columns):
        name = f"robot-{uid}" if "uid" in columns else path.stem
        if len(rows) != TABLE_POINTS:
            raise ProgramError(
                f"{path}: {name} has {len(rows)} rows, a table has {TABLE_POINTS}: 33, 38 ... 98 mm"
            )
        if "distance_mm" in columns:
            given = [columns["distance_mm"][row] for row in rows]
            if given != list(DISTANCES_MM):
                raise ProgramError(
                    f"{path}: {name}: distance_mm must be 33, 38 ... 98, one row for each; readings"
                    " at other distances are for --readings"
                )
        tables = []
        for gain in ("low_gain", "high_gain"):
            counts = [columns[gain][row] for row in rows]
            for row, count in zip(rows, counts, strict=True):
                if not (0 <= count <= 0xFFFF and count == int(count)):
                    raise ProgramError(
                        f"{path}: row {row + 2}, {gain}: {count:g} is no 16-bit count"
                    )
            tables.append(tuple(int(count) for count in counts))
        fields = EepromMap(uid=uid, low_gain=tables[0], high_gain=tables[1])
        subjects.append(Subject(name, fields.pack()))
    return subjects


def with_measured(subjects: list[Subject], path: Path) -> list[Subject]:
    """Return the robots with readings measured on real ones.

    Parameters
    ----------
    subjects
        The robots. With a column ``uid`` in the file each gets its own readings; robots that the
        file knows and ``subjects`` does not are added, with default tables, and those without
        readings are left out.
    path
        CSV file with the columns distance_mm, low_gain, high_gain, and uid if there are several.
    """
    columns = _read(path, ["distance_mm", "low_gain", "high_gain"], ["uid"])
    for gain in ("low_gain", "high_gain"):
        for row, count in enumerate(columns[gain]):
            if not 0 <= count <= LAST_COUNT:
                raise ProgramError(
                    f"{path}: row {row + 2}, {gain}: {count:g} is no ADC reading; they go from 0 to"
                    f" {LAST_COUNT}"
                )
    for row, distance in enumerate(columns["distance_mm"]):
        if not CONTACT_MM - STEP_MM <= distance <= 1000:
            raise ProgramError(
                f"{path}: row {row + 2}, distance_mm: {distance:g} is no distance between centres;"
                f" robots that touch are {CONTACT_MM} mm apart"
            )
    by_uid = {uid: _readings(columns, rows) for uid, rows in _by_uid(path, columns)}
    if not by_uid:
        raise ProgramError(f"{path}: no readings in it")
    if "uid" not in columns:
        return [replace(subject, measured=by_uid[0]) for subject in subjects]
    known = {subject.map.uid: subject for subject in subjects}
    return [
        replace(
            known.get(uid) or Subject(f"robot-{uid}", EepromMap(uid=uid).pack()), measured=readings
        )
        for uid, readings in by_uid.items()
    ]


def _readings(columns: dict[str, list[float]], rows: list[int]) -> Readings:
    distance, low, high = (
        np.array([columns[name][row] for row in rows])
        for name in ("distance_mm", "low_gain", "high_gain")
    )
    return Readings(distance, low.astype(np.int64), high.astype(np.int64), np.ones(len(rows), bool))


def _read(path: Path, needed: Sequence[str], optional: Sequence[str]) -> dict[str, list[float]]:
    try:
        return read_columns(path, needed, optional)
    except OSError as error:
        raise ProgramError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ProgramError(str(error)) from None


def _by_uid(path: Path, columns: dict[str, list[float]]) -> list[tuple[int, list[int]]]:
    """Return the rows of each robot, robots in order of appearance; uid 0 where none is given."""
    count = len(next(iter(columns.values())))
    found: dict[int, list[int]] = {}
    for row in range(count):
        uid = columns["uid"][row] if "uid" in columns else 0.0
        if not (0 <= uid <= 0xFFFF and uid == int(uid)):
            raise ProgramError(f"{path}: row {row + 2}, uid: {uid:g} is not in 0 to 65535")
        found.setdefault(int(uid), []).append(row)
    return list(found.items())


def _named_once(subjects: list[Subject]) -> list[Subject]:
    """Give robots whose files have one name in two folders names of their own."""
    names = [subject.name for subject in subjects]
    return [
        subject
        if names.count(subject.name) == 1
        else replace(subject, name=f"{subject.name}-{number}")
        for number, subject in enumerate(subjects)
    ]


# ---- running -------------------------------------------------------------------------------------


def study_distances(
    program: Program,
    subjects: list[Subject],
    scene: Scene,
    *,
    messages: int = MESSAGES,
    step_mm: float = STEP_OF_STUDY_MM,
    fit: bool = False,
    message: Message | None = None,
    progress: Callable[[str], object] = lambda text: None,
) -> DistanceStudy:
    """Let every robot hear messages from all distances, and again with new tables if wanted.

    Parameters
    ----------
    program
        What the robots run.
    scene
        Where the model of light comes from, and the seed.
    messages
        How many are sent from each distance.
    message
        What is sent; default: a NORMAL message with the sender's id, as ``speaker`` sends it.
    progress
        Is told what is being done.
    """
    sent = message or Message.make(MessageType.NORMAL, SENDER_UID.to_bytes(2, "little"))
    places = np.append(np.arange(FIRST_MM, LAST_MM - 1e-9, step_mm), LAST_MM)
    distances = np.repeat(places, messages)
    outcomes, fitted = [], []
    method = Method.SYMBOL
    for number, subject in enumerate(subjects):
        progress(subject.name)
        outcome, method = _listen(program, subject, scene, distances, 2 * number, sent)
        outcomes.append(outcome)
        if fit:
            proof, held_out = Proof.FRESH, np.zeros(len(outcome.estimated), bool)
            if subject.measured is not None:
                held_out = _hold_out(subject.measured)
                proof = Proof.HELD_OUT if held_out.any() else Proof.SAME
            better = subject.with_tables(_fit(outcome, ~held_out))
            if subject.measured is not None and held_out.any():
                better = replace(better, measured=subject.measured.where(held_out))
            progress(f"{subject.name}, new table")
            again, _ = _listen(program, better, scene, distances, 2 * number + 1, sent)
            fitted.append(replace(again, proof=proof))
    return DistanceStudy(program, method, outcomes, fitted)


def _listen(
    program: Program, subject: Subject, scene: Scene, distances: Floats, draw: int, message: Message
) -> tuple[Outcome, Method]:
    pulses = len(pulse_cycles(message.pack()))
    readings = subject.measured or model_readings(scene, subject, distances, draw, pulses)
    chip = ListeningChip(program, subject.eeprom, subject.clock_hz)
    count = len(readings.distance_mm)
    estimated = np.zeros(count, bool)
    low, high, estimate = (np.full(count, -1, np.int64) for _ in range(3))
    for arrived, number in enumerate(np.flatnonzero(readings.arrives), 1):
        told = chip.hear(message, int(readings.low[number]), int(readings.high[number]))
        if told is not None:
            estimated[number] = True
            low[number], high[number], estimate[number] = told
        elif arrived == LEAST_ARRIVED and not estimated.any():
            raise _never(program, chip.method)
    findings = examine_tables(*subject.tables) + examine_readings(
        subject.tables,
        readings.distance_mm[estimated],
        low[estimated],
        high[estimated],
        estimate[estimated],
    )
    return Outcome(subject, readings, estimated, low, high, estimate, findings), chip.method


def _never(program: Program, method: Method) -> AvrSwarmError:
    if method is Method.SERIAL:
        return ProgramError(
            f"{program.name}: no symbol '{ESTIMATE}', and nothing like 'sender low_gain high_gain"
            " distance_mm' on the serial line; give the .elf file of a program that calls"
            f" {ESTIMATE}, or leave FIRMWARE out to use the shipped distance_reporter"
        )
    return UsageError(
        f"{program.name}: {LEAST_ARRIVED} messages arrived and '{ESTIMATE}' was never called; does"
        " this program measure only certain messages? give --type and --data, or leave FIRMWARE out"
        " to use the shipped distance_reporter"
    )


def model_readings(
    scene: Scene, subject: Subject, distance_mm: Floats, draw: int, pulses: int = LEAST_PULSES
) -> Readings:
    """Return what the scene's light gives at these distances, message by message.

    Every message comes from another robot of the scene's kind, with the subject's ``tx_mask``; LEDs
    differ by ``optics.transmit_spread_percent``. ``draw`` says which set of noise is taken. High
    gain is read at the first pulse of a message, low gain at the second, and it arrives if all
    ``pulses`` do.
    """
    light, count, seed = scene.optics, len(distance_mm), scene.scene.seed

    def noise(kind: int, each: int = 1) -> Floats:
        return draw_gaussian(seed, Stream.OPTICS, count * each, draw << 8 | kind)

    true = np.maximum(distance_mm + light.distance_noise_mm * noise(0), 0.0)
    counts = amplitudes(build.make_scene_optics(scene), true) * subject.receive_gain
    counts *= led_power()[subject.map.used_tx_mask]
    counts *= np.maximum(1 + light.transmit_spread_percent / 100 * noise(1), 0.0)
    counts *= np.maximum(1 + light.amplitude_noise_percent / 100 * noise(2), 0.0)
    limit = LIMIT_COUNTS * subject.threshold_gain
    deviation = light.pulse_noise_percent / 100 * limit
    matters = np.abs(counts - limit) < PULSE_NOISE_REACH * deviation
    each = deviation * noise(6, pulses).reshape(count, pulses) * matters[:, None]
    each += counts[:, None]
    chance = draw_uniform(seed, Stream.OPTICS, count, draw << 8 | 3)
    lost = chance < light.message_loss_percent / 100
    high = np.empty(count)
    fill_high_gain(np.maximum(each[:, 0], 0.0), high)
    return Readings(
        distance_mm,
        _adc(each[:, 1] + light.adc_noise_counts * noise(4)),
        _adc(high + light.adc_noise_counts * noise(5)),
        (each.min(axis=1) >= limit) & ~lost,
    )


def _adc(counts: Floats) -> Integers:
    return np.clip(np.floor(counts), 0, LAST_COUNT).astype(np.int64)


def _hold_out(measured: Readings) -> NDArray[np.bool_]:
    """Choose every second reading of each distance for the proof; none if one has a single one."""
    _, which, counts = np.unique(measured.distance_mm, return_inverse=True, return_counts=True)
    held_out = np.zeros(len(which), bool)
    if counts.min() > 1:
        for number in range(len(counts)):
            held_out[np.flatnonzero(which == number)[1::2]] = True
    return held_out


def _fit(outcome: Outcome, used: NDArray[np.bool_]) -> Tables:
    told = outcome.estimated & used
    distance = outcome.sent.distance_mm[told]
    try:
        low, high = (
            fit_table(distance, counts[told].astype(np.float64))
            for counts in (outcome.low, outcome.high)
        )
    except ProgramError as error:
        raise ProgramError(f"{outcome.subject.name}: {error}") from None
    return low, high


# ---- figures -------------------------------------------------------------------------------------


def report(study: DistanceStudy) -> list[Any]:
    """Return what is printed: a table of robots, one of distances, and what was found."""
    robots = Table(title=f"from {CALIBRATED_MM[0]:.0f} to {CALIBRATED_MM[1]:.0f} mm")
    robots.add_column("robot", overflow="fold")
    robots.add_column("tables", no_wrap=True)
    for title in ("bias\nmm", "spread\nmm", "rms\nmm", "failures\n%", "range\nmm"):
        robots.add_column(title, justify="right", no_wrap=True)
    robots.add_column("faults", overflow="fold", min_width=16)
    for number, outcome in enumerate(study.outcomes):
        rounds = [("given", outcome)]
        if study.fitted:
            rounds.append(("fitted", study.fitted[number]))
        for name, one in rounds:
            row = one.figures()
            keys = ("bias_mm", "spread_mm", "rms_mm", "failures_percent", "range_mm")
            kinds = dict.fromkeys(finding.kind for finding in one.findings if finding.is_fault)
            shown = [_shown(row[key], sign=key == "bias_mm") for key in keys]
            robots.add_row(row["robot"], name, *shown, ", ".join(kinds) or "none")
    last = study.fitted or study.outcomes
    told: dict[str, list[str]] = {}
    for outcome in study.outcomes:
        for finding in outcome.findings:
            kind = "fault" if finding.is_fault else "note"
            text = f"{kind}: {finding.kind} ({finding.table}): {finding.text}"
            told.setdefault(text, []).append(outcome.subject.name)
    for outcome in study.fitted:
        text = f"fitted tables were proven with {outcome.proof}"
        told.setdefault(text, []).append(outcome.subject.name)
    lines = [f"{', '.join(names)}: {text}" for text, names in told.items()]
    return [_distance_table(last, "fitted" if study.fitted else "given"), robots, *lines]


def _distance_table(outcomes: list[Outcome], name: str) -> Table:
    """Return means over all robots, distance by distance; every third of them if there are many."""
    many = "" if len(outcomes) == 1 else f", mean of {len(outcomes)} robots"
    table = Table(title=f"{name} tables{many}")
    gains = ("low_gain", "high_gain", "low_gain_table", "high_gain_table")
    keys = ("bias_mm", "spread_mm", "failures_percent", *gains)
    for title in ("mm", "bias", "spread", "failures %", "low", "high", "low table", "high table"):
        table.add_column(title, justify="right")
    by_distance: dict[float, list[dict[str, Any]]] = {}
    for outcome in outcomes:
        for row in outcome.by_distance():
            by_distance.setdefault(row["distance_mm"], []).append(row)
    step = -(-len(by_distance) // MOST_ROWS)
    for distance in sorted(by_distance)[::step]:
        means = []
        for key in keys:
            known = [row[key] for row in by_distance[distance] if row[key] is not None]
            means.append(_shown(_mean(np.array(known)), sign=key == "bias_mm"))
        table.add_row(f"{distance:g}", *means)
    return table


def _shown(figure: float | None, *, sign: bool = False) -> str:
    return "-" if figure is None else f"{figure:+.1f}" if sign else f"{figure:.1f}"


def write_study(study: DistanceStudy, folder: Path) -> list[Path]:
    """Write JSON, all readings as Parquet, the picture, and fitted tables; return the files."""
    from avrswarm.study.calibration_pictures import draw_distances

    files = [folder / "distance.json", folder / "readings.parquet", folder / "distance.png"]
    files[0].write_text(json.dumps(study.as_json(), indent=2) + "\n", encoding="utf-8")
    rounds = (("given", study.outcomes), ("fitted", study.fitted))
    parts = [_table(outcome, name) for name, outcomes in rounds for outcome in outcomes]
    pq.write_table(pa.concat_tables(parts), files[1], compression="zstd")
    draw_distances(study, files[2])
    for outcome in study.fitted:
        image, table = (folder / f"{outcome.subject.name}.{kind}" for kind in ("hex", "csv"))
        write_hex(image, outcome.subject.eeprom)
        rows = zip(DISTANCES_MM, *outcome.subject.tables, strict=True)
        lines = ["distance_mm,low_gain,high_gain", *(f"{d:g},{lo},{hi}" for d, lo, hi in rows)]
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        files += [image, table]
    return files


def _table(outcome: Outcome, tables: str) -> pa.Table:
    count = len(outcome.estimated)
    missing = ~outcome.estimated
    columns = {
        "robot": pa.array([outcome.subject.name] * count),
        "tables": pa.array([tables] * count),
        "distance_mm": pa.array(outcome.sent.distance_mm),
        "arrived": pa.array(outcome.sent.arrives),
        "low_gain": pa.array(outcome.low.astype(np.int16), mask=missing),
        "high_gain": pa.array(outcome.high.astype(np.int16), mask=missing),
        "estimate_mm": pa.array(outcome.estimate_mm.astype(np.int16), mask=missing),
    }
    return pa.table(columns)


def _described(outcome: Outcome) -> dict[str, Any]:
    return {**outcome.figures(), "distances": outcome.by_distance()}


def _mean(values: NDArray[Any]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
