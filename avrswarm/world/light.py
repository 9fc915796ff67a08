"""Visible light on the table, as illuminance in lux (a model; robots and walls cast no shadows).

A lamp of I candela at height h above the table gives, at a horizontal distance d, I h / (d^2 +
h^2)^1.5 (the cosine law for a sensor that looks up). A gradient is a plane, never below zero. An
image is stretched over the arena.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from avrswarm.jit import entry, kernel
from avrswarm.portable_math import cosine_sine
from avrswarm.world.state import Floats, WorldState


class Light(NamedTuple):
    """All light of a scene.

    Attributes
    ----------
    ambient_lux
        Light that is everywhere.
    lamps
        Rows x_mm, y_mm, height_mm, candela.
    gradients
        Rows: lux at the origin, lux per mm along x, lux per mm along y.
    image_lux
        Illuminance at pixel centres, first row at the bottom; 0 x 0 = no image.
    image_frame
        Left and bottom pixel centre, pixel width and height in mm.
    """

    ambient_lux: float
    lamps: Floats
    gradients: Floats
    image_lux: Floats
    image_frame: Floats


def make_light(
    ambient_lux: float = 0.0,
    lamps: Floats | None = None,
    gradients: Floats | None = None,
    image_lux: Floats | None = None,
    width_mm: float = 0.0,
    height_mm: float = 0.0,
) -> Light:
    """Return the light of a scene; the image's first row is the top of the arena."""
    frame = np.zeros(4)
    pixels = np.zeros((0, 0))
    if image_lux is not None:
        pixels = np.ascontiguousarray(image_lux[::-1], np.float64)
        rows, columns = pixels.shape
        across, up = width_mm / columns, height_mm / rows
        frame = np.array([(across - width_mm) / 2, (up - height_mm) / 2, across, up])
    return Light(
        ambient_lux=float(ambient_lux),
        lamps=np.zeros((0, 4)) if lamps is None else np.asarray(lamps, np.float64),
        gradients=np.zeros((0, 3)) if gradients is None else np.asarray(gradients, np.float64),
        image_lux=pixels,
        image_frame=frame,
    )


@kernel
def illuminance(light: Light, x_mm: float, y_mm: float) -> float:
    """Return the illuminance at a place in lux."""
    lux = light.ambient_lux
    for lamp in range(light.lamps.shape[0]):
        dx = (x_mm - light.lamps[lamp, 0]) / 1000.0
        dy = (y_mm - light.lamps[lamp, 1]) / 1000.0
        height = light.lamps[lamp, 2] / 1000.0
        square = dx * dx + dy * dy + height * height
        lux += light.lamps[lamp, 3] * height / (square * math.sqrt(square))
    for k in range(light.gradients.shape[0]):
        plane = light.gradients[k, 0] + light.gradients[k, 1] * x_mm + light.gradients[k, 2] * y_mm
        lux += max(0.0, plane)
    if light.image_lux.shape[0] > 0:
        lux += _image_at(light, x_mm, y_mm)
    return lux


@kernel
def _image_at(light: Light, x_mm: float, y_mm: float) -> float:
    """Interpolate between the four nearest pixels; beyond the rim the last pixel counts."""
    rows, columns = light.image_lux.shape
    u = (x_mm - light.image_frame[0]) / light.image_frame[2]
    v = (y_mm - light.image_frame[1]) / light.image_frame[3]
    u = min(max(u, 0.0), columns - 1.0)
    v = min(max(v, 0.0), rows - 1.0)
    column = int(u)
    row = int(v)
    right = min(column + 1, columns - 1)
    above = min(row + 1, rows - 1)
    u -= column
    v -= row
    low = light.image_lux[row, column] * (1.0 - u) + light.image_lux[row, right] * u
    high = light.image_lux[above, column] * (1.0 - u) + light.image_lux[above, right] * u
    return float(low * (1.0 - v) + high * v)


@kernel
def light_robots(
    world: WorldState,
    light: Light,
    ahead_mm: float,
    aside_mm: float,
    out_lux: Floats,
    first: int,
    end: int,
) -> None:
    """Write the illuminance at some robots' sensors, which sit at a place in the robot's frame."""
    if light.lamps.shape[0] + light.gradients.shape[0] + light.image_lux.shape[0] == 0:
        for robot in range(first, end):  # the same everywhere
            out_lux[robot] = light.ambient_lux
        return
    for robot in range(first, end):
        cosine, sine = cosine_sine(world.heading_rad[robot])
        x = world.x_mm[robot] + cosine * ahead_mm - sine * aside_mm
        y = world.y_mm[robot] + sine * ahead_mm + cosine * aside_mm
        out_lux[robot] = illuminance(light, x, y)


@entry
def illuminate(
    world: WorldState, light: Light, ahead_mm: float, aside_mm: float, out_lux: Floats
) -> None:
    """Write the illuminance at every robot's sensor (the entry to ``light_robots``)."""
    light_robots(world, light, ahead_mm, aside_mm, out_lux, 0, world.robots)
