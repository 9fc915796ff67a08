"""A film of a run: mp4 if ffmpeg is there, gif otherwise."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray
from PIL import Image

from avrswarm.errors import RecordError
from avrswarm.record.drawing import STYLE, Stage, Tracks
from avrswarm.record.moving_picture import TRAIL_S, TRAILED_ROBOTS, MovingPicture
from avrswarm.record.run_folder import Run

Floats = NDArray[np.float64]
Picture = NDArray[np.uint8]

DOTS_PER_INCH = 150
GIF_DOTS_PER_INCH = 80
GIF_FPS = 12.5


def make_film(run: Run, path: Path | None = None) -> Path:
    """Draw a film of a run and return its file.

    Parameters
    ----------
    run
        From ``read_run``; its scene says how fast the film is (record.film_fps, film_speed).
    path
        Ends with ``.mp4`` or ``.gif``; default: ``film`` in the run folder.
    """
    ffmpeg = shutil.which("ffmpeg")
    if path is None:
        path = run.path / ("film.mp4" if ffmpeg else "film.gif")
    is_gif = path.suffix == ".gif"
    if not is_gif and ffmpeg is None:
        raise RecordError(f"{path}: ffmpeg is needed for this; install it, or name a .gif file")
    wanted = run.info["scene"]["record"]
    fps = min(wanted["film_fps"], GIF_FPS) if is_gif else wanted["film_fps"]
    tracks = Tracks.of(run)
    if len(tracks.times_s) == 0:
        raise RecordError(f"{run.path}: has no trajectory to make a film of")
    first, last = float(tracks.times_s[0]), float(tracks.times_s[-1])
    shown = np.arange(first, last + 1e-9, wanted["film_speed"] / fps)
    with rc_context(STYLE):
        pictures = _draw(run, tracks, shown, GIF_DOTS_PER_INCH if is_gif else DOTS_PER_INCH)
        try:
            if is_gif:
                _write_gif(pictures, fps, path)
            else:
                assert ffmpeg is not None
                _write_video(pictures, fps, path, ffmpeg)
        except OSError as error:
            raise RecordError(f"{path}: cannot be written: {error}") from None
    return path


def _draw(run: Run, tracks: Tracks, shown: Floats, dpi: int) -> Iterator[Picture]:
    """Draw what stays once, and what moves for each picture."""
    times, x, y = tracks.times_s, tracks.x_mm, tracks.y_mm
    heading = np.unwrap(tracks.heading_rad, axis=0)
    stage = Stage.of(run)
    window = stage.window(x, y, margin_mm=45.0)
    figure = window.figure()
    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    name = run.info["name"]
    picture = MovingPicture(figure, stage, window, run.radius_mm, f"{name} {times[-1]:6.1f} s")
    for now in shown:
        here = _at(times, now, x), _at(times, now, y)
        led = tracks.led[int(np.searchsorted(times, now + 1e-9)) - 1]
        trails = _trails(times, x, y, now, here) if x.shape[1] <= TRAILED_ROBOTS else []
        discs = _at(times, now, tracks.disc_x_mm), _at(times, now, tracks.disc_y_mm)
        title = f"{name} {now:6.1f} s"
        picture.show(title, *here, _at(times, now, heading), led, np.column_stack(discs), trails)
        yield np.asarray(canvas.buffer_rgba())[:, :, :3]


def _write_gif(pictures: Iterator[Picture], fps: float, path: Path) -> None:
    images = [Image.fromarray(picture).quantize(128) for picture in pictures]
    duration_ms = round(1000 / fps)
    images[0].save(path, save_all=True, append_images=images[1:], duration=duration_ms, loop=0)


def _write_video(pictures: Iterator[Picture], fps: float, path: Path, ffmpeg: str) -> None:
    first = next(pictures)
    height, width = (size // 2 * 2 for size in first.shape[:2])  # the codec wants even sizes
    command = [ffmpeg, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264"]
    command += ["-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for picture in chain((first,), pictures):  # one at a time: they share their memory
                process.stdin.write(np.ascontiguousarray(picture[:height, :width]).tobytes())
            process.stdin.close()
        except BrokenPipeError:
            pass  # ffmpeg says why
        words = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise RecordError(f"{path}: ffmpeg failed: {words}")


def _at(times: Floats, now: float, track: Floats) -> Floats:
    """Return a row of a track at any time, straight between samples."""
    if len(times) == 1:
        return np.asarray(track[0])
    after = min(max(int(np.searchsorted(times, now)), 1), len(times) - 1)
    share = np.clip((now - times[after - 1]) / (times[after] - times[after - 1]), 0.0, 1.0)
    return np.asarray(track[after - 1] * (1 - share) + track[after] * share)


def _trails(
    times: Floats, x: Floats, y: Floats, now: float, here: tuple[Floats, Floats]
) -> list[Floats]:
    """Return the last seconds of each robot's way, up to where it is now."""
    part = slice(int(np.searchsorted(times, now - TRAIL_S)), int(np.searchsorted(times, now)))
    lines = np.stack([np.vstack([x[part], here[0]]).T, np.vstack([y[part], here[1]]).T], axis=-1)
    return list(lines)
