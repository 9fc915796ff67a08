"""I/O ports, pin-change and external interrupts (DS 13, 14).

Pin levels are recomputed when something that decides them changes. A pin edge reaches INT0/1,
PCINT, T0/T1 and ICP1 through synchronisers, modelled as a short list of delayed actions.
"""

from __future__ import annotations

from enum import IntEnum

from avrswarm.chip.agenda import plan
from avrswarm.chip.faults import Fault
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.peripherals import adc
from avrswarm.chip.registers import (
    ACSR,
    DDRB,
    DIDR0,
    DIDR1,
    EICRA,
    EIMSK,
    MCUCR,
    PCICR,
    PCMSK0,
    PINB,
    PORTB,
    TCCR1B,
    UCSR0B,
)
from avrswarm.chip.state import DELAYED_SIZE, LOG_SIZE, NEVER, ChipRow, Log, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

B, C, D = 0, 1, 2

# Synchroniser depths in cycles from pin change to effect. Path: datasheet; numbers: assumption
# where the datasheet gives a range (timing reference 9 and 3.1, conf. C/U).
INT_DELAY = 2
PCINT_DELAY = 3
TIMER_PIN_DELAY = 3
CAPTURE_DELAY = 3
NOISE_CANCELER_DELAY = 4

_PULL_UP_DISABLE = 0x10  # MCUCR.PUD
_NOISE_CANCELER = 0x80  # TCCR1B.ICNC1
_ACIC = 0x04  # ACSR.ACIC: the comparator is the capture unit's source


class Action(IntEnum):
    """What a synchronised pin edge does when it arrives.

    Bits 8 up say more: the pins that changed (PCINT), or the new level. Lower numbers act
    first when edges arrive at once: a capture takes the count before T1 moves it.
    """

    INT0 = 0
    INT1 = 1
    PCINT0 = 2
    PCINT1 = 3
    PCINT2 = 4
    ICP_FALL = 5
    ICP_RISE = 6
    T0_FALL = 7
    T0_RISE = 8
    T1_FALL = 9
    T1_RISE = 10
    RXD = 11
    COMPARATOR = 12


@kernel
def log(c: ChipRow, cycle: int, kind: int, value: int) -> None:
    """Tell the surroundings something; the core stops well before the log is full.

    A level that lasted for no time at all gives way to the one after it.
    """
    entry = cycle << 16 | kind << 8 | value
    place = c.log_count
    while place > 0 and c.log[place - 1] >> 16 == cycle:
        place -= 1
        if (c.log[place] ^ entry) & ~0xFF == 0:
            c.log[place] = entry
            return
    if c.log_count == LOG_SIZE:
        c.fault = Fault.LOG_FULL
        return
    c.log[c.log_count] = entry
    c.log_count += 1


@kernel
def delay(c: ChipRow, cycle: int, action: int) -> None:
    """Let an edge act at ``cycle``, when it has come through its synchroniser."""
    entry = cycle << 16 | action
    for place in range(c.delayed_count):
        if (c.delayed[place] ^ entry) & ~0xFF00 == 0:  # a second cause at the same edge
            is_pin_change = Action.PCINT0 <= action & 0xFF <= Action.PCINT2
            c.delayed[place] = entry | (c.delayed[place] if is_pin_change else 0)
            return
    if c.delayed_count == DELAYED_SIZE:
        return
    place = c.delayed_count
    c.delayed_count += 1
    while place > 0 and c.delayed[place - 1] > entry:
        c.delayed[place] = c.delayed[place - 1]
        place -= 1
    c.delayed[place] = entry
    if cycle < c.next[Source.PINS]:
        plan(c, Source.PINS, cycle)


@kernel
def take_delayed(c: ChipRow) -> int:
    """Remove and return the action that is due first; keeps the next due cycle right."""
    action = c.delayed[0] & 0xFFFF
    c.delayed_count -= 1
    for place in range(c.delayed_count):
        c.delayed[place] = c.delayed[place + 1]
    c.delayed[c.delayed_count] = 0
    _look_for_next(c)
    return action


@kernel
def _look_for_next(c: ChipRow) -> None:
    plan(c, Source.PINS, c.delayed[0] >> 16 if c.delayed_count else NEVER)


@kernel
def _output_override(c: ChipRow, port: int, out: int) -> int:
    """Replace PORT bits by connected OC registers; DDR still decides (DS 14.3.1)."""
    if port == B:
        if c.timers[1].output_mode[0]:
            out = out & ~0x02 | c.timers[1].level[0] << 1
        if c.timers[1].output_mode[1]:
            out = out & ~0x04 | c.timers[1].level[1] << 2
        if c.timers[2].output_mode[0]:
            out = out & ~0x08 | c.timers[2].level[0] << 3
    elif port == D:
        if c.timers[2].output_mode[1]:
            out = out & ~0x08 | c.timers[2].level[1] << 3
        if c.timers[0].output_mode[1]:
            out = out & ~0x20 | c.timers[0].level[1] << 5
        if c.timers[0].output_mode[0]:
            out = out & ~0x40 | c.timers[0].level[0] << 6
    return out


