"""One window of time for all chips: optimistic, exact, parallel over robots.

Every chip first runs the window with the light it knows of. Whoever's light changed because a
neighbour turned out to send runs again, from a snapshot, until nothing changes any more. That ends,
because a pulse acts on others only about a microsecond after it was sent, so each round settles at
least that much more. What comes out does not depend on the length of windows, on the order of
robots, or on threads: a round reads only what the round before has written.

Receivers are described in ``avrswarm.robot.infrared``, the light's way in
``avrswarm.world.optics``; this is the place where chips, boards and world meet.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.core import Stop, run
from avrswarm.chip.kernels import settle
from avrswarm.chip.peripherals import clock
from avrswarm.chip.schedule import cycle_at
from avrswarm.chip.state import ChipRow, Chips, Log, record_dtype
from avrswarm.isa.decode import FLASH_WORDS, decode_range
from avrswarm.jit import entry, kernel
from avrswarm.randomness import Stream, gaussian, uniform
from avrswarm.robot import infrared
from avrswarm.robot.infrared import FrontEndRow, Receiver
from avrswarm.robot.listener import NOTHING, deafen, hear, speak, speaker_timeout
from avrswarm.world.optics import Optics, amplitude

MOST_PULSES = 96
"""Pulses one robot can send in a window; Kilobot messages have at most 60 in 2 ms."""
MOST_BYTES = 64
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
    lost: int  # pulses beyond MOST_PULSES


class EmissionRow:
    """What one robot sent in a window, and where its LED driver stands at the window's end."""

    powered: int
    last_pins: int
    last_pulse: int
    messages: int
    lost: int
    count: int
    first_message: int  # number of the message that the first pulse belongs to
    time: Annotated[NDArray[np.int64], (MOST_PULSES,)]
    cycle: Annotated[NDArray[np.int64], (MOST_PULSES,)]
    pins: Annotated[NDArray[np.uint8], (MOST_PULSES,)]
    message: Annotated[NDArray[np.uint8], (MOST_PULSES,)]  # relative to first_message
    byte_count: int
    bytes: Annotated[NDArray[np.uint8], (MOST_BYTES,)]


SENDER_DTYPE = record_dtype(SenderRow)
EMISSION_DTYPE = record_dtype(EmissionRow)


class Outcome(IntEnum):
    """What became of a robot in a round."""

    UNCHANGED = 0  # nothing new arrived: the last run stands
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
    """Who may hear whom in this step (robot r: ``sender[first[r]:first[r + 1]]``)."""

    first: NDArray[np.int64]
    sender: NDArray[np.int64]
    distance_mm: NDArray[np.float64]


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
    snapshot_bytes: NDArray[np.uint8]
    front: NDArray[np.void]
    front_next: NDArray[np.void]
    emissions: NDArray[np.void]  # [2, robot]
    current: NDArray[np.int64]  # which of the two is valid
    senders: NDArray[np.void]
    listeners: NDArray[np.void]
    listeners_next: NDArray[np.void]
    listener_bytes: NDArray[np.uint8]  # the same memory, for copying
    listener_next_bytes: NDArray[np.uint8]
    verdict: NDArray[np.int64]  # [robot, 2]: what `hear` said in this window, at which cycle
    speakers: NDArray[np.void]
    flash: NDArray[np.uint16]  # [image, word]
    code: NDArray[np.uint32]
    program: NDArray[np.int64]  # what each robot was flashed with
    blocks: NDArray[np.int64]  # [program, word]: native code, see avrswarm.chip.native
    flash_before: NDArray[np.uint16]  # private images as they were when the window began
    fresh: NDArray[np.uint8]  # 1: has not run in this window yet
    inbox: NDArray[np.int64]  # digest of the light it last ran with
    outcome: NDArray[np.int64]


class Desk(NamedTuple):
    """Room to work in, one per thread."""

    tape: NDArray[np.int64]
    times: NDArray[np.int64]
    counts: NDArray[np.float64]
    scratch: NDArray[np.uint8]


