"""Every kind of broken table has its name; a good one has none."""

import numpy as np
import pytest

from avrswarm.robot.distance import estimate_distances
from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE
from avrswarm.study.distance_faults import examine_readings, examine_tables

LOW, HIGH = list(LOW_GAIN_EXAMPLE), list(HIGH_GAIN_EXAMPLE)
TABLE_MM = np.arange(33, 99, 5)


def changed(table, **entries):
    """The table with entries replaced, by distance: ``at_48=100``."""
    new = list(table)
    for name, count in entries.items():
        new[(int(name.removeprefix("at_")) - 33) // 5] = count
    return new


def faults(low=LOW, high=HIGH):
    found = examine_tables(tuple(low), tuple(high))
    return {(one.kind, one.table): one.distances_mm for one in found if one.is_fault}


def notes(low=LOW, high=HIGH):
    found = examine_tables(tuple(low), tuple(high))
    return {(one.kind, one.table): one.distances_mm for one in found if not one.is_fault}


def test_the_table_of_a_real_robot_has_no_fault():
    assert faults() == {}
    assert notes() == {("out of reach", "high_gain"): (33, 38, 43, 48)}


@pytest.mark.parametrize(
    ("low", "high", "fault"),
    [
        ([0xFFFF] * 14, HIGH, {("erased", "low_gain"): tuple(range(33, 99, 5))}),
        (LOW, changed(HIGH, at_63=0xFFFF), {("erased", "high_gain"): (63,)}),
        ([0] * 14, HIGH, {("blank", "low_gain"): tuple(range(33, 99, 5))}),
        (changed(LOW, at_58=240), HIGH, {("not decreasing", "low_gain"): (58,)}),
        (LOW, changed(HIGH, at_73=823), {("not decreasing", "high_gain"): (73,)}),
        (LOW, [*HIGH[:12], 600, 610], {("not decreasing", "high_gain"): (98,)}),
        ([1023, 1023, *LOW[2:]], HIGH, {("saturated", "low_gain"): (33, 38)}),
        # 1023 begins the slope down to the first entry that firmware looks up
        (LOW, changed(HIGH, at_53=1023, at_58=1023), {("saturated", "high_gain"): (58,)}),
        (changed(LOW, at_33=1024), HIGH, {("out of reach", "low_gain"): (33,)}),
        (LOW, [c + 600 for c in HIGH], {("out of reach", "high_gain"): (93, 98)}),
        (LOW, changed(HIGH, at_98=100), {("crossing gains", "both"): (98,)}),
    ],
)
def test_faults_are_named(low, high, fault):
    assert faults(low, high) == fault


def test_an_erased_robot_is_just_erased():
    assert {kind for kind, _ in faults([0xFFFF] * 14, [0xFFFF] * 14)} == {"erased"}


def test_exchanged_tables_cross_everywhere():
    found = examine_tables(HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE)
    crossing = next(one for one in found if one.kind == "crossing gains")
    assert len(crossing.distances_mm) == 14
    assert "exchanged" in crossing.text


def test_saturated_entries_that_nobody_looks_up_do_no_harm():
    high = [1023] * 5 + HIGH[5:]
    assert faults(high=high) == {}
    assert notes(high=high) == {("saturated", "high_gain"): (33, 38, 43, 48, 53)}


def test_entries_below_the_comparator_are_noted():
    high = [*HIGH[:12], 65, 60]
    low = [*LOW[:12], 14, 13]
    assert notes(low, high)[("out of reach", "low_gain")] == (93, 98)
    assert ("out of reach", "high_gain") in notes(low, high)


def test_texts_say_where_and_what():
    (found,) = examine_tables(tuple(changed(LOW, at_58=240)), tuple(h // 2 for h in HIGH))
    assert "at 58 mm they do not (231 at 53 mm, then 240)" in found.text


# ---- what readings say ---------------------------------------------------------------------------


def by_readings(low_table, high_table):
    """Readings of the example's robot, estimated with other tables."""
    distance = np.repeat(np.arange(33.0, 99.0, 1.0), 4)
    low, high = (np.interp(distance, TABLE_MM, t).astype(int) for t in (LOW, HIGH))
    high = np.minimum(high, 1023)
    estimate = estimate_distances(low, high, low_table, high_table)
    found = examine_readings((tuple(low_table), tuple(high_table)), distance, low, high, estimate)
    return {one.kind: one for one in found}


def test_readings_of_the_tables_robot_find_nothing():
    assert by_readings(LOW, HIGH) == {}


def test_gains_that_disagree_where_they_hand_over():
    """A low-gain table measured with 10 per cent less light, in another session."""
    found = by_readings([round(0.9 * count) for count in LOW], HIGH)
    assert "discontinuity" in found
    assert "low gain says" in found["discontinuity"].text
    assert "shorter" in found["discontinuity"].text


def test_tables_of_a_stronger_receiver_do_not_fit():
    found = by_readings([round(1.2 * c) for c in LOW], [round(1.2 * c) for c in HIGH])
    assert set(found) == {"misfit"}
    assert "too long at" in found["misfit"].text


def test_errors_that_cancel_out_are_found():
    """Of a table that is tilted estimates are too long here and too short there."""
    share = np.linspace(0.9, 1.1, 14)
    found = by_readings(
        *([round(s * c) for s, c in zip(share, t, strict=True)] for t in (LOW, HIGH))
    )
    error = found["misfit"]
    assert error.distances_mm[-1] > 80
    assert "mm rms over distance" in error.text


def test_noise_is_no_misfit():
    """Errors of 8 mm, three readings at each distance: right on average."""
    distance = np.repeat(np.arange(33.0, 99.0, 2.0), 3)
    noise = np.random.Generator(np.random.PCG64(3)).normal(0, 8, len(distance))
    nothing = np.zeros(len(distance), int)
    tables = (tuple(LOW), tuple(HIGH))
    assert examine_readings(tables, distance, nothing, nothing, distance + noise) == []
    found = examine_readings(tables, distance, nothing, nothing, distance + noise + 15)
    assert [one.kind for one in found] == ["misfit"]


def test_high_gain_that_falls_too_early_at_the_far_end():
    high = [1098, 1088, 1080, 1047, 1014, 960, 930, 850, 777, 690, 640, 600, 560, 520]
    found = by_readings(LOW, high)
    assert set(found) == {"misfit"}
    assert "too short at 9" in found["misfit"].text
    assert min(found["misfit"].distances_mm) >= 83
