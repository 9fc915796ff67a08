"""A new distance table from readings at known distances.

Firmware goes straight from entry to entry, so the best table is the broken line that comes closest
to the readings: a least-squares problem in fourteen unknowns. Two things are asked of it besides:
that it falls, and that it does not bend without need, which carries it over gaps in the readings.
Readings far off (a reflection, a typing error) count less, by Huber's weights. Saturated readings
say only "at least", so they are left out, and the line goes on beyond them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.errors import ProgramError
from avrswarm.robot.distance import CONTACT_MM, STEP_MM
from avrswarm.robot.eeprom_map import TABLE_POINTS

LAST_COUNT = 1023
MOST_COUNT = 0xFFFE  # 0xFFFF is an erased entry
LAST_MM = CONTACT_MM + STEP_MM * (TABLE_POINTS - 1)
USED_MM = (CONTACT_MM - 1, LAST_MM + 1 / 2)
"""Readings outside are not used: beyond the last entry light may fall much faster."""
LEAST_DISTANCES = 4
STIFFNESS = 1e-3  # of a bend, in relation to a reading; only matters where there are none
HUBER = 1.5  # deviations from which on a reading counts less
ROUNDS = 8

Floats = NDArray[np.float64]


def fit_table(distance_mm: Floats, counts: Floats) -> tuple[int, ...]:
    """Return fourteen falling counts, for 33, 38 ... 98 mm, from readings of one gain.

    >>> distances = np.linspace(33, 98, 40)
    >>> fit_table(distances, 600 - 4 * distances)[:3]
    (468, 448, 428)
    """
    wanted = (distance_mm >= USED_MM[0]) & (distance_mm <= USED_MM[1]) & (counts < LAST_COUNT)
    distance, count = distance_mm[wanted], counts[wanted].astype(np.float64)
    different = len(np.unique(distance))
    if different < LEAST_DISTANCES:
        raise ProgramError(
            f"readings at {different} distances from {CONTACT_MM} to {LAST_MM} mm that are not"
            f" saturated are too few for a table; it takes {LEAST_DISTANCES}, better all of 33, 38"
            " ... 98 mm"
        )
    line = _broken_line(distance)
    weights = np.ones(len(distance))
    table = np.zeros(TABLE_POINTS)
    for _ in range(ROUNDS):
        table = _falling_fit(line, count, weights)
        off = np.abs(count - line @ table)
        scale = max(1.4826 * float(np.median(off)), 0.5)
        weights = np.minimum(1.0, HUBER * scale / np.maximum(off, 1e-9))
    return _whole_counts(table)


def _broken_line(distance: Floats) -> Floats:
    """Return the matrix that takes fourteen entries to the line's values at these distances."""
    place = (distance - CONTACT_MM) / STEP_MM
    number = np.clip(np.floor(place).astype(np.int64), 0, TABLE_POINTS - 2)
    share = place - number
    matrix = np.zeros((len(distance), TABLE_POINTS))
    rows = np.arange(len(distance))
    matrix[rows, number] = 1.0 - share
    matrix[rows, number + 1] = share
    return matrix


def _falling_fit(line: Floats, counts: Floats, weights: Floats) -> Floats:
    """Return the entries of the closest line that falls by a count or more at each entry.

    The unknowns are the last entry and thirteen falls; each is set to its best value in turn, not
    below its least, until nothing moves: there is one minimum, so that finds it.
    """
    bends = np.zeros((TABLE_POINTS - 2, TABLE_POINTS))
    for row in range(TABLE_POINTS - 2):
        bends[row, row : row + 3] = (1.0, -2.0, 1.0)
    stiffness = STIFFNESS * weights.sum() / TABLE_POINTS
    squares = line.T @ (weights[:, None] * line) + stiffness * bends.T @ bends
    target = line.T @ (weights * counts)
    # entries = sums @ unknowns: entry i is the last one and all falls from i on
    sums = np.triu(np.ones((TABLE_POINTS, TABLE_POINTS)))
    squares, target = sums.T @ squares @ sums, sums.T @ target
    least = np.ones(TABLE_POINTS)
    unknowns = np.maximum(np.linalg.lstsq(squares, target, rcond=None)[0], least)
    for _ in range(20_000):
        moved = 0.0
        for k in range(TABLE_POINTS):
            best = unknowns[k] + (target[k] - squares[k] @ unknowns) / squares[k, k]
            best = max(best, least[k])
            moved = max(moved, abs(best - unknowns[k]))
            unknowns[k] = best
        if moved < 1e-4:
            break
    return np.asarray(sums @ unknowns)


def _whole_counts(table: Floats) -> tuple[int, ...]:
    """Return whole numbers that still fall."""
    whole = np.clip(np.round(table), 1, MOST_COUNT).astype(np.int64).tolist()
    for number in range(TABLE_POINTS - 2, -1, -1):
        whole[number] = max(whole[number], whole[number + 1] + 1)
    return tuple(whole)
