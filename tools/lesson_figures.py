"""Runs the lessons whose results are in scenes/README.md, and writes their pictures and figures.

Usage: .venv/bin/python tools/lesson_figures.py [NAME ...]

Pictures go to scenes/pictures/; figures are printed as JSON. It takes some minutes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from avrswarm import Simulation, read_run, read_scene
from avrswarm.record.drawing import Tracks
from avrswarm.record.pictures import find_rhythm
from avrswarm.record.recorded_run import run_recorded
from avrswarm.record.run_folder import Run

PICTURES = Path(__file__).resolve().parents[1] / "scenes" / "pictures"
WIDTH = 900
NOISE = ("optics.message_loss_percent=20", "optics.distance_noise_mm=2")


class Lesson(NamedTuple):
    """A run, and the picture of it that is kept."""

    scene: str
    overrides: tuple[str, ...] = ()
    picture: str = "trajectories"


LESSONS = {
    "move": Lesson("move"),
    "gradient": Lesson("gradient"),
    "orbit": Lesson("orbit"),
    "orbit_noise": Lesson("orbit", NOISE),
    "edge_following": Lesson("edge_following"),
    "follow_leader": Lesson("follow_leader"),
    "sync": Lesson("sync", picture="leds"),
    "disperse": Lesson("disperse"),
    "move_to_light": Lesson("move_to_light"),
    "links": Lesson("links", picture="message_success"),
}


def measure(name: str, run: Run) -> dict[str, Any]:
    """Return the figures that the page quotes."""
    tracks = Tracks.of(run)
    x, y = tracks.x_mm, tracks.y_mm
    if name.startswith("orbit"):
        distance = np.hypot(x[:, 1] - x[:, 0], y[:, 1] - y[:, 0])[tracks.times_s >= 10]
        turned = np.unwrap(np.arctan2(y[:, 1] - y[:, 0], x[:, 1] - x[:, 0]))
        return {
            "laps": abs(turned[-1] - turned[0]) / (2 * np.pi),
            "mean_mm": distance.mean(),
            "deviation_mm": distance.std(),
            "least_mm": distance.min(),
            "most_mm": distance.max(),
        }
    if name == "edge_following":
        walker = np.stack([x[:, -1], y[:, -1]], axis=-1)
        stars = np.stack([x[0, :-1], y[0, :-1]], axis=-1)
        nearest = np.hypot(*(walker[:, None] - stars).transpose(2, 0, 1)).min(axis=1)[50:]
        angle = np.unwrap(np.arctan2(*(walker - stars.mean(axis=0)).T[::-1]))
        return {
            "laps": abs(angle[-1] - angle[0]) / (2 * np.pi),
            "nearest_mean_mm": nearest.mean(),
            "nearest_deviation_mm": nearest.std(),
        }
    if name == "sync":
        rhythm = find_rhythm(tracks.times_s, tracks.led)
        assert rhythm is not None
        return {"first_spread_s": rhythm.spread_s[0], "last_spread_s": rhythm.spread_s[-1]}
    if name == "links":
        table = run.messages.query("sender >= 0 and fate != 'aborted'")
        received = (table.fate == "received").groupby(table.distance_mm.round()).mean()
        return {f"{mm:g} mm": share for mm, share in received.items()}
    return {}


def main(names: list[str]) -> None:
    """Run the lessons with these names, or all."""
    figures = {}
    for name in names or LESSONS:
        lesson = LESSONS[name]
        with tempfile.TemporaryDirectory() as folder:
            simulation = Simulation(read_scene(lesson.scene, lesson.overrides))
            done = run_recorded(simulation, folder=Path(folder) / name)
            with Image.open(done.folder / f"{lesson.picture}.png") as picture:
                height = round(picture.height * WIDTH / picture.width)
                small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
                small.quantize(256, kmeans=2).save(PICTURES / f"{name}.png", optimize=True)
            found = measure(name, read_run(done.folder))
            figures[name] = {key: round(float(value), 3) for key, value in found.items()}
            print(f"{name}: {figures[name]}", file=sys.stderr)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
