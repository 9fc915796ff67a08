"""Small scenes for tests, written as tables."""

from pathlib import Path

import numpy as np

from avrswarm.scene.read import check_scene
from avrswarm.swarm.simulation import Simulation

ONE_CLOCK = {"clock_percent": 0, "start_delay_s": 0}
"""All chips run at 8 MHz and are switched on at the same moment."""

RUN = {"at_s": 0.3, "command": "run"}


def at(*points):
    return {"kind": "at", "points_mm": [[float(value) for value in point] for point in points]}


def group(firmware, *points, **keys):
    return {"firmware": str(firmware), "placement": at(*points), **keys}


def make_scene(*robots, **sections):
    """Return a scene; sections are tables such as ``optics={"preset": "ideal"}``."""
    sections.setdefault("controller", [RUN])
    return check_scene({"robots": list(robots), **sections}, Path("test.toml"))


def simulate(scene, **settings):
    settings.setdefault("threads", 1)
    return Simulation(scene, **settings)


def messages(heard):
    """Of what was heard, messages of robots (not of the controller) with a good checksum."""
    return heard[(heard["crc_ok"] == 1) & (heard["data"][:, 9] < 0x80)]


def run_and_listen(sim, seconds):
    """Run, and return all frames sent and all that was heard meanwhile."""
    sent, heard = [], []

    def collect(_):
        sent.append(sim.drain_sent())
        heard.append(sim.drain_heard())

    sim.run(seconds, on_step=collect)
    return np.concatenate(sent), np.concatenate(heard)
