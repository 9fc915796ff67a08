"""Distance tables put to the test by binaries, and fitted."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from avrswarm import Simulation, load_program
from avrswarm.cli import cli
from avrswarm.errors import ProgramError, UsageError
from avrswarm.program import load_eeprom
from avrswarm.program.hexfile import write_hex
from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE, EepromMap
from avrswarm.robot.messages import Message
from avrswarm.study.calibrate_distance import (
    Proof,
    Subject,
    gather,
    model_readings,
    report,
    study_distances,
    subjects_of_scene,
    subjects_of_tables,
    with_measured,
)
from avrswarm.study.distance_fit import fit_table
from avrswarm.study.listening_chip import Estimate, ListeningChip, Method
from tests.firmware.bench import FIRMWARE
from tests.swarm.scenes import group, make_scene, messages, run_and_listen

MESSAGE = Message.make(0, b"\x01\0")
EXAMPLE = EepromMap(uid=3)


def program(name):
    return load_program(FIRMWARE / name / f"{name}.elf")


def study(subjects, overrides=(), firmware="distance_reporter", **settings):
    scene, defaults = gather(overrides=overrides, robots=1)
    return study_distances(program(firmware), subjects or defaults, scene, **settings)


# ---- one chip ------------------------------------------------------------------------------------


@pytest.mark.parametrize("firmware", ["distance_reporter", "orbit_planet", "timing_probe"])
def test_the_binarys_own_estimate(firmware):
    chip = ListeningChip(program(firmware), EXAMPLE.pack())
    assert chip.method is Method.SYMBOL
    for entry in (0, 6, 7, 9, 13):
        low, high = LOW_GAIN_EXAMPLE[entry], min(HIGH_GAIN_EXAMPLE[entry], 1023)
        assert chip.hear(MESSAGE, low, high) == Estimate(low, high, 33 + 5 * entry)


def test_without_symbols_the_serial_line_tells(tmp_path):
    bare = tmp_path / "bare.hex"
    bare.write_bytes((FIRMWARE / "distance_reporter" / "distance_reporter.hex").read_bytes())
    chip = ListeningChip(load_program(bare), EXAMPLE.pack())
    assert chip.method is Method.SERIAL
    assert chip.hear(MESSAGE, 171, 777) == Estimate(171, 777, 73)
    assert chip.hear(MESSAGE, 122, 568) == Estimate(122, 568, 98)


@pytest.mark.parametrize("clock_hz", [7.8e6, 8.2e6])
def test_another_clock_is_understood(clock_hz):
    chip = ListeningChip(program("orbit_planet"), EXAMPLE.pack(), clock_hz)
    assert chip.hear(MESSAGE, 171, 777).distance_mm == 73


def test_a_clock_that_is_too_far_off_is_deaf():
    chip = ListeningChip(program("orbit_planet"), EXAMPLE.pack(), 7.4e6)
    assert chip.hear(MESSAGE, 171, 777) is None


def test_a_pair_in_the_world_says_the_same():
    """Robots in a simulation, light from one to the other, the second one's serial line."""
    distances = (34, 47, 58, 66, 79, 91, 96)
    scene = make_scene(
        group("orbit_star", *((0, 400 * row) for row in range(len(distances)))),
        group("distance_reporter", *((d, 400 * row) for row, d in enumerate(distances))),
        optics={"preset": "ideal"},
        arena={"shape": "open"},
    )
    simulation = Simulation(scene, threads=1)
    simulation.run(seconds=1.2)
    printed = {}
    for robot, text in simulation.drain_uart():
        printed[robot] = printed.get(robot, b"") + text
    for row, distance in enumerate(distances):
        robot = len(distances) + row
        last = printed[robot].decode().split("\n")[-2]
        subject = Subject("one", simulation.robots[robot].chip.eeprom.tobytes())
        reading = model_readings(scene, subject, np.array([float(distance)]), 0)
        chip = ListeningChip(program("distance_reporter"), subject.eeprom)
        alone = chip.hear(MESSAGE, int(reading.low[0]), int(reading.high[0]))
        assert tuple(int(word) for word in last.split()[1:]) == alone


