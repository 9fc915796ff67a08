"""From plain numbers to a world: bodies, what they may do, and what stands in their way."""

from __future__ import annotations

import numpy as np

from avrswarm.world.shapes import sort_walls
from avrswarm.world.state import NO_BOUNDS, Floats, WorldState


def make_world(
    x_mm: Floats,
    y_mm: Floats,
    heading_rad: Floats,
    *,
    robots: int | None = None,
    radius_mm: float | Floats = 16.5,
    inverse_mass: float | Floats = 1.0,
    speed_mm_s: float | Floats = 10.0,
    turn_rad_s: float | Floats = np.pi / 4,
    leg_angle_deg: float = 125.5,
    leg_radius_mm: float = 17.0,
    speed_noise: float = 0.0,
    heading_noise_rad: float = 0.0,
    noise_key: int = 0,
    bounds: tuple[int, float, float] = (NO_BOUNDS, 0.0, 0.0),
    walls: Floats | None = None,
    depth_mm: Floats | None = None,
    depth_frame: Floats | None = None,
) -> WorldState:
    """Return a world; single numbers hold for all bodies. Defaults are a Kilobot's.

    Sources: radius 33 mm / 2, speeds 10 mm/s and 45 degrees/s (Rubenstein 2012), rear legs at 125.5
    degrees from the heading and 17 mm from the centre (Kilombo, from the board's layout).
    """
    bodies = len(x_mm)
    robots = bodies if robots is None else robots
    radius = _each(radius_mm, bodies)
    walls = np.zeros((0, 4)) if walls is None else np.ascontiguousarray(walls, np.float64)
    frame, first, index = sort_walls(walls, float(radius.max(initial=0.0)))
    angle = np.deg2rad(leg_angle_deg)
    return WorldState(
        robots=robots,
        x_mm=_each(x_mm, bodies),
        y_mm=_each(y_mm, bodies),
        heading_rad=_each(heading_rad, bodies),
        radius_mm=radius,
        inverse_mass=_each(inverse_mass, bodies),
        speed_mm_s=_each(speed_mm_s, robots),
        turn_rad_s=_each(turn_rad_s, robots),
        leg_ahead_mm=_each(leg_radius_mm * np.cos(angle), robots),
        leg_aside_mm=_each(leg_radius_mm * np.sin(angle), robots),
        speed_noise=float(speed_noise),
        heading_noise_rad=float(heading_noise_rad),
        noise_key=int(noise_key),
        bounds=np.array(bounds, np.float64),
        walls=walls,
        wall_frame=frame,
        wall_first=first,
        wall_index=index,
        depth_mm=np.zeros((0, 0)) if depth_mm is None else np.ascontiguousarray(depth_mm),
        depth_frame=np.zeros(4) if depth_frame is None else np.asarray(depth_frame, np.float64),
    )


def _each(value: float | Floats, count: int) -> Floats:
    """Return a fresh array with one number per body."""
    return np.array(np.broadcast_to(np.asarray(value, np.float64), (count,)))
