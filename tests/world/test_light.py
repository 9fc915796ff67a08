"""Visible light at the robots' sensors."""

import math

import numpy as np
import pytest

from avrswarm.world.build import make_world
from avrswarm.world.light import illuminate, make_light

pytestmark = pytest.mark.jit_off


def lux_at(light, x, y, heading=0.0, ahead=0.0, aside=0.0):
    world = make_world(np.array([x]), np.array([y]), np.array([heading]))
    out = np.zeros(1)
    illuminate(world, light, ahead, aside, out)
    return out[0]


def test_darkness_and_ambient_light():
    assert lux_at(make_light(), 3.0, 4.0) == 0
    assert lux_at(make_light(2.5), 3.0, 4.0) == 2.5


def test_a_lamp_follows_the_cosine_law():
    light = make_light(lamps=np.array([[100.0, 0, 300, 0.5]]))
    assert lux_at(light, 100.0, 0.0) == pytest.approx(0.5 / 0.09)
    distance = math.hypot(0.4, 0.3)
    assert lux_at(light, 500.0, 0.0) == pytest.approx(0.5 * 0.3 / distance**3)


def test_a_gradient_is_never_negative():
    light = make_light(gradients=np.array([[2.0, 0.004, 0.0]]))
    assert lux_at(light, 500.0, 9.0) == pytest.approx(4)
    assert lux_at(light, -700.0, 9.0) == 0


def test_an_image_has_its_first_row_at_the_top():
    image = np.array([[1.0, 2.0], [3.0, 4.0]])
    light = make_light(image_lux=image, width_mm=200, height_mm=100)
    assert lux_at(light, -50.0, 25.0) == 1
    assert lux_at(light, 50.0, -25.0) == 4
    assert lux_at(light, 0.0, 0.0) == pytest.approx(2.5)
    assert lux_at(light, 900.0, 900.0) == 2  # beyond the rim the last pixel counts


def test_the_sensor_turns_with_the_robot():
    light = make_light(gradients=np.array([[10.0, 0.1, 0.0]]))
    assert lux_at(light, 0.0, 0.0, 0.0, ahead=10.0) == pytest.approx(11)
    assert lux_at(light, 0.0, 0.0, math.pi / 2, ahead=10.0) == pytest.approx(10)
    assert lux_at(light, 0.0, 0.0, math.pi / 2, aside=10.0) == pytest.approx(9)
