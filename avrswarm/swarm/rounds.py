"""All robots in one step of the world: optimistic, exact, parallel over robots.

A step is cut into windows. In a window every chip first runs with the light it knows of. Whoever's
light changed because a neighbour turned out to send runs again, from a snapshot, until nothing
changes any more. That ends, because a pulse acts on others only about a microsecond after it was
sent, so each round settles at least that much more. What comes out does not depend on the length of
windows, on the order of robots, or on threads: a round reads only what the round before has
written.

Robots that wait are left alone (see ``avrswarm.swarm.window``). Robots that have just sent run
first: they will go on, and then those who hear them run once.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.kernels import settle
from avrswarm.chip.peripherals import clock
from avrswarm.chip.schedule import cycle_at
from avrswarm.chip.state import NEVER
from avrswarm.jit import entry, kernel
from avrswarm.robot import infrared
from avrswarm.robot.infrared import FrontEndRow
from avrswarm.robot.listener import NOTHING, speak, speaker_timeout
from avrswarm.swarm import sharing
from avrswarm.swarm.copying import copy_row
from avrswarm.swarm.surroundings import (
    BLOCK,
    Surroundings,
    blocks_of,
    drive_block,
    move_block,
    show_block,
)
from avrswarm.swarm.window import (
    LONG_AGO,
    MESSAGE_GAP,
    MOST_PULSES,
    SEVERAL,
    Controller,
    Desk,
    EmissionRow,
    Links,
    Medium,
    Outcome,
    Spent,
    Swarm,
    catch_up,
    copy_front,
    find_rest,
    pulse_pins,
    pulse_time,
    run_window,
    take_back,
    time_of,
)
from avrswarm.world.collisions import push_apart
from avrswarm.world.neighbours import are_near
from avrswarm.world.step import MOTION, NO_ROOM, begin_motion


class Role(IntEnum):
    """What a thread does in ``advance``."""

    LEAD = 0
    HELP = 1
    CATCH_UP = 2  # bring the robots of ``todo`` to the time at which the step stands


class Need(IntEnum):
    """Why ``advance`` returns to its leader; it goes on when it is called again."""

    NOTHING = 0  # the step is done
    IMAGES = 1  # robots want to program their flash: give them copies
    PRINTER = 2  # robots have printed
    WITNESS = 3  # all robots agree on the window, which is not final yet
    LINKS = 4  # robots have gone so far that others may hear them now
    FAST_LEDS = 5  # LEDs flash faster than light is followed
    NO_ROOM = 6  # too many bodies are pressed together


class Part(IntEnum):
    """Where a step of the world stands: what its leader does next."""

    SHOW = 0  # show robots what their sensors see
    CHIPS = 1  # run chips, window by window
    MOVE = 2  # let robots move
    DONE = 3


class Work(IntEnum):
    """What a task is."""

    RUN = 0  # run the chip of a robot in ``todo``
    SHOW = 1  # for a block of robots: see ``avrswarm.swarm.surroundings``
    DRIVE = 2
    MOVE = 3


class Stage(IntEnum):
    """Where a window stands."""

    BEGINS = 0
    ROUND_RAN = 1
    AGREED = 2


class Progress(IntEnum):
    """Places in ``Plan.progress``."""

    TIME = 0  # begin of the window
    STEP_END = 1
    WINDOW = 2  # length of windows, unless somebody sends more than there is room for
    STAGE = 3
    COUNT = 4  # robots in ``todo``
    EVERYONE_RAN = 5  # 1: but those that can be left alone; 0: senders, perhaps those with a tick
    FIRST_PULSE = 6  # of the controller in this window
    LAST_PULSE = 7
    PRINTED = 8  # robots in ``printing``
    DEATHS = 9  # robots that have faulted so far
    WITNESSED = 10  # 1: stop when robots agree on a window
    HELPERS = 11  # threads that may help
    EDGES = 12  # rising edges that comparators have shown so far
    TICKS_RAN = 13  # 1: those with a tick have run
    PART = 14  # of the step: a ``Part``
    STEP = 15  # number of the step
    MOVED = 16  # 1: robots stand where their surroundings do not expect them yet
    WORK = 17  # what the tasks of a round are
    END = 18  # of the window
    LAST_SENT = 19  # when anybody sent last


class Plan(NamedTuple):
    """What the leader knows about the step; helpers only read it."""

    todo: NDArray[np.int64]
    marked: NDArray[np.uint8]
    progress: NDArray[np.int64]
    pulses: NDArray[np.int64]  # sent since the step began, per robot
    printing: NDArray[np.int64]
    board: NDArray[np.int64]


def make_plan(robots: int, threads: int) -> Plan:
    """Return a plan without work."""
    return Plan(
        todo=np.zeros(robots, np.int64),
        marked=np.zeros(robots, np.uint8),
        progress=sharing.make_numbers(len(Progress)),
        pulses=np.zeros(robots, np.int64),
        printing=np.zeros(robots, np.int64),
        board=sharing.make_board(threads),
    )


# ---- rounds
# ------------------------------------------------------------------------------------------


@kernel
def _take_robots(
    swarm: Swarm, medium: Medium, links: Links, controller: Controller, desk: Desk, plan: Plan
) -> None:
    """Run robots of ``todo`` as long as there are some that nobody runs."""
    threads = plan.progress[Progress.HELPERS] + 1
    first, end = sharing.take_tasks(plan.board, desk.thread, threads)
    while first < end:
        for number in range(first, end):
            robot = plan.todo[number]
            swarm.outcome[robot] = run_window(
                swarm,
                medium,
                links,
                controller,
                plan.progress[Progress.FIRST_PULSE],
                plan.progress[Progress.LAST_PULSE],
                desk,
                robot,
                plan.progress[Progress.END],
            )
        first, end = sharing.take_tasks(plan.board, desk.thread, threads)


@kernel
def _take_blocks(swarm: Swarm, surroundings: Surroundings, desk: Desk, plan: Plan) -> None:
    """Do the same for blocks of robots: see ``avrswarm.swarm.surroundings``."""
    progress = plan.progress
    threads = progress[Progress.HELPERS] + 1
    first, end = sharing.take_tasks(plan.board, desk.thread, threads)
    while first < end:
        for block in range(first, end):
            if progress[Progress.WORK] == Work.SHOW:
                moved = progress[Progress.MOVED]
                show_block(swarm.chips, swarm.boards, surroundings, moved, block)
            elif progress[Progress.WORK] == Work.DRIVE:
                drive_block(swarm.boards, surroundings, swarm.dead, plan.pulses, block)
            else:
                move_block(surroundings, progress[Progress.STEP], block)
        first, end = sharing.take_tasks(plan.board, desk.thread, threads)


@kernel
def _share_out(plan: Plan, work: int, count: int) -> None:
    """Open a round of tasks. Every thread gets a part of the robots: those that it had before."""
    plan.progress[Progress.WORK] = work
    threads = plan.progress[Progress.HELPERS] + 1
    end = 0
    for thread in range(threads):
        first = end
        border = len(plan.marked) * (thread + 1) // threads
        while end < count and _first_robot(plan, end) < border:
            end += 1
        sharing.put_in_queue(plan.board, thread, first, end)
    sharing.open_round(plan.board)


@kernel
def _first_robot(plan: Plan, task: int) -> int:
    if plan.progress[Progress.WORK] == Work.RUN:
        return int(plan.todo[task])
    return task * BLOCK


# Code of these two is part of their callers, and large: there is one call of `_run_round`.
@kernel
def _run_round(
    swarm: Swarm, medium: Medium, links: Links, controller: Controller, desk: Desk, plan: Plan
) -> None:
    """Run all robots of ``todo``, together with all helpers."""
    _share_out(plan, Work.RUN, plan.progress[Progress.COUNT])
    _take_robots(swarm, medium, links, controller, desk, plan)
    sharing.close_round(plan.board)


@kernel
def _do_blocks(swarm: Swarm, surroundings: Surroundings, desk: Desk, plan: Plan, work: int) -> None:
    """Do something for all robots, together with all helpers."""
    _share_out(plan, work, blocks_of(len(plan.marked)))
    _take_blocks(swarm, surroundings, desk, plan)
    sharing.close_round(plan.board)


@kernel
def _same_pulses(a: EmissionRow, b: EmissionRow) -> bool:
    if a.count != b.count:
        return False
    for number in range(a.count):
        if pulse_time(a, number) != pulse_time(b, number) or pulse_pins(a, number) != pulse_pins(
            b, number
        ):
            return False
    return True


@kernel
def _make_valid(swarm: Swarm, medium: Medium, links: Links, plan: Plan) -> None:
    """Make the results of a round valid; ``todo`` is then who may hear something else now."""
    for number in range(plan.progress[Progress.COUNT]):
        robot = plan.todo[number]
        if swarm.outcome[robot] == Outcome.UNCHANGED:
            continue
        if swarm.outcome[robot] == Outcome.IMAGE:
            plan.marked[robot] = 1
            continue
        old = swarm.current[robot]
        emission = swarm.emissions[1 - old, robot]
        changed = not _same_pulses(swarm.emissions[old, robot], emission)
        swarm.current[robot] = 1 - old
        swarm.audible[robot] = emission.count
        swarm.fresh[robot] = 0
        if changed:
            if medium.hear_own:
                plan.marked[robot] = 1
            for place in range(links.first[robot], links.first[robot + 1]):
                plan.marked[links.sender[place]] = 1
    found = 0
    for robot in range(len(plan.marked)):
        if plan.marked[robot]:
            plan.marked[robot] = 0
            if not swarm.dead[robot]:
                plan.todo[found] = robot
                found += 1
    plan.progress[Progress.COUNT] = found


@kernel
def _find_senders(swarm: Swarm, since: int, plan: Plan) -> None:
    """Let those run first who have sent since a time."""
    found = 0
    for robot in range(len(swarm.fresh) if plan.progress[Progress.LAST_SENT] >= since else 0):
        if swarm.senders[robot].last_pulse >= since and not swarm.dead[robot]:
            plan.todo[found] = robot
            found += 1
    plan.progress[Progress.COUNT] = found


@kernel
def _choose_those_with_a_tick(swarm: Swarm, plan: Plan, end: int) -> None:
    """Leave in ``todo`` whose tick is due and add others like that; the rest of it stays marked.

    Robots begin to send in their ticks. What all the others hear is known better thereafter.
    """
    for number in range(plan.progress[Progress.COUNT]):
        plan.marked[plan.todo[number]] = 1
    found = 0
    for robot in range(len(swarm.fresh)):
        due = swarm.fresh[robot] != 0 and swarm.quiet_until[robot] < end
        if swarm.tick_at[robot] < end and (due or plan.marked[robot]) and not swarm.dead[robot]:
            plan.marked[robot] = 0
            plan.todo[found] = robot
            found += 1
    plan.progress[Progress.COUNT] = found


@kernel
def _add_others(swarm: Swarm, plan: Plan, end: int) -> None:
    """Add to ``todo`` who has not run in this window and is due, or may see the controller."""
    for number in range(plan.progress[Progress.COUNT]):
        plan.marked[plan.todo[number]] = 1
    if plan.progress[Progress.FIRST_PULSE] < plan.progress[Progress.LAST_PULSE]:
        end = NEVER
    found = 0
    for robot in range(len(swarm.fresh)):
        due = swarm.quiet_until[robot] < end and swarm.fresh[robot] and not swarm.dead[robot]
        if due or plan.marked[robot]:
            plan.marked[robot] = 0
            plan.todo[found] = robot
            found += 1
    plan.progress[Progress.COUNT] = found


@kernel
def _find_controller_pulses(controller: Controller, progress: NDArray[np.int64], end: int) -> None:
    first = progress[Progress.FIRST_PULSE]
    while first < len(controller.time) and controller.time[first] < progress[Progress.TIME]:
        first += 1
    last = first
    while last < len(controller.time) and controller.time[last] < end:
        last += 1
    progress[Progress.FIRST_PULSE] = first
    progress[Progress.LAST_PULSE] = last


@kernel
def _wants_image(swarm: Swarm, plan: Plan) -> bool:
    for number in range(plan.progress[Progress.COUNT]):
        if swarm.outcome[plan.todo[number]] == Outcome.IMAGE:
            return True
    return False


@kernel
def _begin_window(swarm: Swarm, controller: Controller, plan: Plan, length: int) -> None:
    """Begin a window: those will run first who have sent just now."""
    progress = plan.progress
    progress[Progress.END] = min(progress[Progress.TIME] + length, progress[Progress.STEP_END])
    progress[Progress.EVERYONE_RAN] = 0
    progress[Progress.TICKS_RAN] = 0
    _find_controller_pulses(controller, progress, progress[Progress.END])
    _find_senders(swarm, progress[Progress.TIME] - MESSAGE_GAP, plan)


@kernel
def _is_too_long(swarm: Swarm, plan: Plan) -> bool:
    """Tell whether more has happened to somebody in this window than there is room for."""
    for number in range(plan.progress[Progress.COUNT]):
        robot = plan.todo[number]
        if swarm.outcome[robot] == Outcome.RAN or swarm.outcome[robot] == Outcome.FAULT:
            sent = swarm.emissions[1 - swarm.current[robot], robot].count
            if sent > MOST_PULSES or swarm.verdict[robot, 0] == SEVERAL:
                return True
    return False


@kernel
def _undo_window(swarm: Swarm, plan: Plan) -> None:
    """Put everyone back who has run in this window."""
    for number in range(plan.progress[Progress.COUNT]):
        robot = plan.todo[number]
        if swarm.outcome[robot] != Outcome.UNCHANGED:
            swarm.fresh[robot] = 0
    for robot in range(len(swarm.fresh)):
        if not swarm.fresh[robot]:
            take_back(swarm, robot)
            swarm.fresh[robot] = 1
            swarm.audible[robot] = 0
            swarm.emissions[swarm.current[robot], robot].count = 0


@kernel
def _agree(
    swarm: Swarm, medium: Medium, links: Links, controller: Controller, desk: Desk, plan: Plan
) -> int:
    """Run rounds until nothing changes any more; return a ``Need``."""
    progress = plan.progress
    while True:
        if progress[Progress.STAGE] == Stage.BEGINS:
            _begin_window(swarm, controller, plan, progress[Progress.WINDOW])
            progress[Progress.STAGE] = Stage.ROUND_RAN
        elif _is_too_long(swarm, plan):
            _undo_window(swarm, plan)
            length = (progress[Progress.END] - progress[Progress.TIME]) // 2
            _begin_window(swarm, controller, plan, length)
        else:
            end = progress[Progress.END]
            _make_valid(swarm, medium, links, plan)
            if not progress[Progress.TICKS_RAN]:
                _choose_those_with_a_tick(swarm, plan, end)
                progress[Progress.TICKS_RAN] = 1
            elif not progress[Progress.EVERYONE_RAN]:
                _add_others(swarm, plan, end)
                progress[Progress.EVERYONE_RAN] = 1
            if progress[Progress.COUNT] == 0 and progress[Progress.EVERYONE_RAN]:
                break
        _run_round(swarm, medium, links, controller, desk, plan)
        if _wants_image(swarm, plan):
            return Need.IMAGES.value
    progress[Progress.STAGE] = Stage.AGREED
    return Need.NOTHING.value


@entry
def advance(
    swarm: Swarm,
    medium: Medium,
    links: Links,
    controller: Controller,
    surroundings: Surroundings,
    desk: Desk,
    plan: Plan,
    traffic: Traffic,
    role: int,
) -> int:
    """Do one's part of a step, by ``Role``; the leader gets a ``Need``."""
    progress = plan.progress
    if role == Role.HELP:
        while sharing.join_round(plan.board):
            if progress[Progress.WORK] == Work.RUN:
                _take_robots(swarm, medium, links, controller, desk, plan)
            else:
                _take_blocks(swarm, surroundings, desk, plan)
            sharing.leave_round(plan.board)
        return Need.NOTHING.value
    if role == Role.CATCH_UP:
        for number in range(progress[Progress.COUNT]):
            catch_up(swarm, desk, plan.todo[number], progress[Progress.TIME])
        return Need.NOTHING.value
    need = Need.NOTHING.value
    while need == Need.NOTHING and progress[Progress.PART] != Part.DONE:
        begin = sharing.ticks_now()
        part = progress[Progress.PART]
        if part == Part.SHOW:
            need = _show(swarm, surroundings, desk, plan)
            desk.spent[Spent.SENSES] += sharing.ticks_now() - begin
        elif part == Part.CHIPS:
            need = _run_windows(swarm, medium, links, controller, desk, plan, traffic)
            desk.spent[Spent.WINDOWS] += sharing.ticks_now() - begin
        else:
            need = _move(swarm, surroundings, desk, plan)
            desk.spent[Spent.MOTION] += sharing.ticks_now() - begin
    return need


