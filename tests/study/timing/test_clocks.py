"""Clocks, message times and handed-on time in a line of robots."""

from functools import cache

import numpy as np
import pytest

from avrswarm.study.firmware import open_firmware
from avrswarm.study.timing.clocks import _Line, growth, sync_study

ROBOTS = 4


@cache
def line():
    made = _Line(open_firmware("hop_sync"), ROBOTS, 3)
    made.run(5.0)
    return made


def test_clocks_are_the_ones_the_scene_drew():
    drawn = line().simulation.traits.clock_hz
    measured = [row["hz"] for row in line().clock_rows()]
    assert measured == pytest.approx(drawn.tolist(), rel=2e-7)


def test_frames_come_every_sixteen_ticks_of_their_sender():
    for robot, intervals in enumerate(line().intervals()):
        ticks = intervals / 1000 * line().simulation.traits.clock_hz[robot] / 262_144
        assert len(ticks) >= 5
        assert np.abs(ticks - np.round(ticks)).max() < 1e-3
        assert np.median(ticks) == pytest.approx(16, abs=1e-3)


def test_light_takes_what_the_front_end_takes():
    """0.75 us comparator, 0.3 us and more to cross; all neighbours stand at the same distance."""
    late = line().arrivals()
    assert len(late) > 30
    assert late.min() > 1.05
    assert late.max() - late.min() < 0.2  # the edge of a chip's cycle, 0.125 us


def test_handed_on_time_is_wrong_by_what_clocks_run_apart():
    """After a message a robot's clock runs away from robot 0's at the difference of their rates."""
    made = line()
    errors = made.errors()
    hz = made.simulation.traits.clock_hz
    settled = ~np.isnan(errors[:, 1])
    assert settled.sum() > 100
    error = errors[settled]
    assert np.abs(error[:, 0]).max() == 0
    apart = abs(hz[1] / hz[0] - 1)
    longest_s = 0.6  # a message is due every 0.524 s; one may be a tick late
    assert np.abs(error[:, 1]).max() < 1e6 * apart * longest_s + 150
    steps = np.diff(error[:, 1])
    rate = np.median(steps) / 0.02 / 1e6  # between messages
    assert rate == pytest.approx(hz[1] / hz[0] - 1, rel=0.02)


@pytest.mark.parametrize(("exponent", "closer"), [(0.5, "sqrt"), (1.0, "linear"), (0.6, "sqrt")])
def test_laws_of_growth(exponent, closer):
    rows = [{"hops": hop, "rms_us": 300.0 * hop**exponent} for hop in range(1, 12)]
    found = growth(rows, "rms_us")
    assert found["closer"] == closer
    assert found["free"]["exponent"] == pytest.approx(exponent)
    assert found["free"]["us_at_one_hop"] == pytest.approx(300)
    if exponent in (0.5, 1.0):
        assert found[closer]["off"] == pytest.approx(0, abs=1e-9)


def test_too_few_hops_for_a_law():
    assert growth([{"hops": 1, "rms_us": 3.0}], "rms_us") is None


def test_firmware_that_hands_on_no_time():
    found = sync_study(open_firmware("chatter"), 2, 0.3, 1)
    assert found["sync"] is None
    assert found["drift"]["ppm"]["count"] == 2
