"""The infrared board: LED driver and receiver front end (a model; hardware reference 4.6, 4.7).

Sender: the pins of port B that are high set the LED's power. Receiver: light arrives as a pulse of
some amplitude, measured in counts of the low-gain channel. Its way to the chip:

* threshold: what does not reach the comparator's limit makes no edge, but lingers and may add to
  the next;
* time walk: a weak pulse crosses the threshold later than a strong one (0.3 to 5.9 us), and the
  comparator itself takes 0.75 us;
* stretching: the comparator stays high for 13 to 29 us; pulses that arrive meanwhile make no new
  edge;
* saturation: both channels end at the reference voltage.

Everything happens at world times, so it does not matter in which pieces a run is computed.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.state import TIME_UNITS_PER_SECOND, Tape, record_dtype
from avrswarm.jit import kernel
from avrswarm.portable_math import natural_logarithm
from avrswarm.robot.distance_tables import high_gain_counts

LED_PINS = 0xC7
"""Port B pins of the LED's resistor DAC."""
ANALOG_PIN = 0x04
"""PD2 switches the supply of LED, receiver and motors."""

MICROSECOND = TIME_UNITS_PER_SECOND // 1_000_000
COMPARATOR_US = 0.75  # propagation delay at 3 V (timing reference 5)
FASTEST_CROSSING_US = 0.3
SLOWEST_WALK_US = 5.6  # added at the limit of range; 2 us in all at 1.86 times the limit
WALK_STEEPNESS = 2.67
LINGER_US = 8.0
"""Time constant of light below the threshold fading (assumption: the receiver's high-pass)."""
SHORTEST_HIGH, LONGEST_HIGH = 0.52, 1.16
"""Of the nominal 25 us. The reference simulates 13 to 34 us; 34 would merge neighbouring bits,
which are 33.75 us apart. Real robots at contact do not merge them, so this model ends at 29."""
NOMINAL_STRENGTH = 4.0  # times the limit, at which the comparator stays high for its nominal time
STRENGTH_OF_LONGEST = 6.5  # from here on it is the longest time for certain
_HIGH_SLOPE = (1.0 - SHORTEST_HIGH) / math.log(NOMINAL_STRENGTH)

MICROVOLTS_PER_COUNT = 3_000_000 / 1024
HIGHEST_COUNT = 1023.9

PENDING = 48
"""Pulses on their way at most: more than there can be neighbours within 100 mm."""
CARRIED = 16


class FrontEndRow:
    """What one robot's receiver remembers between two windows."""

    level: int  # comparator output
    fall: int  # time at which it falls if nothing more arrives
    lingering: float  # amplitude that has not faded yet, at lingering_since
    unheard: float  # the part of it that has not switched the comparator
    lingering_since: int
    pending_since: int  # end of this window
    pending_count: int  # pulses on their way that arrive after it
    pending_time: Annotated[NDArray[np.int32], (PENDING,)]  # time after it: a few microseconds
    pending_counts: Annotated[NDArray[np.float64], (PENDING,)]
    carried_count: int  # tape rows that the chip has not come to yet
    carried: Annotated[NDArray[np.int64], (CARRIED, 2)]  # time and voltages; none: the output falls


FRONT_END_DTYPE = record_dtype(FrontEndRow)


class Receiver(NamedTuple):
    """Properties of receivers; arrays are per robot."""

    gain: NDArray[np.float64]
    threshold: NDArray[np.float64]  # low-gain counts that just switch the comparator
    high_us: float


def led_power() -> NDArray[np.float64]:
    """Return the LED's power for each set of high port B pins, 1.0 for PB0 alone (4.6)."""
    ohms = {0: 154.0, 1: 1180.0, 2: 2370.0, 6: 4870.0, 7: 9760.0}
    power = np.zeros(256)
    for pins in range(256):
        pulling = sum(1.0 / ohm for bit, ohm in ohms.items() if pins >> bit & 1)
        volts = 3.0 * pulling / (pulling + 1.0 / 301.0)
        power[pins] = max(0.0, volts - 1.4)  # two emitter followers below
    relative: NDArray[np.float64] = power / power[1]
    return relative


@kernel
def crossing_delay(strength: float) -> int:
    """Return the time from LED edge to comparator edge; ``strength`` is the amplitude in limits."""
    above = max(strength - 1.0, 0.0)
    walk = SLOWEST_WALK_US / (1.0 + WALK_STEEPNESS * above)
    return int((COMPARATOR_US + FASTEST_CROSSING_US + walk) * MICROSECOND)


@kernel
def _high_time(strength: float, nominal_us: float) -> int:
    share = LONGEST_HIGH
    if strength < STRENGTH_OF_LONGEST:
        share = min(share, SHORTEST_HIGH + _HIGH_SLOPE * natural_logarithm(max(strength, 1.0)))
    return int(share * nominal_us * MICROSECOND)


@kernel
def _microvolts(counts: float) -> int:
    """Return the middle of an ADC step, so that a conversion gives the whole part of ``counts``."""
    return int((min(float(int(counts)), HIGHEST_COUNT) + 0.5) * MICROVOLTS_PER_COUNT)


@kernel
def _write_row(tape: NDArray[np.int64], row: int, time: int, level: int, counts: float) -> None:
    tape[row, 0] = time
    tape[row, 1] = Tape.PULSE
    tape[row, 2] = level
    if level:
        low, high = _microvolts(counts), _microvolts(high_gain_counts(counts))
        tape[row, 3] = high | low << 32
    else:
        tape[row, 3] = 0


@kernel
def play_carried(front: FrontEndRow, tape: NDArray[np.int64]) -> int:
    """Put the rows that were carried over at the begin of a tape; return their number."""
    for row in range(front.carried_count):
        tape[row, 0] = front.carried[row, 0]
        tape[row, 1] = Tape.PULSE
        tape[row, 2] = int(front.carried[row, 1] != 0)
        tape[row, 3] = front.carried[row, 1]
    return int(front.carried_count)


@kernel
def receive(
    front: FrontEndRow,
    robot: int,
    receiver: Receiver,
    times: NDArray[np.int64],
    counts: NDArray[np.float64],
    arrivals: int,
    end: int,
    tape: NDArray[np.int64],
    rows: int,
) -> int:
    """Turn arrivals before ``end`` into tape rows after the first ``rows``; return their number.

    Arrivals are in order of time. ``front`` is brought to ``end``.
    """
    limit = receiver.threshold[robot]
    for number in range(arrivals):
        now = times[number]
        if front.level and front.fall <= now:
            _write_row(tape, rows, front.fall, 0, 0.0)
            rows += 1
            front.level = 0
        # Fading as 1 / (1 + x)^4: close to an exponential, and the same bits on every machine.
        x = (now - front.lingering_since) / (4.0 * LINGER_US * MICROSECOND)
        fading = 1.0 / ((1.0 + x) * (1.0 + x))
        fading *= fading
        amplitude = front.lingering * fading + counts[number]
        front.lingering = amplitude
        front.unheard = front.unheard * fading + counts[number]
        front.lingering_since = now
        strength = front.unheard / limit
        if strength >= 1.0:
            front.unheard = 0.0
            front.level = 1
            front.fall = max(front.fall, now + _high_time(strength, receiver.high_us))
        if front.level:
            _write_row(tape, rows, now, 1, amplitude)
            rows += 1
    if front.level and front.fall < end:
        _write_row(tape, rows, front.fall, 0, 0.0)
        rows += 1
        front.level = 0
    return rows