@kernel
def _show(swarm: Swarm, surroundings: Surroundings, desk: Desk, plan: Plan) -> int:
    """Show robots what their sensors see where they are now; return a ``Need``."""
    progress = plan.progress
    s = surroundings
    if progress[Progress.MOVED] and not are_near(
        s.world.x_mm, s.world.y_mm, s.listed_x_mm, s.listed_y_mm, s.slack_mm
    ):
        return Need.LINKS.value
    _do_blocks(swarm, surroundings, desk, plan, Work.SHOW)
    progress[Progress.MOVED] = 0
    progress[Progress.PART] = Part.CHIPS
    return Need.NOTHING.value


@kernel
def _move(swarm: Swarm, surroundings: Surroundings, desk: Desk, plan: Plan) -> int:
    """Let robots move as their motors were told in this step; return a ``Need``."""
    for robot in range(len(swarm.fresh)):
        if swarm.senders[robot].lost and not swarm.dead[robot]:
            return Need.FAST_LEDS.value
    _do_blocks(swarm, surroundings, desk, plan, Work.DRIVE)
    s = surroundings
    found = begin_motion(s.world, s.work, s.drive_left, s.drive_right)
    if found == NO_ROOM:
        return Need.NO_ROOM.value
    if found == MOTION:
        _do_blocks(swarm, surroundings, desk, plan, Work.MOVE)
        push_apart(s.world, s.work)
        plan.progress[Progress.MOVED] = 1
    plan.progress[Progress.PART] = Part.DONE
    return Need.NOTHING.value


