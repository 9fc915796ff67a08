"""Motor values put to the test by emulated robots, and found by trial."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from avrswarm import Simulation
from avrswarm.cli import cli
from avrswarm.errors import AvrSwarmError, ProgramError, UsageError
from avrswarm.program import load_eeprom
from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.scene.model import Command
from avrswarm.study.calibrate_motors import (
    MOST_DUTY,
    TABLE_2_2,
    Motion,
    MotorValues,
    Robot,
    Trial,
    Wanted,
    find_values,
    gather_scene,
    read_motor_table,
    remarks,
    study_motors,
)
from tests.swarm.scenes import group, make_scene

SAME_MOTORS = ["spread.motor_percent=0"]


def measure(*values, kind="own", overrides=SAME_MOTORS, **settings):
    robots = [Robot(uid, MotorValues(*one)) for uid, one in enumerate(values, 1)]
    scene = gather_scene(robots, overrides=overrides, kind=kind)
    settings.setdefault("seconds", 1.0)
    return study_motors(scene, robots, Wanted(), kind=kind, **settings)


# ---- tables --------------------------------------------------------------------------------------


def test_the_ten_robots_of_the_thesis():
    robots = read_motor_table(TABLE_2_2)
    values = np.array([robot.values for robot in robots])
    assert [robot.uid for robot in robots] == list(range(1, 11))
    assert values.mean(axis=0).tolist() == pytest.approx([73.9, 67.6, 64.6, 61.6])
    assert values.std(axis=0, ddof=0).tolist() == pytest.approx([2.9, 2.8, 3.6, 4.1], abs=0.25)


HEADER = "uid,turn_left,turn_right,straight_left,straight_right\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("uid,turn_left\n1,70\n", "column 'turn_right' is missing"),
        (HEADER, "no robots in it"),
        (HEADER + "1,70,70,60\n", "row 2 has 4 values, not 5"),
        (HEADER + "1,70,300,60,60\n", "row 2, turn_right: 300 is not a whole number up to 255"),
        (HEADER + "1,70,70.5,60,60\n", "row 2, turn_right: 70.5 is not a whole number"),
        (HEADER + "1,70,fast,60,60\n", "row 2, turn_right: 'fast' is not a number"),
        (HEADER + "1,70,70,60,60\n1,70,70,60,60\n", "row 3, uid: robot 1 is there already"),
        (HEADER + "65535,70,70,60,60\n", "row 2, uid: 65535 is not a whole number up to 65534"),
        (HEADER + "70000,70,70,60,60\n", "row 2, uid: 70000 is not a whole number up to 65534"),
    ],
)
def test_wrong_tables(content, words, tmp_path):
    path = tmp_path / "motors.csv"
    path.write_text(content)
    with pytest.raises(ProgramError, match=words) as error:
        read_motor_table(path)
    assert str(path) in str(error.value)


# ---- motions -------------------------------------------------------------------------------------


def test_calibrated_values_move_as_calibrated():
    """By the model of motors: a calibrated value is 45 degrees/s alone, 10 mm/s with the other."""
    (robot,) = measure((72, 63, 65, 60)).robots
    assert robot.motion("turn_left").turn_deg_s == pytest.approx(45, abs=0.05)
    assert robot.motion("turn_right").turn_deg_s == pytest.approx(-45, abs=0.05)
    straight = robot.motion("straight")
    assert straight.speed_mm_s == pytest.approx(10, abs=0.05)
    assert straight.turn_deg_s == pytest.approx(0, abs=0.05)
    assert straight.curvature_per_m == pytest.approx(0, abs=0.1)
    assert straight.path_mm[-1] == pytest.approx([0, 10], abs=0.1)  # seen with the heading up
    assert remarks(robot, Wanted()) == []


def test_values_between_and_beyond():
    """A straight line from 26 (nothing) over 73 (1) to 255 (2): half way is half the rate."""
    half, full, dead, none = measure(
        (50, 68, 65, 62), (255, 68, 65, 62), (26, 68, 65, 62), (0, 0, 0, 0), kind="average"
    ).robots
    assert half.motion("turn_left").turn_deg_s == pytest.approx(45 * (50 - 26) / (73 - 26), abs=0.1)
    assert full.motion("turn_left").turn_deg_s == pytest.approx(90, abs=0.1)
    assert dead.motion("turn_left").stalled
    assert all(motion.stalled for motion in none.motions)
    assert none.motion("straight").curvature_per_m is None
    assert remarks(half, Wanted()) == ["turn_left too slow"]
    assert remarks(full, Wanted()) == ["turn_left erased (255: full power)", "turn_left too fast"]
    slow = Wanted(speed_mm_s=20)
    assert "straight too slow" in remarks(half, slow)
    assert "turn_left stalls" in remarks(dead, Wanted())


def test_one_side_stronger_veers():
    """Left at 1, right at 36/36 of 62-26: each count less on the right turns it left."""
    (robot,) = measure((73, 68, 65, 56), kind="average").robots
    straight = robot.motion("straight")
    drive = (56 - 26) / (62 - 26)
    together = 56 / 62  # the left motor is nearer to its calibrated value for turns then
    nominal = 73 + (65 - 73) * together
    left = (65 - 26) / (nominal - 26)
    assert straight.turn_deg_s == pytest.approx(45 * (left - drive), abs=0.1)
    assert straight.curvature_per_m > 0
    assert remarks(robot, Wanted()) == ["veers left"]


def test_values_that_wear_motors_out():
    robot = Robot(1, MotorValues(95, 70, 60, 60))
    assert remarks(robot, Wanted()) == ["turn_left above 90, which wears motors out"]


def test_firmware_that_is_not_there():
    robots = [Robot(1, MotorValues(73, 68, 65, 62))]
    with pytest.raises(UsageError, match="'mvoe': no shipped firmware has this name"):
        gather_scene(robots, firmware="mvoe")
    with pytest.raises(AvrSwarmError, match=r"mvoe\.hex"):
        gather_scene(robots, firmware="mvoe.hex")


def test_firmware_that_does_not_obey():
    robots = [Robot(1, MotorValues(73, 68, 65, 62))]
    scene = gather_scene(robots, firmware="bench_idle")
    with pytest.raises(ProgramError, match="no robot obeyed a CALIB command"):
        study_motors(scene, robots, Wanted(), seconds=0.5)


# ---- finding values ------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [MotorValues(73, 68, 65, 62), MotorValues(255, 0, 255, 1)])
@pytest.mark.parametrize("gains", [(1.0, 1.0), (0.6, 1.3), (1.5, 0.9)])
def test_the_search_finds_the_best_values(start, gains):
    """Robots of another kind than the package's: rates grow with the square of the value."""

    def rate(value, gain):
        return gain * value**2 / 100

    search = find_values(start, Wanted(turn_deg_s=40, speed_mm_s=9))
    trial, trials = next(search), 0
    while True:
        left, right = rate(trial.left, gains[0]), rate(trial.right, gains[1])
        speed = min(left, right) / 4
        try:
            trials += 1
            trial = search.send(Motion(trial, speed, left - right, None, False, np.zeros((1, 2))))
        except StopIteration as end:
            found = end.value
            break
    every = np.arange(256)
    best = [int(np.argmin(np.abs(rate(every, gain) - 40))) for gain in gains]
    assert [found.turn_left, found.turn_right] == best
    straight = [rate(value, gain) for value, gain in zip(found[2:], gains, strict=True)]
    assert abs(straight[0] - straight[1]) < 1.5  # one count is up to 2
    assert min(straight) / 4 == pytest.approx(9, abs=0.4)
    assert trials < 100


