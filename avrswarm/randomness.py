"""All randomness of a run: a number is a function of the scene's seed, a stream and two counters.

Nothing is drawn "next". Whoever needs a random number says which one it is (robot 17, conversion
203), so running a window again, using more threads or resuming from a saved state draws the same
numbers.

The mixer is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1,
2, 3", SC 2011), with the published test vectors in the tests.

>>> [round(float(x), 3) for x in draw_uniform(2026, Stream.SPREAD, 2)]
[0.135, 0.021]
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import entry, kernel
from avrswarm.portable_math import cosine_sine, natural_logarithm

_WORD = 0xFFFFFFFF
_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = 0x9E3779B9
_WEYL_1 = 0xBB67AE85
_ROUNDS = 10
_WORD_BITS = np.uint64(32)
_LOW_WORD = np.uint64(_WORD)


class Stream(IntEnum):
    """What a number is drawn for; streams never share numbers."""

    PLACEMENT = 1  # where robots stand
    SPREAD = 2  # how one robot differs from the next
    ADC = 3  # noise of conversions
    OPTICS = 4  # noise and loss of messages
    MOTION = 5  # noise of movement
    CLOCK = 6  # phase and drift of clocks
    PULSES = 7  # noise of single pulses


@kernel
def mix(key: int, word_0: int, word_1: int, word_2: int, word_3: int) -> tuple[int, int, int, int]:
    """Return the four 32-bit words that Philox makes of a 64-bit key and four words."""
    key_0 = key & _WORD
    key_1 = (key >> 32) & _WORD
    for _ in range(_ROUNDS):
        product_0 = np.uint64(word_0) * _MULTIPLIER_0
        product_1 = np.uint64(word_2) * _MULTIPLIER_1
        word_0 = int(np.int64(product_1 >> _WORD_BITS)) ^ word_1 ^ key_0
        word_2 = int(np.int64(product_0 >> _WORD_BITS)) ^ word_3 ^ key_1
        word_1 = int(np.int64(product_1 & _LOW_WORD))
        word_3 = int(np.int64(product_0 & _LOW_WORD))
        key_0 = (key_0 + _WEYL_0) & _WORD
        key_1 = (key_1 + _WEYL_1) & _WORD
    return word_0, word_1, word_2, word_3


@kernel
def uniform(key: int, stream: int, a: int, b: int) -> float:
    """Return number (a, b) of a stream, evenly distributed in [0, 1); ``a`` counts up to 2**32."""
    high, low, _, _ = mix(key, b & _WORD, (b >> 32) & _WORD, a & _WORD, stream)
    return ((high >> 5) * 67108864.0 + (low >> 6)) * (1.0 / 9007199254740992.0)


@kernel
def gaussian(key: int, stream: int, a: int, b: int) -> float:
    """Return number (a, b) of a stream, normally distributed with mean 0 and deviation 1."""
    high, low, turn, _ = mix(key, b & _WORD, (b >> 32) & _WORD, a & _WORD, stream)
    above_zero = ((high >> 5) * 67108864.0 + (low >> 6) + 1.0) * (1.0 / 9007199254740992.0)
    cosine, _ = cosine_sine(turn * (2 * math.pi / 4294967296.0))
    return math.sqrt(-2.0 * natural_logarithm(above_zero)) * cosine


@entry
def fill_uniform(key: int, stream: int, b: int, out: NDArray[np.float64]) -> None:
    """Fill ``out[a]`` with ``uniform(key, stream, a, b)``."""
    for a in range(len(out)):
        out[a] = uniform(key, stream, a, b)


@entry
def fill_gaussian(key: int, stream: int, b: int, out: NDArray[np.float64]) -> None:
    """Fill ``out[a]`` with ``gaussian(key, stream, a, b)``."""
    for a in range(len(out)):
        out[a] = gaussian(key, stream, a, b)


def draw_uniform(key: int, stream: int, count: int, b: int = 0) -> NDArray[np.float64]:
    """Return ``count`` numbers of a stream, in [0, 1); ``b`` says which set."""
    out = np.empty(count)
    fill_uniform(key, int(stream), b, out)
    return out


def draw_gaussian(key: int, stream: int, count: int, b: int = 0) -> NDArray[np.float64]:
    """Return ``count`` normally distributed numbers of a stream; ``b`` says which set."""
    out = np.empty(count)
    fill_gaussian(key, int(stream), b, out)
    return out
