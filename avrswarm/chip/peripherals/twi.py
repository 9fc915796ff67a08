"""Two-wire interface at the level of registers and time, as the bus's only master (DS 21).

An operation takes a known number of SCL periods: nine for a byte with its acknowledge bit, and one
each (an assumption) for START, repeated START and STOP. No waveform appears on SCL and SDA, nobody
else masters the bus, so arbitration is never lost and the chip is never addressed as a slave; TWAR
and TWAMR are only stored.

The bench may put one slave on the bus (``ChipRow.twi_slave`` is its address, -1 means none): 16
bytes of memory. The first byte written to it is the memory index, further bytes are stored from
there on, reads return bytes from there on; the index wraps round. It acknowledges everything.
"""

from __future__ import annotations

from enum import IntEnum

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.registers import TWAMR, TWBR, TWCR, TWDR, TWSR
from avrswarm.chip.state import NEVER, RUNNING, ChipRow, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

TWINT, TWEA, TWSTA, TWSTO, TWWC, TWEN, TWIE = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x01

BYTE_PERIODS = 9
CONDITION_PERIODS = 1

_MEMORY_SIZE = 16


class Status(IntEnum):
    """Status codes of TWSR (DS tables 21-3 and 21-4)."""

    START = 0x08
    REPEATED_START = 0x10
    WRITE_ACK = 0x18
    WRITE_NACK = 0x20
    SENT_ACK = 0x28
    SENT_NACK = 0x30
    READ_ACK = 0x40
    READ_NACK = 0x48
    RECEIVED_ACK = 0x50
    RECEIVED_NACK = 0x58
    IDLE = 0xF8


class Operation(IntEnum):
    """What the bus is doing."""

    NONE = 0
    START = 1
    STOP = 2
    ADDRESS = 3
    SEND = 4
    RECEIVE = 5


@kernel
def reset(c: ChipRow) -> None:
    """Forget everything that is not a register in ``c.memory``, as any reset does."""
    _release(c)
    c.twi_flag = 0
    c.twi_collision = 0
    c.twi_stopped = RUNNING
    update_request(c)
    schedule(c)


@kernel
def power_on(c: ChipRow) -> None:
    """Set what is not zero at power-on."""
    c.twi_slave = -1
    reset(c)


@kernel
def _release(c: ChipRow) -> None:
    """Leave the bus."""
    c.twi_state = Status.IDLE
    c.twi_action = Operation.NONE
    c.twi_end = NEVER


@kernel
def scl_period(c: ChipRow) -> int:
    """Return the cycles per SCL period (DS 21.5.2)."""
    return 16 + (2 * int(c.memory[TWBR]) << (2 * (int(c.memory[TWSR]) & 3)))


@kernel
def _begin(c: ChipRow, operation: int, periods: int, edge: int) -> None:
    c.twi_action = operation
    c.twi_end = edge + periods * scl_period(c)


@kernel
def _next_operation(c: ChipRow, edge: int) -> None:
    """Start what TWCR and the state of the bus ask for, with TWINT cleared at ``edge``."""
    control = int(c.memory[TWCR])
    if control & TWSTO:  # with TWSTA as well, the START follows
        _begin(c, Operation.STOP, CONDITION_PERIODS, edge)
    elif control & TWSTA:
        _begin(c, Operation.START, CONDITION_PERIODS, edge)
    elif c.twi_state == Status.START or c.twi_state == Status.REPEATED_START:
        _begin(c, Operation.ADDRESS, BYTE_PERIODS, edge)
    elif Status.WRITE_ACK <= c.twi_state <= Status.SENT_NACK:
        _begin(c, Operation.SEND, BYTE_PERIODS, edge)
    elif c.twi_state == Status.READ_ACK or c.twi_state == Status.RECEIVED_ACK:
        _begin(c, Operation.RECEIVE, BYTE_PERIODS, edge)


@kernel
def _slave_takes(c: ChipRow, value: int) -> None:
    if c.twi_index_due:
        c.twi_memory_index = value % _MEMORY_SIZE
        c.twi_index_due = 0
    else:
        c.twi_memory[c.twi_memory_index] = value
        c.twi_memory_index = (c.twi_memory_index + 1) % _MEMORY_SIZE


@kernel
def _slave_gives(c: ChipRow) -> int:
    value = int(c.twi_memory[c.twi_memory_index])
    c.twi_memory_index = (c.twi_memory_index + 1) % _MEMORY_SIZE
    return value