@pytest.fixture(scope="module")
def fitted():
    return measure((70, 75, 80, 50), (60, 60, 60, 60), kind="drawn", overrides=(), fit=True)


def test_found_values_turn_as_wanted_and_go_straight(fitted):
    for before, after in zip(fitted.robots, fitted.fitted, strict=True):
        assert remarks(before, Wanted())
        assert remarks(after, Wanted()) == []
        for mode in ("turn_left", "turn_right"):  # within half a count, which is a degree/s
            assert after.motion(mode).rate_deg_s == pytest.approx(45, abs=0.7)
        assert abs(after.motion("straight").turn_deg_s) < 0.8
        assert after.motion("straight").speed_mm_s == pytest.approx(10, abs=0.4)
        assert 6 < after.trials < 60


def test_what_motors_cannot_do_is_said():
    """Values that wear motors out are not even tried."""
    robots = [Robot(1, MotorValues(73, 68, 65, 62))]
    scene = gather_scene(robots, kind="average")
    wanted = Wanted(turn_deg_s=90, speed_mm_s=40)
    found = study_motors(scene, robots, wanted, kind="average", fit=True, seconds=1.0)
    (robot,) = found.fitted
    assert max(robot.values) == MOST_DUTY
    assert robot.values.turn_left == robot.values.turn_right == MOST_DUTY
    nearest = robot.motion("turn_left").rate_deg_s
    told = found.as_json()["fitted"][0]["remarks"]
    assert f"not reachable: turn_left 90 degrees/s; nearest is {nearest:.1f} with 90" in told
    assert any(remark.startswith("not reachable: straight 40 mm/s") for remark in told)


