"""Run folders, written from a simulation that is made up, and read back."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from avrswarm.errors import RecordError, SceneError
from avrswarm.program import load_program
from avrswarm.record import run_folder
from avrswarm.record.run_folder import RunRecorder, read_run
from avrswarm.scene.shipped import shipped_folder

from .fake_simulation import FakeSimulation, make_scene

POINTS = [(0, 0), (60, 0), (0, 80)]


def record(folder, *, steps=250, simulation=None, reason="finished", **options):
    simulation = simulation or FakeSimulation(make_scene(POINTS))
    simulation.send(0, 0.1, b"hello", to=[1, 2])
    simulation.send(1, 0.5, b"world", to=[0], bad=[2])
    recorder = RunRecorder(simulation, folder, **options)
    recorder.start()
    for number in range(steps):
        simulation.step()
        simulation.world.x_mm[0] += 0.01
        simulation.colours[1] = number % 64
        simulation.motors.duty[2] = (number % 256, 255)
        if number == 10:
            simulation.uart += [(1, b"one"), (2, b"\xff\n"), (1, b" more\n")]
        recorder.sample()
    return recorder, recorder.finish(reason)


def test_a_run_is_read_back(tmp_path):
    recorder, folder = record(tmp_path / "run")
    run = read_run(folder)
    assert run.info == recorder.info
    assert run.info["state"] == "ended"
    assert run.info["reason"] == "finished"
    assert run.info["simulated_s"] == 1.0
    assert run.info["realtime_factor"] > 0
    assert run.info["digest"] == f"{250:064x}"
    assert run.info["scene"]["optics"]["range_mm"] == 100.0
    assert run.info["firmware"][0]["robots"] == [[0, 2]]
    assert set(run.info["versions"]) >= {"avrswarm", "python", "numpy", "numba"}
    assert sorted(path.name for path in folder.iterdir()) == [
        "frames.parquet",
        "messages.parquet",
        "run.json",
        "trajectory.parquet",
        "uart",
    ]


def test_trajectory_has_the_scenes_rate_and_the_last_moment(tmp_path):
    _, folder = record(tmp_path / "run", steps=251)
    trajectory = read_run(folder).trajectory
    assert list(trajectory.columns) == [
        *("time_s", "robot", "x_mm", "y_mm", "heading_rad", "led", "duty_left", "duty_right")
    ]
    times = trajectory.time_s.unique()
    assert times == pytest.approx([*np.arange(0, 1.05, 0.1), 1.004])
    assert (trajectory.groupby("time_s").robot.apply(list).apply(lambda r: r == [0, 1, 2])).all()
    robot = trajectory[trajectory.robot == 0]
    assert robot.x_mm.to_numpy() == pytest.approx(robot.time_s.to_numpy() * 2.5)
    assert trajectory.led.max() > 0
    assert set(trajectory.duty_right[trajectory.robot == 2]) == {0, 255}


def test_a_rate_finer_than_the_steps_samples_every_step(tmp_path):
    scene = make_scene(POINTS, record={"trajectory_hz": 1000.0, "pictures": False})
    _, folder = record(tmp_path / "run", simulation=FakeSimulation(scene), steps=50)
    assert read_run(folder).trajectory.time_s.nunique() == 51


def test_messages_and_uart(tmp_path):
    _, folder = record(tmp_path / "run")
    run = read_run(folder)
    assert run.messages.fate.tolist() == ["received", "received", "received", "crc_bad"]
    assert run.messages.sender.tolist() == [0, 0, 1, 1]
    assert len(run.frames) == 2
    assert run.uart == {1: "one more\n", 2: "\xff\n"}
    assert (folder / "uart" / "2.txt").read_bytes() == b"\xff\n"
    assert len(run.objects) == 0


def test_distance_is_that_before_the_step_moved_robots(tmp_path):
    _, folder = record(tmp_path / "run")
    messages = read_run(folder).messages
    step = int(messages.time_s[0] / 0.004)
    assert messages.distance_mm[0] == pytest.approx(60 - 0.01 * step, abs=1e-9)


def test_what_the_scene_does_not_want_is_not_kept(tmp_path):
    scene = make_scene(POINTS, record={"messages": False, "uart": False, "pictures": False})
    _, folder = record(tmp_path / "run", simulation=FakeSimulation(scene))
    run = read_run(folder)
    assert run.messages.empty
    assert run.uart == {}


def test_pushable_discs_are_followed(tmp_path):
    objects = [
        {"kind": "box", "x_mm": 300.0, "y_mm": 300.0},
        {"kind": "disc", "x_mm": -200.0, "y_mm": 0.0},
        {"kind": "disc", "x_mm": 200.0, "y_mm": -200.0, "pushable": True},
    ]
    simulation = FakeSimulation(make_scene(POINTS, objects=objects))
    _, folder = record(tmp_path / "run", simulation=simulation)
    run = read_run(folder)
    assert run.objects.object.unique().tolist() == [2]
    assert run.objects.x_mm.unique().tolist() == [200.0]
    assert len(run.stage.objects) == 3


def test_watched_variables_have_a_table(tmp_path):
    groups = [
        {"firmware": name, "placement": {"kind": "at", "points_mm": [[100.0 * k, 0.0]]}}
        for k, name in enumerate(["gradient", "blink", "gradient"])
    ]
    scene = make_scene([], robots=groups, record={"watch": ["own_gradient"], "pictures": False})
    simulation = FakeSimulation(scene)
    elf = shipped_folder("firmware") / "gradient" / "gradient.elf"
    address = load_program(elf).variables.place("own_gradient").address
    simulation.chips.memory[0, address : address + 2] = [0x34, 0x12]
    simulation.chips.memory[2, address] = 7
    _, folder = record(tmp_path / "run", simulation=simulation, steps=10)
    values = read_run(folder).watch.own_gradient
    assert read_run(folder).table("watch").schema.field("own_gradient").type == pa.uint16()
    assert values[0] == 0x1234
    assert np.isnan(values[1])
    assert values[2] == 7


def test_variables_of_chosen_robots(tmp_path):
    robots = [{"firmware": "gradient", "count": 4, "placement": {"kind": "line"}}]
    wanted = {"watch": ["kilo_ticks"], "watch_robots": [2, 0], "pictures": False}
    simulation = FakeSimulation(make_scene([], robots=robots, record=wanted))
    _, folder = record(tmp_path / "run", simulation=simulation, steps=10)
    assert read_run(folder).watch.robot.unique().tolist() == [0, 2]
    assert len(read_run(folder).watch) == len(read_run(folder).trajectory) / 2


def test_a_robot_that_is_not_there_cannot_be_watched():
    wanted = {"watch": ["kilo_ticks"], "watch_robots": [3]}
    with pytest.raises(SceneError, match=r"record.watch_robots: there is no robot 3; .* 0 to 2"):
        RunRecorder(FakeSimulation(make_scene(POINTS[:3], record=wanted)), None)


def test_a_run_that_watches_nothing_has_no_such_table(tmp_path):
    _, folder = record(tmp_path / "run")
    assert not (folder / "watch.parquet").exists()
    assert read_run(folder).watch.empty


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_gradien", "did you mean own_gradient"),
        ("message", "not a number"),
        ("a b", "not a var"),
    ],
)
def test_variables_that_cannot_be_watched(name, message):
    robots = [{"firmware": "gradient", "placement": {"kind": "at", "points_mm": [[0.0, 0.0]]}}]
    scene = make_scene([], robots=robots, record={"watch": [name]})
    with pytest.raises(SceneError, match=f"record.watch: .*{message}"):
        RunRecorder(FakeSimulation(scene), None)


def test_faults_are_told(tmp_path):
    simulation = FakeSimulation(make_scene(POINTS))
    simulation.faults.append((2, "robot 2: stopped"))
    _, folder = record(tmp_path / "run", simulation=simulation)
    assert read_run(folder).info["faults"] == [{"robot": 2, "message": "robot 2: stopped"}]


def test_content_does_not_depend_on_when_it_was_written(tmp_path, monkeypatch):
    _, once = record(tmp_path / "once")
    monkeypatch.setattr(run_folder, "FLUSH_WALL_S", 0.0)
    monkeypatch.setattr(run_folder, "SETTLE_ROBOT_S", 0.01)
    _, often = record(tmp_path / "often")
    for name in ("trajectory", "frames", "messages"):
        assert read_run(once).table(name).equals(read_run(often).table(name))
    assert read_run(once).uart == read_run(often).uart


# ---- folders -------------------------------------------------------------------------------------


def test_runs_without_a_place_get_new_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [record(None, steps=3)[1] for _ in range(3)]
    assert folders == [Path("runs/fake"), Path("runs/fake-2"), Path("runs/fake-3")]


def test_a_given_folder_may_be_there_but_empty(tmp_path):
    (tmp_path / "empty").mkdir()
    record(tmp_path / "empty", steps=3)
    with pytest.raises(RecordError, match="empty: is not empty, and runs are never overwritten"):
        record(tmp_path / "empty", steps=3)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be written"):
        record(tmp_path / "file" / "run", steps=3)


def test_odd_scene_names_make_plain_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulation = FakeSimulation(make_scene(POINTS, scene={"name": "../a b/c"}))
    assert record(None, steps=3, simulation=simulation)[1] == Path("runs/_a_b_c")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "has no run.json"),
        ("{", "cannot be read"),
        ("[]", "has format None"),
        ('{"format": 99}', "has format 99, this version reads format 1"),
    ],
)
def test_folders_that_are_no_runs(tmp_path, content, message):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RecordError, match=message):
        read_run(tmp_path)
    with pytest.raises(RecordError, match="no such folder"):
        read_run(tmp_path / "nowhere")


# ---- runs that end badly -------------------------------------------------------------------------


PROLOGUE = """
from avrswarm.record import run_folder
from tests.record.fake_simulation import FakeSimulation, make_scene

