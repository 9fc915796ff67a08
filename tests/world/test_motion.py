"""Pivoting, going straight, noise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.jit import JIT_DISABLED
from avrswarm.world.build import make_world
from tests.world.bodies import DT_S, run

pytestmark = pytest.mark.jit_off

SECOND = round(1 / DT_S)


def one(heading=0.0, **options):
    return make_world(np.zeros(1), np.zeros(1), np.array([heading]), **options)


@pytest.mark.parametrize("heading", [0.0, 1.0, -2.5])
def test_both_drives_go_straight_at_10_mm_per_second(heading):
    world = one(heading)
    run(world, [1], [1], SECOND)
    assert world.x_mm[0] == pytest.approx(10 * math.cos(heading), abs=1e-9)
    assert world.y_mm[0] == pytest.approx(10 * math.sin(heading), abs=1e-9)
    assert world.heading_rad[0] == pytest.approx(heading)


@pytest.mark.parametrize(("left", "right", "sign"), [(1, 0, 1), (0, 1, -1)])
@pytest.mark.parametrize("leg_angle_deg", [90, 125.5])
def test_one_drive_turns_about_the_inner_rear_leg(left, right, sign, leg_angle_deg):
    world = one(0.3, leg_angle_deg=leg_angle_deg)
    angle = 0.3 + sign * math.radians(leg_angle_deg)
    leg = 17 * np.array([math.cos(angle), math.sin(angle)])
    run(world, [left], [right], SECOND)
    assert world.heading_rad[0] == pytest.approx(0.3 + sign * math.pi / 4)
    angle += sign * math.pi / 4
    now = np.array([world.x_mm[0], world.y_mm[0]]) + 17 * np.array(
        [math.cos(angle), math.sin(angle)]
    )
    assert now == pytest.approx(leg, abs=1e-9)  # the leg has not moved


def test_a_full_turn_ends_where_it_began():
    world = one()
    run(world, [2], [0], 4 * SECOND)
    assert world.x_mm[0] == pytest.approx(0, abs=1e-9)
    assert world.y_mm[0] == pytest.approx(0, abs=1e-9)
    assert world.heading_rad[0] == pytest.approx(0, abs=1e-9)


@given(st.floats(0, 2), st.floats(0, 2))
def test_left_and_right_are_mirror_images(left, right):
    a, b = one(), one()
    run(a, [left], [right], 5)
    run(b, [right], [left], 5)
    assert a.x_mm[0] == pytest.approx(b.x_mm[0], abs=1e-12)
    assert a.y_mm[0] == pytest.approx(-b.y_mm[0], abs=1e-12)
    assert a.heading_rad[0] == pytest.approx(-b.heading_rad[0], abs=1e-12)


def test_no_drive_no_motion_even_with_noise():
    world = one(speed_noise=1.0, heading_noise_rad=1.0)
    run(world, [0], [0], 10)
    assert (world.x_mm[0], world.y_mm[0], world.heading_rad[0]) == (0, 0, 0)


@pytest.mark.skipif(JIT_DISABLED, reason="statistics take too many steps")
def test_noise_over_a_second_is_what_was_asked_for():
    count = 2000
    apart = np.arange(count) * 1e3
    world = make_world(apart, np.zeros(count), np.zeros(count), speed_noise=0.1, noise_key=3)
    run(world, np.ones(count), np.ones(count), SECOND)
    way = world.x_mm - apart
    assert way.mean() == pytest.approx(10, abs=0.1)
    assert way.std() == pytest.approx(1.0, rel=0.1)
    world = make_world(apart, np.zeros(count), np.zeros(count), heading_noise_rad=0.2, noise_key=3)
    run(world, np.ones(count), np.ones(count), SECOND)
    assert world.heading_rad.std() == pytest.approx(0.2, rel=0.1)


def test_noise_is_drawn_by_step_number():
    whole, parts = (one(speed_noise=0.5, heading_noise_rad=0.5, noise_key=9) for _ in range(2))
    run(whole, [1], [0.5], 10)
    run(parts, [1], [0.5], 4)
    run(parts, [1], [0.5], 6, first_step=4)
    assert whole.x_mm[0] == parts.x_mm[0]
    assert whole.heading_rad[0] == parts.heading_rad[0]
