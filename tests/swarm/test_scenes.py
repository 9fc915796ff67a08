"""Every shipped scene runs."""

import pytest

from avrswarm.scene.read import read_scene
from avrswarm.scene.shipped import list_scenes

from .scenes import simulate

SMALLER = {
    "gradient": ["robots.0.count=30"],
    "thousand": ["robots.0.count=60"],
}


@pytest.mark.parametrize("name", [scene.name for scene in list_scenes()])
def test_a_shipped_scene_runs_without_faults(name):
    """Until a moment after its robots were told to run."""
    sim = simulate(read_scene(name, SMALLER.get(name, [])))
    colours = set()
    sim.run(0.8, on_step=lambda sim: colours.update(sim.robots.led.tolist()))
    assert sim.time_s == pytest.approx(0.8)
    assert sim.faults == []
    assert len(colours) > 1
    assert (sim.chips.cycle > 0.3 * 8e6).all()
