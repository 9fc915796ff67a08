"""Sine, cosine and logarithm from plain arithmetic, so that every machine gives the same bits.

The C library's versions differ in the last bit between processors and between releases, and a
swarm doubles such a difference until robots go elsewhere. IEEE 754 fixes only + - * / and the
square root; these functions use nothing else. Polynomials: fdlibm (Sun Microsystems, 1993), error
below one unit in the last place for the arguments that occur here.
"""

from __future__ import annotations

import math

from avrswarm.jit import kernel

_QUARTER_TURN_HIGH = 1.57079632673412561417
_QUARTER_TURN_LOW = 6.07710050650619224932e-11
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


@kernel
def _sine(x: float) -> float:
    """Return the sine for |x| <= pi / 4."""
    z = x * x
    tail = 8.33333333332248946124e-03 + z * (
        -1.98412698298579493134e-04
        + z
        * (
            2.75573137070700676789e-06
            + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
        )
    )
    return x + x * z * (-1.66666666666666324348e-01 + z * tail)


@kernel
def _cosine(x: float) -> float:
    """Return the cosine for |x| <= pi / 4."""
    z = x * x
    tail = 4.16666666666666019037e-02 + z * (
        -1.38888888888741095749e-03
        + z
        * (
            2.48015872894767294178e-05
            + z
            * (
                -2.75573143513906633035e-07
                + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
            )
        )
    )
    return 1.0 - (0.5 * z - z * z * tail)


@kernel
def cosine_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine of an angle in radians (not more than a few thousand turns)."""
    quarter = math.floor(angle * (2 / math.pi) + 0.5)
    rest = (angle - quarter * _QUARTER_TURN_HIGH) - quarter * _QUARTER_TURN_LOW
    sine = _sine(rest)
    cosine = _cosine(rest)
    which = int(quarter) & 3
    if which == 0:
        return cosine, sine
    if which == 1:
        return -sine, cosine
    if which == 2:
        return -cosine, -sine
    return sine, -cosine


@kernel
def natural_logarithm(x: float) -> float:
    """Return ln(x) for a positive, normal x."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.70710678118654752:
        mantissa *= 2.0
        exponent -= 1
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (
        3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    )
    even = z * (
        6.666666666666735130e-01
        + w
        * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    k = float(exponent)
    return k * _LN2_HIGH - ((half - (s * (half + odd + even) + k * _LN2_LOW)) - f)


@kernel
def wrap_angle(angle: float) -> float:
    """Return the same direction in -pi .. pi."""
    if angle > math.pi:
        return angle - 2 * math.pi * math.floor((angle + math.pi) / (2 * math.pi))
    if angle < -math.pi:
        return angle + 2 * math.pi * math.floor((math.pi - angle) / (2 * math.pi))
    return angle