@kernel
def levels(c: ChipRow, port: int) -> int:
    """Return the levels of the eight pins of a port as they are now."""
    ddr = int(c.memory[DDRB + 3 * port])
    wanted = int(c.memory[PORTB + 3 * port])
    pull_up = 0 if int(c.memory[MCUCR]) & _PULL_UP_DISABLE else wanted
    out = _output_override(c, port, wanted)
    if port == D:
        enabled = int(c.memory[UCSR0B])
        if enabled & 0x08 or c.tx_busy:  # TXEN: PD1 is the transmitter's output whatever DDR says
            ddr |= 0x02
            out = out & ~0x02 | c.txd << 1
        if enabled & 0x10:  # RXEN: PD0 is an input whatever DDR says
            ddr &= ~0x01
    driven = c.outside_driven[port]
    outside = driven & c.outside_level[port] | ~driven & pull_up
    return (ddr & out | ~ddr & outside) & (0x7F if port == C else 0xFF)


@kernel
def refresh(c: ChipRow, port: int, edge: int) -> None:
    """Recompute a port's pin levels after something that decides them changed at ``edge``.

    A timer or the transmitter may tell so late, after another pin of the port has moved.
    """
    new = levels(c, port)
    old = c.pin_level[port]
    if new == old:
        return
    changed = new ^ old
    if edge > c.pin_changed[port]:
        c.pin_before[port] = old
        c.pin_changed[port] = edge
    elif edge < c.pin_changed[port]:
        c.pin_before[port] ^= changed
    c.pin_level[port] = new
    if changed & c.logged_pins[port]:
        log(c, edge, Log.PORTB + port, new)
    if changed & listened(c, port):
        _send(c, port, changed, new, edge, edge)
    if port == D and changed & 0x01:
        delay(c, edge, Action.RXD)
    elif port == B and changed & 0x01 and not int(c.memory[ACSR]) & _ACIC:
        send_to_capture(c, new & 1, edge)


@kernel
def listened(c: ChipRow, port: int) -> int:
    """Return the pins of a port whose edges may set a flag or clock a timer."""
    pins = int(c.memory[PCMSK0 + port])
    if port == D:
        sense = int(c.memory[EICRA])  # flags are set although EIMSK masks them
        pins |= (int(c.memory[EIMSK]) & 3) << 2
        pins |= (0x04 if sense & 0x03 else 0) | (0x08 if sense & 0x0C else 0)
        pins |= 0x10 if c.timers[0].divisor < 0 else 0
        pins |= 0x20 if c.timers[1].divisor < 0 else 0
    return pins


@kernel
def send_again(c: ChipRow, port: int, edge: int) -> None:
    """Let those who listen since ``edge`` have the pin edge that is still in the synchronisers."""
    level = c.pin_level[port]
    _send(c, port, c.pin_before[port] ^ level, level, c.pin_changed[port], edge)


@kernel
def _send(c: ChipRow, port: int, changed: int, level: int, edge: int, after: int) -> None:
    """Send changes at ``edge`` of listened pins on their way, if they arrive ``after`` a cycle."""
    changed &= listened(c, port)
    if changed & int(c.memory[PCMSK0 + port]) and edge + PCINT_DELAY > after:
        delay(c, edge + PCINT_DELAY, Action.PCINT0 + port | changed << 8)
    if port != D:
        return
    if edge + INT_DELAY > after:
        for number in range(2):
            if changed & 4 << number:
                new = level >> (2 + number) & 1
                delay(c, edge + INT_DELAY, Action.INT0 + number | new << 8)
    if edge + TIMER_PIN_DELAY > after:
        if changed & 0x10:
            delay(c, edge + TIMER_PIN_DELAY, Action.T0_RISE if level & 0x10 else Action.T0_FALL)
        if changed & 0x20:
            delay(c, edge + TIMER_PIN_DELAY, Action.T1_RISE if level & 0x20 else Action.T1_FALL)


