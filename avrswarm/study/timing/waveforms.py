"""Waveforms of chosen robots in world time: pins, and what they mean.

Beside the pins each robot has: ``comparator`` (light was seen), ``ir_led``, the bytes of frames it
sent (``ir_sent``) and that pulses at its comparator spell (``ir_heard``, at their stop bits),
``motor_left`` and ``motor_right`` (0 to 255, duty of the PWM), and ``uart`` (bytes sent). Bytes are
shown for a moment, so that two equal ones are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.state import NEVER, TIME_UNITS_PER_SECOND
from avrswarm.record.vcd import VcdWriter
from avrswarm.robot.messages import frame_from_pulses
from avrswarm.study.timing.observe import Observed

Integers = NDArray[np.int64]
Changes = list[tuple[int, int | None]]
"""World time and new value; None: no value."""

UNITS_PER_PICOSECOND = TIME_UNITS_PER_SECOND // 10**12
LONGEST_FLASH = TIME_UNITS_PER_SECOND // 10_000
"""Time for which a byte is shown: 0.1 ms."""
LED_PIN = "PB0"
MOTOR_PINS = {"motor_left": "PB3", "motor_right": "PD3"}
MOST_PULSES = 122
"""Pulses of a frame whose bits are all ones."""
PWM_PERIOD = 510 * 8
"""Cycles of a motor PWM period: phase correct, prescaler 8 (hardware reference 2.2)."""
CYCLES_PER_STEP = 16
"""High cycles per unit of OCR2A or OCR2B: it counts up and down."""


def needed_pins(shown: Sequence[str]) -> list[str]:
    """Return the pins that must be watched to show these and what is decoded."""
    return list(dict.fromkeys([*shown, LED_PIN, *MOTOR_PINS.values()]))


def write_waveforms(stream: TextIO, robots: Sequence[Observed], pins: Sequence[str]) -> None:
    """Write a value change dump of all robots, a scope for each."""
    widths: dict[str, int] = {}
    changes: list[tuple[int, str, int | None]] = []
    last = 0
    for seen in robots:
        scope = seen.label.replace(" ", "_")
        for name, (width, rows) in _signals(seen, pins).items():
            widths[f"{scope}.{name}"] = width
            changes += [(time, f"{scope}.{name}", value) for time, value in rows]
        last = max(last, int(seen.times(np.array([seen.last_cycle]))[0]))
    writer = VcdWriter(stream, 10**12, widths)
    for time, name, value in sorted(changes, key=lambda change: change[0]):
        writer.update(time // UNITS_PER_PICOSECOND, [(name, value)])
    writer.finish(last // UNITS_PER_PICOSECOND)


def _signals(seen: Observed, pins: Sequence[str]) -> dict[str, tuple[int, Changes]]:
    """Return width and changes (world time, value) of all signals of a robot."""
    begin = int(seen.times(np.array([seen.first_cycle]))[0])

    def in_time(rows: Iterable[tuple[int, int]], before: int | None) -> Changes:
        table = np.array(list(rows), np.int64).reshape(-1, 2)
        times = seen.times(table[:, 0]).tolist()
        return [(begin, before), *zip(times, table[:, 1].tolist(), strict=True)]

    def flashed(rows: Iterable[tuple[int, int]]) -> Changes:
        changes = in_time(rows, None)
        ends = [time for time, _ in changes[1:]] + [NEVER]
        pauses = [
            (time + min(LONGEST_FLASH, (end - time) // 2), None)
            for (time, _), end in zip(changes[1:], ends[1:], strict=True)
        ]
        return changes + pauses

    led = seen.pin_edges(LED_PIN)
    light = seen.light
    rising = light[np.append(True, np.diff(light[:, 1]) > 0)[: len(light)] & (light[:, 1] > 0), 0]
    signals: dict[str, tuple[int, Changes]] = {
        pin: (1, in_time(map(tuple, seen.pin_edges(pin).tolist()), seen.pins_before[pin]))
        for pin in pins
    }
    signals["comparator"] = (1, [(begin, 0), *map(tuple, light.tolist())])
    signals["ir_led"] = (1, in_time(map(tuple, led.tolist()), seen.pins_before[LED_PIN]))
    signals["ir_sent"] = (8, flashed(decode_frames(led[led[:, 1] == 1, 0])))
    heard = decode_frames(cycles_at(seen, rising))
    signals["ir_heard"] = (8, flashed(heard))
    for name, pin in MOTOR_PINS.items():
        duties = decode_duty(seen.pin_edges(pin), seen.pins_before[pin], seen.last_cycle)
        signals[name] = (8, in_time(duties, 0))
    signals["uart"] = (8, flashed(map(tuple, seen.uart().tolist())))
    return signals


def cycles_at(seen: Observed, times: Integers) -> Integers:
    """Return the first cycles that begin at or after world times."""
    piece = np.maximum(np.searchsorted(seen.clock[:, 1], times, side="right") - 1, 0)
    first, time, period = seen.clock[piece].T
    cycles: Integers = first - (time - times) // period
    return cycles


def decode_frames(rises: Integers) -> list[tuple[int, int]]:
    """Return (cycle of the stop bit, byte) of all whole frames in pulses that begin then."""
    found = []
    pulses = rises.tolist()
    place = 0
    while place < len(pulses):
        frame = frame_from_pulses(pulses[place : place + MOST_PULSES])
        if frame is None:
            place += 1
            continue
        place += 2  # the leading byte
        for byte in frame:
            place += 2 + byte.bit_count()  # start and stop bit are ones
            found.append((pulses[place - 1], byte))
    return found


def decode_duty(edges: Integers, before: int, end: int) -> list[tuple[int, int]]:
    """Return (cycle, duty 0 to 255) whenever the high time of a PWM pin changes."""
    duties: list[tuple[int, int]] = []

    def note(cycle: int, duty: int) -> None:
        if not duties or duties[-1][1] != duty:
            duties.append((cycle, duty))

    level, since = before, 0
    for cycle, new in [*map(tuple, edges.tolist()), (end, 1 - before)]:
        rested = cycle - since > PWM_PERIOD
        if level == 1 and (rested or cycle < end):  # a pulse that watching cut off tells nothing
            note(since, 255 if rested else round((cycle - since) / CYCLES_PER_STEP))
        elif level == 0 and rested:
            note(since, 0)
        level, since = new, cycle
    return duties
