"""One robot's chip that hears messages of known strength and says what distance it makes of them.

The binary runs untouched: it boots, obeys a RUN command, receives every pulse in its own interrupt
and calls its own ``estimate_distance``, in whose way stand two breakpoints: at the entry, where the
argument points to the readings, and at the return address, where r24 holds the result. A binary
without that symbol may tell over the serial line, as the shipped ``distance_reporter`` does.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from avrswarm.chip.chip import SUPPLY_VOLTS, Chip, StopReason
from avrswarm.errors import ProgramError
from avrswarm.program import Program
from avrswarm.program.space import Space
from avrswarm.robot.messages import Message, MessageType, pulse_cycles

ESTIMATE = "estimate_distance"
REPORT = re.compile(rb"(?:^|\n)\d+ (-?\d+) (-?\d+) (\d+)\n")
"""A line of the distance reporter: sender low_gain high_gain distance_mm."""

SENDER_HZ = 8_000_000
COMPARATOR_HIGH_S = 25e-6  # how long a pulse keeps the comparator high (hardware reference 4.7)
VOLTS_PER_COUNT = SUPPLY_VOLTS / 1024
COMMAND_COUNTS = (150, 697)  # low and high gain of the overhead controller's light
BATTERY_VOLTS = 3.9
BOOT_S = 0.01
OBEY_S = 0.3  # the idle loop looks for commands every 0.2 s
WAIT_S = 1.0  # for an estimate, after the end of a message
PAUSE_S = 0.0213  # between messages; not a multiple of the tick, so that they meet all its phases
SERIAL_SLICE_S = 0.005


class Method(StrEnum):
    """How estimates are taken from the binary."""

    SYMBOL = "return value"
    SERIAL = "serial line"


class Estimate(NamedTuple):
    """What the binary measured, and what it made of that."""

    low_gain: int
    high_gain: int
    distance_mm: int


class ListeningChip:
    """A robot that has been told to run and hears what it is told.

    Parameters
    ----------
    program
        Any Kilobot firmware.
    eeprom
        Its 1024 bytes of EEPROM.
    clock_hz
        Frequency of its chip; the sender has exactly 8 MHz.
    """

    def __init__(self, program: Program, eeprom: bytes, clock_hz: float = SENDER_HZ) -> None:
        symbol = program.symbols.find(ESTIMATE, Space.FLASH)
        self._entry = None if symbol is None else symbol.address
        self._chip = Chip(program, clock_hz=clock_hz, eeprom=eeprom)
        self._chip.set_pin("PD0", 1)  # no charger
        self._chip.set_adc("ADC6", BATTERY_VOLTS / 2)
        self._run(BOOT_S)
        self._shine(Message.make(MessageType.RUN), *COMMAND_COUNTS)
        self._run(OBEY_S)
        self._reported = len(self._chip.uart)

    @property
    def method(self) -> Method:
        """How estimates are taken."""
        return Method.SERIAL if self._entry is None else Method.SYMBOL

    def hear(self, message: Message, low_gain: int, high_gain: int) -> Estimate | None:
        """Let a message arrive with these ADC counts; return the estimate, None if there is none.

        Whoever calls sees to it that light as weak as this switches the comparator.
        """
        end = self._shine(message, low_gain, high_gain)
        deadline = end + round(WAIT_S * self._hertz)
        # Nobody can have measured this message before its last pulse.
        self._chip.run(end - self._chip.cycle)
        found = self._called(deadline) if self._entry is not None else self._printed(deadline)
        self._run(PAUSE_S)
        return found

    @property
    def _hertz(self) -> float:
        """Frequency of its clock now: what OSCCAL in its EEPROM has made of it."""
        chip = self._chip
        return SENDER_HZ if chip.seconds == 0 else chip.cycle / chip.seconds

    def _run(self, seconds: float) -> None:
        self._chip.run(round(seconds * self._hertz))

    def _shine(self, message: Message, low_gain: int, high_gain: int) -> int:
        """Put a message on the comparator, its strength on both channels; return its last edge."""
        chip, hertz = self._chip, self._hertz
        for channel, counts in (("ADC0", high_gain), ("ADC1", low_gain)):
            chip.set_adc(channel, (counts + 0.5) * VOLTS_PER_COUNT)  # the middle of an ADC step
        start = chip.cycle + 100
        cycles = [
            start + round(cycle * hertz / SENDER_HZ) for cycle in pulse_cycles(message.pack())
        ]
        chip.pulse_comparator(cycles, round(COMPARATOR_HIGH_S * hertz))
        return cycles[-1]

    def _called(self, deadline: int) -> Estimate | None:
        chip = self._chip
        assert self._entry is not None
        reason = chip.run_until(pc=self._entry, max_cycles=max(0, deadline - chip.cycle))
        if reason != StopReason.BREAKPOINT:
            return None
        data, stack = chip.data, chip.sp
        measurement = int(data[24]) | int(data[25]) << 8
        low, high = (
            int.from_bytes(data[place : place + 2].tobytes(), "little", signed=True)
            for place in (measurement, measurement + 2)
        )
        caller = 2 * (int(data[stack + 1]) << 8 | int(data[stack + 2]))
        while chip.sp != stack + 2:  # an interrupt may pass the same place deeper in the stack
            if chip.run_until(pc=caller, max_cycles=deadline) != StopReason.BREAKPOINT:
                raise ProgramError(
                    f"{chip.program.name}: '{ESTIMATE}' was called and never returned"
                )
        return Estimate(low, high, chip.registers[24])

    def _printed(self, deadline: int) -> Estimate | None:
        chip = self._chip
        while chip.cycle < deadline:
            self._run(SERIAL_SLICE_S)
            match = REPORT.search(chip.uart, max(0, self._reported - 1))
            if match is not None:
                self._reported = match.end()
                low, high, distance = (int(text) for text in match.groups())
                return Estimate(low, high, distance)
        return None
