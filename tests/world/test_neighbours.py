"""Lists of neighbours equal those of trying every pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.world.neighbours import allocate_neighbours, find_neighbours

pytestmark = pytest.mark.jit_off

PLACES = st.lists(st.tuples(st.floats(-300, 300), st.floats(-1000, 1000)), min_size=0, max_size=40)


def brute_force(x, y, count, range_mm):
    lists = []
    for a in range(count):
        square = (x[:count] - x[a]) ** 2 + (y[:count] - y[a]) ** 2
        near = np.flatnonzero(square <= range_mm * range_mm)
        lists.append([int(b) for b in near if b != a])
    return lists


@given(PLACES, st.floats(1, 3000), st.integers(0, 3))
def test_equal_brute_force(places, range_mm, left_out):
    x = np.array([p[0] for p in places])
    y = np.array([p[1] for p in places])
    count = max(0, len(x) - left_out)
    lists = find_neighbours(x, y, count, range_mm, allocate_neighbours(count, per_robot=1))
    expected = brute_force(x, y, count, range_mm)
    for robot in range(count):
        assert lists.of(robot).tolist() == expected[robot]


def test_far_apart_robots_need_no_huge_grid():
    x = np.array([0.0, 50.0, 1e6, -1e6])
    lists = find_neighbours(x, np.zeros(4), 4, 100.0, allocate_neighbours(4))
    assert [lists.of(robot).tolist() for robot in range(4)] == [[1], [0], [], []]


def test_lists_grow_and_are_kept():
    x = np.zeros(20)
    small = allocate_neighbours(20, per_robot=1)
    grown = find_neighbours(x, x, 20, 10.0, small)
    assert len(grown.index) >= 20 * 19
    assert find_neighbours(x, x, 20, 10.0, grown) is grown