@pytest.mark.parametrize("distance", [60, 126])
def test_noise_is_the_worlds(distance):
    """Forty pairs in a simulation: readings scatter alike, and as many messages get through."""
    rows = range(40)
    scene = make_scene(
        group("distance_reporter", *((distance, 400 * row) for row in rows)),
        group("orbit_star", *((0, 400 * row) for row in rows)),
        optics={"range_mm": 130.0},
        arena={"shape": "open"},
    )
    simulation = Simulation(scene, threads=1)
    sent, heard = run_and_listen(simulation, 3.0)
    sent, heard = sent[sent["complete"] == 1], messages(heard)
    heard = heard[heard["robot"] < len(rows)]
    subjects = subjects_of_scene(scene, 80)[: len(rows)]
    model = [
        model_readings(scene, subject, np.full(20, float(distance)), number, pulses=27)
        for number, subject in enumerate(subjects)
    ]
    arrives = np.concatenate([readings.arrives for readings in model])
    low = np.concatenate([readings.low for readings in model])[arrives]
    assert len(sent) > 400
    assert arrives.mean() == pytest.approx(len(heard) / len(sent), abs=0.08)
    assert low.mean() == pytest.approx(heard["low_gain"].mean(), abs=1)
    noise = scene.optics.adc_noise_counts  # which what an ideal listener hears is without
    assert low.std() == pytest.approx(np.hypot(heard["low_gain"].std(), noise), rel=0.2)


def test_who_is_not_heard_in_the_world_does_not_arrive():
    scene, (subject,) = gather(overrides=["optics.preset=ideal", "optics.range_mm=80"], robots=1)
    arrives = model_readings(scene, subject, np.array([70.0, 79.0, 81.0, 100.0]), 0).arrives
    assert arrives.tolist() == [True, True, False, False]


# ---- the study -----------------------------------------------------------------------------------


def test_a_good_table_estimates_well():
    found = study([], messages=10)
    figures = found.outcomes[0].figures()
    assert figures["rms_mm"] < 2
    assert figures["failures_percent"] == 0
    assert figures["range_mm"] == pytest.approx(100, abs=5)
    rows = {row["distance_mm"]: row for row in found.outcomes[0].by_distance()}
    assert rows[58.0]["low_gain"] == pytest.approx(rows[58.0]["low_gain_table"], abs=5)
    assert max(rows) == 140
    assert rows[140.0]["failures_percent"] == 100
    assert rows[140.0]["bias_mm"] is None
    assert not any(finding.is_fault for finding in found.outcomes[0].findings)
    assert found.fitted == []


def test_a_table_fitted_from_noisy_readings_is_within_2_mm():
    """Robots whose tables are another's, erased, or nonsense; the proof has fresh noise."""
    erased = Subject("erased", b"\xff" * 1024)
    strong = Subject("strong", EXAMPLE.pack(), receive_gain=1.12)
    weak = Subject("weak", EepromMap(low_gain=(9,) * 14).pack(), receive_gain=0.9)
    found = study([erased, strong, weak], fit=True)
    for before, after in zip(found.outcomes, found.fitted, strict=True):
        assert before.figures()["rms_mm"] > 4, before.subject.name
        assert after.figures()["rms_mm"] < 2, after.subject.name
        assert not any(finding.is_fault for finding in after.findings), after.subject.name
        assert not np.array_equal(before.sent.low, after.sent.low)
    kinds = [{f.kind for f in outcome.findings if f.is_fault} for outcome in found.outcomes]
    assert "erased" in kinds[0]
    assert "misfit" in kinds[1]
    assert "not decreasing" in kinds[2]