@kernel
def _run_windows(
    swarm: Swarm,
    medium: Medium,
    links: Links,
    controller: Controller,
    desk: Desk,
    plan: Plan,
    traffic: Traffic,
) -> int:
    """Lead through all windows of a step; return a ``Need``."""
    progress = plan.progress
    need = Need.NOTHING.value
    while need == Need.NOTHING and progress[Progress.TIME] < progress[Progress.STEP_END]:
        need = _advance_window(swarm, medium, links, controller, desk, plan, traffic)
    if need == Need.NOTHING:
        progress[Progress.PART] = Part.MOVE
    return need


@kernel
def _advance_window(
    swarm: Swarm,
    medium: Medium,
    links: Links,
    controller: Controller,
    desk: Desk,
    plan: Plan,
    traffic: Traffic,
) -> int:
    """Lead through one window, or what is left of it; return a ``Need``."""
    progress = plan.progress
    if progress[Progress.STAGE] != Stage.AGREED:
        need = _agree(swarm, medium, links, controller, desk, plan)
        if need != Need.NOTHING:
            return need
        if progress[Progress.WITNESSED]:
            return Need.WITNESS.value
    _commit(swarm, plan, traffic)
    progress[Progress.TIME] = progress[Progress.END]
    progress[Progress.STAGE] = Stage.BEGINS
    return Need.PRINTER.value if progress[Progress.PRINTED] else Need.NOTHING.value