@kernel
def _finish(c: ChipRow) -> None:
    """Complete the running operation: new status, and TWINT after all but STOP."""
    operation = c.twi_action
    c.twi_action = Operation.NONE
    c.twi_end = NEVER
    data = int(c.memory[TWDR])
    if operation == Operation.STOP:
        c.memory[TWCR] = int(c.memory[TWCR]) & ~TWSTO
        c.twi_state = Status.IDLE
        return
    if operation == Operation.START:
        fresh = c.twi_state == Status.IDLE
        c.twi_state = Status.START if fresh else Status.REPEATED_START
    elif operation == Operation.ADDRESS:
        answered = data >> 1 == c.twi_slave
        if data & 1:
            c.twi_state = Status.READ_ACK if answered else Status.READ_NACK
        else:
            c.twi_state = Status.WRITE_ACK if answered else Status.WRITE_NACK
            c.twi_index_due = 1
    elif operation == Operation.SEND:
        # A slave that did not answer to its address does not acknowledge data either.
        heard = c.twi_state == Status.WRITE_ACK or c.twi_state == Status.SENT_ACK
        c.twi_state = Status.SENT_ACK if heard else Status.SENT_NACK
        if heard:
            _slave_takes(c, data)
    else:
        c.memory[TWDR] = _slave_gives(c)
        acknowledged = int(c.memory[TWCR]) & TWEA
        c.twi_state = Status.RECEIVED_ACK if acknowledged else Status.RECEIVED_NACK
    c.twi_flag = 1
    update_request(c)


@kernel
def catch_up(c: ChipRow, edge: int) -> None:
    """Let operations that end at or before ``edge`` end."""
    if c.twi_end > edge or c.twi_stopped != RUNNING:
        return
    while c.twi_end <= edge:
        end = c.twi_end
        _finish(c)
        if not c.twi_flag and int(c.memory[TWCR]) & TWSTA:  # START after STOP
            _next_operation(c, end)
    schedule(c)


@kernel
def update_request(c: ChipRow) -> None:
    """Recompute the TWI interrupt request; entering its vector does not clear TWINT."""
    set_request(c, Vector.TWI, c.twi_flag != 0 and int(c.memory[TWCR]) & TWIE != 0)


@kernel
def schedule(c: ChipRow) -> None:
    """Recompute when the TWI next matters to others."""
    waiting = int(c.memory[TWCR]) & TWIE != 0 and c.twi_stopped == RUNNING
    plan(c, Source.TWI, c.twi_end if waiting else NEVER)


@kernel
def stop_clock(c: ChipRow, edge: int) -> None:
    """Freeze the TWI: PRR.PRTWI was set, or clk_IO stands still in a deep sleep."""
    if c.twi_stopped != RUNNING:
        return
    catch_up(c, edge)
    c.twi_stopped = edge
    schedule(c)


@kernel
def start_clock(c: ChipRow, edge: int) -> None:
    """Go on where ``stop_clock`` left off."""
    if c.twi_stopped == RUNNING:
        return
    if c.twi_end != NEVER:
        c.twi_end += edge - c.twi_stopped
    c.twi_stopped = RUNNING
    schedule(c)


@kernel
def peek(c: ChipRow, address: int, cycle: int) -> int:
    """Return what a read in ``cycle`` would."""
    catch_up(c, cycle)
    if address == TWSR:
        return int(c.memory[TWSR]) & 3 | c.twi_state
    if address == TWCR:
        value = int(c.memory[TWCR])
        if c.twi_flag:
            value |= TWINT
        if c.twi_collision:
            value |= TWWC
        return value
    return int(c.memory[address])


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read a TWI register in ``cycle``; no read has a side effect."""
    return peek(c, address, cycle)


@kernel
def write(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Write a TWI register."""
    if c.twi_stopped != RUNNING:
        return
    catch_up(c, edge)
    if address == TWCR:
        _write_control(c, value, edge)
    elif address == TWDR:
        c.twi_collision = 0 if c.twi_flag else 1
        if c.twi_flag:
            c.memory[TWDR] = value
    elif address == TWSR:
        c.memory[TWSR] = value & 3
    elif address == TWAMR:
        c.memory[TWAMR] = value & 0xFE
    else:
        c.memory[address] = value


@kernel
def _write_control(c: ChipRow, value: int, edge: int) -> None:
    """Write TWCR; clearing TWINT by writing 1 is what lets the bus go on (DS 21.9.2)."""
    pending_stop = TWSTO if c.twi_action == Operation.STOP else 0
    c.memory[TWCR] = value & (TWEA | TWSTA | TWSTO | TWEN | TWIE) | pending_stop
    if value & TWINT:
        c.twi_flag = 0
    if not value & TWEN:
        c.memory[TWCR] = int(c.memory[TWCR]) & ~TWSTO
        _release(c)
    elif not c.twi_flag and c.twi_action == Operation.NONE:
        _next_operation(c, edge)
    update_request(c)
    schedule(c)
