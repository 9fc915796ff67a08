"""Exact idle skipping: jump over what a waiting program does, without changing what comes out.

Three kinds of waiting have a closed form. A counted delay loop is recognised when the program is
decoded; all but its last iterations are skipped, and those run normally, so that flags come out
right. So is a loop that waits for a bit of a status register, such as ADSC or EEPE, which changes
at a cycle that the peripheral knows. Any other loop is probed: if the program comes back to an
address with the same registers, flags and SRAM, and has neither written to the I/O space nor read
anything there that changes with time, it will repeat exactly until the next event. The core then
skips whole periods.

The bytes of SRAM and I/O space that a proven loop touches are remembered. An interrupt that gives
back all registers and has changed none of these bytes leaves the loop as proven as it was. Traces
that it leaves in the stack, below the stack pointer, are overwritten as the loop would have done:
what it writes there, and when, is remembered too.

A delay loop can be entered at its branch with Z clear and a count of 0 (an interrupt routine that
spoils the flags does it): then it counts all the way round, like the loop on the chip.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.bus import DYNAMIC, EXISTS, read_io, steady_until
from avrswarm.chip.peripherals import timer_unit
from avrswarm.chip.state import (
    DATA_SIZE,
    LOOP_BYTES,
    LOOP_WRITES,
    SRAM_START,
    ChipRow,
    Touch,
)
from avrswarm.isa.decode import PC_MASK, SKIP_TWO, TCNT0, TCNT1L
from avrswarm.isa.table import Op
from avrswarm.jit import kernel

# Trade-offs of speed only; no value here can change a result.
WORTH_SKIPPING = 400  # cycles to the next event below which a probe with interrupts off cannot pay
LONGEST_PROBE = 800  # instructions after which a loop is given up
SHORTEST_WAIT = 300  # calm cycles before a probe
LONGEST_WAIT = 1 << 15
LONGEST_ABSENCE = 2000  # cycles of an interrupt that a probe waits for
LATEST_WRITE = 0x7FFF  # cycles after a loop's begin at which a write to its stack is remembered

PROBED = -1
"""In ``suspended``: not a proven loop but one under probe has been interrupted."""

SCRATCH_SIZE = 2 * DATA_SIZE
"""Room that a probe needs: the data space as it was, and which bytes of it have been touched."""

ELSEWHERE, INTACT, CHANGED = 0, 1, 2
"""What ``resume`` finds: not back yet; back, with all as it was; back, with something changed."""

_WORD = 0xFFFFFFFF
_IO_START = 0x20
_LONGEST_DELAY_LOOP = 5  # words
_ADDRESS = 0x0FFF  # of a remembered byte
_ON_STACK = 0x4000  # it is only reached by pushes, pops, calls and returns


@kernel
def disturb(c: ChipRow, cycle: int) -> None:
    """Forget the proven loop: a wake, a reset or another loop."""
    c.idle_period = 0
    c.suspended = 0
    c.calm_since = cycle
    c.probe_wait = max(c.probe_wait // 2, SHORTEST_WAIT)  # it may be idle in another way now


@kernel
def suspend(c: ChipRow, pc: int, sp: int, status: int, cycle: int) -> None:
    """Keep the proven loop in mind while an interrupt is served that came at ``pc``."""
    if c.idle_period and c.loop_count >= 0 and not c.idle_reads_io:
        c.suspended = c.idle_period
        remember_place(c, pc, sp, status, cycle)
    elif not c.suspended:
        c.probe_wait = max(3 * c.probe_wait // 4, SHORTEST_WAIT)
    c.idle_period = 0


@kernel
def remember_place(c: ChipRow, pc: int, sp: int, status: int, cycle: int) -> None:
    """Remember where a loop was interrupted, with registers and all bytes that it touches."""
    c.suspended_at = cycle
    c.suspended_pc = pc
    c.suspended_sp = sp
    c.suspended_sreg = status
    for place in range(32):
        c.suspended_registers[place] = c.memory[place]
    for number in range(c.loop_count):
        c.loop_value[number] = c.memory[int(c.loop_address[number]) & _ADDRESS]


@kernel
def resume(c: ChipRow, pc: int, sp: int, status: int, cycle: int) -> int:
    """After RETI: go on with the loop that was suspended, if nothing it depends on has changed.

    Bytes of the stack at or below the stack pointer are dead: the loop writes them, by a push or a
    call, before it reads them again.
    """
    if pc != c.suspended_pc or sp != c.suspended_sp or status != c.suspended_sreg:
        return ELSEWHERE  # an interrupt within an interrupt has returned
    period = c.suspended
    c.suspended = 0
    different = 0
    spoiled = 0
    for place in range(32):
        different |= int(c.suspended_registers[place]) ^ int(c.memory[place])
    for number in range(c.loop_count):
        address = int(c.loop_address[number]) & _ADDRESS
        if address > sp or not int(c.loop_address[number]) & _ON_STACK:
            different |= int(c.loop_value[number]) ^ int(c.memory[address])
        else:
            spoiled |= int(c.loop_value[number]) ^ int(c.memory[address])
    if different:
        if period != PROBED:  # most likely it waits on, with another count of ticks
            c.calm_since = cycle
            c.probe_wait = 2 * period
        return CHANGED
    c.loop_origin += cycle - c.suspended_at
    if spoiled:
        c.spoiled = 1
    if period != PROBED:
        c.idle_period = period
    return INTACT


@kernel
def forget_later_loops(c: ChipRow) -> None:
    """After a chip was put back to an earlier state: what is remembered may be of a later loop."""
    c.suspended = 0
    if c.loop_id != c.loop_serial:
        c.idle_period = 0


@kernel
def _write_stack_again(c: ChipRow, cycle: int) -> None:
    """Do what one round of the loop, up to where it stands now, does to the stack."""
    c.spoiled = 0
    now = (cycle - c.loop_origin) % c.idle_period
    for this_round in range(2):
        for number in range(c.loop_writes):
            if (c.write_offset[number] < now) == this_round:
                c.memory[int(c.write_address[number])] = c.write_value[number]


@kernel
def skip_periods(c: ChipRow, cycle: int, limit: int) -> int:
    """Skip whole periods of the proven loop that end by ``limit``; return the cycle after them."""
    if limit - cycle < c.idle_period:
        return cycle
    skipped = (limit - cycle) // c.idle_period * c.idle_period
    if c.spoiled:
        _write_stack_again(c, cycle)
    if c.held_until > cycle:
        c.held_until += skipped
    return cycle + skipped


# ---- probing
# -----------------------------------------------------------------------------------------


@kernel
def begin_probe(c: ChipRow, scratch: NDArray[np.uint8], cycle: int) -> None:
    """Save what a loop has to come back to."""
    for place in range(DATA_SIZE):
        scratch[place] = c.memory[place]
    for place in range(DATA_SIZE, SCRATCH_SIZE):
        scratch[place] = 0
    c.io_seen |= c.io_touched
    c.io_touched = 0
    c.loop_serial += 1
    c.loop_id = c.loop_serial
    c.loop_origin = cycle
    c.loop_count = 0
    c.loop_writes = 0
    c.spoiled = 0
    c.suspended = 0


@kernel
def has_come_back(c: ChipRow, scratch: NDArray[np.uint8], sp: int, interrupted: int) -> bool:
    """Tell whether the program, at the probe's begin again, will do the same once more.

    It will if registers are as they were, and all bytes that it has touched; dead ones apart,
    which it writes before it reads them. A loop that reads the I/O space must have seen no event.
    """
    different = 0
    for place in range(32):
        different |= int(c.memory[place]) ^ int(scratch[place])
    if different or (c.io_touched & Touch.STABLE_READ and c.io_touched & Touch.EVENT):
        return False
    if c.loop_count < 0:  # not known which: look at all
        for place in range(SRAM_START, DATA_SIZE):
            different |= int(c.memory[place]) ^ int(scratch[place])
        return different == 0 and not interrupted
    for number in range(c.loop_count):
        address = int(c.loop_address[number]) & _ADDRESS
        if address > sp or not int(c.loop_address[number]) & _ON_STACK:
            different |= int(c.memory[address]) ^ int(scratch[address])
    return different == 0


@kernel
def prove(c: ChipRow, scratch: NDArray[np.uint8], cycle: int) -> None:
    """Note that the loop at which the program stands repeats after the cycles since its origin.

    Bytes that are pushed and then written in another way, such as small frames of functions, are
    not written again: for them an interrupt that leaves traces ends the proof.
    """
    kept = 0
    for number in range(c.loop_writes if c.loop_count >= 0 else 0):
        known = int(scratch[DATA_SIZE + int(c.write_address[number])])
        if int(c.loop_address[known - 1]) & _ON_STACK:
            c.write_address[kept] = c.write_address[number]
            c.write_offset[kept] = c.write_offset[number]
            c.write_value[kept] = c.write_value[number]
            kept += 1
    c.loop_writes = kept
    c.idle_period = cycle - c.loop_origin
    c.idle_reads_io = c.io_touched & Touch.STABLE_READ
    c.probe_wait = SHORTEST_WAIT


@kernel
def _remember(c: ChipRow, scratch: NDArray[np.uint8], address: int, on_stack: int) -> None:
    if c.loop_count < 0 or address < _IO_START or address >= DATA_SIZE:
        return
    if address < SRAM_START and DYNAMIC[address]:
        c.loop_count = -1  # what it holds is not in the data space
        return
    known = int(scratch[DATA_SIZE + address])
    if known:
        c.loop_address[known - 1] &= on_stack | _ADDRESS
        return
    if c.loop_count == LOOP_BYTES:
        c.loop_count = -1
        return
    scratch[address] = c.memory[address]  # an interrupt may have changed it since the probe began
    c.loop_address[c.loop_count] = address | on_stack
    c.loop_count += 1
    scratch[DATA_SIZE + address] = c.loop_count


@kernel
def _remember_push(
    c: ChipRow, scratch: NDArray[np.uint8], sp: int, value: int, offset: int
) -> None:
    _remember(c, scratch, sp, _ON_STACK)
    if c.loop_writes == LOOP_WRITES or offset > LATEST_WRITE:
        c.loop_count = -1
        return
    c.write_address[c.loop_writes] = sp
    c.write_offset[c.loop_writes] = offset
    c.write_value[c.loop_writes] = value
    c.loop_writes += 1


@kernel
def _pointer(c: ChipRow, register: int) -> int:
    return int(c.memory[register]) & 0xFF | (int(c.memory[register + 1]) & 0xFF) << 8


IS_NOTED = np.zeros(256, np.bool_)
"""Operations that ``note_access`` looks at: all that touch memory."""
IS_NOTED[
    [
        op
        for op in Op
        if op.name.startswith(("LD_", "LDD_", "LDS", "ST_", "STD_", "STS"))
        or op.name in ("IN", "OUT", "SBI", "CBI", "SBIC", "SBIS", "PUSH", "POP", "RCALL", "CALL")
        or op.name in ("ICALL", "RET", "RETI", "OUT_SPL", "OUT_SPH")
    ]
] = True


@kernel
def note_access(
    c: ChipRow, scratch: NDArray[np.uint8], word: int, pc: int, sp: int, cycle: int
) -> None:
    """Remember which bytes the instruction that is about to run will touch."""
    address = -1
    b = word >> 16
    match word & 0xFF:
        case Op.LDS | Op.STS | Op.IN | Op.OUT | Op.SBI | Op.CBI:
            address = b
        case Op.SBIC | Op.SBIS:
            address = b & ~SKIP_TWO
        case Op.LDD_Z | Op.STD_Z:
            address = _pointer(c, 30) + b & 0xFFFF
        case Op.LDD_Y | Op.STD_Y:
            address = _pointer(c, 28) + b & 0xFFFF
        case Op.LD_X | Op.ST_X | Op.LD_X_INC | Op.ST_X_INC:
            address = _pointer(c, 26)
        case Op.LD_DEC_X | Op.ST_DEC_X:
            address = _pointer(c, 26) - 1 & 0xFFFF
        case Op.LD_Y_INC | Op.ST_Y_INC:
            address = _pointer(c, 28)
        case Op.LD_DEC_Y | Op.ST_DEC_Y:
            address = _pointer(c, 28) - 1 & 0xFFFF
        case Op.LD_Z_INC | Op.ST_Z_INC:
            address = _pointer(c, 30)
        case Op.LD_DEC_Z | Op.ST_DEC_Z:
            address = _pointer(c, 30) - 1 & 0xFFFF
        case Op.PUSH:
            pushed = int(c.memory[word >> 8 & 0xFF])
            _remember_push(c, scratch, sp, pushed, cycle - c.loop_origin)
        case Op.POP:
            _remember(c, scratch, sp + 1, _ON_STACK)
        case Op.RCALL | Op.CALL | Op.ICALL:
            back = pc + (2 if word & 0xFF == Op.CALL else 1)
            _remember_push(c, scratch, sp, back & 0xFF, cycle - c.loop_origin)
            _remember_push(c, scratch, sp - 1, back >> 8 & 0x3F, cycle - c.loop_origin)
        case Op.RET | Op.RETI:
            _remember(c, scratch, sp + 1, _ON_STACK)
            _remember(c, scratch, sp + 2, _ON_STACK)
        case Op.OUT_SPL | Op.OUT_SPH:
            c.loop_count = -1  # the stack pointer moves in other ways than calls and pushes
        case _:
            pass
    if address >= 0:
        _remember(c, scratch, address, 0)


@kernel
def give_up(c: ChipRow, cycle: int) -> None:
    """Wait before the next probe: longer and longer while the program is busy."""
    c.calm_since = cycle
    c.probe_wait = min(max(2 * c.probe_wait, SHORTEST_WAIT), LONGEST_WAIT)


@kernel
def in_delay_loop(code: NDArray[np.uint32], pc: int) -> bool:
    """Tell whether ``pc`` is in a counted delay loop: no need to prove what has a closed form."""
    for number in range(_LONGEST_DELAY_LOOP):
        op = int(code[(pc + number) & PC_MASK]) & 0xFF
        if op == Op.BRNE_DELAY_SBIW or op == Op.BRNE_DELAY_DEC or op == Op.BRNE_DELAY_SUBI:
            return True
    return False


@kernel
def skip_poll_loop(
    c: ChipRow,
    tape: NDArray[np.int64],
    code: NDArray[np.uint32],
    first: int,
    cycle: int,
    limit: int,
) -> int:
    """Skip iterations of a wait for a bit that will read the same; return the cycle.

    The loop has gone round once. What it read then is read again first, because that may have
    changed since; the iteration after those skipped does it anyway.
    """
    word = int(code[first]) & _WORD
    op = word & 0xFF
    address = word >> 16
    mask = word >> 8 & 0xFF
    period = 3  # sbic, rjmp
    wanted = op == Op.SBIC
    if op == Op.SBIC or op == Op.SBIS:
        address &= ~SKIP_TWO
    else:
        period = 5 if op == Op.LDS else 4
        test = int(code[(first + (2 if op == Op.LDS else 1)) & PC_MASK]) & _WORD
        mask = 1 << (test >> 16 & 7)
        wanted = test & 0xFF == Op.SBRC
        if not wanted and test & 0xFF != Op.SBRS:  # a breakpoint stands there
            return cycle
    if min(limit, c.next_event) - cycle < 2 * period:
        return cycle
    if address < _IO_START or address >= SRAM_START or not EXISTS[address]:
        return cycle
    if (read_io(c, tape, address, cycle) & mask != 0) != wanted:
        return cycle
    steady = min(steady_until(c, address, cycle), min(c.next_event, limit))
    return cycle + max((steady - cycle) // period, 0) * period


@kernel
def skip_count_loop(
    c: ChipRow, code: NDArray[np.uint32], first: int, cycle: int, limit: int
) -> int:
    """Skip iterations of a wait for a timer's count that will compare alike; return the cycle.

    The last one before the count gets there, or may turn back, runs normally: it sets registers
    and flags, whatever those skipped would have left in them. Between the comparison just made and
    now the count may have got there already: then ``reaches`` tells of the time after that, so the
    loop must go round once more before iterations are skipped.
    """
    word = int(code[first]) & _WORD
    source = word >> 16
    timer = 1 if source == TCNT1L else (0 if source == TCNT0 else 2)
    by_lds = word & 0xFF == Op.LDS
    place = first + (2 if by_lds else 1)
    period = (2 if by_lds else 1) + 1 + 2
    seen = int(c.memory[word >> 8 & 0xFF])
    if timer == 1:
        seen |= int(c.memory[int(code[place & PC_MASK]) >> 8 & 0xFF]) << 8
        place += 2
        period += 3
    compare = int(code[place & PC_MASK]) & _WORD
    count = compare >> 16
    if compare & 0xFF == Op.CP:
        count = int(c.memory[count])
    elif compare & 0xFF != Op.CPI:  # a breakpoint stands there
        return cycle
    if timer == 1:
        carried = int(code[(place + 1) & PC_MASK]) & _WORD
        if carried & 0xFF != Op.CPC:
            return cycle
        count |= int(c.memory[carried >> 16]) << 8
    if min(limit, c.next_event) - cycle < 2 * period:
        return cycle
    steady = min(timer_unit.reaches(c, timer, count, cycle), min(c.next_event, limit))
    now = c.timers[timer].count
    if now < seen or (seen < count) != (now < count) or (seen == count) != (now == count):
        return cycle
    return cycle + max((steady - cycle) // period - 1, 0) * period


@kernel
def skip_sbiw_loop(data: NDArray[np.uint8], word: int, cycle: int, limit: int) -> int:
    """Skip iterations of ``sbiw r, 1 ; brne`` (4 cycles) up to ``limit``; return the cycle."""
    if word & 0xFF != Op.SBIW:  # a breakpoint stands there
        return cycle
    register = word >> 8 & 0xFF
    count = int(data[register]) & 0xFF | (int(data[register + 1]) & 0xFF) << 8
    skipped = min((count - 1) & 0xFFFF, (limit - cycle) // 4)
    count -= skipped
    data[register] = count & 0xFF
    data[register + 1] = count >> 8 & 0xFF
    return cycle + 4 * skipped


@kernel
def skip_dec_loop(data: NDArray[np.uint8], word: int, cycle: int, limit: int) -> int:
    """Skip iterations of ``dec r ; brne`` (3 cycles)."""
    if word & 0xFF != Op.DEC:
        return cycle
    register = word >> 8 & 0xFF
    count = int(data[register]) & 0xFF
    skipped = min((count - 1) & 0xFF, (limit - cycle) // 3)
    data[register] = (count - skipped) & 0xFF
    return cycle + 3 * skipped


@kernel
def skip_subi_loop(
    data: NDArray[np.uint8],
    code: NDArray[np.uint32],
    first: int,
    counted: int,
    cycle: int,
    limit: int,
) -> int:
    """Skip iterations of ``subi ; sbci ; ... ; brne`` over ``counted`` bytes (``counted`` + 2)."""
    count = 0
    for number in range(counted):
        word = int(code[(first + number) & PC_MASK]) & _WORD
        if word & 0xFF != (Op.SUBI if number == 0 else Op.SBCI):
            return cycle
        count |= (int(data[word >> 8 & 0xFF]) & 0xFF) << (8 * number)
    skipped = min((count - 1) & ((1 << 8 * counted) - 1), (limit - cycle) // (counted + 2))
    count -= skipped
    for number in range(counted):
        word = int(code[(first + number) & PC_MASK]) & _WORD
        data[word >> 8 & 0xFF] = count >> (8 * number) & 0xFF
    return cycle + (counted + 2) * skipped
