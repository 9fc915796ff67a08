"""Exact idle skipping: jump over what a waiting program does, without changing what comes out.

Three kinds of waiting have a closed form. A counted delay loop is recognised when the program is
decoded; all but its last iterations are skipped, and those run normally, so that flags come out
right. So is a loop that waits for a bit of a status register, such as ADSC or EEPE, which changes
at a cycle that the peripheral knows. Any other loop is probed: if the program comes back to an
address with the same registers, flags and SRAM, and has neither written to the I/O space nor read
anything there that changes with time, it will repeat exactly until the next event. The core then
skips whole periods.

While a loop is probed, the bytes of SRAM and I/O space that it reads and writes are noted; while an
interrupt is served, those that it writes. An interrupt that gives back all registers and has
written none of the bytes that a proven loop touches leaves that loop as proven as it was.

The stack is a case of its own. What is above the stack pointer is compared before and after. What
is below is dead: the loop pushes before it pops. But an interrupt leaves traces there, which the
loop would have overwritten: what it pushes, and when, is noted too. Where a byte is always pushed
with the same value, it does not matter when: such bytes are kept as words with a mask.

A delay loop can be entered at its branch with Z clear and a count of 0 (an interrupt routine that
spoils the flags does it): then it counts all the way round, like the loop on the chip.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.bus import DYNAMIC, EXISTS, read_io, steady_until
from avrswarm.chip.cpu import Slot, stop_noting
from avrswarm.chip.peripherals import timer_unit
from avrswarm.chip.registers import PINB, PINC, PIND, PORTB
from avrswarm.chip.state import (
    DATA_SIZE,
    DATA_WORDS,
    IMAGE_WORDS,
    LOOP_PUSHES,
    SRAM_START,
    STACK_WORDS,
    TOUCHED_WORDS,
    ChipRow,
    Touch,
    bit_of,
    word_of,
)
from avrswarm.isa.decode import PC_MASK, SKIP_TWO, TCNT0, TCNT1L
from avrswarm.isa.table import Op
from avrswarm.jit import kernel

# Trade-offs of speed only; no value here can change a result.
WORTH_SKIPPING = 400  # cycles to the next event below which a probe with interrupts off cannot pay
LONGEST_PROBE = 2400  # cycles after which a loop is given up
SHORTEST_WAIT = 300  # calm cycles before a probe
LONGEST_WAIT = 1 << 17
LONGEST_ABSENCE = 2000  # cycles of an interrupt after which its own loops are worth a probe

DEEPEST_STACK = 512
"""Bytes below the stack pointer at a probe's begin that belong to the stack: a write there is noted
like a push, and interrupts that reach further are not trusted."""

MOST_PUSHES = 200
FIRST_PUSH = 2 * DATA_WORDS
SCRATCH_SIZE = FIRST_PUSH + MOST_PUSHES + 1
"""Room that a probe needs: the data space as it was, a number for each word of it, and from
``FIRST_PUSH`` on what has been pushed: cycles since the probe's begin << 24 | address << 8 | value.
"""

_WORD = 0xFFFFFFFF
_IO_START = 0x20
_LONGEST_DELAY_LOOP = 5  # words
_REGISTER_WORDS = 4
_STACK_END = DATA_WORDS  # words; the stack is taken to reach up to the end of SRAM

_word_of = kernel(word_of)
_bit_of = kernel(bit_of)


@kernel
def disturb(c: ChipRow, cycle: int) -> None:
    """Forget the proven loop: a wake, a reset or another loop."""
    c.idle_period = 0
    c.suspended = 0
    c.calm_since = cycle
    c.probe_wait = max(c.probe_wait // 2, SHORTEST_WAIT)  # it may be idle in another way now


# ---- interrupts in a proven loop
# -----------------------------------------------------------------------------------------


@kernel
def suspend(c: ChipRow, pc: int, sp: int, status: int, cycle: int) -> None:
    """Keep the proven loop in mind while an interrupt is served that came at ``pc``."""
    first = (sp + 1) >> 3
    if (
        c.idle_period
        and not c.idle_reads_io
        and c.image_words >= 0
        and _STACK_END - STACK_WORDS <= first <= _STACK_END
    ):
        c.suspended = c.idle_period
        c.suspended_at = cycle
        c.suspended_pc = pc
        c.suspended_sp = sp
        c.suspended_sreg = status
        for number in range(_REGISTER_WORDS):
            c.suspended_registers[number] = c.words[number]
        for place in range(first, _STACK_END):
            c.suspended_stack[place - first] = c.words[place]
        for number in range(TOUCHED_WORDS):
            c.bytes_written[number] = 0
        c.io_seen |= c.io_touched
        c.io_touched &= ~Touch.FRAME
    elif not c.suspended:
        c.probe_wait = max(3 * c.probe_wait // 4, SHORTEST_WAIT)
    c.idle_period = 0


@kernel
def resume(c: ChipRow, pc: int, sp: int, status: int, cycle: int) -> None:
    """After RETI: go on with the loop that was suspended, if nothing it depends on has changed.

    How deep the interrupt went into the stack is not known, but pushing takes time: at most two
    bytes in three cycles.
    """
    if pc != c.suspended_pc or sp != c.suspended_sp or status != c.suspended_sreg:
        return  # an interrupt within an interrupt has returned
    period = c.suspended
    c.suspended = 0
    pushed = 2 * (cycle - c.suspended_at) // 3
    different = c.io_touched & Touch.FRAME
    for number in range(_REGISTER_WORDS):
        different |= c.suspended_registers[number] ^ c.words[number]
    first = (sp + 1) >> 3
    live = -1 << 8 * (sp + 1 & 7)  # a word has its first byte in its lowest bits
    for place in range(first, _STACK_END):
        different |= (c.suspended_stack[place - first] ^ c.words[place]) & live
        live = -1
    for number in range(TOUCHED_WORDS):
        different |= c.bytes_written[number] & c.loop_touched[number]
    deep = c.loop_stack - sp + pushed >= DEEPEST_STACK
    if different or deep:
        c.calm_since = cycle  # most likely it waits on, with another count of ticks
        c.probe_wait = 2 * period
        return
    c.loop_origin += cycle - c.suspended_at
    c.spoiled = 1
    c.idle_period = period


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
    for number in range(c.image_words):
        place = c.image_word[number]
        c.words[place] = c.words[place] & ~c.image_mask[number] | c.image_value[number]
    if c.loop_pushes == 0:
        return
    now = (cycle - c.loop_origin) % c.idle_period
    for this_round in range(2):
        for number in range(c.loop_pushes):
            push = c.loop_push[number]
            if (push >> 24 < now) == this_round:
                c.memory[_address_of(push)] = push & 0xFF


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
def begin_probe(c: ChipRow, scratch: NDArray[np.int64], cycle: int) -> None:
    """Save what a loop has to come back to, and note from now on what it does."""
    for place in range(DATA_WORDS):
        scratch[place] = c.words[place]
    for number in range(TOUCHED_WORDS):
        c.bytes_read[number] = 0
        c.bytes_written[number] = 0
    c.io_seen |= c.io_touched
    c.io_touched = 0
    c.loop_serial += 1
    c.loop_id = c.loop_serial
    c.loop_origin = cycle
    c.spoiled = 0
    c.suspended = 0
    n = c.cpu
    n[Slot.NOTING] = 1
    n[Slot.TARGET] = n[Slot.PC]
    n[Slot.ORIGIN] = cycle
    n[Slot.STACK] = n[Slot.SP]
    n[Slot.PUSHED] = 0


@kernel
def has_come_back(c: ChipRow, scratch: NDArray[np.int64]) -> bool:
    """Tell whether the program, at the probe's begin again, will do the same once more.

    It will if registers, SRAM and stack pointer are as they were. Bytes that it has pushed, now
    dead, may differ: it pushes them again before it pops them. A loop that reads the I/O space must
    have seen no event.
    """
    if c.io_touched & Touch.STABLE_READ and c.io_touched & Touch.EVENT:
        return False
    sp = c.cpu[Slot.SP]
    if sp != c.cpu[Slot.STACK]:
        return False
    if not c.io_touched & Touch.FRAME:
        for number in range(c.cpu[Slot.PUSHED]):
            address = _address_of(scratch[FIRST_PUSH + number])
            if address <= sp:
                place = address >> 3
                mask = _byte_mask(address)
                scratch[place] = scratch[place] & ~mask | c.words[place] & mask
    different = 0
    for place in range(DATA_WORDS):
        different |= c.words[place] ^ scratch[place]
    return different == 0


@kernel
def _address_of(push: int) -> int:
    return push >> 8 & 0xFFFF


@kernel
def _byte_mask(address: int) -> int:
    """Return where a byte is in its word, which has the first byte in its lowest bits."""
    place = address & 7
    return -1 << 56 if place == 7 else 0xFF << 8 * place


@kernel
def prove(c: ChipRow, scratch: NDArray[np.int64], cycle: int) -> None:
    """Note that the loop at which the program stands repeats after the cycles since its origin."""
    c.idle_period = cycle - c.loop_origin
    c.idle_reads_io = c.io_touched & Touch.STABLE_READ
    c.probe_wait = SHORTEST_WAIT
    c.loop_stack = c.cpu[Slot.STACK]
    for number in range(TOUCHED_WORDS):
        c.loop_touched[number] = c.bytes_read[number] | c.bytes_written[number]
    if c.io_touched & Touch.FRAME or c.cpu[Slot.PUSHED] == MOST_PUSHES:
        c.image_words = -1
    else:
        _sort_pushes(c, scratch)
    stop_noting(c)


@kernel
def _sort_pushes(c: ChipRow, scratch: NDArray[np.int64]) -> None:
    """Turn what the loop pushes into words, where it always pushes the same."""
    c.image_words = 0
    c.loop_pushes = 0
    for number in range(c.cpu[Slot.PUSHED]):
        scratch[DATA_WORDS + (_address_of(scratch[FIRST_PUSH + number]) >> 3)] = 0
    several = 0
    for number in range(c.cpu[Slot.PUSHED]):
        push = scratch[FIRST_PUSH + number]
        address = _address_of(push)
        place = address >> 3
        known = scratch[DATA_WORDS + place]
        if known == 0:
            if c.image_words == IMAGE_WORDS:
                c.image_words = -1
                return
            c.image_word[c.image_words] = place
            c.image_mask[c.image_words] = 0
            c.image_value[c.image_words] = 0
            c.image_words += 1
            known = c.image_words
            scratch[DATA_WORDS + place] = known
        mask = _byte_mask(address)
        value = _value_at(address, push & 0xFF)
        if c.image_mask[known - 1] & mask == 0:
            c.image_mask[known - 1] |= mask
            c.image_value[known - 1] |= value
        elif c.image_value[known - 1] & mask != value:
            several = 1
    if several:
        _keep_what_differs(c, scratch)


@kernel
def _value_at(address: int, value: int) -> int:
    """Return a byte in its place in its word."""
    place = address & 7
    return (value - (value & 0x80) * 2) << 56 if place == 7 else value << 8 * place


@kernel
def _keep_what_differs(c: ChipRow, scratch: NDArray[np.int64]) -> None:
    """List pushes of bytes that are pushed with different values."""
    # A word in scratch says which bytes these are, from bit 8 on.
    for number in range(c.cpu[Slot.PUSHED]):
        push = scratch[FIRST_PUSH + number]
        address = _address_of(push)
        known = scratch[DATA_WORDS + (address >> 3)]
        image = c.image_value[(known & 0xFF) - 1] & _byte_mask(address)
        if image != _value_at(address, push & 0xFF):
            scratch[DATA_WORDS + (address >> 3)] |= 0x100 << (address & 7)
    for number in range(c.cpu[Slot.PUSHED]):
        push = scratch[FIRST_PUSH + number]
        address = _address_of(push)
        known = scratch[DATA_WORDS + (address >> 3)]
        if known & 0x100 << (address & 7):
            if c.loop_pushes == LOOP_PUSHES:
                c.image_words = -1
                return
            c.loop_push[c.loop_pushes] = push
            c.loop_pushes += 1
            c.image_mask[(known & 0xFF) - 1] &= ~_byte_mask(address)
            c.image_value[(known & 0xFF) - 1] &= ~_byte_mask(address)


@kernel
def _note_read(c: ChipRow, address: int) -> None:
    c.bytes_read[_word_of(address)] |= _bit_of(address)
    if 0 <= c.cpu[Slot.STACK] - address < DEEPEST_STACK:
        c.io_touched |= Touch.FRAME


@kernel
def _note_write(
    c: ChipRow, scratch: NDArray[np.int64], address: int, value: int, cycle: int
) -> None:
    c.bytes_written[_word_of(address)] |= _bit_of(address)
    if 0 <= c.cpu[Slot.STACK] - address < DEEPEST_STACK:
        _note_push(c, scratch, address, value, cycle)


@kernel
def _note_push(
    c: ChipRow, scratch: NDArray[np.int64], address: int, value: int, cycle: int
) -> None:
    n = c.cpu
    if address < SRAM_START or address >= DATA_SIZE:
        c.io_touched |= Touch.FRAME
    elif n[Slot.NOTING]:
        offset = cycle - n[Slot.ORIGIN]
        scratch[FIRST_PUSH + n[Slot.PUSHED]] = offset << 24 | address << 8 | value
        n[Slot.PUSHED] = min(n[Slot.PUSHED] + 1, MOST_PUSHES)


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
        or op.name in ("IN", "OUT", "SBI", "CBI", "SBIC", "SBIS", "PUSH", "RCALL", "CALL", "ICALL")
        or op.name in ("OUT_SPL", "OUT_SPH")
    ]
] = True

IS_STORE = np.zeros(256, np.bool_)
"""Those that write."""
IS_STORE[
    [
        op
        for op in Op
        if op.name.startswith(("ST_", "STD_", "STS")) or op.name in ("OUT", "SBI", "CBI")
    ]
] = True


@kernel
def note_access(
    c: ChipRow, scratch: NDArray[np.int64], word: int, pc: int, sp: int, cycle: int
) -> None:
    """Note which bytes the instruction that is about to run will touch.

    Registers that are more than a byte are not noted: ``ChipRow.io_touched`` tells of them.
    """
    address = -1
    b = word >> 16
    op = word & 0xFF
    match op:
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
            _note_push(c, scratch, sp, int(c.memory[word >> 8 & 0xFF]), cycle)
        case Op.RCALL | Op.CALL | Op.ICALL:
            back = pc + (2 if op == Op.CALL else 1)
            _note_push(c, scratch, sp, back & 0xFF, cycle)
            _note_push(c, scratch, sp - 1, back >> 8 & 0x3F, cycle)
        case Op.OUT_SPL | Op.OUT_SPH:
            c.io_touched |= Touch.FRAME
        case _:
            pass
    if address < _IO_START or address >= DATA_SIZE:
        return  # registers are looked at in any case
    if IS_STORE[op] and (address == PINB or address == PINC or address == PIND):
        address += PORTB - PINB  # writing ones there toggles the port
    if address < SRAM_START and (DYNAMIC[address] or not EXISTS[address]):
        return
    if not IS_STORE[op]:
        _note_read(c, address)
        return
    if address < SRAM_START:  # SBI and CBI read, and a port may stay what it is
        _note_read(c, address)
    _note_write(c, scratch, address, int(c.memory[word >> 8 & 0x1F]), cycle)


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
