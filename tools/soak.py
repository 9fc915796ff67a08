#!/usr/bin/env python3
"""Compare digests of random scenes, computed in different ways, until stopped.

Every round draws a scene (firmware, number, placement, optics, clocks, motion, commands) from a
seed, runs it in the plainest way and in a few others (engines, threads, windows, skipping, robots
never left alone, saved and loaded on the way) and compares the digests. A difference is printed
with the seed that shows it, and ends the soak with exit code 1. Not part of the test suite: let it
run for minutes or hours.

    python tools/soak.py                  until Ctrl-C
    python tools/soak.py --minutes 10
    python tools/soak.py --seed 4711      this one scene only
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from avrswarm.scene.model import Scene
from avrswarm.scene.read import check_scene
from avrswarm.swarm.simulation import Simulation

FIRMWARE = (
    "random_walk",
    "gradient",
    "disperse",
    "blink",
    "sync",
    "edge_following",
    "follow_leader",
    "move_to_light",
    "orbit_star",
    "orbit_planet",
    "listener",
    "speaker",
    "distance_reporter",
    "move_nonblocking",
    "timing_probe",
)
ENGINES = ("interpreter", "translated", "auto")


class Way(NamedTuple):
    """How a scene is run; none of this may change a bit."""

    engine: str
    threads: int
    window_us: float
    skip_idle: bool
    eager: bool
    saved_at: float | None  # part of the run after which it is saved and loaded


PLAINEST = Way("interpreter", 1, 1000.0, False, True, None)


def draw_scene(draw: random.Random) -> tuple[Scene, float]:
    """Return a scene that is likely to have traffic, and how long to run it."""
    groups = []
    kind = draw.choice(["hex", "grid"])
    for _ in range(draw.choice([1, 1, 2])):
        groups.append(
            {
                "firmware": draw.choice(FIRMWARE),
                "count": draw.randint(2, 30),
                "placement": {"kind": kind, "pitch_mm": draw.uniform(36, 80)},
                "heading_deg": "random",
            }
        )
        kind = "random"
    if len(groups) == 2:
        groups[1]["placement"] = {"kind": "random"}
    seconds = draw.uniform(0.4, 1.6)
    commands: list[dict[str, Any]] = [{"at_s": draw.uniform(0.05, 0.3), "command": "run"}]
    for _ in range(draw.randint(0, 2)):
        what = draw.choice(["run", "pause", "reset", "sleep", "voltage"])
        commands.append({"at_s": draw.uniform(0.3, seconds), "command": what})
    scene = {
        "scene": {"seed": draw.randrange(1 << 30)},
        "world": {"step_ms": draw.choice([0.5, 1.0, 2.5, 4.0, 5.0])},
        "robots": groups,
        "optics": {
            "preset": draw.choice(["ideal", "lab", "long"]),
            "hear_own_pulses": draw.random() < 0.7,
            "message_loss_percent": draw.choice([0, 0, 20]),
            "distance_noise_mm": draw.choice([0, 2]),
        },
        "spread": {
            "start_delay_s": draw.choice([0, 0.05, 0.25]),
            "clock_percent": draw.choice([0, 0.5, 3]),
            "clock_drift_percent": draw.choice([0, 0, 0.5]),
        },
        "motion": {"speed_noise_percent": draw.choice([0, 10])},
        "controller": commands,
    }
    return check_scene(scene, Path("soak.toml")), seconds


def draw_way(draw: random.Random) -> Way:
    """Return one of many ways to run a scene."""
    return Way(
        engine=draw.choice(ENGINES),
        threads=draw.choice([1, 2, 3]),
        window_us=draw.choice([125.0, 500.0, 2000.0, 5000.0, draw.uniform(30, 5000)]),
        skip_idle=draw.random() < 0.8,
        eager=draw.random() < 0.3,
        saved_at=draw.choice([None, None, draw.random()]),
    )


def run(scene: Scene, seconds: float, way: Way) -> str:
    """Return the digest that a way of running comes to."""
    settings: dict[str, Any] = {
        "threads": way.threads,
        "window_us": way.window_us,
        "skip_idle": way.skip_idle,
        "engine": way.engine,
    }
    simulation = Simulation(scene, **settings)
    simulation._swarm.eager[:] = way.eager
    steps = round(seconds * 1000 / scene.world.step_ms)
    step_s = scene.world.step_ms / 1000
    before = 0 if way.saved_at is None else int(way.saved_at * steps)
    simulation.run(before * step_s)
    if way.saved_at is not None:
        with tempfile.TemporaryDirectory() as folder:
            simulation.save(Path(folder) / "state.npz")
            simulation = Simulation.load(Path(folder) / "state.npz", **settings)
    simulation.run((steps - before) * step_s)
    return simulation.digest()


def compare(seed: int, ways: int) -> bool:
    """Run the scene of a seed in different ways; tell whether all came to the same."""
    draw = random.Random(seed)
    scene, seconds = draw_scene(draw)
    names = " + ".join(f"{group.count} {Path(group.firmware).stem}" for group in scene.robots)
    start = time.perf_counter()
    expected = run(scene, seconds, PLAINEST)
    same = True
    for _ in range(ways):
        way = draw_way(draw)
        found = run(scene, seconds, way)
        if found != expected:
            same = False
            print(f"seed {seed}: DIFFERENT: {way}: {found[:16]} instead of {expected[:16]}")
    took = time.perf_counter() - start
    print(
        f"seed {seed}: {names}, {seconds:.2f} s: {'same' if same else 'DIFFERENT'} ({took:.1f} s)"
    )
    sys.stdout.flush()
    return same


def main() -> int:
    """Compare until stopped; return an exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--seed", type=int, help="compare this one scene only")
    parser.add_argument("--first", type=int, default=1, help="seed to begin with")
    parser.add_argument("--ways", type=int, default=4, help="ways to run each scene")
    chosen = parser.parse_args()
    if chosen.seed is not None:
        return 0 if compare(chosen.seed, chosen.ways) else 1
    end = time.monotonic() + 60 * chosen.minutes
    seed = chosen.first
    try:
        while time.monotonic() < end:
            if not compare(seed, chosen.ways):
                return 1
            seed += 1
    except KeyboardInterrupt:
        pass
    print(f"{seed - chosen.first} scenes, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