LOW, HIGH = LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("erased", (0xFFFF,) * 14, (0xFFFF,) * 14),
        ("blank", (0,) * 14, HIGH),
        ("not decreasing", (*LOW[:6], 220, *LOW[7:]), HIGH),
        ("saturated", (1023, 1022, *LOW[2:]), HIGH),
        ("crossing gains", LOW, (*HIGH[:12], 130, 120)),
        ("out of reach", (1100, *LOW[1:]), HIGH),
        ("discontinuity", tuple(round(0.9 * count) for count in LOW), HIGH),
        ("misfit", tuple(round(0.85 * c) for c in LOW), tuple(round(0.85 * c) for c in HIGH)),
    ],
)
def test_each_kind_of_broken_table_is_caught(kind, low, high):
    broken = Subject("broken", EepromMap(low_gain=low, high_gain=high).pack())
    found = study([broken], messages=3, fit=True)
    assert kind in {one.kind for one in found.outcomes[0].findings if one.is_fault}
    assert not any(finding.is_fault for finding in found.fitted[0].findings)


def test_fit_follows_a_broken_line_exactly():
    distance = np.arange(33.0, 98.5, 0.5)
    table = np.array(LOW_GAIN_EXAMPLE)
    counts = np.interp(distance, np.arange(33, 99, 5), table)
    assert fit_table(distance, counts) == LOW_GAIN_EXAMPLE
    with_mistakes = counts.copy()
    with_mistakes[::15] += 80
    assert np.abs(np.array(fit_table(distance, with_mistakes)) - table).max() <= 2


def test_fit_always_falls():
    rng = np.random.Generator(np.random.PCG64(4))
    for _ in range(20):
        distance = rng.uniform(33, 98, 40)
        table = fit_table(distance, rng.uniform(0, 1022, 40))
        assert all(a > b for a, b in pairwise(table))
        assert table[-1] > 0


def test_fit_goes_on_beyond_saturation():
    distance = np.arange(33.0, 98.5, 0.5)
    counts = np.interp(distance, np.arange(33, 99, 5), HIGH_GAIN_EXAMPLE)
    table = fit_table(distance, np.minimum(counts, 1023))
    assert table[6:] == HIGH_GAIN_EXAMPLE[6:]
    assert table[0] > 1023


def test_fit_needs_distances():
    with pytest.raises(ProgramError, match="readings at 2 distances from 33 to 98 mm"):
        fit_table(np.array([40.0, 50.0]), np.array([200.0, 180.0]))


def test_readings_of_real_robots(tmp_path):
    """A CSV file takes the place of the model: the new table fits its robot, with its own gain."""
    distance = np.tile(np.arange(33, 99, 5), 6)
    rng = np.random.Generator(np.random.PCG64(7))
    lines = ["uid,distance_mm,low_gain,high_gain"]
    for uid, gain in ((3, 0.8), (9, 1.1)):
        low = np.interp(distance, np.arange(33, 99, 5), LOW_GAIN_EXAMPLE) * gain
        low += rng.normal(0, 1, len(low))
        high = np.minimum(4.5 * low, 1023)
        rows = zip(distance, low.astype(int), high.astype(int), strict=True)
        lines += [f"{uid},{d},{lo},{hi}" for d, lo, hi in rows]
    path = tmp_path / "measured.csv"
    path.write_text("\n".join(lines) + "\n")
    subjects = with_measured([Subject("mine", EXAMPLE.pack())], path)
    assert [(subject.name, subject.map.uid) for subject in subjects] == [
        ("mine", 3),
        ("robot-9", 9),
    ]
    found = study(subjects, fit=True)
    assert [len(outcome.estimated) for outcome in found.outcomes] == [84, 84]
    for before, after in zip(found.outcomes, found.fitted, strict=True):
        assert before.figures()["rms_mm"] > 5
        assert after.figures()["rms_mm"] < 2
        assert after.proof is Proof.HELD_OUT
        assert len(after.estimated) == 42  # every second one
        assert set(after.sent.distance_mm) == set(before.sent.distance_mm)


