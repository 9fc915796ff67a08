"""The core: what happens between instructions.

``run`` looks at an instruction boundary for events, resets, sleep and interrupts, decides how far
instructions may run freely, and lets them: as translated code (``avrswarm.chip.native``) where
there is some, otherwise by the interpreter. Where a program waits, it skips: see
``avrswarm.chip.idle``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip import idle, native, sleep
from avrswarm.chip.cpu import Slot, Stop, lie_down, status_of, stop_noting, wake_up
from avrswarm.chip.data_space import LOG_RESERVE, horizon, push_word
from avrswarm.chip.faults import Fault
from avrswarm.chip.interpreter import interpret
from avrswarm.chip.interrupts import INTERRUPT_ENTRY_CYCLES, acknowledge, lowest
from avrswarm.chip.peripherals import gpio, self_programming, timer_unit
from avrswarm.chip.reset import reset
from avrswarm.chip.schedule import handle_due, rewind_tape
from avrswarm.chip.state import LOG_SIZE, NEVER, ChipRow, Source, Touch
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel


@kernel
def _acknowledge(c: ChipRow, vector: int, edge: int) -> None:
    """Clear the flag of the vector entered at ``edge``; a timer then looks out for the next one."""
    timer = -1
    if Vector.TIMER2_COMPA <= vector <= Vector.TIMER2_OVF:
        timer = 2
    elif Vector.TIMER1_CAPT <= vector <= Vector.TIMER1_OVF:
        timer = 1
    elif Vector.TIMER0_COMPA <= vector <= Vector.TIMER0_OVF:
        timer = 0
    if timer < 0:
        acknowledge(c, vector)
        if vector <= Vector.INT1:
            gpio.update_int_requests(c)  # a low level asks again
        return
    timer_unit.catch_up(c, timer, edge)
    acknowledge(c, vector)
    timer_unit.schedule(c, timer)


@kernel
def _let_events_pass(c: ChipRow, tape: NDArray[np.int64], stop: int) -> int:
    """Let events happen that a proven loop does not see; return the cycle of the first it will.

    The loop neither reads nor writes what they change, so it need not be brought to each of them.
    """
    last = stop - 1
    if c.idle_reads_io:
        return min(c.next_event, last)
    while c.next_event <= last:
        now = c.next_event
        if c.next[Source.WATCHDOG] <= now:
            return now
        handle_due(c, tape, now)
        if c.requests or c.log_count > LOG_SIZE - LOG_RESERVE:
            return now
    return last


@kernel
def run(
    c: ChipRow,
    flash: NDArray[np.uint16],
    code: NDArray[np.uint32],
    blocks: NDArray[np.int64],
    tape: NDArray[np.int64],
    scratch: NDArray[np.int64],
    stop: int,
) -> int:
    """Run to the first instruction boundary at or after cycle ``stop``; return a ``Stop``.

    ``blocks`` has addresses of translated code by word address (see ``avrswarm.chip.native``).
    ``scratch`` is room of ``idle.SCRATCH_SIZE``, used while a loop is being probed.
    """
    n = c.cpu
    rewind_tape(c, tape)
    wake_up(c)
    n[Slot.STOP] = stop
    cycle = n[Slot.CYCLE]
    reason = Stop.CYCLES.value
    began = 0  # cycle at which the first of several probes began
    strayed = 0  # how often a probe came back in another state
    probe_status = 0
    enter = blocks[native.ENTER]
    if enter:
        native.prepare(c, flash, tape, scratch[idle.FIRST_PUSH :])

    while True:
        # ---- instruction boundary: events, resets, sleep, interrupts -----------------------------
        while c.next_event < min(cycle, stop) and c.log_count <= LOG_SIZE - LOG_RESERVE:
            handle_due(c, tape, c.next_event)
        if c.log_count > LOG_SIZE - LOG_RESERVE:
            reason = Stop.LOG.value
            break
        if c.reset_cause:
            lie_down(c)
            reset(c)
            rewind_tape(c, tape)  # world time may have another meaning in cycles now
            wake_up(c)
            cycle = n[Slot.CYCLE]
        if c.fault:
            reason = Stop.FAULT.value
            break
        if c.clock_changed:
            c.clock_changed = 0
            reason = Stop.CLOCK.value
            break
        if cycle >= stop:
            break
        requests = c.sampled if c.sampled_at == cycle else c.requests
        if c.asleep:
            if n[Slot.I] and requests & sleep.wakes(c):
                cycle = sleep.wake(c, cycle)
                idle.disturb(c, cycle)
                stop_noting(c)
            elif n[Slot.I] and c.requests & sleep.wakes(c):
                cycle += 1  # raised at this very edge: seen in the cycle that begins here
            elif c.stop_when_halted and not sleep.can_ever_wake(c, n[Slot.I] != 0):
                reason = Stop.HALTED.value
                break
            else:
                cycle = min(c.next_event + 1, stop)
            n[Slot.CYCLE] = cycle
            continue
        if n[Slot.I] and requests and cycle >= c.held_until:
            vector = lowest(requests)
            pc, sp = n[Slot.PC], n[Slot.SP]
            stop_noting(c)
            idle.suspend(c, pc, sp, status_of(c), cycle)
            push_word(c, tape, sp, pc, cycle, pc)
            if c.next_event == cycle:  # hardware of this edge first, then the entry clears the flag
                handle_due(c, tape, cycle)
            _acknowledge(c, vector, cycle)
            cycle += INTERRUPT_ENTRY_CYCLES
            n[Slot.SP] = (sp - 2) & 0xFFFF
            n[Slot.I] = 0
            n[Slot.PC] = c.vector_base + 2 * vector
            n[Slot.CYCLE] = cycle
        elif c.suspended:
            idle.resume(c, n[Slot.PC], n[Slot.SP], status_of(c), cycle)
        limit = horizon(c, n[Slot.I], cycle, stop)
        ceiling = NEVER  # how far instructions may run before a probe
        if c.rww_busy:
            if n[Slot.PC] < self_programming.NRWW_START:
                c.fault = Fault.BUSY_FLASH
                c.fault_address = 2 * n[Slot.PC]
                reason = Stop.FAULT.value
                break
            stop_noting(c)
            limit = min(limit, cycle)
        elif c.idle_period and not c.requests and limit >= cycle:
            limit = _let_events_pass(c, tape, stop)
            cycle = idle.skip_periods(c, cycle, limit)
            n[Slot.CYCLE] = cycle
            if c.requests:  # it happened at `limit`: nobody sees it before
                c.held_until = max(c.held_until, limit + 1)
        elif n[Slot.NOTING]:
            # A loop that comes back to the same state without touching the I/O space will go on
            # doing so until the next event: find its period once, then jump.
            if c.io_touched & Touch.VOLATILE or cycle - began > idle.LONGEST_PROBE:
                stop_noting(c)
            elif n[Slot.PC] == n[Slot.TARGET] and cycle > c.loop_origin:
                if status_of(c) == probe_status and idle.has_come_back(c, scratch):
                    idle.prove(c, scratch, cycle)
                    continue
                strayed += 1
                if idle.in_delay_loop(code, n[Slot.PC]):
                    stop_noting(c)
                elif strayed & (strayed - 1) == 0:  # Brent's way to find a cycle: start from here
                    idle.begin_probe(c, scratch, cycle)
                    probe_status = status_of(c)
            if not n[Slot.NOTING]:
                idle.give_up(c, cycle)
                ceiling = c.calm_since + c.probe_wait
                limit = min(limit, ceiling)
        elif (
            c.skip_idle
            and not c.idle_period
            and not c.requests
            and (not c.suspended or cycle - c.suspended_at > idle.LONGEST_ABSENCE)
            and (n[Slot.I] or min(limit, c.next_event) - cycle > idle.WORTH_SKIPPING)
        ):
            if cycle - c.calm_since < c.probe_wait:
                ceiling = c.calm_since + c.probe_wait
            elif idle.in_delay_loop(code, n[Slot.PC]):
                idle.give_up(c, cycle)  # it comes back here with another count
                ceiling = c.calm_since + c.probe_wait
            else:
                idle.begin_probe(c, scratch, cycle)
                probe_status = status_of(c)
                began, strayed = cycle, 0
            limit = min(limit, ceiling)

        # ---- instructions ------------------------------------------------------------------------
        if n[Slot.NOTING]:
            ceiling = began + idle.LONGEST_PROBE
            limit = min(limit, ceiling)
        n[Slot.LIMIT] = limit
        n[Slot.CEILING] = ceiling
        n[Slot.START] = n[Slot.CYCLE]
        translated = enter != 0 and c.flash_changed == 0
        while n[Slot.CYCLE] <= n[Slot.LIMIT]:
            if translated:
                block = 0 if n[Slot.NOTING] else blocks[n[Slot.PC]]
                if not block:
                    block = blocks[native.STEPS + n[Slot.PC]]
                if block:
                    native.call_block(enter, native.address_of_row(c), block)
                    at_target = n[Slot.PC] == n[Slot.TARGET] and n[Slot.CYCLE] > n[Slot.START]
                    if n[Slot.CYCLE] > n[Slot.LIMIT] or at_target:
                        break
            reason = interpret(c, flash, code, blocks, tape, scratch, translated)
            if reason != Stop.CYCLES or c.fault or n[Slot.PC] == n[Slot.TARGET]:
                break
        cycle = n[Slot.CYCLE]
        if reason != Stop.CYCLES:
            break
        if c.fault:
            reason = Stop.FAULT.value
            break

    lie_down(c)
    return reason
