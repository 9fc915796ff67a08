"""Infrared amplitude as a function of the distance between two centres (a model).

LED and photodiode point down; what a robot hears is light scattered from the table, the same in
every direction. Other robots and walls do not block it in this model.

Amplitudes are counts of the low-gain ADC channel for a sender of unit power and a receiver of unit
gain; the front end multiplies by its gains. A pulse is heard if it makes the comparator switch,
which takes
``LIMIT_COUNTS``. Every model becomes one table with a fine pitch, so compiled code only
interpolates:

``calibrated``
    Readings of a real calibration from 33 to 103 mm (hardware reference 5.3), straight between
    them, as firmware assumes. Outside, the fit A / (1 + (d / 120 mm)^2)^2, joined at the ends.
    Alone it carries to 232 mm, as far as the best links measured on real robots; other measurements
    and publications say 100 to 140. The wanted range is reached by an extra exponential fall that
    begins beyond the calibrated part (98 mm), so readings that firmware turns into distances stay
    those of the calibration. That fall is an assumption: it stands for whatever makes ranges differ
    between tables, and nobody has measured it.
``inverse_square``
    Friis-like: limit * (range / d)^2 times both gains.
``table``
    Points of a CSV file, straight between them, zero beyond the last.
``disc``
    The same amplitude everywhere within the range, nothing beyond: for comparison with simulators
    that know only a range (Kilombo).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from avrswarm.jit import entry, kernel
from avrswarm.world.state import Floats

CALIBRATED_DISTANCES_MM = tuple(range(33, 104, 5))
CALIBRATED_COUNTS = (277, 273, 266, 250, 231, 213, 196, 181, 171, 159, 148, 141, 131, 122, 113)
"""Low gain at gaps of 0, 5, ... 70 mm between bodies of 33 mm (hardware reference 5.3; medium
trust)."""

FIT_DISTANCE_MM = 120.0
LIMIT_COUNTS = 70.0 / 4.65
"""What just switches the comparator: 0.205 V are 70 high-gain counts; high gain is 4.65 x low
gain."""

LAST_CALIBRATED_MM = 98.0
"""The last distance that firmware looks up; see 5.1."""

SHORTEST_FALL_MM = 2.0
"""The extra fall to a range takes at least this; shorter ranges cut into the calibrated part."""

STEP_MM = 0.25
_RESOLUTION = (
    1e-6  # counts; hides the last bits of library functions, which differ between machines
)


class Optics(NamedTuple):
    """Amplitude at 0, ``step_mm``, 2 ``step_mm`` ... and where it ends."""

    counts: Floats
    step_mm: float
    end_mm: float


class Preset(NamedTuple):
    """Range and imperfections that belong together; per cent are standard deviations."""

    range_mm: float
    amplitude_noise_percent: float
    pulse_noise_percent: float
    adc_noise_counts: float
    transmit_spread_percent: float
    receive_spread_percent: float
    threshold_spread_percent: float


PRESETS = {
    # nothing but the curve
    "ideal": Preset(100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    # About 2 mm of distance error in all, what Rubenstein 2012 gives for calibrated robots: the
    # curve falls by 0.4 (at 35 mm) to 1.6 (at 65 mm) per cent per mm, so 1.3 per cent in all are
    # 1.5 mm on average. Pulses as in "long": the receivers are the same.
    "lab": Preset(100.0, 0.7, 10.0, 0.7, 0.7, 0.7, 3.0),
    # 25 real robots (hardware reference 4.9, tau 0): 0.97 of all messages received at 5 cm, 0.93 at
    # 18, half at 20, few at 22. Two things decide. Ranges differ between robots: the curve falls
    # by 1.9 per cent per mm there, so 16 per cent in all are 9 mm. And noise at the comparator is
    # new for each pulse: a message is lost if one of its 26 to 122 pulses is missed, but a single
    # pulse tells a robot that the air is taken. So robots wait for others whose messages they
    # cannot read, and hidden terminals spoil as few messages as in reality; without that noise
    # they spoil nearly twice as many. Its size is a fit (20 mV behind an amplifier of gain 562);
    # the range is that of single pulses.
    "long": Preset(215.0, 1.0, 10.0, 0.7, 7.0, 7.0, 13.0),
}


@kernel
def amplitude(optics: Optics, distance_mm: float) -> float:
    """Return the amplitude in low-gain counts at a centre distance, for unit power and gain."""
    if distance_mm > optics.end_mm:
        return 0.0
    place = max(distance_mm, 0.0) / optics.step_mm
    number = min(int(place), len(optics.counts) - 2)
    share = place - number
    return float(optics.counts[number] * (1.0 - share) + optics.counts[number + 1] * share)


@entry
def fill_amplitudes(optics: Optics, distance_mm: Floats, out: Floats) -> None:
    """Write the amplitude for every distance."""
    for k in range(len(out)):
        out[k] = amplitude(optics, distance_mm[k])


def amplitudes(optics: Optics, distance_mm: Floats | list[float]) -> Floats:
    """Return the amplitude for every distance."""
    distances = np.asarray(distance_mm, np.float64)
    out = np.empty(len(distances))
    fill_amplitudes(optics, distances, out)
    return out


def calibrated_optics(range_mm: float) -> Optics:
    """Return the calibrated curve, made to end (be at the limit) at ``range_mm``, 40 to 400."""
    knee = min(LAST_CALIBRATED_MM, range_mm - SHORTEST_FALL_MM)
    wanted = LIMIT_COUNTS / calibrated_counts(range_mm)
    fall = math.log(wanted) / (range_mm - knee)  # per mm; above 0 for ranges beyond 232 mm

    def counts(distance_mm: float) -> float:
        beyond = max(0.0, distance_mm - knee)
        if fall > 0.0:
            beyond = min(beyond, range_mm - knee)
        return calibrated_counts(distance_mm) * math.exp(fall * beyond)

    return _sampled(counts, range_mm)


def calibrated_counts(distance_mm: float) -> float:
    """Return the calibrated curve without a limit of range."""
    first, last = CALIBRATED_DISTANCES_MM[0], CALIBRATED_DISTANCES_MM[-1]
    if distance_mm < first:
        return CALIBRATED_COUNTS[0] * _fit(distance_mm) / _fit(first)
    if distance_mm > last:
        return CALIBRATED_COUNTS[-1] * _fit(distance_mm) / _fit(last)
    return float(np.interp(distance_mm, CALIBRATED_DISTANCES_MM, CALIBRATED_COUNTS))


def _fit(distance_mm: float) -> float:
    ratio = distance_mm / FIT_DISTANCE_MM
    return 1.0 / ((1.0 + ratio * ratio) * (1.0 + ratio * ratio))


def inverse_square_optics(range_mm: float, gain: float = 1.0) -> Optics:
    """Return amplitudes that fall with the distance squared; at gain 1 they end at the range."""

    def counts(distance_mm: float) -> float:
        near = max(distance_mm, 10.0)  # no two centres are closer
        return gain * LIMIT_COUNTS * (range_mm / near) ** 2

    return _sampled(counts, range_mm * math.sqrt(gain))


def disc_optics(range_mm: float, counts: float) -> Optics:
    """Return one amplitude within the range and none beyond."""
    return Optics(np.full(2, float(counts)), range_mm, range_mm)


def table_optics(distances_mm: Floats, counts: Floats) -> Optics:
    """Return amplitudes from points: level before the first, none after the last."""
    end = float(distances_mm[-1])
    size = math.ceil(end / STEP_MM) + 2
    values = np.interp(np.arange(size) * STEP_MM, distances_mm, counts)
    return Optics(_rounded(values), STEP_MM, end)


def reach_mm(optics: Optics, gain: float = 1.0, limit_counts: float = LIMIT_COUNTS) -> float:
    """Return from where on nobody hears anything whose gains multiply to ``gain``."""
    heard = np.flatnonzero(optics.counts * gain >= limit_counts)
    if len(heard) == 0:
        return 0.0
    return min(float(heard[-1] + 1) * optics.step_mm, optics.end_mm)


def _sampled(counts: Callable[[float], float], range_mm: float) -> Optics:
    """Sample a curve until it is a fiftieth of the limit: also the best ears hear nothing there."""
    values = []
    number = 0
    while True:
        value = counts(number * STEP_MM)
        values.append(value)
        if number * STEP_MM > range_mm and value < LIMIT_COUNTS / 50:
            break
        if number * STEP_MM > 5 * range_mm:
            break
        number += 1
    return Optics(_rounded(np.array(values)), STEP_MM, (len(values) - 1) * STEP_MM)


def _rounded(values: Floats) -> Floats:
    return np.round(values / _RESOLUTION) * _RESOLUTION