@pytest.mark.parametrize("step", [1, 5])
def test_a_table_is_not_proven_by_what_it_was_fitted_to(step, tmp_path):
    """Two readings at each distance: the second ones are wrong, and the fit has not seen them."""
    lines = ["distance_mm,low_gain,high_gain"]
    places = np.arange(33, 99, step)
    for distance, low in zip(places, np.interp(places, np.arange(33, 99, 5), LOW), strict=True):
        lines.append(f"{distance},{int(low)},{min(int(4.5 * low), 1023)}")
        if step == 5:
            lines.append(f"{distance},{int(0.8 * low)},{min(int(3.6 * low), 1023)}")
    path = tmp_path / "measured.csv"
    path.write_text("\n".join(lines) + "\n")
    found = study(with_measured([Subject("mine", EXAMPLE.pack())], path), fit=True)
    (after,) = found.fitted
    if step == 5:
        assert after.proof is Proof.HELD_OUT
        assert after.figures()["rms_mm"] > 5
    else:
        assert after.proof is Proof.SAME
        assert "not an independent proof" in found.as_json()["fitted"][0]["proof"]
        assert any("not an independent proof" in str(line) for line in report(found))


def test_a_mute_robot_is_never_heard():
    found = study([Subject("mute", EepromMap(tx_mask=0).pack())], messages=1)
    assert found.outcomes[0].figures()["failures_percent"] == 100


# ---- mistakes ------------------------------------------------------------------------------------


def test_a_program_without_estimates_is_told():
    with pytest.raises(ProgramError, match="no symbol 'estimate_distance', and nothing like"):
        study([], firmware="gradient", messages=1)


