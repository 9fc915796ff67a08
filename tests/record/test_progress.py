"""The progress bar, on a terminal and elsewhere."""

import io
import re

import pytest
from rich.console import Console

from avrswarm.record import progress
from avrswarm.record.progress import RunProgress, describe


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def go(clock, console, until=60.0):
    with RunProgress("orbit", 60.0, console) as bar:
        done = 0.0
        while done < until:
            clock.now += 0.25
            done += 0.5  # twice real time
            bar.update(done)
            if done == until:
                break
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("done", "speed", "text"),
    [
        (0.0, None, "0.0 / 60.0 s"),
        (30.0, 0.5, "30.0 / 60.0 s  0.50x real time  1 min 00 s to go"),
        (30.0, 30.0, "30.0 / 60.0 s  30x real time  1 s to go"),
        (30.0, 0.001, "30.0 / 60.0 s  0.00x real time  8 h 20 min to go"),
        (60.0, 2.0, "60.0 / 60.0 s  2.00x real time"),
    ],
)
def test_figures(done, speed, text):
    assert describe(done, 60.0, speed) == text


def test_on_a_terminal_there_is_a_bar(clock):
    shown = go(clock, Console(file=io.StringIO(), force_terminal=True, width=100))
    assert "60.0 / 60.0 s  2.00x real time" in shown
    assert "to go" in shown
    assert "━" in shown


def test_compiling_is_not_slowness(clock, monkeypatch):
    """Half a minute of it on the way."""
    monkeypatch.setattr(progress, "compile_seconds", lambda: 30.0 * (clock.now > 30))
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with RunProgress("orbit", 60.0, console) as bar:
        for done, now in ((1.0, 0.5), (2.0, 1.0), (3.0, 31.5), (4.0, 32.0)):
            clock.now = now
            bar.update(done)
    speeds = re.findall(r"([\d.]+)x real time", console.file.getvalue())
    assert len(speeds) > 2
    assert set(speeds) == {"2.00"}


def test_at_the_end_the_speed_is_that_of_the_whole_run(clock):
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with RunProgress("orbit", 60.0, console) as bar:
        for done, now in ((0.0, 5.0), (10.0, 15.0), (60.0, 25.0)):
            clock.now = now
            bar.update(done)
        clock.now = 100.0  # pictures are drawn
    assert re.findall(r"([\d.]+)x real time", console.file.getvalue())[-1] == "3.00"


def test_elsewhere_there_is_a_line_now_and_then(clock):
    lines = go(clock, Console(file=io.StringIO(), force_terminal=False, width=100)).splitlines()
    assert lines == [
        "orbit: 20.0 / 60.0 s  2.00x real time  20 s to go",
        "orbit: 40.0 / 60.0 s  2.00x real time  10 s to go",
        "orbit: 60.0 / 60.0 s  2.00x real time",
    ]


def test_short_runs_elsewhere_are_silent(clock):
    assert go(clock, Console(file=io.StringIO(), force_terminal=False), until=3.0) == ""