@kernel
def send_to_capture(c: ChipRow, level: int, edge: int) -> None:
    """Send an edge of ICP1 or of the comparator on its way to the capture unit.

    The noise canceler wants four equal samples (DS 16.6.2).
    """
    if not int(c.memory[TCCR1B]) & _NOISE_CANCELER:
        delay(c, edge + CAPTURE_DELAY, Action.ICP_FALL + level)
        return
    filtered = c.capture_level
    kept = 0
    for place in range(c.delayed_count):
        due, action = c.delayed[place] >> 16, c.delayed[place] & 0xFFFF
        is_capture = action == Action.ICP_FALL or action == Action.ICP_RISE
        if is_capture and due > edge + CAPTURE_DELAY:
            continue  # that level was not held for four samples
        if is_capture:
            filtered = action - Action.ICP_FALL
        c.delayed[kept] = c.delayed[place]
        kept += 1
    for place in range(kept, c.delayed_count):
        c.delayed[place] = 0
    c.delayed_count = kept
    _look_for_next(c)
    if level != filtered:
        delay(c, edge + CAPTURE_DELAY + NOISE_CANCELER_DELAY, Action.ICP_FALL + level)


@kernel
def clock_returns(c: ChipRow, edge: int) -> None:
    """Send edges on their way that happened while clk_IO stood still, which it did to ``edge``."""
    level = c.pin_level[B] & 1
    if level != c.capture_level and not int(c.memory[ACSR]) & _ACIC:
        send_to_capture(c, level, edge)
    if c.slept_edges & 1:
        rises = c.pin_level[D] & 0x10
        delay(c, edge + TIMER_PIN_DELAY, Action.T0_RISE if rises else Action.T0_FALL)
    if c.slept_edges & 2:
        rises = c.pin_level[D] & 0x20
        delay(c, edge + TIMER_PIN_DELAY, Action.T1_RISE if rises else Action.T1_FALL)
    c.slept_edges = 0


@kernel
def interrupt_edge(c: ChipRow, number: int, level: int, edge: int) -> None:
    """Act on a synchronised edge of INT0 or INT1 to ``level``, as EICRA wants now."""
    mode = (int(c.memory[EICRA]) >> (2 * number)) & 3
    selected = mode == 1 or mode == 2 + level
    if selected and not c.int_flags >> number & 1:
        c.int_flags |= 1 << number
        if number == 0:
            adc.trigger(c, 2, edge)
    update_int_requests(c)


@kernel
def _synchronised_level(c: ChipRow, number: int) -> int:
    """Return the level of INT0 or INT1 behind its synchroniser."""
    for place in range(c.delayed_count):
        if c.delayed[place] & 0xFF == Action.INT0 + number:
            return c.delayed[place] >> 8 & 1 ^ 1  # the first edge on its way leads away from it
    return c.pin_level[D] >> (2 + number) & 1


@kernel
def update_int_requests(c: ChipRow) -> None:
    """Recompute the requests of INT0 and INT1.

    With EICRA at low level a request follows the pin, and the flag is always cleared (DS 13.2.1,
    13.2.3).
    """
    for number in range(2):
        if int(c.memory[EICRA]) >> (2 * number) & 3 == 0:
            c.int_flags &= ~(1 << number)
            asserted = _synchronised_level(c, number) == 0
        else:
            asserted = c.int_flags >> number & 1 != 0
        enabled = int(c.memory[EIMSK]) >> number & 1 != 0
        set_request(c, Vector.INT0 + number, enabled and asserted)


@kernel
def pin_change(c: ChipRow, port: int, changed: int) -> None:
    """Act on synchronised pin changes; the mask of now counts, after the synchroniser (DS 13.2)."""
    if changed & int(c.memory[PCMSK0 + port]):
        c.pcint_flags |= 1 << port
        update_pcint_requests(c)


@kernel
def update_pcint_requests(c: ChipRow) -> None:
    """Recompute the three pin-change requests from PCIFR and PCICR."""
    pending = c.pcint_flags & int(c.memory[PCICR])
    for port in range(3):
        set_request(c, Vector.PCINT0 + port, pending >> port & 1 != 0)


@kernel
def read_pin(c: ChipRow, port: int, cycle: int) -> int:
    """Return PINx as read in ``cycle``: the level one cycle before (DS 14.2.4)."""
    level = c.pin_level[port] if c.pin_changed[port] < cycle else c.pin_before[port]
    if port == C:
        level &= ~(int(c.memory[DIDR0]) & 0x3F)
    elif port == D:
        level &= ~((int(c.memory[DIDR1]) & 0x03) << 6)
    return level


@kernel
def write_port(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Write PINx (toggles PORT bits), DDRx or PORTx."""
    port = (address - PINB) // 3
    if port == C:
        value &= 0x7F
    if (address - PINB) % 3 == 0:
        place = PORTB + 3 * port
        c.memory[place] = int(c.memory[place]) ^ value
    else:
        c.memory[address] = value
    refresh(c, port, edge)
