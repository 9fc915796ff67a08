"""What is wrong with a robot's distance tables, by name, with entries and remedy.

Entry i of a table is the ADC count at 33 + 5 i mm between centres. Firmware looks a reading up in
the high-gain table below 900 counts and in the low-gain table above 700; between 700 and 900 it
takes a weighted mean (hardware reference 5.2). So not every strange entry does harm: high-gain
entries of 900 and more are never reached, but for the last of them, which begins the slope to the
next. Such findings are notes, all others are faults.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.robot.distance import CONTACT_MM, HIGH_ALONE_UP_TO, LOW_ALONE_FROM, STEP_MM
from avrswarm.robot.distance_tables import LIMIT_HIGH, RATIO
from avrswarm.robot.eeprom_map import TABLE_POINTS

LAST_COUNT = 1023
ERASED_ENTRY = 0xFFFF
DISAGREEMENT_MM = 3.0
"""The two gains may say distances this far apart at the hand-over, on average."""
BIAS_MM, BIAS_RMS_MM = 5.0, 3.0
"""Estimates may be this wrong at one distance, on average, and over all distances, before the table
is said to be another robot's."""
NOISE_DEVIATIONS = 3
LEAST_READINGS = 5

Tables = tuple[tuple[int, ...], tuple[int, ...]]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """Something about a table; ``is_fault`` is False for what does no harm.

    Attributes
    ----------
    kind
        ``erased``, ``blank``, ``not decreasing``, ``saturated``, ``crossing gains``,
        ``out of reach``, ``discontinuity`` or ``misfit``.
    table
        ``low_gain``, ``high_gain`` or ``both``.
    distances_mm
        The entries, by the distance they stand for.
    text
        What it is and what to do.
    """

    kind: str
    table: str
    is_fault: bool
    distances_mm: tuple[int, ...]
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "distances_mm": list(self.distances_mm)}


def examine_tables(low: tuple[int, ...], high: tuple[int, ...]) -> list[Finding]:
    """Return what can be said of two tables without any reading.

    >>> from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE
    >>> [(f.kind, f.is_fault) for f in examine_tables(LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE)]
    [('out of reach', False)]
    """
    found = []
    for name, table in (("low_gain", low), ("high_gain", high)):
        whole = _examine_whole(name, table)
        found += whole or [
            *_decreasing(name, table),
            *_saturated(name, table),
            *_out_of_reach(name, table),
        ]
    return found + _crossing(low, high)


def examine_readings(
    tables: Tables, distance_mm: Floats, low: Integers, high: Integers, estimate_mm: Integers
) -> list[Finding]:
    """Return what readings at known distances say against the tables."""
    found = []
    handed = (high > HIGH_ALONE_UP_TO) & (high < LOW_ALONE_FROM)
    if handed.sum() >= LEAST_READINGS:
        by_high = distance_by_table(tables[1], high[handed])
        by_low = distance_by_table(tables[0], low[handed])
        apart = float(np.mean(by_low - by_high))
        if abs(apart) > DISAGREEMENT_MM:
            longer = "longer" if apart > 0 else "shorter"
            found.append(
                Finding(
                    "discontinuity",
                    "both",
                    True,
                    (),
                    f"where high gain hands over to low gain (700 to 900 counts), low gain says"
                    f" {abs(apart):.1f} mm {longer} than high gain; measure both tables at one go,"
                    " or use --fit",
                )
            )
    inside = (distance_mm >= CONTACT_MM) & (distance_mm <= _distance(TABLE_POINTS - 1))
    if inside.sum() >= LEAST_READINGS:
        found += _misfit(distance_mm[inside], estimate_mm[inside])
    return found


