"""One robot in one window of time: the light that reaches it, its chip, what it sends.

``avrswarm.swarm.rounds`` has all robots run a window until they agree. Receivers are described in
``avrswarm.robot.infrared``, the light's way in ``avrswarm.world.optics``; this is the place where
chips, boards and world meet.

A robot that waits need not be touched in every window. Between two events a chip in a proven idle
loop, or asleep, does nothing that anybody could see: it may lag behind. A chip in a counted delay
may run ahead to its next event, if it touches nothing on the way; light that arrives earlier takes
it back to its snapshot. ``quiet_until`` says how long a robot may be left alone.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.core import run
from avrswarm.chip.cpu import Stop
from avrswarm.chip.idle import SCRATCH_SIZE, forget_later_loops, in_delay_loop
from avrswarm.chip.peripherals import analog_comparator, eeprom
from avrswarm.chip.schedule import cycle_at
from avrswarm.chip.state import PAGE_WORDS, ChipRow, Chips, Log, Source, Touch, record_dtype
from avrswarm.isa.decode import FLASH_WORDS, decode_range
from avrswarm.jit import entry, kernel
from avrswarm.randomness import Stream, gaussian, uniform
from avrswarm.robot import infrared, sensors
from avrswarm.robot.board import Boards, look
from avrswarm.robot.infrared import FrontEndRow, Receiver
from avrswarm.robot.listener import NOTHING, deafen, hear
from avrswarm.swarm.copying import copy_row
from avrswarm.swarm.sharing import make_numbers, ticks_now
from avrswarm.world.optics import Optics, amplitude

MOST_PULSES = 80
"""Pulses of one robot in a window that there is room for. Most messages have fewer; where there are
more, or more of anything else than there is room for, the window is made half as long."""
SEVERAL = -1
"""In place of what a robot heard in a window: more than one message, which takes 3.7 ms."""
PULSE_PITCH = 28 * infrared.MICROSECOND
PULSE_BURST = 168 * infrared.MICROSECOND
"""A LED may flash once in 28 us, and run up to 168 us ahead of that; bits of a Kilobot's message
are 34 us apart, and 31 with a clock that is 10 % fast."""
MOST_BYTES = 64
"""Bytes that one robot can print in a window: more than 115 kBaud are in 5 ms."""
PULSE_NOISE_REACH = 4.0
"""Deviations within which the noise of a pulse can decide whether it is heard."""
MESSAGE_GAP = 400 * infrared.MICROSECOND
"""Silence of 400 us (3200 cycles, longer than any gap in a frame) ends a message."""

_FNV_PRIME = 1099511628211


class SenderRow:
    """Where a robot's LED driver stands between two windows."""

    powered: int  # PD2
    last_pins: int
    last_pulse: int  # time of the last pulse ever sent
    messages: int  # messages begun so far
    earned: int  # time by which its pulses, one per PULSE_PITCH, would be over
    lost: int  # pulses that came too fast


class EmissionRow:
    """What one robot sent in a window, and where its LED driver stands at the window's end."""

    powered: int
    last_pins: int
    last_pulse: int
    messages: int
    earned: int
    lost: int
    count: int  # one more than there is room for: the window must be a shorter one
    first_message: int  # number of the message that the first pulse belongs to
    since: int  # a time before all pulses
    pulse: Annotated[NDArray[np.int64], (MOST_PULSES,)]  # time after it << 8 | pins
    byte_count: int
    bytes: Annotated[NDArray[np.uint8], (MOST_BYTES,)]


SENDER_DTYPE = record_dtype(SenderRow)
EMISSION_DTYPE = record_dtype(EmissionRow)


@kernel
def pulse_time(emission: EmissionRow, number: int) -> int:
    """Return when a pulse begins."""
    return int(emission.since + (emission.pulse[number] >> 8))


@kernel
def pulse_pins(emission: EmissionRow, number: int) -> int:
    """Return which of the LED's pins are high in a pulse."""
    return int(emission.pulse[number] & 0xFF)


class Outcome(IntEnum):
    """What became of a robot in a round."""

    UNCHANGED = 0  # nothing new arrived: the last run stands, or it rests
    RAN = 1
    FAULT = 2
    IMAGE = 3  # it wants to program its own flash and needs a copy first


