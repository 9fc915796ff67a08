"""Infrared amplitude against distance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.world.optics import (
    CALIBRATED_COUNTS,
    CALIBRATED_DISTANCES_MM,
    LIMIT_COUNTS,
    PRESETS,
    amplitudes,
    calibrated_optics,
    disc_optics,
    inverse_square_optics,
    reach_mm,
    table_optics,
)

pytestmark = pytest.mark.jit_off

RANGES = st.floats(40, 400)


@given(RANGES)
def test_calibrated_curve_falls_all_the_way(range_mm):
    optics = calibrated_optics(range_mm)
    assert (np.diff(optics.counts) < 0).all()


@given(RANGES)
def test_the_limit_is_reached_at_the_wanted_range(range_mm):
    for optics in (calibrated_optics(range_mm), inverse_square_optics(range_mm)):
        assert amplitudes(optics, [range_mm])[0] == pytest.approx(LIMIT_COUNTS, rel=0.02)
        assert amplitudes(optics, [range_mm - 1])[0] > LIMIT_COUNTS
        assert amplitudes(optics, [range_mm + 1])[0] < LIMIT_COUNTS
        assert reach_mm(optics) == pytest.approx(range_mm, abs=1.0)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_keep_the_calibrated_readings(preset):
    optics = calibrated_optics(PRESETS[preset].range_mm)
    read = amplitudes(optics, list(CALIBRATED_DISTANCES_MM[:-1]))
    assert read == pytest.approx(CALIBRATED_COUNTS[:-1], abs=1e-5)
    halfway = amplitudes(optics, [35.5, 95.5])  # straight between the points, as firmware assumes
    assert halfway == pytest.approx([275, 126.5], abs=1e-5)


def test_the_curve_joins_its_extrapolation_smoothly():
    optics = calibrated_optics(230)  # next to no extra fall
    slopes = np.diff(amplitudes(optics, [98, 102.9, 103.1, 108])) / [4.9, 0.2, 4.9]
    assert slopes[2] == pytest.approx(slopes[0], rel=0.2)


def test_inverse_square():
    optics = inverse_square_optics(100, gain=4)
    near, far = amplitudes(optics, [50, 100])
    assert near / far == pytest.approx(4, rel=1e-3)
    assert reach_mm(optics) == pytest.approx(200, abs=1)


def test_disc_ends_sharply():
    optics = disc_optics(70, 150)
    assert amplitudes(optics, [0, 33, 69.999, 70, 70.001]).tolist() == [150, 150, 150, 150, 0]
    assert reach_mm(optics) == 70


def test_table_goes_through_its_points():
    optics = table_optics(np.array([30.0, 60.5, 90]), np.array([300.0, 100, 20]))
    assert amplitudes(optics, [0, 30, 45.25, 60.5, 90]) == pytest.approx([300, 300, 200, 100, 20])
    assert amplitudes(optics, [90.5])[0] == 0


def test_better_ears_reach_farther():
    optics = calibrated_optics(200)
    assert reach_mm(optics, 2.0) > reach_mm(optics, 1.0) > reach_mm(optics, 0.5) > 98
    assert reach_mm(optics, 1e-6) == 0