def test_a_program_that_measures_only_certain_messages():
    """follow_leader minds robot n-1 only: with id 3 that is robot 2."""
    subjects = [Subject("three", EXAMPLE.pack())]
    with pytest.raises(UsageError, match=r"never called; .* give --type and --data"):
        study(subjects, firmware="follow_leader", messages=1)
    found = study(
        subjects, firmware="follow_leader", messages=1, message=Message.make(0, b"\x02\0")
    )
    assert found.outcomes[0].estimated.any()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n", "column 'low_gain' is missing"),
        ("low_gain,high_gain\n200,800\n", "has 1 rows, a table has 14"),
        ("low_gain,high_gain\n" + "70000,800\n" * 14, "row 2, low_gain: 70000 is no 16-bit"),
        ("low_gain,high_gain\n" + "1.5,800\n" * 14, "row 2, low_gain: 1.5 is no 16-bit"),
        ("low_gain,high_gain\n" + "x,800\n" * 14, "row 2, low_gain: 'x' is not a number"),
        ("uid,low_gain,high_gain\n" + "-1,9,800\n" * 14, "row 2, uid: -1 is not in 0"),
        ("distance_mm,low_gain,high_gain\n" + "33,9,800\n" * 14, "must be 33, 38 ... 98"),
    ],
)
def test_wrong_tables(content, words, tmp_path):
    path = tmp_path / "tables.csv"
    path.write_text(content)
    with pytest.raises(ProgramError, match=words) as error:
        subjects_of_tables(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("distance_mm,low_gain\n40,200\n", "column 'high_gain' is missing"),
        ("distance_mm,low_gain,high_gain\n", "no readings in it"),
        ("distance_mm,low_gain,high_gain\n40,200,1100\n", "row 2, high_gain: 1100 is no ADC"),
        ("distance_mm,low_gain,high_gain\n4,200,1000\n", "row 2, distance_mm: 4 is no distance"),
    ],
)
def test_wrong_readings(content, words, tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text(content)
    with pytest.raises(ProgramError, match=words):
        with_measured([Subject("one", EXAMPLE.pack())], path)


# ---- the command ---------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(cli, ["calibrate", "distance", *map(str, arguments)])


def test_the_command_writes_tables_that_can_be_read_back(tmp_path):
    write_hex(tmp_path / "mine.hex", EepromMap(uid=77, turn_left=81).pack())
    out = tmp_path / "out"
    few = ("--messages", 6, "--step-mm", 5)
    done = run("--eeprom", tmp_path / "mine.hex", "--fit", *few, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["method"] == "return value"
    assert {row["distance_mm"] for row in found["robots"][0]["distances"]} >= {33, 38, 98, 140}
    assert found["fitted"][0]["proof"] == "fresh noise"
    assert json.loads((out / "distance.json").read_text())["fitted"] == found["fitted"]
    table = pq.read_table(out / "readings.parquet")
    assert set(table["tables"].to_pylist()) == {"given", "fitted"}
    assert table.num_rows == 2 * 6 * 23
    assert (out / "distance.png").stat().st_size > 10_000
    content = load_eeprom(out / "mine.hex")
    fields = EepromMap.unpack(bytes(content[address] for address in range(1024)))
    assert (fields.uid, fields.turn_left) == (77, 81)  # the rest of the EEPROM stays
    assert list(fields.low_gain) == found["fitted"][0]["low_gain"]
    (subject,) = subjects_of_tables(out / "mine.csv")
    assert subject.tables == (fields.low_gain, fields.high_gain)
    assert {str(out / name) for name in ("mine.hex", "mine.csv")} <= set(found["files"])


def test_the_command_prints_figures_and_faults(tmp_path):
    rows = [f"{lo},{hi}" for lo, hi in zip(LOW_GAIN_EXAMPLE[::-1], HIGH_GAIN_EXAMPLE, strict=True)]
    (tmp_path / "rising.csv").write_text("\n".join(["low_gain,high_gain", *rows]) + "\n")
    few = ("--messages", 2, "--step-mm", 5)
    done = run("--tables", tmp_path / "rising.csv", *few, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "not decreasing" in done.stdout
    assert "rms" in done.stdout
    assert str(tmp_path / "out") in done.stdout.replace("\n", "")


def test_a_hex_file_with_names_from_a_list(tmp_path):
    firmware = FIRMWARE / "orbit_planet" / "orbit_planet"
    bare = tmp_path / "bare.hex"
    bare.write_bytes(firmware.with_suffix(".hex").read_bytes())
    place = load_program(firmware.with_suffix(".elf")).symbols.resolve("estimate_distance")
    (tmp_path / "names.txt").write_text(f"{place:08x} T estimate_distance\n")
    few = ("--messages", 2, "--step-mm", 20, "--robots", 1, "--out", tmp_path / "out", "--json")
    done = run(bare, "--symbols", tmp_path / "names.txt", *few)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["method"] == "return value"


def test_a_scene_gives_robots_and_light(tmp_path):
    few = ("--messages", 2, "--step-mm", 5, "--robots", 2, "--out", tmp_path / "out", "--json")
    done = run("orbit_planet", "--scene", "thousand", *few)
    assert done.exit_code == 0, done.output
    names = [robot["robot"] for robot in json.loads(done.stdout)["robots"]]
    assert names == ["robot-0", "robot-999"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--eeprom", "a.hex", "--scene", "orbit"], 2),
        (["--data", "1,x"], 2),
        (["--data", "1,300"], 2),
    ],
)
def test_wrong_calls(arguments, code):
    assert run(*arguments).exit_code == code


def test_errors_have_their_codes(tmp_path, capfd):
    from avrswarm.cli import main

    for arguments, code in (
        (["--eeprom", str(tmp_path / "none.hex")], 3),
        (["--tables", str(tmp_path / "none.csv")], 3),
        (["gradient"], 3),
        (["gradeint"], 2),
        ([str(Path("none.elf"))], 3),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["calibrate", "distance", *arguments])
        assert caught.value.code == code
        assert "avrswarm: " in capfd.readouterr().err
