"""Worlds for tests, and what must hold in each of them."""

import numpy as np

from avrswarm.jit import JIT_DISABLED, entry
from avrswarm.world.build import make_world
from avrswarm.world.collisions import push_apart
from avrswarm.world.motion import move_robots
from avrswarm.world.state import allocate_workspace
from avrswarm.world.step import MOTION, begin_motion

EXAMPLES = 10 if JIT_DISABLED else 60
DT_S = 0.004


@entry
def step(world, work, left, right, dt_s, number):
    found = begin_motion(world, work, left, right)
    if found == MOTION:
        move_robots(world, left, right, dt_s, number, 0, world.robots)
        push_apart(world, work)
    return found


def overlaps(world):
    """Return the largest overlap of a body that can move with another, a wall or the rim."""
    x, y, r = world.x_mm, world.y_mm, world.radius_mm
    distance = np.sqrt((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)
    overlap = r[:, None] + r - distance
    np.fill_diagonal(overlap, -np.inf)
    fixed = world.inverse_mass == 0
    overlap[np.ix_(fixed, fixed)] = -np.inf
    worst = overlap.max() if len(x) > 1 else -np.inf
    free = ~fixed
    if not free.any():
        return worst
    kind, half_width, half_height = world.bounds
    if kind == 1:
        out_x = np.abs(x) + r - half_width
        out_y = np.abs(y) + r - half_height
        worst = max(worst, out_x[free].max(), out_y[free].max())
    elif kind == 2:
        worst = max(worst, (np.sqrt(x**2 + y**2) + r - half_width)[free].max())
    for x1, y1, x2, y2 in world.walls:
        along = np.array([x2 - x1, y2 - y1])
        share = ((x - x1) * along[0] + (y - y1) * along[1]) / max(along @ along, 1e-300)
        share = np.clip(share, 0, 1)
        away = np.sqrt((x - x1 - share * along[0]) ** 2 + (y - y1 - share * along[1]) ** 2)
        worst = max(worst, (r - away)[free].max())
    return worst


def grid_world(rows, columns, pitch_mm, headings, **options):
    """Return robots on a grid round the origin."""
    n = np.arange(rows * columns)
    x = (n % columns - (columns - 1) / 2) * pitch_mm
    y = (n // columns - (rows - 1) / 2) * pitch_mm
    return make_world(x, y, np.asarray(headings, np.float64), **options)


def run(world, left, right, steps, first_step=0):
    """Advance a world with constant drives; return its work arrays."""
    work = allocate_workspace(world)
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    for number in range(first_step, first_step + steps):
        assert step(world, work, left, right, DT_S, number) >= 0
    return work