def test_the_firmware_has_saved_them(fitted):
    for number, robot in enumerate(fitted.fitted, 1):
        kept = EepromMap.unpack(robot.eeprom)
        assert kept.uid == robot.uid == number
        assert (kept.turn_left, kept.turn_right) == robot.values[:2]
        assert (kept.straight_left, kept.straight_right) == robot.values[2:]
        assert kept.low_gain[0] > kept.low_gain[-1] > 0  # distance tables are still there


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_writes_what_it_found(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text(HEADER + "500,73,68,65,62\n")
    out = tmp_path / "out"
    arguments = ["calibrate", "motors", table, "--fit", "--seconds", 1, "--out", out, "--json"]
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert json.loads((out / "motors.json").read_text())["fitted"] == found["fitted"]
    (robot,) = read_motor_table(out / "fitted.csv")
    content = load_eeprom(out / "robot-500.hex")
    kept = EepromMap.unpack(bytes(content[address] for address in range(1024)))
    assert kept.uid == robot.uid == 500
    assert (kept.turn_left, kept.straight_right) == (robot.values.turn_left, robot.values[3])
    assert pq.read_table(out / "motions.parquet").num_rows == 6
    assert pq.read_table(out / "paths.parquet").num_rows > 1000
    assert (out / "motors.png").stat().st_size > 10_000

    # a robot with that image runs its own program with these values
    scene = make_scene(group("move", (0, 0), eeprom={"image": str(out / "robot-500.hex")}))
    simulation = Simulation(scene, threads=1)
    simulation.run(seconds=1.0)
    assert simulation.motors.duty[0].tolist() == list(robot.values[2:])


def test_the_command_prints_a_table(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text(HEADER + "7,73,68,65,20\n")
    arguments = ["calibrate", "motors", table, "--seconds", 0.5, "--out", tmp_path / "out"]
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    assert "65-20" in done.stdout
    assert "robot 7, given: veers left" in done.stdout


# ---- commands while a simulation runs ------------------------------------------------------------


def test_a_command_in_the_middle_of_a_run():
    simulation = Simulation(make_scene(group("blink", (0, 0), (300, 0)), controller=[]), threads=1)
    simulation.run(seconds=0.6)
    order = {"command": "calibrate", "mode": "turn_left", "left": 70}
    here = {"x_mm": 300.0, "y_mm": 0.0, "radius_mm": 100.0}
    simulation.command(Command(at_s=0.8, **order, **here))
    simulation.run(seconds=0.15)
    assert simulation.motors.duty[:, 0].tolist() == [0, 0]
    simulation.run(seconds=0.5)
    assert simulation.motors.duty[:, 0].tolist() == [0, 70]
    with pytest.raises(UsageError, match=r"a command at 0.5 s is too late: it is 1.25"):
        simulation.command(Command(at_s=0.5, command="reset"))


def test_commands_given_on_the_way_are_those_of_the_scene():
    later = {"at_s": 0.9, "command": "calibrate", "mode": "turn_left", "left": 70}
    robots = group("blink", (0, 0))
    first = {"at_s": 0.3, "command": "run"}
    planned = Simulation(make_scene(robots, controller=[first, later]), threads=1)
    planned.run(seconds=1.5)
    told = Simulation(make_scene(robots, controller=[first]), threads=1)
    told.run(seconds=0.7)
    told.command(Command(**later))
    told.run(seconds=0.8)
    assert told.time_s == planned.time_s
    assert told.digest() == planned.digest()


def test_trials_are_frames():
    assert MotorValues(1, 2, 3, 4).trial("turn_right") == Trial("turn_right", 0, 2)
