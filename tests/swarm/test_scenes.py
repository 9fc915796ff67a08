"""Every shipped scene runs, and its robots do what its lesson is about."""

from typing import NamedTuple

import numpy as np
import pytest

from avrswarm.scene.read import read_scene
from avrswarm.scene.shipped import list_scenes

from .scenes import simulate

RED, BLUE, YELLOW, MAGENTA, WHITE = 0b000011, 0b110000, 0b001111, 0b110011, 0b111111
DIM_RED, DIM_GREEN, DIM_BLUE, DIM_WHITE = 0b000001, 0b000100, 0b010000, 0b010101
IDLE = {0, 0b001100, 0b000100, 0b001000}  # a green flash; its two pins change one after the other

SMALLER = {
    "gradient": ["robots.0.count=30"],
    "thousand": ["robots.0.count=60"],
}


class Signs(NamedTuple):
    """Colours that an idle robot does not show, and how many robots moved and talked."""

    colours: set[int]
    movers: int
    talkers: int


LESSONS = {
    "blink": Signs({RED, BLUE}, 0, 0),
    "move": Signs(set(), 1, 0),
    "speaker_listener": Signs({MAGENTA, YELLOW}, 0, 1),
    "gradient": Signs({WHITE, RED}, 0, 30),
    "orbit": Signs({DIM_WHITE, DIM_RED}, 1, 1),
    "edge_following": Signs({DIM_WHITE, DIM_RED}, 1, 12),
    "follow_leader": Signs({DIM_WHITE, DIM_BLUE}, 1, 4),
    "sync": Signs({RED}, 0, 25),
    "disperse": Signs({RED}, 30, 30),
    "move_to_light": Signs({DIM_RED}, 3, 0),
    "links": Signs({MAGENTA}, 0, 25),
    "thousand": Signs({DIM_BLUE, YELLOW}, 60, 60),
}


def watch(scene, seconds):
    """Run a scene, and return what robots did."""
    sim = simulate(scene)
    begin = np.column_stack([sim.robots.x_mm, sim.robots.y_mm])
    colours, talkers = set(), set()

    def look(sim):
        colours.update(sim.robots.led.tolist())
        talkers.update(sim.drain_sent()["robot"].tolist())

    sim.run(seconds, on_step=look)
    assert sim.faults == []
    assert (sim.chips.cycle > (seconds - 0.5) * 7.8e6).all()
    end = np.column_stack([sim.robots.x_mm, sim.robots.y_mm])
    moved = np.hypot(*(end - begin).T) > 0.5
    return Signs(colours - IDLE, int(moved.sum()), len(talkers))


def test_every_scene_has_signs():
    assert [scene.name for scene in list_scenes()] == list(LESSONS)


@pytest.mark.parametrize("name", LESSONS)
def test_a_shipped_scene_does_what_it_is_about(name):
    found = watch(read_scene(name, SMALLER.get(name, [])), 2.8)
    expected = LESSONS[name]
    assert found.colours >= expected.colours
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("name", LESSONS)
def test_nothing_of_it_happens_if_nobody_says_run(name):
    scene = read_scene(name, [*SMALLER.get(name, []), "controller=[]"])
    assert watch(scene, 1.2) == (set(), 0, 0)
