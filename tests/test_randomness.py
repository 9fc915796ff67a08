"""Counter-based random numbers and portable functions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.jit import JIT_DISABLED, entry
from avrswarm.portable_math import cosine_sine, natural_logarithm, wrap_angle
from avrswarm.randomness import Stream, draw_gaussian, draw_uniform, mix

pytestmark = pytest.mark.jit_off

MANY = 200 if JIT_DISABLED else 200_000


@entry
def call_mix(key, a, b, c, d):
    return mix(key, a, b, c, d)


@entry
def call_cosine_sine(angle):
    return cosine_sine(angle)


@entry
def call_logarithm(x):
    return natural_logarithm(x)


@entry
def call_wrap(angle):
    return wrap_angle(angle)


@pytest.mark.parametrize(
    ("key", "counter", "result"),
    [  # known answers of philox4x32-10, file kat_vectors of Random123
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF, 0xFFFFFFFF),
            (0xFFFFFFFF,) * 4,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(key, counter, result):
    whole = key[0] | key[1] << 32
    signed = whole - (1 << 64) if whole >> 63 else whole
    assert tuple(int(word) for word in call_mix(signed, *counter)) == result


def test_numbers_are_the_same_in_every_run_and_mode():
    """These bits are part of every digest; they must not change by accident."""
    assert draw_uniform(2026, Stream.SPREAD, 3, 5).tolist() == UNIFORM
    assert draw_gaussian(2026, Stream.MOTION, 3, 1 << 40).tolist() == GAUSSIAN


UNIFORM = [0.46747611681583556, 0.6625528602287536, 0.22197955680792625]
GAUSSIAN = [0.1475898281206407, 0.16753094691888626, -0.6710659297059341]


def test_distributions():
    uniform = draw_uniform(1, Stream.OPTICS, MANY)
    normal = draw_gaussian(1, Stream.OPTICS, MANY)
    error = 4 / math.sqrt(MANY)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < error * 0.29
    assert abs(normal.mean()) < error
    assert abs(normal.std() - 1) < error
    if not JIT_DISABLED:
        assert abs((normal**4).mean() - 3) < 0.1
        assert abs(np.corrcoef(normal[1:], normal[:-1])[0, 1]) < error


def test_streams_counters_and_seeds_differ():
    sets = [
        draw_uniform(key, stream, 4, b).tobytes()
        for key in (0, 1, 2**62)
        for stream in (Stream.ADC, Stream.OPTICS)
        for b in (0, 1, 1 << 33)
    ]
    assert len(set(sets)) == len(sets)


@given(st.floats(-1000, 1000))
def test_cosine_and_sine(angle):
    cosine, sine = call_cosine_sine(angle)
    assert abs(cosine - math.cos(angle)) < 1e-13
    assert abs(sine - math.sin(angle)) < 1e-13
    assert abs(cosine * cosine + sine * sine - 1) < 1e-15


@given(st.floats(1e-300, 1e300))
def test_logarithm(x):
    assert abs(call_logarithm(x) - math.log(x)) <= 4e-16 * max(1, abs(math.log(x)))


@given(st.floats(-100, 100))
def test_wrapped_angles_point_the_same_way(angle):
    wrapped = call_wrap(angle)
    assert -math.pi - 1e-9 <= wrapped <= math.pi + 1e-9
    assert abs(math.sin(wrapped) - math.sin(angle)) < 1e-9
    assert abs(math.cos(wrapped) - math.cos(angle)) < 1e-9