def make_desk(rows: int = 8192) -> Desk:
    """Return a desk for one thread."""
    return Desk(
        np.zeros((rows, 4), np.int64),
        np.zeros(rows // 2 - infrared.CARRIED, np.int64),
        np.zeros(rows // 2 - infrared.CARRIED),
        np.zeros(0x900, np.uint8),
    )


# ---- what arrives
# ------------------------------------------------------------------------------------


@kernel
def _insert(desk: Desk, count: int, time: int, counts: float) -> int:
    """Insert an arrival in order of time, after those of the same time; return the new count."""
    if count >= len(desk.times):
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
    medium: Medium, sender: int, robot: int, cycle: int, counts: float, limit: float
) -> float:
    """Return the amplitude of a pulse with the receiver's noise, drawn where it can matter."""
    deviation = medium.pulse_noise * limit
    if abs(counts - limit) >= PULSE_NOISE_REACH * deviation:
        return counts
    draw = sender << 47 | cycle & 0x7FFF_FFFF_FFFF
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
    message = -1
    unit = 0.0
    limit = medium.receiver.threshold[robot]
    for number in range(emission.count):
        this = emission.first_message + int(emission.message[number])
        if this != message:
            message = this
            unit = _message_amplitude(medium, sender, robot, distance_mm, message)
        counts = unit * medium.power[int(emission.pins[number]) & 0xFF]
        counts = _with_pulse_noise(medium, sender, robot, emission.cycle[number], counts, limit)
        if counts > 0.1 * limit:
            time = emission.time[number] + infrared.crossing_delay(counts / limit)
            count = _insert(desk, count, time, counts)
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
        count = _insert(desk, count, front.pending_time[number], front.pending_counts[number])
    if medium.hear_own and swarm.emissions[swarm.current[robot], robot].count:
        count = _collect_from(swarm, medium, desk, count, robot, robot, 0.0)
    for place in range(links.first[robot], links.first[robot + 1]):
        sender = links.sender[place]
        if swarm.emissions[swarm.current[sender], sender].count:
            count = _collect_from(
                swarm, medium, desk, count, sender, robot, links.distance_mm[place]
            )
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
def _begin_emission(emission: EmissionRow, sender: SenderRow) -> None:
    emission.powered = sender.powered
    emission.last_pins = sender.last_pins
    emission.last_pulse = sender.last_pulse
    emission.messages = sender.messages
    emission.lost = sender.lost
    emission.count = 0
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
        elif kind == Log.PORTD:
            emission.powered = value & infrared.ANALOG_PIN
        elif kind == Log.PORTB:
            lit = value & infrared.LED_PINS
            if lit & 1 and not emission.last_pins & 1 and emission.powered:
                _add_pulse(emission, base + (cycle - base_cycle) * period, cycle, lit)
            emission.last_pins = lit
    c.log_count = 0


@kernel
def _add_pulse(emission: EmissionRow, time: int, cycle: int, pins: int) -> None:
    if emission.count >= MOST_PULSES:
        emission.lost += 1
        return
    if time - emission.last_pulse > MESSAGE_GAP:
        emission.messages += 1
        if emission.count == 0:
            emission.first_message = emission.messages
    emission.last_pulse = time
    emission.time[emission.count] = time
    emission.cycle[emission.count] = cycle
    emission.pins[emission.count] = pins
    emission.message[emission.count] = emission.messages - emission.first_message
    emission.count += 1


@kernel
def _copy_front(source: FrontEndRow, target: FrontEndRow) -> None:
    target.level = source.level
    target.fall = source.fall
    target.lingering = source.lingering
    target.unheard = source.unheard
    target.lingering_since = source.lingering_since
    target.pending_count = source.pending_count
    for number in range(source.pending_count):
        target.pending_time[number] = source.pending_time[number]
        target.pending_counts[number] = source.pending_counts[number]
    target.carried_count = source.carried_count
    for row in range(source.carried_count):
        for column in range(4):
            target.carried[row, column] = source.carried[row, column]


OWN_ECHO_CYCLES = 2700
"""A listener counts as deaf this long after each own pulse: longer than any gap in a frame."""


@kernel
def _listen(swarm: Swarm, robot: int, tape: NDArray[np.int64], first: int, rows: int) -> None:
    """Show the ideal listener of a robot the comparator's rising edges of this window."""
    for place in range(swarm.listener_bytes.shape[1]):
        swarm.listener_next_bytes[robot, place] = swarm.listener_bytes[robot, place]
    swarm.verdict[robot, 0] = NOTHING
    c = swarm.chips[robot]
    ear = swarm.listeners_next[robot]
    own = swarm.emissions[swarm.current[robot], robot]
    high = swarm.front[robot].level
    for row in range(first, rows):
        if tape[row, 2] and not high:
            cycle = cycle_at(c, tape[row, 0])
            if own.count and cycle >= own.cycle[0]:
                deafen(ear, own.cycle[own.count - 1] + OWN_ECHO_CYCLES)
            volts = tape[row, 3]
            high_counts = int((volts & 0xFFFFFFFF) / infrared.MICROVOLTS_PER_COUNT)
            low_counts = int((volts >> 32) / infrared.MICROVOLTS_PER_COUNT)
            said = hear(ear, cycle, low_counts, high_counts)
            if said != NOTHING:
                swarm.verdict[robot, 0] = said
                swarm.verdict[robot, 1] = cycle
        high = tape[row, 2]


@kernel
def _keep_pending(front: FrontEndRow, desk: Desk, first: int, count: int) -> None:
    front.pending_count = 0
    for number in range(first, count):
        if front.pending_count < infrared.PENDING:
            front.pending_time[front.pending_count] = desk.times[number]
            front.pending_counts[front.pending_count] = desk.counts[number]
            front.pending_count += 1


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
    _copy_front(swarm.front[robot], front)
    rows = front.carried_count
    for row in range(rows):
        for column in range(4):
            desk.tape[row, column] = front.carried[row, column]
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
def _run_robot(swarm: Swarm, medium: Medium, desk: Desk, robot: int, count: int, end: int) -> int:
    """Run one chip to world time ``end`` with the arrivals on the desk; return an ``Outcome``."""
    c = swarm.chips[robot]
    front = swarm.front_next[robot]
    tape = desk.tape
    due, rows = _write_tape(swarm, medium, desk, robot, count, end, front)
    _listen(swarm, robot, tape, front.carried_count, rows)
    _keep_pending(front, desk, due, count)

    emission = swarm.emissions[1 - swarm.current[robot], robot]
    _begin_emission(emission, swarm.senders[robot])
    c.tape_next = 0
    flash = swarm.flash[c.image]
    code = swarm.code[c.image]
    blocks = swarm.blocks[swarm.program[robot]]
    while True:
        period, base, base_cycle = c.period, c.time_base, c.time_base_cycle
        stop = cycle_at(c, end)
        reason = run(c, flash, code, blocks, tape[:rows], desk.scratch, stop)
        _drain_log(c, emission, period, base, base_cycle)
        if reason == Stop.FAULT:
            return Outcome.FAULT.value
        if reason == Stop.IMAGE:
            return Outcome.IMAGE.value
        if c.cycle >= cycle_at(c, end):
            break
    front.carried_count = 0
    for row in range(c.tape_next, rows):
        if front.carried_count < infrared.CARRIED:
            for column in range(4):
                front.carried[front.carried_count, column] = tape[row, column]
            front.carried_count += 1
    return Outcome.RAN.value


@kernel
def _copy_flash(source: NDArray[np.uint16], target: NDArray[np.uint16], image: int) -> None:
    for word in range(source.shape[1]):
        target[image, word] = source[image, word]


@kernel
def take_back(swarm: Swarm, robot: int) -> None:
    """Put a chip back to where it was when the window began."""
    for place in range(swarm.chip_bytes.shape[1]):
        swarm.chip_bytes[robot, place] = swarm.snapshot_bytes[robot, place]
    image = swarm.chips[robot].image
    if swarm.chips[robot].private_image:
        _copy_flash(swarm.flash_before, swarm.flash, image)
        decode_range(swarm.flash[image], swarm.code[image], 0, FLASH_WORDS)


@entry
def run_round(
    swarm: Swarm,
    medium: Medium,
    links: Links,
    controller: Controller,
    first_pulse: int,
    last_pulse: int,
    desk: Desk,
    todo: NDArray[np.int64],
    count: int,
    begin: int,
    stride: int,
    end: int,
) -> None:
    """Run every ``stride``-th robot of ``todo`` from ``begin`` on to world time ``end``."""
    size = swarm.chip_bytes.shape[1]
    for number in range(begin, count, stride):
        robot = todo[number]
        arrivals = _collect(swarm, medium, links, controller, first_pulse, last_pulse, robot, desk)
        inbox = _digest_inbox(desk, arrivals)
        if swarm.fresh[robot]:
            for place in range(size):
                swarm.snapshot_bytes[robot, place] = swarm.chip_bytes[robot, place]
            if swarm.chips[robot].private_image:
                _copy_flash(swarm.flash, swarm.flash_before, swarm.chips[robot].image)
        elif inbox == swarm.inbox[robot]:
            swarm.outcome[robot] = Outcome.UNCHANGED
            continue
        else:
            take_back(swarm, robot)
        swarm.inbox[robot] = inbox
        swarm.outcome[robot] = _run_robot(swarm, medium, desk, robot, arrivals, end)


# ---- between rounds
# ----------------------------------------------------------------------------------


@kernel
def _same_pulses(a: EmissionRow, b: EmissionRow) -> bool:
    if a.count != b.count:
        return False
    for number in range(a.count):
        if a.time[number] != b.time[number] or a.pins[number] != b.pins[number]:
            return False
    return True


@entry
def close_round(
    swarm: Swarm,
    links: Links,
    hear_own: int,
    todo: NDArray[np.int64],
    count: int,
    marked: NDArray[np.uint8],
) -> int:
    """Make a round valid; put into ``todo`` who may now hear something else; return how many."""
    for number in range(count):
        robot = todo[number]
        if swarm.outcome[robot] == Outcome.UNCHANGED or swarm.outcome[robot] == Outcome.IMAGE:
            continue
        old = swarm.current[robot]
        changed = not _same_pulses(swarm.emissions[old, robot], swarm.emissions[1 - old, robot])
        swarm.current[robot] = 1 - old
        swarm.fresh[robot] = 0
        if changed:
            if hear_own:
                marked[robot] = 1
            for place in range(links.first[robot], links.first[robot + 1]):
                marked[links.sender[place]] = 1
    found = 0
    for robot in range(len(marked)):
        if marked[robot]:
            marked[robot] = 0
            if swarm.chips[robot].fault == 0:
                todo[found] = robot
                found += 1
    return found


@entry
def open_window(swarm: Swarm) -> None:
    """Forget the emissions of the window before; they have all arrived or are pending."""
    for robot in range(len(swarm.fresh)):
        swarm.fresh[robot] = 1
        for buffer in range(2):
            swarm.emissions[buffer, robot].count = 0
            swarm.emissions[buffer, robot].byte_count = 0


class Traffic(NamedTuple):
    """Messages sent and heard since the recorder last looked."""

    sent: NDArray[np.int64]  # rows of robot, start time, end time, pulses, verdict of `speak`
    sent_data: NDArray[np.uint8]
    heard: NDArray[np.int64]  # rows of robot, time, verdict of `hear`, high gain, low gain
    heard_data: NDArray[np.uint8]
    counts: NDArray[np.int64]  # rows used in sent and heard, rows that found no room


@kernel
def _time_of(c: ChipRow, cycle: int) -> int:
    return c.time_base + (cycle - c.time_base_cycle) * c.period


@kernel
def _note_sent(swarm: Swarm, robot: int, said: int, traffic: Traffic) -> None:
    row = traffic.counts[0]
    if row >= len(traffic.sent):
        traffic.counts[2] += 1
        return
    c = swarm.chips[robot]
    mouth = swarm.speakers[robot]
    traffic.sent[row, 0] = robot
    traffic.sent[row, 1] = _time_of(c, mouth.start)
    traffic.sent[row, 2] = _time_of(c, mouth.end)
    traffic.sent[row, 3] = mouth.pulses
    traffic.sent[row, 4] = said
    for place in range(traffic.sent_data.shape[1]):
        traffic.sent_data[row, place] = mouth.message[place]
    traffic.counts[0] += 1


@kernel
def _note_heard(swarm: Swarm, robot: int, traffic: Traffic) -> None:
    row = traffic.counts[1]
    if row >= len(traffic.heard):
        traffic.counts[2] += 1
        return
    ear = swarm.listeners[robot]
    traffic.heard[row, 0] = robot
    traffic.heard[row, 1] = _time_of(swarm.chips[robot], swarm.verdict[robot, 1])
    traffic.heard[row, 2] = swarm.verdict[robot, 0]
    traffic.heard[row, 3] = ear.high_gain
    traffic.heard[row, 4] = ear.low_gain
    for place in range(traffic.heard_data.shape[1]):
        traffic.heard_data[row, place] = ear.message[place]
    traffic.counts[1] += 1


@entry
def commit_window(
    swarm: Swarm, traffic: Traffic, pulses: NDArray[np.int64], printing: NDArray[np.int64]
) -> int:
    """Make the window's results final; list robots that printed and return how many did."""
    printed = 0
    for robot in range(len(swarm.fresh)):
        if swarm.fresh[robot]:
            continue  # faulted before this window
        _copy_front(swarm.front_next[robot], swarm.front[robot])
        emission = swarm.emissions[swarm.current[robot], robot]
        sender = swarm.senders[robot]
        sender.powered = emission.powered
        sender.last_pins = emission.last_pins
        sender.last_pulse = emission.last_pulse
        sender.messages = emission.messages
        sender.lost = emission.lost
        pulses[robot] += emission.count
        if emission.byte_count:
            printing[printed] = robot
            printed += 1
        for place in range(swarm.listener_bytes.shape[1]):
            swarm.listener_bytes[robot, place] = swarm.listener_next_bytes[robot, place]
        if swarm.verdict[robot, 0] != NOTHING:
            _note_heard(swarm, robot, traffic)
        mouth = swarm.speakers[robot]
        for number in range(emission.count):
            said = speak(mouth, emission.cycle[number])
            if said != NOTHING:
                _note_sent(swarm, robot, said, traffic)
        said = speaker_timeout(mouth, swarm.chips[robot].cycle)
        if said != NOTHING:
            _note_sent(swarm, robot, said, traffic)
    return printed


@entry
def find_senders(swarm: Swarm, since: int, todo: NDArray[np.int64]) -> int:
    """List the robots that have sent since a time: they will go on, so they run first."""
    found = 0
    for robot in range(len(swarm.fresh)):
        if swarm.senders[robot].last_pulse >= since and swarm.chips[robot].fault == 0:
            todo[found] = robot
            found += 1
    return found


@entry
def find_fresh(swarm: Swarm, todo: NDArray[np.int64], count: int, marked: NDArray[np.uint8]) -> int:
    """Add to the first ``count`` of ``todo`` who has not run in this window; return how many."""
    for number in range(count):
        marked[todo[number]] = 1
    for robot in range(len(swarm.fresh)):
        if swarm.fresh[robot] and not marked[robot] and swarm.chips[robot].fault == 0:
            todo[count] = robot
            count += 1
    for number in range(count):
        marked[todo[number]] = 0
    return count


@entry
def give_image(swarm: Swarm, robot: int, image: int) -> None:
    """Put a robot back to the window's begin, with a flash image of its own."""
    take_back(swarm, robot)
    c = swarm.chips[robot]
    old = c.image
    for word in range(swarm.flash.shape[1]):
        swarm.flash[image, word] = swarm.flash[old, word]
        swarm.code[image, word] = swarm.code[old, word]
    c.image = image
    c.private_image = 1
    swarm.fresh[robot] = 1


@entry
def set_clock_periods(swarm: Swarm, time: int, periods: NDArray[np.int64]) -> None:
    """Let every RC oscillator have another period from its first cycle at or after ``time`` on."""
    for robot in range(len(periods)):
        c = swarm.chips[robot]
        if c.rc_period_factory == periods[robot] or c.fault:
            continue
        factory = c.rc_period_factory
        c.rc_period_factory = periods[robot]
        c.rc_period = (c.rc_period * periods[robot] + factory // 2) // factory
        clock.set_period(c, max(cycle_at(c, time), c.time_base_cycle))
        c.clock_changed = 0


@entry
def settle_all(swarm: Swarm, tape: NDArray[np.int64]) -> None:
    """Bring every chip into canonical form, for a digest (work on a copy)."""
    for robot in range(len(swarm.fresh)):
        c = swarm.chips[robot]
        front = swarm.front[robot]
        for row in range(front.carried_count):
            for column in range(4):
                tape[row, column] = front.carried[row, column]
        c.tape_next = 0
        settle(c, tape[: front.carried_count], c.cycle - 1)