# ---- making a window final
# -----------------------------------------------------------------------------


class Traffic(NamedTuple):
    """Messages sent and heard since the recorder last looked."""

    sent: NDArray[np.int64]  # rows of robot, start time, end time, pulses, verdict of `speak`
    sent_data: NDArray[np.uint8]
    heard: NDArray[np.int64]  # rows of robot, time, verdict of `hear`, high gain, low gain
    heard_data: NDArray[np.uint8]
    counts: NDArray[np.int64]  # rows used in sent and heard, rows that found no room


@kernel
def _note_sent(swarm: Swarm, robot: int, said: int, traffic: Traffic) -> None:
    row = traffic.counts[0]
    if row >= len(traffic.sent):
        traffic.counts[2] += 1
        return
    c = swarm.chips[robot]
    mouth = swarm.speakers[robot]
    traffic.sent[row, 0] = robot
    traffic.sent[row, 1] = time_of(c, mouth.start)
    traffic.sent[row, 2] = time_of(c, mouth.end)
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
    traffic.heard[row, 1] = time_of(swarm.chips[robot], swarm.verdict[robot, 1])
    traffic.heard[row, 2] = swarm.verdict[robot, 0]
    traffic.heard[row, 3] = ear.high_gain
    traffic.heard[row, 4] = ear.low_gain
    for place in range(traffic.heard_data.shape[1]):
        traffic.heard_data[row, place] = ear.message[place]
    traffic.counts[1] += 1


