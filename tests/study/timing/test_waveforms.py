"""What pins mean: frames from pulses, duties from PWM edges, pairs of points."""

from collections import Counter

import numpy as np
import pytest

from avrswarm.robot.messages import Message, MessageType, pulse_cycles
from avrswarm.study.timing.between import pair
from avrswarm.study.timing.figures import spread, spread_of_counts
from avrswarm.study.timing.pictures import cumulated
from avrswarm.study.timing.waveforms import decode_duty, decode_frames

PWM = 510 * 8


@pytest.mark.parametrize("scale", [1.0, 0.97, 1.03])
def test_frames_among_stray_pulses(scale):
    first = Message.make(MessageType.RUN).pack()
    second = Message.make(5, bytes(range(9))).pack()
    strays = np.array([100, 900])
    pulses = [round(1000 + scale * cycle) for cycle in pulse_cycles(first)]
    later = [round(100_000 + scale * cycle) for cycle in pulse_cycles(second)]
    found = decode_frames(np.array([*strays, *pulses, 60_000, *later]))
    assert bytes(byte for _, byte in found) == first + second
    assert found[11][0] == pulses[-1]  # a byte is shown at its stop bit
    assert found[-1][0] == later[-1]


def test_a_frame_that_breaks_off_is_none():
    pulses = pulse_cycles(Message.make(5, bytes(range(9))).pack())
    assert decode_frames(np.array(pulses[:-3])) == []


def pwm(value, begin, periods):
    """Edges of a phase-correct PWM pin: high for 16 cycles per unit, in the middle of a period."""
    edges = []
    for number in range(periods):
        start = begin + number * PWM
        edges += [(start, 1), (start + 16 * value, 0)]
    return edges


def test_duties():
    edges = [*pwm(70, 10_000, 5), *pwm(33, 40_000, 5)]
    edges += [(80_000, 1), (120_000, 0)]  # full power for 5 ms
    found = decode_duty(np.array(edges), 0, 200_000)
    assert [duty for _, duty in found] == [0, 70, 0, 33, 0, 255, 0]
    assert {duty: cycle for cycle, duty in found}[255] == 80_000


def test_pairs_of_points():
    first, second = np.array([10, 20, 30, 50]), np.array([5, 12, 31, 33, 60])
    assert pair(first, second).tolist() == [[10, 12], [30, 31], [50, 60]]
    assert pair(first, first).tolist() == [[10, 20], [20, 30], [30, 50]]
    assert pair(first, np.array([], np.int64)).tolist() == []


def test_histograms_keep_every_value():
    values = np.array([4] * 10 + [5] * 3)
    assert spread(values)["histogram"] == {"from": [4, 5], "to": [4, 5], "count": [10, 3]}
    many = np.arange(1000)
    assert sum(spread(many)["histogram"]["count"]) == 1000
    assert spread(np.array([])) is None


@pytest.mark.parametrize("values", [[7], [1, 2], [3, 3, 9, 1, 1, 1], range(0, 900, 7)])
def test_figures_of_values_and_of_counts_agree(values):
    found = spread(np.array(values))
    assert found == spread_of_counts(Counter(values))
    assert found["median"] == np.median(values)
    assert found["mean"] == pytest.approx(np.mean(values))
    assert (found["min"], found["max"], found["count"]) == (min(values), max(values), len(values))


@pytest.mark.parametrize("count", [5, 1000])
def test_a_cumulative_curve_claims_no_more_than_there_is(count):
    """At any value it shows at most the share of values up to there."""
    values = np.random.Generator(np.random.PCG64(1)).integers(0, count, 3 * count)
    x, shares = cumulated(spread(values)["histogram"])
    for at, share in zip(x[1:], shares[1:], strict=True):
        assert share == pytest.approx(100 * np.mean(values <= at), abs=100 / len(values) * 40)
        assert share <= 100 * np.mean(values <= at) + 1e-9
    assert (x[0], x[-1], shares[0], shares[-1]) == (values.min(), values.max(), 0, 100)
