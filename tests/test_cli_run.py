"""The commands about scenes: exit codes, JSON, run folders, and what is said of bad scenes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from matplotlib import pyplot

from avrswarm import cli, read_run
from tests.program.records import END, data, write_hex
from tests.reference import assemble

SCENE = """
[scene]
seconds = 0.02

[[robots]]
firmware = "blink"
placement = { kind = "grid", pitch_mm = 50 }
count = 2
"""
ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
UNDEFINED_OPCODE = b"\x01\x00"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder, so that runs/ is written there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path, SCENE)


def write_scene(folder, text):
    path = folder / "scene.toml"
    path.write_text(text)
    return path


def run(*arguments, capfd):
    """Run the command in this process; returns exit code, output and messages."""
    with pytest.raises(SystemExit) as caught:
        cli.main([str(argument) for argument in arguments])
    output, messages = capfd.readouterr()
    return caught.value.code, output, messages


COMMANDS = ["run", "scenes", "scene-check", "scene-keys"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command, capfd):
    code, output, _ = run(command, "--help", capfd=capfd)
    assert code == 0
    assert re.search(rf"Examples?:\n +avrswarm {command}", output)
    assert "window-us" not in output


class TestRun:
    def test_says_where_the_picture_is(self, scene, tmp_path, capfd):
        code, output, messages = run("run", scene, capfd=capfd)
        assert code == 0
        first, second = output.splitlines()
        assert first.startswith("scene: 2 robots, 0.02 s simulated in ")
        assert second.startswith("The picture is runs/scene/trajectories.png")
        assert (tmp_path / "runs/scene/trajectories.png").read_bytes()[:4] == b"\x89PNG"
        assert "real time  " not in messages  # no bar where there is no terminal

    def test_json(self, scene, capfd):
        code, output, _ = run("run", scene, "--json", "--threads", 1, capfd=capfd)
        found = json.loads(output)
        assert code == 0
        assert list(found) == [
            "run", "simulated_s", "wall_s", "compile_s", "realtime_factor", "digest", "faults",
            "reason", "pictures",
        ]  # fmt: skip
        assert found["simulated_s"] == pytest.approx(0.02)
        assert found["reason"] == "finished"
        assert found["faults"] == []
        assert len(found["digest"]) == 64
        assert found["wall_s"] > 0
        info = read_run(found["run"]).info
        assert all(found[name] == info[name] for name in ("compile_s", "wall_s", "digest"))

    def test_run_folder(self, scene, tmp_path, capfd):
        code, *_ = run("run", scene, "--out", tmp_path / "a", "--seed", 5, capfd=capfd)
        assert code == 0
        names = {path.name for path in (tmp_path / "a").iterdir()}
        assert names >= {"run.json", "trajectory.parquet", "messages.parquet", "trajectories.png"}
        found = read_run(tmp_path / "a")
        assert found.info["seed"] == 5
        assert found.info["state"] == "ended"
        assert set(found.table("trajectory")["robot"].to_pylist()) == {0, 1}

    def test_same_seed_same_digest_whatever_the_threads_and_windows(self, scene, capfd):
        variants = [[], ["--threads", 2], ["--window-us", 500], ["--seed", 9]]
        digests = []
        for variant in variants:
            _, output, _ = run("run", scene, "--json", *variant, capfd=capfd)
            digests.append(json.loads(output)["digest"])
        assert digests[0] == digests[1] == digests[2] != digests[3]

    def test_seconds_and_set(self, scene, capfd):
        options = ["--seconds", 0.1, "--set", "robots.0.count=3", "--set", "record.pictures=false"]
        code, output, _ = run("run", scene, "--json", *options, capfd=capfd)
        found = json.loads(output)
        assert code == 0
        assert found["simulated_s"] == pytest.approx(0.1)
        assert found["pictures"] == []
        info = read_run(found["run"]).info
        assert info["robots"] == 3
        assert info["scene"]["scene"]["seconds"] == 0.1

    def test_without_pictures_the_folder_is_told(self, scene, capfd):
        _, output, _ = run("run", scene, "--set", "record.pictures=false", capfd=capfd)
        assert output.splitlines()[-1] == "The run is in runs/scene."

    def test_film(self, scene, capfd):
        code, output, _ = run("run", scene, "--film", "--set", "scene.seconds=0.5", capfd=capfd)
        assert code == 0
        assert re.search(r"the film runs/scene/film\.(mp4|gif)", output)

    def test_a_live_window_needs_a_screen(self, scene, tmp_path, capfd):
        pyplot.switch_backend("agg")
        code, output, messages = run("run", scene, "--live", capfd=capfd)
        assert (code, output) == (2, "")
        assert "--live needs a screen" in messages
        assert "--film" in messages
        assert "compiling" not in messages
        assert not (tmp_path / "runs").exists()

    def test_shipped_scene_by_name(self, capfd):
        code, output, _ = run("run", "blink", "--seconds", 0.01, capfd=capfd)
        assert code == 0
        assert output.startswith("blink: 1 robot, ")

    def test_folder_that_is_not_empty_is_refused(self, scene, tmp_path, capfd):
        folder = tmp_path / "mine"
        folder.mkdir()
        (folder / "thesis.txt").write_text("do not touch")
        code, output, messages = run("run", scene, "--out", folder, capfd=capfd)
        assert (code, output) == (3, "")
        assert messages.endswith(
            f"{folder}: is not empty, and runs are never overwritten; give another folder\n"
        )
        assert [path.name for path in folder.iterdir()] == ["thesis.txt"]

    def test_two_runs_have_two_folders(self, scene, tmp_path, capfd):
        for _ in range(2):
            run("run", scene, capfd=capfd)
        assert {path.name for path in (tmp_path / "runs").iterdir()} == {"scene", "scene-2"}

    @pytest.mark.parametrize(
        "options",
        [
            ["--seconds", "0"],
            ["--seconds", "-1"],
            ["--seconds", "nan"],
            ["--seconds", "inf"],
            ["--threads", "0"],
            ["--seed", "-1"],
            ["--seed", "x"],
            ["--nothing"],
        ],
        ids=" ".join,
    )
    def test_wrong_call_is_2(self, scene, options, capfd):
        code, _, messages = run("run", scene, *options, capfd=capfd)
        assert code == 2
        assert "Error" in messages

    def test_there_is_a_bar_on_a_terminal(self, scene):
        pty = pytest.importorskip("pty")
        reading, writing = pty.openpty()
        command = [sys.executable, "-m", "avrswarm", "run", scene, "--seconds", "0.3"]
        done = subprocess.run(
            command, stderr=writing, stdout=subprocess.PIPE, check=False, env=ENVIRONMENT
        )
        os.close(writing)
        shown = os.read(reading, 100_000).decode()
        os.close(reading)
        assert done.returncode == 0
        assert "0.3 / 0.3 s" in shown
        assert done.stdout.decode().splitlines()[-1].startswith("The picture is")


class TestFaults:
    @pytest.fixture
    def faulty(self, tmp_path):
        write_hex(tmp_path, data(0, UNDEFINED_OPCODE), END).rename(tmp_path / "bad.hex")
        group = '[[robots]]\nfirmware = "bad.hex"\nplacement = { kind = "at", '
        return write_scene(tmp_path, SCENE + group + "points_mm = [[200, 0]] }\n")

    @pytest.fixture(autouse=True)
    def early(self, faulty, tmp_path):
        """Robots are switched on within the first 20 ms."""
        text = faulty.read_text() + "[spread]\nstart_delay_s = 0\n"
        faulty.write_text(text)

    def test_a_robot_stops_alone(self, faulty, capfd):
        code, output, messages = run("run", faulty, "--json", capfd=capfd)
        found = json.loads(output)
        assert code == 0
        assert found["reason"] == "finished"
        assert found["simulated_s"] == pytest.approx(0.02)
        assert [fault["robot"] for fault in found["faults"]] == [2]
        assert "undefined opcode" in found["faults"][0]["message"]
        assert "robot 2" in messages

    def test_many_faults_are_not_all_told(self, faulty, capfd):
        places = "[[200,0],[240,0],[280,0],[320,0],[360,0],[200,60],[240,60],[280,60],[320,60]]"
        option = f"robots.1.placement.points_mm={places}"
        code, _, messages = run("run", faulty, "--set", option, capfd=capfd)
        assert code == 0
        assert messages.count("undefined opcode") == 8
        assert "more faults in run.json: 1\n" in messages

    def test_a_robot_stops_the_run(self, faulty, capfd):
        options = ["--set", "scene.on_fault=stop_run"]
        code, output, messages = run("run", faulty, *options, capfd=capfd)
        assert code == 4
        assert "stopped by a fault" in output
        assert "robot 2" in messages
        info = read_run("runs/scene").info
        assert (info["state"], info["reason"]) == ("ended", "fault")

    @pytest.mark.parametrize(("on_fault", "expected"), [("stop_robot", 0), ("stop_run", 4)])
    def test_an_led_that_flashes_too_fast_is_a_fault_too(
        self, faulty, tmp_path, on_fault, expected, capfd
    ):
        words = assemble.program(
            assemble.ldi(16, 0x04),
            assemble.out(assemble.DDRD, 16),
            assemble.out(assemble.PORTD, 16),
            assemble.sbi(assemble.DDRB, 0),
            assemble.sbi(assemble.PINB, 0),
            assemble.rjmp(-2),
        )
        content = b"".join(word.to_bytes(2, "little") for word in words)
        write_hex(tmp_path, data(0, content), END).rename(tmp_path / "bad.hex")
        code, _, messages = run("run", faulty, "--set", f"scene.on_fault={on_fault}", capfd=capfd)
        assert code == expected
        (fault,) = read_run("runs/scene").info["faults"]
        assert fault["robot"] == 2
        assert "LED flashes more than once in 28 us" in fault["message"]
        assert f"avrswarm: {fault['message']}\n" in messages


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_keeps_what_was_recorded(scene, tmp_path):
    command = [sys.executable, "-m", "avrswarm", "run", scene, "--seconds", "80000"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    while not (tmp_path / "runs/scene/run.json").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in messages
    assert ", interrupted." in output
    found = read_run(tmp_path / "runs/scene")
    assert (found.info["state"], found.info["reason"]) == ("ended", "interrupted")
    assert 0 < found.info["simulated_s"] < 80_000
    assert found.table("trajectory").num_rows > 0
    assert (tmp_path / "runs/scene/trajectories.png").is_file()


# ---- bad scenes ----------------------------------------------------------------------------------

TWO_AT = 'placement = { kind = "at", points_mm = [[0, 0], [10, 0]] }'
BAD = {
    "unknown key": ("[motion]\nspeed_mms = 3\n", ["motion.speed_mms", "did you mean 'speed_mm_s'"]),
    "unknown section": ("[montion]\n", ["montion", "did you mean 'motion'"]),
    "negative size": ("[arena]\nwidth_mm = -3\n", ["arena.width_mm = -3", "more than 0"]),
    "nan": ("[motion]\nspeed_mm_s = nan\n", ["motion.speed_mm_s", "not nan or inf"]),
    "wrong type": ('[motion]\nspeed_mm_s = "fast"\n', ["motion.speed_mm_s", "fast"]),
    "not an image": ('[arena]\nimage = "scene.toml"\n', ["arena.image", "scene.toml"]),
    "missing image": ('[arena]\nimage = "none.png"\n', ["arena.image", "no such file"]),
    "not a choice": ('[optics]\npreset = "labb"\n', ["optics.preset", "did you mean 'lab'"]),
    "not toml": ("[motion\n", ["is not TOML"]),
}
BAD_ROBOTS = {
    "no robots": ("[scene]\nseconds = 1\n", ["robots", "at least one"]),
    "empty list": ("robots = []\n", ["robots", "at least one robot"]),
    "0 robots": ('[[robots]]\nfirmware = "blink"\ncount = 0\n', ["robots.0.count = 0"]),
    "missing firmware": ('[[robots]]\nfirmware = "x.hex"\n', ["robots.0.firmware", "x.hex"]),
    "misspelt firmware": ('[[robots]]\nfirmware = "blik"\n', ["did you mean 'blink'"]),
    "firmware that is none": (
        '[[robots]]\nfirmware = "notes.txt"\n',
        ['robots.0.firmware = "notes.txt": ', "not a firmware"],
    ),
    "eeprom that is none": (
        '[[robots]]\nfirmware = "blink"\neeprom.image = "notes.txt"\n',
        ['robots.0.eeprom.image = "notes.txt": ', "an EEPROM file has to be Intel HEX"],
    ),
    "too many": (
        '[[robots]]\nfirmware = "blink"\ncount = 65536\n',
        ["robots: 65536", "at most 65535"],
    ),
    "overlap": (f'[[robots]]\nfirmware = "blink"\n{TWO_AT}\n', ["overlap"]),
    "no room": ('[[robots]]\nfirmware = "blink"\ncount = 900\n', ["scene.toml"]),
}


@pytest.mark.parametrize("command", ["scene-check", "run"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(pytest.param(SCENE + text, words, id=name) for name, (text, words) in BAD.items()),
        *(pytest.param(text, words, id=name) for name, (text, words) in BAD_ROBOTS.items()),
    ],
)
def test_bad_scene_is_3_before_anything_runs(command, text, words, tmp_path, capfd):
    path = write_scene(tmp_path, text)
    (tmp_path / "notes.txt").write_text("not Intel HEX")
    code, output, messages = run(command, path, capfd=capfd)
    assert (code, output) == (3, "")
    assert str(path) in messages
    for word in words:
        assert word in messages
    assert "compiling" not in messages
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", ["scene-check", "run"])
def test_bad_set_is_3_and_names_itself(command, scene, capfd):
    code, _, messages = run(command, scene, "--set", "motion.speed_mm_s=-8", capfd=capfd)
    assert code == 3
    assert "--set motion.speed_mm_s=-8" in messages


def test_unknown_scene_has_a_suggestion(capfd):
    code, _, messages = run("run", "orbitt", capfd=capfd)
    assert code == 3
    assert "did you mean 'orbit'?" in messages


class TestScenes:
    def test_list(self, capfd):
        code, output, _ = run("scenes", capfd=capfd)
        assert code == 0
        assert re.search(r"^orbit +2 +\d+  ", output, re.MULTILINE)

    def test_json(self, capfd):
        _, output, _ = run("scenes", "--json", capfd=capfd)
        found = json.loads(output)["scenes"]
        assert found[0]["name"] == "blink"
        assert {"orbit", "gradient", "thousand"} <= {scene["name"] for scene in found}
        assert all(set(scene) == {"name", "robots", "seconds", "title", "file"} for scene in found)

    def test_check(self, scene, capfd):
        code, output, _ = run("scene-check", scene, "--set", "robots.0.count=4", capfd=capfd)
        assert code == 0
        assert "robots   4\n" in output
        assert "seconds  0.02\n" in output
        assert "blink.hex" in output
        _, output, _ = run("scene-check", scene, "--json", capfd=capfd)
        assert json.loads(output)["robots"] == 2

    def test_keys(self, capfd):
        code, output, _ = run("scene-keys", "motion", capfd=capfd)
        assert code == 0
        assert "speed_mm_s = 10" in output
        assert "count" not in output
        _, output, _ = run("scene-keys", "--json", capfd=capfd)
        keys = {key["path"] for key in json.loads(output)["keys"]}
        assert {"scene.seconds", "robots[].count", "optics.preset"} <= keys
        code, _, messages = run("scene-keys", "montion", capfd=capfd)
        assert code == 2
        assert "none of" in messages

    def test_shipped_scenes_pass_the_check(self):
        listed = json.loads(CliRunner().invoke(cli.cli, ["scenes", "--json"]).stdout)["scenes"]
        for scene in listed:
            done = CliRunner().invoke(cli.cli, ["scene-check", scene["name"]])
            assert done.exit_code == 0, done.output