def _misfit(distance_mm: Floats, estimate_mm: Integers) -> list[Finding]:
    """Look at mean errors of readings from about the same distance.

    So what is too long here and too short there does not cancel out. Some standard errors of each
    mean are left to noise.
    """
    order = np.argsort(distance_mm, kind="stable")
    groups = np.array_split(order, min(len(order) // LEAST_READINGS, TABLE_POINTS))
    place = np.array([distance_mm[group].mean() for group in groups])
    errors = [estimate_mm[group] - distance_mm[group] for group in groups]
    bias = np.array([error.mean() for error in errors])
    noise = np.array([error.std() / np.sqrt(len(error)) for error in errors])
    certain = np.maximum(np.abs(bias) - NOISE_DEVIATIONS * noise, 0.0)
    worst = int(certain.argmax())
    if certain[worst] <= BIAS_MM and np.sqrt(np.mean(certain**2)) <= BIAS_RMS_MM:
        return []
    rms = float(np.sqrt(np.mean(bias**2)))
    longer = "long" if bias[worst] > 0 else "short"
    nearest = np.round((place - CONTACT_MM) / STEP_MM).astype(int)
    wrong = certain > min(BIAS_MM, rms)
    text = (
        f"estimates are {abs(bias[worst]):.1f} mm too {longer} at {place[worst]:.0f} mm on average,"
        f" and off by {rms:.1f} mm rms over distance: the tables do not belong to this robot and"
        " surface, or are wrong there; --fit makes some that do"
    )
    places = tuple(sorted({_distance(int(entry)) for entry in nearest[wrong]}))
    return [Finding("misfit", "both", True, places, text)]


def distance_by_table(table: tuple[int, ...], readings: Integers) -> Floats:
    """Return the distances between centres by one table alone, the last slope going on."""
    counts = np.array(table, np.float64)
    falling = np.minimum.accumulate(counts)  # a table that rises has no inverse
    distances = CONTACT_MM + STEP_MM * np.arange(TABLE_POINTS)
    inside = np.interp(readings, falling[::-1], distances[::-1])
    slope = max(float(falling[-2] - falling[-1]), 1.0) / STEP_MM
    beyond = distances[-1] + (falling[-1] - readings) / slope
    return np.asarray(np.where(readings < falling[-1], beyond, inside))


def _examine_whole(name: str, table: tuple[int, ...]) -> list[Finding]:
    """Return what makes looking at single entries pointless."""
    erased = _places(count == ERASED_ENTRY for count in table)
    if erased:
        every = len(erased) == TABLE_POINTS
        what = "the whole table is" if every else f"entries {_list(erased)} are"
        text = f"{what} erased (0xFFFF): this robot was never calibrated; --fit makes a table"
        return [Finding("erased", name, True, erased, text)]
    if not any(table):
        text = "the whole table is zero: every message would seem to come from contact"
        return [Finding("blank", name, True, _places([True] * TABLE_POINTS), text)]
    return []


def _decreasing(name: str, table: tuple[int, ...]) -> list[Finding]:
    pairs = list(pairwise(table))
    both_at_end = [before == after == LAST_COUNT for before, after in pairs]  # told as saturated
    wrong = [
        number
        for number, (before, after) in enumerate(pairs, 1)
        if after >= before and not both_at_end[number - 1]
    ]
    if not wrong:
        return []
    first = wrong[0]
    places = tuple(_distance(number) for number in wrong)
    text = (
        f"counts must fall with distance, but at {_list(places)} they do not ({table[first - 1]} at"
        f" {_distance(first - 1)} mm, then {table[first]}); estimates jump there"
    )
    return [Finding("not decreasing", name, True, places, text)]


def _saturated(name: str, table: tuple[int, ...]) -> list[Finding]:
    text = (
        "{} stand at 1023, where the ADC ends: readings were saturated when the table was made, and"
        " say nothing of distance"
    )
    at_end = [count == LAST_COUNT for count in table]
    return _by_harm("saturated", name, table, at_end, text)


def _out_of_reach(name: str, table: tuple[int, ...]) -> list[Finding]:
    above = [count > LAST_COUNT for count in table]
    text = "{} are above 1023, which no ADC reading reaches"
    found = _by_harm("out of reach", name, table, above, text)
    least = LIMIT_HIGH if name == "high_gain" else LIMIT_HIGH / RATIO
    below = _places(count < least for count in table)
    if below:
        text = (
            f"{_entries(below)} are below {least:.0f} counts, too weak to switch the comparator: no"
            " message is heard there"
        )
        found.append(Finding("out of reach", name, False, below, text))
    return found


def _by_harm(
    kind: str, name: str, table: tuple[int, ...], marked: list[bool], text: str
) -> list[Finding]:
    """Return up to two findings: entries that firmware uses, and entries that it does not."""
    unused = _unused(name, table)
    found = []
    for is_fault in (True, False):
        places = _places(mark and (i >= unused) == is_fault for i, mark in enumerate(marked))
        if places:
            more = "" if is_fault else "; harmless, firmware takes low gain there"
            found.append(
                Finding(kind, name, is_fault, places, text.format(_entries(places)) + more)
            )
    return found


def _unused(name: str, table: tuple[int, ...]) -> int:
    """Return how many first entries firmware never uses: those followed by one of 900 or more."""
    if name == "low_gain":
        return 0
    used = [count < LOW_ALONE_FROM for count in table[1:]]
    return used.index(True) if True in used else TABLE_POINTS - 2


def _crossing(low: tuple[int, ...], high: tuple[int, ...]) -> list[Finding]:
    both = zip(low, high, strict=True)
    crossed = _places(0 < above <= below < ERASED_ENTRY for below, above in both)
    if not crossed:
        return []
    exchanged = "; are the tables exchanged?" if len(crossed) == TABLE_POINTS else ""
    text = (
        f"high gain is not above low gain at {_list(crossed)}; it should be about"
        f" {RATIO:.1f} times as much{exchanged}"
    )
    return [Finding("crossing gains", "both", True, crossed, text)]


def _distance(entry: int) -> int:
    return CONTACT_MM + STEP_MM * entry


def _places(marks: Any) -> tuple[int, ...]:
    return tuple(_distance(number) for number, mark in enumerate(marks) if mark)


def _list(distances_mm: tuple[int, ...]) -> str:
    """Return distances in words, neighbours joined: 33 to 48 and 63 mm."""
    runs: list[list[int]] = []
    for distance in distances_mm:
        if runs and distance == runs[-1][-1] + STEP_MM:
            runs[-1].append(distance)
        else:
            runs.append([distance])
    words = [f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"{', '.join(words)} mm"


def _entries(distances_mm: tuple[int, ...]) -> str:
    return f"the entries for {_list(distances_mm)}"