class Medium(NamedTuple):
    """Everything about light between robots; arrays are per robot."""

    optics: Optics
    transmit_gain: NDArray[np.float64]
    receiver: Receiver
    power: NDArray[np.float64]  # by high pins of port B
    amplitude_noise: float  # of each message, as a fraction
    pulse_noise: float  # of each pulse, as a fraction of the receiver's threshold
    message_loss: float  # probability, per message and listener
    distance_noise_mm: float
    hear_own: int
    seed: int


class Links(NamedTuple):
    """Who may hear whom in this step (robot r: ``sender[first[r]:first[r + 1]]``).

    The lists may hold some who are too far away; within ``range_mm`` is who is heard.
    """

    first: NDArray[np.int64]
    sender: NDArray[np.int32]
    x_mm: NDArray[np.float64]
    y_mm: NDArray[np.float64]
    range_mm: float


class Controller(NamedTuple):
    """Pulses of the overhead controller, in order of time, and whom they reach."""

    time: NDArray[np.int64]
    command: NDArray[np.int64]
    reaches: NDArray[np.uint8]  # [command, robot]
    counts: float


class Swarm(NamedTuple):
    """The arrays of all robots."""

    chips: Chips
    chip_bytes: NDArray[np.uint8]  # the same memory, for copying
    snapshots: NDArray[np.void]  # of ``SNAPSHOT_DTYPE``
    snapshot_bytes: NDArray[np.uint8]  # the same memory, for copying
    front: NDArray[np.void]
    front_next: NDArray[np.void]
    emissions: NDArray[np.void]  # [2, robot]
    current: NDArray[np.int64]  # which of the two is valid
    senders: NDArray[np.void]
    listeners: NDArray[np.void]
    listeners_next: NDArray[np.void]
    listener_bytes: NDArray[np.uint8]  # the same memory, for copying
    listener_next_bytes: NDArray[np.uint8]
    verdict: NDArray[np.int64]  # [robot, 3]: what `hear` said in this window, when; edges heard
    speakers: NDArray[np.void]
    flash: NDArray[np.uint16]  # [image, word]
    code: NDArray[np.uint32]
    program: NDArray[np.int64]  # what each robot was flashed with
    blocks: NDArray[np.int64]  # [program, word]: native code, see avrswarm.chip.native
    flash_before: NDArray[np.uint16]  # private images as they were when the window began
    page_before: NDArray[np.uint16]  # and page buffers: which words were loaded, what they held
    fresh: NDArray[np.uint8]  # 1: has not run in this window yet
    inbox: NDArray[np.int64]  # digest of the light it last ran with
    outcome: NDArray[np.int64]
    audible: NDArray[np.int64]  # pulses in its valid emission
    quiet_until: NDArray[np.int64]  # time before which only light can make it do anything
    tick_at: NDArray[np.int64]  # time of its next tick: when it may begin to send, as a guess
    ahead: NDArray[np.uint8]  # 1: its chip is ahead of time, the snapshot is the past to go back to
    eager: NDArray[np.int64]  # how many look at its chip: it never lags then, nor runs ahead
    dead: NDArray[np.uint8]  # 1: its chip has faulted
    boards: Boards


class Desk(NamedTuple):
    """Room to work in, one per thread."""

    thread: int
    tape: NDArray[np.int64]
    times: NDArray[np.int64]
    counts: NDArray[np.float64]
    scratch: NDArray[np.int64]
    crowded: NDArray[np.int64]  # [0] = 1: there was no room for a pulse
    spent: NDArray[np.int64]  # time, by ``Spent``


class Spent(IntEnum):
    """What a thread's time goes into; in ticks of the processor's clock."""

    WINDOWS = 0  # the leader's
    CHIPS = 1  # a part of that
    SENSES = 2
    MOTION = 3