run_folder.FLUSH_WALL_S = 0.0
simulation = FakeSimulation(make_scene([(0, 0), (60, 0), (0, 80)]))
recorder = run_folder.RunRecorder(simulation, {folder!r})
recorder.start()

def go_on():
    for number in range(10**6):
        if number % 25 == 0:
            simulation.send(0, simulation.time_s + 0.001, to=[1, 2])
        simulation.uart.append((0, b"."))
        simulation.step()
        recorder.sample()
        if number == 400:
            print("going", flush=True)
"""


@contextmanager
def running(folder, program):
    """A process that records, as soon as it has recorded something."""
    command = [sys.executable, "-c", PROLOGUE.format(folder=str(folder)) + program]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "going\n"
            yield child
        finally:
            child.kill()


def test_a_killed_run_can_be_read(tmp_path):
    with running(tmp_path / "run", "go_on()") as child:
        child.kill()
    run = read_run(tmp_path / "run")
    assert run.info["state"] == "running"
    assert run.info["simulated_s"] >= 1.6
    assert run.trajectory.time_s.max() >= 1.5
    assert (run.messages.fate == "received").all()
    assert len(run.messages) >= 10
    assert len(run.uart[0]) >= 400
    assert run.info["digest"] is None


INTERRUPTED = """
try:
    go_on()
except KeyboardInterrupt:
    recorder.finish("interrupted")
    print(simulation.steps)
"""


def test_ctrl_c_keeps_everything(tmp_path):
    with running(tmp_path / "run", INTERRUPTED) as child:
        child.send_signal(signal.SIGINT)
        steps = int(child.stdout.readline())
        assert child.wait() == 0
    run = read_run(tmp_path / "run")
    assert (run.info["state"], run.info["reason"]) == ("ended", "interrupted")
    assert run.info["simulated_s"] == pytest.approx(0.004 * steps)
    assert run.trajectory.time_s.max() == pytest.approx(0.004 * steps)
    assert steps - 1 <= len(run.uart[0]) <= steps + 1
