"""The compiled functions that Python calls on chips; everything else is compiled into them.

``bench`` does everything, because each further one would have all peripherals compiled again.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip import reset, sleep
from avrswarm.chip.agenda import update_next_event
from avrswarm.chip.bus import EXISTS, read_io, write_io
from avrswarm.chip.core import run
from avrswarm.chip.peripherals import adc, eeprom, self_programming, spi, timer_unit, twi, usart
from avrswarm.chip.schedule import handle_due, rewind_tape
from avrswarm.chip.state import ChipRow, Chips
from avrswarm.jit import entry, kernel


class Bench(IntEnum):
    """What ``bench`` can do to a chip between two instructions."""

    POWER_ON = 0  # value = period of the RC oscillator in time units
    READ = 1  # as an IN instruction would, at the present cycle
    WRITE = 2  # as a CPU write that lands at the present edge
    SETTLE = 3  # bring every peripheral up to edge cycle - 1 + value, into one canonical form
    RESET = 4  # value = MCUSR bit of the cause
    PEEK_ALL = 5  # after SETTLE: put what the CPU would read into data[0x20..0xFF]
    WAKE = 6  # return the next cycle at which a chip that sleeps or is in reset may do anything
    RUN = 7  # to the first instruction boundary at or after cycle value; return a Stop


@entry
def power_on(chips: Chips, robot: int, rc_period: int) -> None:
    """Make a zeroed record a chip just powered: all that a swarm needs of the bench."""
    reset.power_on(chips[robot], rc_period)


@entry
def bench(
    chips: Chips,
    robot: int,
    flash: NDArray[np.uint16],
    code: NDArray[np.uint32],
    blocks: NDArray[np.int64],
    tape: NDArray[np.int64],
    scratch: NDArray[np.int64],
    what: int,
    address: int,
    value: int,
) -> int:
    """Do one ``Bench`` operation on one chip; return what it reads, if it reads.

    The flash and what follows it up to ``scratch`` are as for ``core.run``.
    """
    c = chips[robot]
    if what == Bench.RUN:
        return run(c, flash, code, blocks, tape, scratch, value)
    if what == Bench.POWER_ON:
        reset.power_on(c, value)
        return 0
    if what == Bench.RESET:
        c.fault = c.fault_address = 0
        c.reset_cause = value
        reset.reset(c)
        return 0
    c.idle_period = 0
    c.suspended = 0
    rewind_tape(c, tape)
    _keep_boundary(c, tape)
    if what == Bench.READ:
        return read_io(c, tape, address, c.cycle)
    if what == Bench.WRITE:
        sampled = c.sampled
        write_io(c, tape, address, value, c.cycle)
        c.sampled = sampled
        c.stall = 0  # no CPU was halted: the bench wrote
    elif what == Bench.SETTLE:
        settle(c, tape, c.cycle - 1 + value)
    elif what == Bench.WAKE:
        is_woken = c.sreg & 0x80 and c.requests & sleep.wakes(c)
        return 1 + int(c.cycle if is_woken else max(c.next_event, c.cycle))
    elif what == Bench.PEEK_ALL:
        for register in range(0x20, 0x100):
            if EXISTS[register] and not 0x5D <= register <= 0x5F:
                c.memory[register] = read_io(c, tape, register, c.cycle)
    return 0


@kernel
def _keep_boundary(c: ChipRow, tape: NDArray[np.int64]) -> None:
    """Sample interrupt requests for the boundary we stand at, before later edges are looked at."""
    if c.next_event < c.cycle:
        handle_due(c, tape, c.cycle - 1)
    if c.sampled_at != c.cycle:
        c.sampled = c.requests
        c.sampled_at = c.cycle


@kernel
def settle(c: ChipRow, tape: NDArray[np.int64], edge: int) -> None:
    """Bring everything that is kept late up to ``edge``: equal chips then have equal records."""
    for at in range(edge - 1, edge + 1):  # in two steps, for the level one cycle before
        handle_due(c, tape, at)
        for timer in range(3):
            timer_unit.catch_up(c, timer, at)
            timer_unit.schedule(c, timer)
        adc.catch_up(c, at)
        adc.convert(c)
        usart.catch_up_tx(c, at)
        usart.catch_up_rx(c, at)
        spi.catch_up(c, at)
        twi.catch_up(c, at)
        eeprom.catch_up(c, at)
        self_programming.catch_up(c, at)
        update_next_event(c)
    if c.held_until <= c.cycle:
        c.held_until = 0
    for port in range(3):
        if c.pin_changed[port] < edge:
            c.pin_before[port] = c.pin_level[port]
            c.pin_changed[port] = -1