def make_desk(thread: int = 0, rows: int = 32_768) -> Desk:
    """Return a desk for one thread."""
    return Desk(
        thread,
        np.zeros((rows, 4), np.int64),
        np.zeros(rows // 2 - infrared.CARRIED, np.int64),
        np.zeros(rows // 2 - infrared.CARRIED),
        np.zeros(SCRATCH_SIZE, np.int64),
        make_numbers(1),
        make_numbers(len(Spent)),
    )


# ---- what arrives
# ------------------------------------------------------------------------------------


@kernel
def _insert(desk: Desk, count: int, time: int, counts: float) -> int:
    """Insert an arrival in order of time, after those of the same time; return the new count."""
    if count >= len(desk.times):
        desk.crowded[0] = 1
        return count
    place = count
    while place > 0 and desk.times[place - 1] > time:
        desk.times[place] = desk.times[place - 1]
        desk.counts[place] = desk.counts[place - 1]
        place -= 1
    desk.times[place] = time
    desk.counts[place] = counts
    return count + 1


@kernel
def _message_amplitude(
    medium: Medium, sender: int, robot: int, distance_mm: float, message: int
) -> float:
    """Return the amplitude of a message of ``sender`` at ``robot`` for unit power; 0 if lost."""
    draw = sender << 24 | message & 0xFFFFFF
    if (
        medium.message_loss > 0.0
        and uniform(medium.seed, Stream.OPTICS, robot, draw) < medium.message_loss
    ):
        return 0.0
    if medium.distance_noise_mm > 0.0:
        shift = gaussian(medium.seed, Stream.OPTICS, robot, draw | 1 << 48)
        distance_mm = max(distance_mm + medium.distance_noise_mm * shift, 0.0)
    counts = amplitude(medium.optics, distance_mm)
    if medium.amplitude_noise > 0.0:
        noise = gaussian(medium.seed, Stream.OPTICS, robot, draw | 2 << 48)
        counts *= max(1.0 + medium.amplitude_noise * noise, 0.0)
    return float(counts * medium.transmit_gain[sender] * medium.receiver.gain[robot])


@kernel
def _with_pulse_noise(
    medium: Medium, sender: int, robot: int, time: int, counts: float, limit: float
) -> float:
    """Return the amplitude of a pulse with the receiver's noise, drawn where it can matter."""
    deviation = medium.pulse_noise * limit
    if abs(counts - limit) >= PULSE_NOISE_REACH * deviation:
        return counts
    draw = time ^ sender << 44
    return counts + deviation * gaussian(medium.seed, Stream.PULSES, robot, draw)


@kernel
def _collect_from(
    swarm: Swarm,
    medium: Medium,
    desk: Desk,
    count: int,
    sender: int,
    robot: int,
    distance_mm: float,
) -> int:
    emission = swarm.emissions[swarm.current[sender], sender]
    message = emission.first_message
    unit = _message_amplitude(medium, sender, robot, distance_mm, message)
    limit = medium.receiver.threshold[robot]
    last, delay = -1.0, 0  # most pulses are as strong as the one before
    for number in range(emission.count):
        now = pulse_time(emission, number)
        if number and now - pulse_time(emission, number - 1) > MESSAGE_GAP:
            message += 1
            unit = _message_amplitude(medium, sender, robot, distance_mm, message)
        counts = unit * medium.power[pulse_pins(emission, number)]
        counts = _with_pulse_noise(medium, sender, robot, now, counts, limit)
        if counts > 0.1 * limit:
            if counts != last:
                last, delay = counts, infrared.crossing_delay(counts / limit)
            count = _insert(desk, count, now + delay, counts)
    return count


@kernel
def _collect(
    swarm: Swarm,
    medium: Medium,
    links: Links,
    controller: Controller,
    first_pulse: int,
    last_pulse: int,
    robot: int,
    desk: Desk,
) -> int:
    """Gather light that reaches a robot from this window on, by time; return its pulses."""
    front = swarm.front[robot]
    count = 0
    for number in range(front.pending_count):
        time = front.pending_since + front.pending_time[number]
        count = _insert(desk, count, time, front.pending_counts[number])
    if medium.hear_own and swarm.audible[robot]:
        count = _collect_from(swarm, medium, desk, count, robot, robot, 0.0)
    for place in range(links.first[robot], links.first[robot + 1]):
        sender = int(links.sender[place])
        if swarm.audible[sender]:
            dx = links.x_mm[sender] - links.x_mm[robot]
            dy = links.y_mm[sender] - links.y_mm[robot]
            square = dx * dx + dy * dy
            if square <= links.range_mm * links.range_mm:
                distance_mm = math.sqrt(square)
                count = _collect_from(swarm, medium, desk, count, sender, robot, distance_mm)
    for pulse in range(first_pulse, last_pulse):
        if controller.reaches[controller.command[pulse], robot]:
            strength = controller.counts / medium.receiver.threshold[robot]
            time = controller.time[pulse] + infrared.crossing_delay(strength)
            count = _insert(desk, count, time, controller.counts)
    return count


@kernel
def _digest_inbox(desk: Desk, count: int) -> int:
    digest = 1469598103934665603 ^ count
    for number in range(count):
        digest = (digest ^ desk.times[number]) * _FNV_PRIME
        digest = (digest ^ int(desk.counts[number] * 1048576.0)) * _FNV_PRIME
    return digest


# ---- one robot
# ---------------------------------------------------------------------------------------


@kernel
def _begin_emission(emission: EmissionRow, sender: SenderRow, now: int) -> None:
    emission.powered = sender.powered
    emission.last_pins = sender.last_pins
    emission.last_pulse = sender.last_pulse
    emission.messages = sender.messages
    emission.earned = sender.earned
    emission.lost = sender.lost
    emission.count = 0
    emission.since = now
    emission.first_message = sender.messages
    emission.byte_count = 0


@kernel
def _drain_log(c: ChipRow, emission: EmissionRow, period: int, base: int, base_cycle: int) -> None:
    """Turn what the chip told since the last time into pulses and bytes; its clock is unchanged."""
    for number in range(c.log_count):
        entry_ = c.log[number]
        cycle = entry_ >> 16
        kind = entry_ >> 8 & 0xFF
        value = entry_ & 0xFF
        if kind == Log.UART:
            if emission.byte_count < MOST_BYTES:
                emission.bytes[emission.byte_count] = value
                emission.byte_count += 1
            else:
                emission.count = MOST_PULSES + 1
        elif kind == Log.PORTD:
            emission.powered = value & infrared.ANALOG_PIN
        elif kind == Log.PORTB:
            lit = value & infrared.LED_PINS
            if lit & 1 and not emission.last_pins & 1 and emission.powered:
                _add_pulse(emission, base + (cycle - base_cycle) * period, lit)
            emission.last_pins = lit
    c.log_count = 0


@kernel
def _add_pulse(emission: EmissionRow, time: int, pins: int) -> None:
    earned = max(emission.earned, time) + PULSE_PITCH
    if earned - time > PULSE_BURST:
        emission.lost += 1
        return
    emission.earned = earned
    if time - emission.last_pulse > MESSAGE_GAP:
        emission.messages += 1
        if emission.count == 0:
            emission.first_message = emission.messages
    emission.last_pulse = time
    if emission.count < MOST_PULSES:
        emission.pulse[emission.count] = time - emission.since << 8 | pins
    emission.count = min(emission.count + 1, MOST_PULSES + 1)


@kernel
def copy_front(source: FrontEndRow, target: FrontEndRow) -> None:
    """Copy what a receiver remembers."""
    target.level = source.level
    target.fall = source.fall
    target.lingering = source.lingering
    target.unheard = source.unheard
    target.lingering_since = source.lingering_since
    target.pending_since = source.pending_since
    target.pending_count = source.pending_count
    for number in range(source.pending_count):
        target.pending_time[number] = source.pending_time[number]
        target.pending_counts[number] = source.pending_counts[number]
    target.carried_count = source.carried_count
    for row in range(source.carried_count):
        for column in range(2):
            target.carried[row, column] = source.carried[row, column]


LONG_AGO = -(1 << 60)
LONGEST_REST = 400_000
"""Cycles that a robot is left alone at most."""

OWN_ECHO_CYCLES = 2700
"""A listener counts as deaf this long after each own pulse: longer than any gap in a frame."""


@kernel
def _listen(swarm: Swarm, robot: int, tape: NDArray[np.int64], first: int, rows: int) -> None:
    """Show the ideal listener of a robot the comparator's rising edges of this window."""
    copy_row(swarm.listener_next_bytes, robot, swarm.listener_bytes, robot)
    swarm.verdict[robot, 0] = NOTHING
    swarm.verdict[robot, 2] = 0
    c = swarm.chips[robot]
    ear = swarm.listeners_next[robot]
    own = swarm.emissions[swarm.current[robot], robot]
    high = swarm.front[robot].level
    for row in range(first, rows):
        if tape[row, 2] and not high:
            swarm.verdict[robot, 2] += 1
            cycle = cycle_at(c, tape[row, 0])
            if own.count and tape[row, 0] >= pulse_time(own, 0):
                deafen(ear, cycle_at(c, pulse_time(own, own.count - 1)) + OWN_ECHO_CYCLES)
            volts = tape[row, 3]
            high_counts = int((volts & 0xFFFFFFFF) / infrared.MICROVOLTS_PER_COUNT)
            low_counts = int((volts >> 32) / infrared.MICROVOLTS_PER_COUNT)
            said = hear(ear, cycle, low_counts, high_counts)
            if said != NOTHING:
                known = swarm.verdict[robot, 0] != NOTHING
                swarm.verdict[robot, 0] = SEVERAL if known else said
                swarm.verdict[robot, 1] = cycle
        high = tape[row, 2]


@kernel
def _keep_pending(front: FrontEndRow, desk: Desk, first: int, count: int, end: int) -> None:
    front.pending_since = end
    front.pending_count = 0
    for number in range(first, count):
        if front.pending_count < infrared.PENDING:
            front.pending_time[front.pending_count] = desk.times[number] - end
            front.pending_counts[front.pending_count] = desk.counts[number]
            front.pending_count += 1
        else:
            desk.crowded[0] = 1


@kernel
def _write_tape(
    swarm: Swarm,
    medium: Medium,
    desk: Desk,
    robot: int,
    count: int,
    end: int,
    front: FrontEndRow,
) -> tuple[int, int]:
    """Turn ``count`` arrivals on the desk into the tape of this window.

    Return how many arrive before ``end``, and the rows of the tape; ``front`` comes to ``end``.
    """
    copy_front(swarm.front[robot], front)
    rows = infrared.play_carried(front, desk.tape)
    due = 0
    while due < count and desk.times[due] < end:
        due += 1
    rows = infrared.receive(
        front, robot, medium.receiver, desk.times, desk.counts, due, end, desk.tape, rows
    )
    return due, rows


@entry
def write_tape_again(
    swarm: Swarm,
    medium: Medium,
    links: Links,
    controller: Controller,
    first_pulse: int,
    last_pulse: int,
    desk: Desk,
    robot: int,
    end: int,
    front: NDArray[np.void],
) -> int:
    """Write the tape with which a robot ran this window to the desk again; return its rows.

    Only before the window is committed; ``front`` is room for one receiver's state.
    """
    count = _collect(swarm, medium, links, controller, first_pulse, last_pulse, robot, desk)
    _, rows = _write_tape(swarm, medium, desk, robot, count, end, front[0])
    return rows


@kernel
def _carry(c: ChipRow, front: FrontEndRow, desk: Desk, row: int) -> None:
    """Keep a row of the tape that the chip has not come to yet, for the next window."""
    time, volts = desk.tape[row, 0], desk.tape[row, 3]
    last = front.carried_count - 1
    if (
        last >= 0
        and volts
        and front.carried[last, 1]
        and analog_comparator.is_given(c)
        and cycle_at(c, front.carried[last, 0]) == cycle_at(c, time)
    ):
        front.carried[last, 1] = volts  # more light in the same cycle: the chip sees the sum
    elif front.carried_count < infrared.CARRIED:
        front.carried[front.carried_count, 0] = time
        front.carried[front.carried_count, 1] = volts
        front.carried_count += 1
    else:
        desk.crowded[0] = 1


@kernel
def _run_robot(swarm: Swarm, medium: Medium, desk: Desk, robot: int, count: int, end: int) -> int:
    """Run one chip to world time ``end`` with the arrivals on the desk; return an ``Outcome``."""
    c = swarm.chips[robot]
    front = swarm.front_next[robot]
    tape = desk.tape
    due, rows = _write_tape(swarm, medium, desk, robot, count, end, front)
    _listen(swarm, robot, tape, front.carried_count, rows)
    _keep_pending(front, desk, due, count, end)

    emission = swarm.emissions[1 - swarm.current[robot], robot]
    _begin_emission(emission, swarm.senders[robot], time_of(c, c.cycle))
    c.tape_next = 0
    flash = swarm.flash[c.image]
    code = swarm.code[c.image]
    blocks = swarm.blocks[swarm.program[robot]]
    while True:
        period, base, base_cycle = c.period, c.time_base, c.time_base_cycle
        stop = cycle_at(c, end)
        begin = ticks_now()
        reason = run(c, flash, code, blocks, tape[:rows], desk.scratch, stop)
        desk.spent[Spent.CHIPS] += ticks_now() - begin
        _drain_log(c, emission, period, base, base_cycle)
        look(c, swarm.boards, robot)
        if reason == Stop.FAULT:
            return Outcome.FAULT.value
        if reason == Stop.IMAGE:
            return Outcome.IMAGE.value
        if c.cycle >= cycle_at(c, end):
            break
    front.carried_count = 0
    for row in range(c.tape_next, rows):
        _carry(c, front, desk, row)
    return Outcome.RAN.value


@kernel
def _copy_flash(source: NDArray[np.uint16], target: NDArray[np.uint16], image: int) -> None:
    for word in range(source.shape[1]):
        target[image, word] = source[image, word]


@kernel
def take_back(swarm: Swarm, robot: int) -> None:
    """Put a chip back to where its snapshot was taken; what its sensors show is that of now."""
    c = swarm.chips[robot]
    battery = c.adc_microvolts[sensors.BATTERY_CHANNEL]
    light = c.adc_microvolts[sensors.LIGHT_CHANNEL]
    temperature = c.adc_microvolts[sensors.TEMPERATURE_CHANNEL]
    eeprom.undo(c, swarm.snapshots[robot].eeprom_changes)
    copy_row(swarm.chip_bytes, robot, swarm.snapshot_bytes, robot)
    forget_later_loops(c)
    c.adc_microvolts[sensors.BATTERY_CHANNEL] = battery
    c.adc_microvolts[sensors.LIGHT_CHANNEL] = light
    c.adc_microvolts[sensors.TEMPERATURE_CHANNEL] = temperature
    swarm.ahead[robot] = 0
    if c.private_image:
        _copy_flash(swarm.flash_before, swarm.flash, c.image)
        decode_range(swarm.flash[c.image], swarm.code[c.image], 0, FLASH_WORDS)
        page = swarm.page_before[c.image]
        for word in range(PAGE_WORDS):
            c.page_loaded[word] = page[word]
            c.page_buffer[word] = page[PAGE_WORDS + word]


@entry
def turn_back(swarm: Swarm, robot: int, chip: Chips, chip_bytes: NDArray[np.uint8]) -> None:
    """Make of a copy of a robot's chip, alone in ``chip``, what it was when the window began."""
    eeprom.undo(chip[0], swarm.snapshots[robot].eeprom_changes)
    copy_row(chip_bytes, 0, swarm.snapshot_bytes, robot)
    forget_later_loops(chip[0])


@kernel
def _take_snapshot(swarm: Swarm, robot: int) -> None:
    copy_row(swarm.snapshot_bytes, robot, swarm.chip_bytes, robot)
    c = swarm.chips[robot]
    if c.private_image:
        _copy_flash(swarm.flash, swarm.flash_before, c.image)
        page = swarm.page_before[c.image]
        for word in range(PAGE_WORDS):
            page[word] = c.page_loaded[word]
            page[PAGE_WORDS + word] = c.page_buffer[word]


@kernel
def run_window(
    swarm: Swarm,
    medium: Medium,
    links: Links,
    controller: Controller,
    first_pulse: int,
    last_pulse: int,
    desk: Desk,
    robot: int,
    end: int,
) -> int:
    """Run a robot to world time ``end`` with the light known now; return an ``Outcome``."""
    arrivals = _collect(swarm, medium, links, controller, first_pulse, last_pulse, robot, desk)
    inbox = _digest_inbox(desk, arrivals)
    if not swarm.fresh[robot]:
        if inbox == swarm.inbox[robot]:
            return Outcome.UNCHANGED.value
        take_back(swarm, robot)
    else:
        if arrivals == 0 and swarm.quiet_until[robot] >= end:
            return Outcome.UNCHANGED.value
        if not swarm.ahead[robot]:
            _take_snapshot(swarm, robot)
            if arrivals == 0 and _run_ahead(swarm, desk, robot, end):
                return Outcome.UNCHANGED.value
        elif arrivals:
            take_back(swarm, robot)
    swarm.inbox[robot] = inbox
    return _run_robot(swarm, medium, desk, robot, arrivals, end)


# ---- resting
# -----------------------------------------------------------------------------------------


@kernel
def time_of(c: ChipRow, cycle: int) -> int:
    """Return the world time at which a cycle of this chip begins."""
    return c.time_base + (cycle - c.time_base_cycle) * c.period


@kernel
def _in_the_dark(swarm: Swarm, robot: int) -> bool:
    """Tell whether a robot's receiver and transmitter have nothing left to do."""
    front = swarm.front[robot]
    return bool(
        front.level == 0
        and front.pending_count == 0
        and front.carried_count == 0
        and swarm.speakers[robot].count == 0
    )


@kernel
def _undisturbed(c: ChipRow) -> bool:
    """Tell whether nothing is due at the boundary at which a chip stands."""
    return (
        c.requests == 0
        and not (c.sampled_at == c.cycle and c.sampled)
        and c.fault == 0
        and c.reset_cause == 0
        and c.clock_changed == 0
        and c.rww_busy == 0
        and c.log_count == 0
    )


@kernel
def find_rest(swarm: Swarm, robot: int) -> None:
    """Work out, after a window, how long a robot can be left alone."""
    c = swarm.chips[robot]
    swarm.tick_at[robot] = time_of(c, min(c.next[Source.TIMER0], c.cycle + LONGEST_REST))
    swarm.quiet_until[robot] = LONG_AGO
    if (
        not swarm.eager[robot]
        and (c.idle_period or c.asleep)
        and _undisturbed(c)
        and _in_the_dark(swarm, robot)
    ):
        swarm.quiet_until[robot] = time_of(c, min(c.next_event, c.cycle + LONGEST_REST))


@kernel
def _run_ahead(swarm: Swarm, desk: Desk, robot: int, end: int) -> bool:
    """Let a chip in a counted delay go on to its next event; False: it stands as before.

    Only if it touches nothing on the way that anybody could see, or that could depend on time.
    """
    c = swarm.chips[robot]
    flash = swarm.flash[c.image]
    code = swarm.code[c.image]
    stop = min(c.next_event, c.cycle + LONGEST_REST)
    if (
        swarm.eager[robot]
        or c.asleep
        or c.private_image
        or not c.skip_idle
        or stop <= cycle_at(c, end)
        or not in_delay_loop(code, c.pc)
        or not _undisturbed(c)
        or not _in_the_dark(swarm, robot)
    ):
        return False
    c.io_touched = 0
    c.io_seen = 0
    c.tape_next = 0
    blocks = swarm.blocks[swarm.program[robot]]
    begin = ticks_now()
    reason = run(c, flash, code, blocks, desk.tape[:0], desk.scratch, stop)
    desk.spent[Spent.CHIPS] += ticks_now() - begin
    touched = (c.io_touched | c.io_seen) & (Touch.VOLATILE | Touch.EVENT)
    if reason != Stop.CYCLES or touched or c.asleep or not _undisturbed(c):
        take_back(swarm, robot)
        return False
    swarm.ahead[robot] = 1
    swarm.quiet_until[robot] = time_of(c, stop)
    return True


@kernel
def catch_up(swarm: Swarm, desk: Desk, robot: int, time: int) -> None:
    """Bring a chip that lags, or is ahead, to world time ``time``."""
    if swarm.quiet_until[robot] == LONG_AGO or swarm.dead[robot]:
        return
    if swarm.ahead[robot]:
        take_back(swarm, robot)
    c = swarm.chips[robot]
    c.tape_next = 0
    flash = swarm.flash[c.image]
    code = swarm.code[c.image]
    blocks = swarm.blocks[swarm.program[robot]]
    run(c, flash, code, blocks, desk.tape[:0], desk.scratch, cycle_at(c, time))
