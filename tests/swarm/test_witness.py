"""A robot of a scene can be run again alone, window by window, and comes to the same state."""

import pytest

from avrswarm.errors import UsageError

from .scenes import group, make_scene, simulate


def scene():
    return make_scene(
        group("timing_probe", (0, 0), (60, 0), (0, 60)),
        spread={"clock_drift_percent": 1.0, "clock_drift_period_s": 1.0},
    )


def test_the_light_that_reached_a_robot_makes_it_do_the_same_again():
    sim = simulate(scene())
    pulses = 0

    def notice(seen):
        nonlocal pulses
        pulses += len(seen.tape)
        now = seen.before.cycle
        period = seen.before.time_of(now + 1) - seen.before.time_of(now)
        seen.before.run(cycles=-(-(seen.end - seen.before.time_of(now)) // period))
        assert seen.before.digest() == seen.after.digest()

    sim.witness(1, notice)
    sim.run(1.2)
    assert pulses > 400  # the controller's and neighbours' messages

    plain = simulate(scene())
    plain.run(1.2)
    assert sim.digest() == plain.digest()


def test_a_robot_that_is_not_there():
    with pytest.raises(UsageError, match="no robot 3: they are 0 to 2"):
        simulate(scene()).witness(3, print)
