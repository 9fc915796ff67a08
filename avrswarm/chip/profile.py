"""Where the time goes: a chip that is watched instruction by instruction, in compiled code.

``observe`` lets a chip do exactly what ``core.run`` would let it do, one instruction at a time, and
keeps a ledger beside it: a shadow of the call stack, cycles by flash address, and lists of finished
calls, served interrupts, stretches with interrupts off, busy waits, passed places and pin edges.
Nothing of it is seen by the program.

A function is known by the word address that it was entered at. Its time begins with its first
instruction and ends with its return; the call itself is the caller's. Interrupts are kept apart:
their time, from the boundary at which the CPU turned to them to the end of RETI, counts for no
function that they interrupted. A jump to the start of another function is a call that returns
together with its caller. Where watching begins in the middle of a program, the function at hand
is the bottom of the stack, and the one that it returns to is so after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip import sleep
from avrswarm.chip.agenda import update_next_event
from avrswarm.chip.core import run
from avrswarm.chip.cpu import Stop
from avrswarm.chip.interrupts import INTERRUPT_ENTRY_CYCLES
from avrswarm.chip.registers import SPH, SPL
from avrswarm.chip.schedule import cycle_at, handle_due, rewind_tape
from avrswarm.chip.state import ChipRow, Chips
from avrswarm.chip.vectors import Vector
from avrswarm.isa.decode import FLASH_WORDS, PC_MASK
from avrswarm.isa.table import Op
from avrswarm.jit import entry, kernel

FULL = 100
"""``observe`` returns this, beside values of ``Stop``, when a list has to be emptied."""

DEEPEST = 256
SHORTEST_WAIT = 800
"""Cycles (0.1 ms) that a counted loop must take to be listed as a busy wait."""
NOBODY = -1
_I_FLAG = 0x80


class Kind(IntEnum):
    """How a function came to run."""

    START = 0  # the program itself, from reset on
    CALL = 1
    INTERRUPT = 2
    JUMP = 3  # jumped to: returns together with its caller
    UNDER_WAY = 4  # it ran when watching began, or called what did


class Frame(IntEnum):
    """Columns of the shadow stack."""

    FUNCTION = 0
    KIND = 1
    SP = 2  # stack pointer right after the return address was pushed
    BEGIN = 3
    CALLED = 4  # cycles of functions that it called
    INTERRUPTED = 5  # cycles of interrupts in it and in what it called
    SITE = 6  # word address of the call; vector number of an interrupt
    ARGUMENT = 7  # r25:r24 at entry, where avr-gcc puts a first 16-bit argument
    RAISED = 8  # cycle at which the interrupt's flag rose
    WAIT = 9  # word address of the branch that closes the counted loop being run
    WAIT_BEGIN = 10
    WAIT_INTERRUPTED = 11
    ENTERED = 12  # first instruction at the vector


class Call(IntEnum):
    """Columns of the list of calls."""

    FUNCTION = 0
    KIND = 1
    CALLER = 2  # word address of the function below; NOBODY at the bottom
    SITE = 3
    BEGIN = 4
    END = 5
    INCLUSIVE = 6  # without interrupts
    EXCLUSIVE = 7
    INTERRUPTED = 8
    DEPTH = 9
    ARGUMENT = 10
    FINISHED = 11
    OUTERMOST = 12  # the function was not running already: 0 for what recursion adds


class Served(IntEnum):
    """Columns of the list of interrupts."""

    VECTOR = 0
    RAISED = 1  # flag and enable both set
    TAKEN = 2  # the boundary at which the CPU turned to it
    ENTERED = 3  # first instruction at the vector
    END = 4  # after RETI
    OWN = 5  # cycles from TAKEN to END without interrupts that interrupted it
    FUNCTION = 6
    INTERRUPTED = 7  # the function below


class Blackout(IntEnum):
    """Columns of the list of stretches with interrupts off."""

    BEGIN = 0
    END = 1
    PLACE = 2  # word address of the instruction that switched them off; NOBODY: a reset
    VECTOR = 3  # the interrupt whose entry did; 0 = an instruction or reset
    FINISHED = 4


class Wait(IntEnum):
    """Columns of the list of busy waits."""

    PLACE = 0
    BEGIN = 1
    END = 2
    INTERRUPTED = 3
    FUNCTION = 4


class Count(IntEnum):
    """Entries of ``Ledger.counts``: rows used in each list, then sums."""

    CALLS = 0
    SERVED = 1
    BLACKOUTS = 2
    WAITS = 3
    PASSES = 4
    EDGES = 5
    DEPTH = 6
    OFF_SINCE = 7  # NOBODY while interrupts are on
    OFF_PLACE = 8
    OFF_VECTOR = 9
    ASLEEP = 10  # cycles, waking included
    TOO_DEEP = 11  # calls that found no room on the shadow stack
    OBSERVED = 12  # cycles
    INSTRUCTIONS = 13


class Ledger(NamedTuple):
    """What is written down about one chip."""

    owner: NDArray[np.int64]  # [word] where the function begins that it is in; NOBODY if in none
    points: NDArray[np.uint8]  # [word] passing here is noted, with this number
    cycles: NDArray[np.int64]  # [word] spent in the instruction here
    executions: NDArray[np.int64]  # [word]
    stack: NDArray[np.int64]
    raised: NDArray[np.int64]  # [vector] cycle at which its request rose
    calls: NDArray[np.int64]
    served: NDArray[np.int64]
    blackouts: NDArray[np.int64]
    waits: NDArray[np.int64]
    passes: NDArray[np.int64]  # cycle, number of the point
    edges: NDArray[np.int64]  # as in ``ChipRow.log``
    counts: NDArray[np.int64]


LISTS = ("calls", "served", "blackouts", "waits", "passes", "edges")
"""The lists of a ledger, in the order of ``Count``."""


def make_ledger(starts: Iterable[int] = (), rows: int = 1 << 15) -> Ledger:
    """Return an empty ledger whose lists have room for ``rows`` rows.

    ``starts`` are the word addresses at which functions begin; each goes on to the next.
    """
    owner = np.full(FLASH_WORDS, NOBODY, np.int64)
    for start in sorted(starts):
        owner[start:] = start

    def table(columns: int) -> NDArray[np.int64]:
        return np.zeros((rows, columns), np.int64)

    counts = np.zeros(len(Count), np.int64)
    counts[Count.OFF_SINCE] = NOBODY
    return Ledger(
        owner=owner,
        points=np.zeros(FLASH_WORDS, np.uint8),
        cycles=np.zeros(FLASH_WORDS, np.int64),
        executions=np.zeros(FLASH_WORDS, np.int64),
        stack=np.zeros((DEEPEST, len(Frame)), np.int64),
        raised=np.full(len(Vector), NOBODY, np.int64),
        calls=table(len(Call)),
        served=table(len(Served)),
        blackouts=table(len(Blackout)),
        waits=table(len(Wait)),
        passes=table(2),
        edges=np.zeros(rows, np.int64),
        counts=counts,
    )


# ---- the shadow stack ----------------------------------------------------------------------------


@kernel
def _stack_pointer(c: ChipRow) -> int:
    return (int(c.memory[SPL]) & 0xFF) | (int(c.memory[SPH]) & 0xFF) << 8


@kernel
def _push(ledger: Ledger, c: ChipRow, kind: int, sp: int, site: int, begin: int) -> None:
    depth = ledger.counts[Count.DEPTH]
    if depth >= DEEPEST:
        ledger.counts[Count.TOO_DEEP] += 1
        return
    frame = ledger.stack[depth]
    frame[Frame.FUNCTION] = c.pc
    frame[Frame.KIND] = kind
    frame[Frame.SP] = sp
    frame[Frame.BEGIN] = begin
    frame[Frame.CALLED] = 0
    frame[Frame.INTERRUPTED] = 0
    frame[Frame.SITE] = site
    frame[Frame.ARGUMENT] = (int(c.memory[24]) & 0xFF) | (int(c.memory[25]) & 0xFF) << 8
    frame[Frame.RAISED] = NOBODY
    frame[Frame.WAIT] = NOBODY
    frame[Frame.ENTERED] = c.cycle
    ledger.counts[Count.DEPTH] += 1


@kernel
def _is_outermost(ledger: Ledger, depth: int) -> bool:
    """Tell whether the function of a frame runs in none below it; an interrupt starts afresh."""
    function = ledger.stack[depth, Frame.FUNCTION]
    while depth > 0 and ledger.stack[depth, Frame.KIND] != Kind.INTERRUPT:
        depth -= 1
        if ledger.stack[depth, Frame.FUNCTION] == function:
            return False
    return True


@kernel
def _pop(ledger: Ledger, now: int, finished: int) -> None:
    """Close the topmost frame at cycle ``now``, and write it down."""
    counts = ledger.counts
    depth = counts[Count.DEPTH] - 1
    counts[Count.DEPTH] = depth
    frame = ledger.stack[depth]
    gross = now - frame[Frame.BEGIN]
    inclusive = gross - frame[Frame.INTERRUPTED]
    below = NOBODY
    is_interrupt = frame[Frame.KIND] == Kind.INTERRUPT
    if depth > 0:
        parent = ledger.stack[depth - 1]
        below = parent[Frame.FUNCTION]
        if is_interrupt:
            parent[Frame.INTERRUPTED] += gross
        else:
            parent[Frame.CALLED] += inclusive
            parent[Frame.INTERRUPTED] += frame[Frame.INTERRUPTED]
    row = ledger.calls[counts[Count.CALLS]]
    counts[Count.CALLS] += 1
    row[Call.FUNCTION] = frame[Frame.FUNCTION]
    row[Call.KIND] = frame[Frame.KIND]
    row[Call.CALLER] = below
    row[Call.SITE] = frame[Frame.SITE]
    row[Call.BEGIN] = frame[Frame.BEGIN]
    row[Call.END] = now
    row[Call.INCLUSIVE] = inclusive
    row[Call.EXCLUSIVE] = inclusive - frame[Frame.CALLED]
    row[Call.INTERRUPTED] = frame[Frame.INTERRUPTED]
    row[Call.DEPTH] = depth
    row[Call.ARGUMENT] = frame[Frame.ARGUMENT]
    row[Call.FINISHED] = finished
    row[Call.OUTERMOST] = _is_outermost(ledger, depth)
    if is_interrupt and finished:
        row = ledger.served[counts[Count.SERVED]]
        counts[Count.SERVED] += 1
        row[Served.VECTOR] = frame[Frame.SITE]
        row[Served.RAISED] = frame[Frame.RAISED]
        row[Served.TAKEN] = frame[Frame.BEGIN]
        row[Served.ENTERED] = frame[Frame.ENTERED]
        row[Served.END] = now
        row[Served.OWN] = inclusive
        row[Served.FUNCTION] = frame[Frame.FUNCTION]
        row[Served.INTERRUPTED] = below


@kernel
def _start_anew(ledger: Ledger, c: ChipRow) -> None:
    """Begin at the bottom of the stack: at reset."""
    while ledger.counts[Count.DEPTH] > 0:
        _pop(ledger, c.cycle, 0)
    _push(ledger, c, Kind.START, 0xFFFF, NOBODY, c.cycle)
    for vector in range(len(ledger.raised)):
        ledger.raised[vector] = NOBODY
    _raise(ledger, c.requests, c.cycle)


@kernel
def _start_in_the_middle(ledger: Ledger, c: ChipRow) -> None:
    """Begin at the bottom of the stack in the function that is under way."""
    _push(ledger, c, Kind.UNDER_WAY, _stack_pointer(c), NOBODY, c.cycle)
    ledger.stack[0, Frame.FUNCTION] = ledger.owner[c.pc]


@kernel
def _return(ledger: Ledger, c: ChipRow) -> None:
    """Close all frames that a return (or whatever moved the stack pointer before it) has left."""
    sp = _stack_pointer(c)
    from_bottom = True
    while ledger.counts[Count.DEPTH] > 1:
        top = ledger.stack[ledger.counts[Count.DEPTH] - 1]
        if top[Frame.SP] >= sp:
            return
        from_bottom = top[Frame.KIND] == Kind.JUMP  # it returns together with what is below
        _pop(ledger, c.cycle, 1)
    bottom = ledger.stack[0]
    if from_bottom and bottom[Frame.KIND] == Kind.UNDER_WAY and bottom[Frame.SP] < sp:
        _pop(ledger, c.cycle, 0)
        _start_in_the_middle(ledger, c)


@kernel
def _arrive(ledger: Ledger, c: ChipRow, site: int) -> None:
    """Come to the start of a function without a call: by a jump, or by running into it."""
    top = ledger.counts[Count.DEPTH] - 1
    frame = ledger.stack[top]
    if frame[Frame.KIND] == Kind.INTERRUPT and frame[Frame.FUNCTION] == site:
        frame[Frame.FUNCTION] = c.pc  # the vector's jump to the handler
        return
    if frame[Frame.KIND] == Kind.START:
        _start_anew_at(ledger, c)
    elif not _go_back_to(ledger, c, c.pc):
        _push(ledger, c, Kind.JUMP, frame[Frame.SP], site, c.cycle)


@kernel
def _go_back_to(ledger: Ledger, c: ChipRow, function: int) -> bool:
    """Close functions that were jumped to, down to ``function``; tell whether it was there.

    Two functions may jump to each other for ever; a table jump comes back by a jump.
    """
    place = ledger.counts[Count.DEPTH] - 1
    while ledger.stack[place, Frame.FUNCTION] != function:
        if ledger.stack[place, Frame.KIND] != Kind.JUMP:
            return False
        place -= 1
    while ledger.counts[Count.DEPTH] - 1 > place:
        _pop(ledger, c.cycle, 1)
    return True


@kernel
def _start_anew_at(ledger: Ledger, c: ChipRow) -> None:
    """Let start-up code go on under its next name: main follows on clearing .bss, and so on."""
    _pop(ledger, c.cycle, 1)
    _push(ledger, c, Kind.START, 0xFFFF, NOBODY, c.cycle)


# ---- interrupts ----------------------------------------------------------------------------------


@kernel
def _raise(ledger: Ledger, requests: int, cycle: int) -> None:
    vector = 0
    while requests:
        if requests & 1:
            ledger.raised[vector] = cycle
        requests >>= 1
        vector += 1


@kernel
def _let_events_happen(ledger: Ledger, c: ChipRow, tape: NDArray[np.int64], end: int) -> None:
    """Do what the core would do first, one event at a time, and note who asks for an interrupt."""
    while c.next_event < end:
        now = c.next_event
        before = c.requests
        handle_due(c, tape, now)
        _raise(ledger, c.requests & ~before, now)
    update_next_event(c)


@kernel
def _enter(ledger: Ledger, c: ChipRow, begin: int) -> None:
    vector = (c.pc - c.vector_base) // 2
    raised = ledger.raised[vector]
    _push(ledger, c, Kind.INTERRUPT, _stack_pointer(c), vector, begin)
    top = ledger.counts[Count.DEPTH] - 1
    if ledger.stack[top, Frame.BEGIN] == begin:
        ledger.stack[top, Frame.RAISED] = raised
    # A request that entering does not clear (USART, EEPROM) waits again from here on.
    ledger.raised[vector] = c.cycle if c.requests >> vector & 1 else NOBODY


@kernel
def _note_blackout(
    ledger: Ledger, c: ChipRow, before: int, place: int, vector: int, begin: int
) -> None:
    """Note where the I flag fell, and the whole stretch when it rises."""
    counts = ledger.counts
    if before & ~c.sreg & _I_FLAG:
        counts[Count.OFF_SINCE] = begin if vector else c.cycle
        counts[Count.OFF_PLACE] = place
        counts[Count.OFF_VECTOR] = vector
    elif c.sreg & ~before & _I_FLAG and counts[Count.OFF_SINCE] != NOBODY:
        _end_blackout(ledger, c.cycle, 1)


@kernel
def _end_blackout(ledger: Ledger, now: int, finished: int) -> None:
    counts = ledger.counts
    row = ledger.blackouts[counts[Count.BLACKOUTS]]
    counts[Count.BLACKOUTS] += 1
    row[Blackout.BEGIN] = counts[Count.OFF_SINCE]
    row[Blackout.END] = now
    row[Blackout.PLACE] = counts[Count.OFF_PLACE]
    row[Blackout.VECTOR] = counts[Count.OFF_VECTOR]
    row[Blackout.FINISHED] = finished
    counts[Count.OFF_SINCE] = NOBODY


# ---- busy waits ----------------------------------------------------------------------------------


@kernel
def _wait(ledger: Ledger, c: ChipRow, word: int, place: int, begin: int) -> None:
    """Follow a counted delay loop by the branch that closes it."""
    frame = ledger.stack[ledger.counts[Count.DEPTH] - 1]
    if frame[Frame.WAIT] != place:
        body = 1 if word & 0xFF == Op.BRNE_DELAY_DEC else 2
        if word & 0xFF == Op.BRNE_DELAY_SUBI:
            body = word >> 8 & 0xFF
        frame[Frame.WAIT] = place
        frame[Frame.WAIT_BEGIN] = begin - body
        frame[Frame.WAIT_INTERRUPTED] = frame[Frame.INTERRUPTED]
    if c.pc == word >> 16:
        return
    frame[Frame.WAIT] = NOBODY
    interrupted = frame[Frame.INTERRUPTED] - frame[Frame.WAIT_INTERRUPTED]
    if c.cycle - frame[Frame.WAIT_BEGIN] - interrupted >= SHORTEST_WAIT:
        row = ledger.waits[ledger.counts[Count.WAITS]]
        ledger.counts[Count.WAITS] += 1
        row[Wait.PLACE] = place
        row[Wait.BEGIN] = frame[Frame.WAIT_BEGIN]
        row[Wait.END] = c.cycle
        row[Wait.INTERRUPTED] = interrupted
        row[Wait.FUNCTION] = frame[Frame.FUNCTION]


# ---- one instruction -----------------------------------------------------------------------------


@kernel
def _follow(ledger: Ledger, c: ChipRow, word: int, place: int, begin: int) -> None:
    """Bring the shadow stack up to date after the instruction at ``place``."""
    if c.pc == c.reset_vector:
        _start_anew(ledger, c)
        return
    match word & 0xFF:
        case Op.CALL | Op.RCALL | Op.ICALL:
            if c.pc != (place + 1) & PC_MASK:  # `rcall .+0` only makes room on the stack
                _push(ledger, c, Kind.CALL, _stack_pointer(c), place, c.cycle)
        case Op.RET | Op.RETI:
            _return(ledger, c)
        case Op.BRNE_DELAY_DEC | Op.BRNE_DELAY_SBIW | Op.BRNE_DELAY_SUBI:
            _wait(ledger, c, word, place, begin)
        case _:
            top = ledger.stack[ledger.counts[Count.DEPTH] - 1]
            if ledger.owner[c.pc] == c.pc:
                if top[Frame.FUNCTION] != c.pc:
                    _arrive(ledger, c, place)
            elif ledger.owner[c.pc] != ledger.owner[place]:
                if top[Frame.KIND] == Kind.JUMP:
                    _go_back_to(ledger, c, ledger.owner[c.pc])
                elif top[Frame.KIND] == Kind.UNDER_WAY:  # it was jumped to, before watching began
                    _pop(ledger, c.cycle, 0)
                    _start_in_the_middle(ledger, c)


@kernel
def _drain_log(ledger: Ledger, c: ChipRow) -> None:
    for number in range(c.log_count):
        ledger.edges[ledger.counts[Count.EDGES]] = c.log[number]
        ledger.counts[Count.EDGES] += 1
    c.log_count = 0


@kernel
def _observe_step(
    c: ChipRow,
    flash: NDArray[np.uint16],
    code: NDArray[np.uint32],
    blocks: NDArray[np.int64],
    tape: NDArray[np.int64],
    scratch: NDArray[np.int64],
    stop: int,
    ledger: Ledger,
) -> int:
    """Let one instruction, interrupt's entry, reset, or stretch of sleep happen; write it down."""
    counts = ledger.counts
    _let_events_happen(ledger, c, tape, c.cycle)
    begin, place, status, sp = c.cycle, c.pc, c.sreg, _stack_pointer(c)
    before, event = c.requests, c.next_event
    slept, resetting = c.asleep, c.reset_cause
    word = int(code[place]) & 0xFFFFFFFF
    until = begin + 1
    if resetting:
        until = begin  # nothing but the reset
    elif slept and not (status & _I_FLAG and before & sleep.wakes(c)):
        until = min(max(until, event + 1), stop)  # asleep as long as nothing happens
    reason = run(c, flash, code, blocks, tape, scratch, until)
    _drain_log(ledger, c)
    while reason == Stop.LOG:
        reason = run(c, flash, code, blocks, tape, scratch, until)
        _drain_log(ledger, c)
    if reason != Stop.CYCLES:
        return reason
    _raise(ledger, c.requests & ~before, min(event, c.cycle))
    if slept:
        counts[Count.ASLEEP] += c.cycle - begin
    if resetting or (slept and c.pc != place):
        _start_anew(ledger, c)
        _note_blackout(ledger, c, status, NOBODY, 0, begin)
    if resetting or slept:
        return reason
    is_entry = (
        status & ~c.sreg & _I_FLAG != 0
        and c.cycle - begin == INTERRUPT_ENTRY_CYCLES
        and _stack_pointer(c) == (sp - 2) & 0xFFFF
    )
    if is_entry:
        ledger.cycles[c.pc] += c.cycle - begin
        _enter(ledger, c, begin)
        _note_blackout(ledger, c, status, place, (c.pc - c.vector_base) // 2, begin)
        return reason
    ledger.cycles[place] += c.cycle - begin
    ledger.executions[place] += 1
    counts[Count.INSTRUCTIONS] += 1
    if ledger.points[place]:
        ledger.passes[counts[Count.PASSES], 0] = begin
        ledger.passes[counts[Count.PASSES], 1] = ledger.points[place]
        counts[Count.PASSES] += 1
    _note_blackout(ledger, c, status, place, 0, begin)
    _follow(ledger, c, word, place, begin)
    return reason


@kernel
def _has_room(ledger: Ledger) -> bool:
    """Tell whether every list can take what one instruction may add."""
    rows = len(ledger.edges) - 2 * DEEPEST
    fullest = 0
    for number in range(Count.EDGES + 1):
        fullest = max(fullest, ledger.counts[number])
    return fullest < rows


@entry
def observe(
    chips: Chips,
    robot: int,
    flash: NDArray[np.uint16],
    code: NDArray[np.uint32],
    blocks: NDArray[np.int64],
    tape: NDArray[np.int64],
    scratch: NDArray[np.int64],
    stop: int,
    ledger: Ledger,
) -> int:
    """Run a chip as ``run_chip`` does, watched; return a ``Stop``, or ``FULL``: empty the lists.

    ``stop`` is a cycle, or a world time if the tape is in world time.
    """
    c = chips[robot]
    c.skip_idle = 0
    c.idle_period = 0
    c.suspended = 0
    rewind_tape(c, tape)
    if ledger.counts[Count.DEPTH] == 0:
        if c.pc == c.reset_vector:
            _start_anew(ledger, c)
        else:
            _start_in_the_middle(ledger, c)
            _raise(ledger, c.requests, c.cycle)
        if not c.sreg & _I_FLAG:
            ledger.counts[Count.OFF_SINCE] = c.cycle
            ledger.counts[Count.OFF_PLACE] = c.pc
    last = cycle_at(c, stop) if c.tape_in_time else stop
    while c.cycle < last:
        if not _has_room(ledger):
            return FULL
        before = c.cycle
        reason = _observe_step(c, flash, code, blocks, tape, scratch, last, ledger)
        ledger.counts[Count.OBSERVED] += c.cycle - before
        if reason == Stop.CLOCK and c.tape_in_time:
            last = cycle_at(c, stop)
        elif reason != Stop.CYCLES and reason != Stop.CLOCK:
            return reason
    _let_events_happen(ledger, c, tape, min(c.cycle, last))
    _drain_log(ledger, c)
    return Stop.CYCLES.value


@entry
def finish(ledger: Ledger, cycle: int) -> None:
    """Close what is still open, calls and interrupts off; it is listed as not finished."""
    while ledger.counts[Count.DEPTH] > 0:
        _pop(ledger, cycle, 0)
    if ledger.counts[Count.OFF_SINCE] != NOBODY:
        _end_blackout(ledger, cycle, 0)