@kernel
def _switch_off(front: FrontEndRow) -> None:
    """Let the receiver of a dead robot forget everything."""
    front.level = 0
    front.fall = 0
    front.lingering = 0.0
    front.unheard = 0.0
    front.lingering_since = 0
    front.pending_since = 0
    front.pending_count = 0
    front.carried_count = 0


@kernel
def _commit(swarm: Swarm, plan: Plan, traffic: Traffic) -> None:
    """Make the results of a window final for all robots that ran in it."""
    printed = 0
    for robot in range(len(swarm.fresh)):
        if swarm.fresh[robot]:
            continue
        swarm.fresh[robot] = 1
        swarm.ahead[robot] = 0
        swarm.audible[robot] = 0
        copy_front(swarm.front_next[robot], swarm.front[robot])
        emission = swarm.emissions[swarm.current[robot], robot]
        sender = swarm.senders[robot]
        sender.powered = emission.powered
        sender.last_pins = emission.last_pins
        sender.last_pulse = emission.last_pulse
        if emission.count:
            last_sent = plan.progress[Progress.LAST_SENT]
            plan.progress[Progress.LAST_SENT] = max(last_sent, emission.last_pulse)
        sender.messages = emission.messages
        sender.earned = emission.earned
        sender.lost = emission.lost
        plan.pulses[robot] += emission.count
        if emission.byte_count:
            plan.printing[printed] = robot
            printed += 1
        copy_row(swarm.listener_bytes, robot, swarm.listener_next_bytes, robot)
        plan.progress[Progress.EDGES] += swarm.verdict[robot, 2]
        if swarm.verdict[robot, 0] != NOTHING:
            _note_heard(swarm, robot, traffic)
        mouth = swarm.speakers[robot]
        for number in range(emission.count):
            said = speak(mouth, cycle_at(swarm.chips[robot], pulse_time(emission, number)))
            if said != NOTHING:
                _note_sent(swarm, robot, said, traffic)
        emission.count = 0
        said = speaker_timeout(mouth, swarm.chips[robot].cycle)
        if said != NOTHING:
            _note_sent(swarm, robot, said, traffic)
        if swarm.chips[robot].fault:
            swarm.dead[robot] = 1
            swarm.quiet_until[robot] = NEVER
            plan.progress[Progress.DEATHS] += 1
            _switch_off(swarm.front[robot])
        else:
            find_rest(swarm, robot)
    plan.progress[Progress.PRINTED] = printed


# ---- between steps
# -------------------------------------------------------------------------------------


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
    """Let every RC oscillator have another period from its first cycle at or after ``time`` on.

    Chips must have come to that time.
    """
    for robot in range(len(periods)):
        c = swarm.chips[robot]
        if c.rc_period_factory == periods[robot] or c.fault:
            continue
        factory = c.rc_period_factory
        c.rc_period_factory = periods[robot]
        c.rc_period = (c.rc_period * periods[robot] + factory // 2) // factory
        clock.set_period(c, max(cycle_at(c, time), c.time_base_cycle))
        c.clock_changed = 0
        swarm.quiet_until[robot] = LONG_AGO  # its next event is at another time now


@entry
def settle_all(swarm: Swarm, tape: NDArray[np.int64]) -> None:
    """Bring every chip into canonical form, for a digest (work on a copy)."""
    for robot in range(len(swarm.fresh)):
        c = swarm.chips[robot]
        rows = infrared.play_carried(swarm.front[robot], tape)
        c.tape_next = 0
        settle(c, tape[:rows], c.cycle - 1)
