"""Pictures and films are drawn for every kind of run, and show what belongs there."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from avrswarm.errors import RecordError
from avrswarm.record import film, pictures
from avrswarm.record.drawing import LED_OFF, Stage, Tracks, led_rgb, path_colours
from avrswarm.record.run_folder import RunRecorder, read_run
from avrswarm.robot.led import name_of

from .fake_simulation import FakeSimulation, make_scene

STAGE = {
    "lights": [{"kind": "lamp", "x_mm": 100.0}],
    "objects": [
        {"kind": "box", "x_mm": 300.0, "y_mm": 300.0, "angle_deg": 20.0},
        {"kind": "wall", "from_mm": [-300.0, 0.0], "to_mm": [-300.0, 200.0]},
        {"kind": "disc", "x_mm": -200.0, "y_mm": -200.0},
        {"kind": "disc", "x_mm": 200.0, "y_mm": -200.0, "pushable": True},
    ],
}


def record(folder, *, columns=3, rows=2, messages=True, steps=500, **sections):
    points = [(80.0 * c - 80, 90.0 * r) for r in range(rows) for c in range(columns)]
    simulation = FakeSimulation(make_scene(points, **sections))
    count = len(points)
    if messages:
        for number in range(60):
            sender = number % count
            near = [k for k in range(count) if k in (sender - 1, sender + 1)]
            gains = (960 - number, 213 - number // 5)
            simulation.send(
                sender, 0.03 * number, bytes([number]), to=near[:1], bad=near[1:], gains=gains
            )
    recorder = RunRecorder(simulation, folder)
    recorder.start()
    for number in range(steps):
        simulation.step()
        simulation.world.x_mm[0] -= 0.2
        simulation.world.heading_rad[:] += 0.01
        simulation.colours[:] = (np.arange(count) + number // 50) % 64
        if len(simulation.world.x_mm) > count:
            simulation.world.y_mm[-1] += 0.1
        recorder.sample()
    return read_run(recorder.finish())


@pytest.mark.parametrize(
    "arena",
    [
        {},
        {"shape": "circle", "width_mm": 1000.0},
        {"shape": "open"},
        {"width_mm": 1000.0, "height_mm": 3000.0},
    ],
)
def test_all_pictures_of_a_run(tmp_path, arena):
    run = record(tmp_path / "run", arena=arena, **STAGE)
    drawn = pictures.draw_run(run)
    assert [path.name for path in drawn] == [f"{name}.png" for name in pictures.PICTURES]
    for path in drawn:
        with Image.open(path) as image:
            assert min(image.size) > 700
            assert max(image.size) < 2000
            assert len(image.convert("RGB").getcolors(1 << 24)) > 50


def test_without_messages_there_are_only_robots(tmp_path):
    run = record(tmp_path / "run", messages=False)
    assert [path.name for path in pictures.draw_run(run)] == ["trajectories.png", "leds.png"]


def test_one_robot_that_stands_still(tmp_path):
    run = record(tmp_path / "run", columns=1, rows=1, steps=1, messages=False)
    assert len(pictures.draw_run(run)) == 1


def test_many_robots_and_messages(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "SCATTERED", 10)
    run = record(tmp_path / "run", columns=12, rows=11, arena={"shape": "open"})
    assert len(pictures.draw_run(run)) == len(pictures.PICTURES)


def test_the_recorder_draws_at_the_end(tmp_path):
    run = record(tmp_path / "run", record={"pictures": True})
    assert run.info["pictures"] == [f"{name}.png" for name in pictures.PICTURES]
    assert (run.path / "trajectories.png").stat().st_size > 10_000


def test_led_colours():
    rgb = led_rgb(np.array([0, 0b000011, 0b001100, 0b110000, 0b000001]))
    assert rgb[0].tolist() == list(LED_OFF)
    assert rgb[1:4].tolist() == np.eye(3).tolist()
    assert 0.4 < rgb[4, 0] < 0.7


def test_titles_say_whose_receptions_and_readings_they_are(tmp_path):
    run = record(tmp_path / "run")
    title = pictures.draw_message_success(run).axes[0].get_title()
    assert "attentive receiver in the robot's place" in title
    assert "without the noise" in pictures.draw_distance_estimate(run).axes[0].get_title()


def test_a_blinking_led_counts_as_its_colour():
    times = np.arange(0, 10, 0.1)
    led = np.zeros((100, 3), np.int64)
    led[70, 0] = 3  # one look in fifty of the last five seconds
    led[:, 1] = np.where(times < 9, 12, 48)
    led[:40, 2] = 3
    assert pictures._last_colours(times, led).tolist() == [3, 48, 0]


def blinking(begins_s):
    """Times and LEDs of robots that flash red for 60 ms at these times."""
    times = np.arange(0, 20, 0.02)
    led = np.zeros((len(times), len(begins_s)), np.int64)
    for robot, begins in enumerate(begins_s):
        for begin in begins:
            led[(times >= begin) & (times < begin + 0.06), robot] = 3
    return times, led


def test_the_spread_of_blinks():
    """Three robots, 0, 0.1 and 0.2 s late: a deviation of 82 ms; then in unison."""
    turns = np.arange(0.5, 20, 2.0)
    times, led = blinking([turns + (turns < 10) * late for late in (0.0, 0.1, 0.2)])
    rhythm = pictures.find_rhythm(times, led)
    assert (rhythm.robots, rhythm.period_s) == (3, pytest.approx(2.0))
    early, late = rhythm.spread_s[rhythm.times_s < 9], rhythm.spread_s[rhythm.times_s > 11]
    assert early == pytest.approx(np.std([0.0, 0.1, 0.2]), abs=0.01)
    assert late == pytest.approx(0.0, abs=0.01)


def test_no_rhythm_without_a_common_period():
    generator = np.random.default_rng(1)
    assert pictures.find_rhythm(*blinking(generator.uniform(0, 20, (5, 12)))) is None
    assert pictures.find_rhythm(*blinking([np.arange(0, 20, 2.0)] * 2)) is None


def test_paths_have_the_colours_of_leds(tmp_path):
    run = record(tmp_path / "run", columns=1, rows=1, messages=False)
    paths = pictures.draw_trajectories(run).axes[0].collections
    shades = {tuple(shade) for lines in paths for shade in lines.get_edgecolor()[:, :3].tolist()}
    tracks = Tracks.of(run)
    assert len(np.unique(tracks.led)) == 10
    assert {tuple(rgb) for rgb in path_colours(np.unique(tracks.led[:-1])).tolist()} <= shades


def words_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_legends_name_colours_of_paths_and_lamps(tmp_path):
    """Colours that a robot had on its way, and lamps that are in the picture."""
    run = record(tmp_path / "run", columns=1, rows=1, messages=False, **STAGE)
    names = {f"LED {name_of(int(value))}" for value in np.unique(Tracks.of(run).led[:-1])}
    words = words_of(pictures.draw_trajectories(run))
    assert names <= set(words)
    assert "lamp" not in words  # it hangs 180 mm from the robot
    wide = record(tmp_path / "wide", columns=4, rows=1, messages=False, **STAGE)
    axes = pictures.draw_trajectories(wide).axes[0]
    assert "lamp" in words_of(axes.figure)
    assert [100.0, 0.0] in [line.get_xydata().tolist()[0] for line in axes.lines]


def test_rounding_is_not_shown_as_a_spread_of_blinks(tmp_path, monkeypatch):
    times, led = blinking([np.arange(0.5, 20, 2.0)] * 3)
    run = record(tmp_path / "run", columns=3, rows=1, messages=False)
    monkeypatch.setattr(pictures.Tracks, "of", lambda _: SimpleNamespace(times_s=times, led=led))
    below = pictures.draw_leds(run).axes[1]
    assert below.get_ylim() == pytest.approx((0, 0.02))  # how often LEDs were looked at


def test_the_view_is_the_arena_unless_robots_use_little_of_it(tmp_path):
    run = record(tmp_path / "run", steps=2)
    stage = Stage.of(run)
    tracks = Tracks.of(run)
    near = stage.window(tracks.x_mm, tracks.y_mm, 45.0)
    assert (near.left, near.top) == pytest.approx((-80.4 - 45, 90 + 45), abs=0.5)
    wide = stage.window(np.array([-400.0, 400.0]), np.zeros(2), 45.0)
    assert wide.width == pytest.approx(1020)
    corner = stage.window(np.array([480.0]), np.array([480.0]), 45.0)
    assert (corner.right, corner.top) == (500, 500)


# ---- films ---------------------------------------------------------------------------------------


def test_a_gif(tmp_path):
    run = record(tmp_path / "run", **STAGE)
    path = film.make_film(run, tmp_path / "film.gif")
    with Image.open(path) as image:
        assert image.n_frames == 7  # 2 s, four times real time, 12.5 a second
        assert image.info["duration"] == 80


@pytest.mark.needs_ffmpeg
def test_a_video(tmp_path):
    run = record(tmp_path / "run", **STAGE)
    path = film.make_film(run)
    assert path == tmp_path / "run" / "film.mp4"
    assert path.read_bytes()[4:8] == b"ftyp"
    wanted = run.info["scene"]["record"]
    last = Tracks.of(run).times_s[-1]
    images = list(video_frames(path))
    assert len(images) == int(last * wanted["film_fps"] / wanted["film_speed"] + 1e-6) + 1
    changed = np.abs(images[0].astype(int) - images[-1]).max(axis=2) > 40
    assert 0.0005 < changed.mean() < 0.2  # robots and the clock have moved, the rest stands


def video_frames(path):
    """The pictures of a video, as ffmpeg shows them."""
    with tempfile.TemporaryDirectory() as folder:
        pattern = str(Path(folder) / "%04d.png")
        command = ["ffmpeg", "-loglevel", "error", "-i", path, "-fps_mode", "passthrough", pattern]
        subprocess.run(command, check=True)
        for image in sorted(Path(folder).iterdir()):
            with Image.open(image) as opened:
                yield np.asarray(opened.convert("RGB"))


def test_without_ffmpeg_there_is_a_gif(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    run = record(tmp_path / "run", steps=50)
    assert film.make_film(run).name == "film.gif"
    with pytest.raises(RecordError, match="ffmpeg is needed"):
        film.make_film(run, tmp_path / "film.mp4")


@pytest.mark.needs_ffmpeg
def test_a_film_that_cannot_be_written(tmp_path):
    run = record(tmp_path / "run", steps=50)
    with pytest.raises(RecordError, match="ffmpeg failed"):
        film.make_film(run, tmp_path / "nowhere" / "film.mp4")
