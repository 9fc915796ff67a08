"""The live window, on a canvas without a screen."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot

from avrswarm.errors import UsageError
from avrswarm.record.live import LiveWindow, check_screen

from .fake_simulation import FakeSimulation, make_scene

pytestmark = pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")


@pytest.fixture(autouse=True)
def no_screen():
    pyplot.switch_backend("agg")


DISC = {"kind": "disc", "x_mm": 100.0, "y_mm": 100.0, "pushable": True}


def make_simulation(film_speed):
    record = {"film_speed": film_speed, "pictures": False}
    return FakeSimulation(make_scene([(0, 0), (60, 0)], record=record, objects=[DISC]))


def pixels(window):
    return np.asarray(window._canvas.buffer_rgba()).copy()


def test_the_window_shows_where_robots_are(monkeypatch):
    monkeypatch.setattr("avrswarm.record.live.FRAMES_PER_SECOND", 1e9)
    simulation = make_simulation(film_speed=1000.0)
    window = LiveWindow(simulation)
    try:
        pictures = [pixels(window)]
        for change in ("led", "place", "disc"):
            simulation.step()
            if change == "led":
                simulation.colours[0] = 3
            elif change == "place":
                simulation.world.x_mm[1] += 5
            else:
                simulation.world.y_mm[2] += 5
            window.update(simulation)
            pictures.append(pixels(window))
        red = [(picture[..., :3] == (255, 0, 0)).all(axis=-1).sum() for picture in pictures]
        assert red[0] == 0
        assert min(red[1:]) > 500
        for before, after in pairwise(pictures):
            assert (before != after).any()
        assert window.spent_s > 0
    finally:
        window.close()


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self):
        self.now = 100.0

    def sleep(self, seconds):
        self.now += seconds


def test_a_run_waits_for_those_who_watch(monkeypatch):
    """A second at four times real time takes a quarter of a second, drawing included."""
    clock = Clock()
    watch = SimpleNamespace(perf_counter=lambda: clock.now, sleep=clock.sleep)
    monkeypatch.setattr("avrswarm.record.live.time", watch)
    simulation = make_simulation(film_speed=4.0)
    window = LiveWindow(simulation)
    for _ in range(250):
        simulation.step()
        clock.now += 0.0001  # as long as the simulation takes
        window.update(simulation)
    window.close()
    assert clock.now - 100 == pytest.approx(0.25)
    assert window.spent_s == pytest.approx(0.25 - 0.025)


def test_a_closed_window_holds_nothing_up():
    simulation = make_simulation(film_speed=0.001)
    window = LiveWindow(simulation)
    window._canvas.callbacks.process("close_event", None)
    simulation.step(250)
    window.update(simulation)
    window.hold()
    assert window.spent_s == 0
    window.close()


def test_without_a_screen_the_way_out_is_told():
    with pytest.raises(UsageError, match=r"needs a screen .*python3-tk.* backend is agg.*--film"):
        check_screen()
