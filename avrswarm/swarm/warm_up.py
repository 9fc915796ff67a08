"""Compiles everything that a swarm needs before a run begins, so that a run is only a run."""

from __future__ import annotations

from avrswarm.jit import announce_compilation
from avrswarm.scene import read_scene
from avrswarm.swarm.simulation import Simulation

ABOUT_S = 30


def compile_swarm() -> None:
    """Compile, or load from disk, what all swarms run; say so where that takes long."""
    with announce_compilation("rounds.advance", ABOUT_S):
        small = Simulation(read_scene("blink"), threads=1)
        small.run(seconds=0.001)
        small.led_colours()
        small.digest()
