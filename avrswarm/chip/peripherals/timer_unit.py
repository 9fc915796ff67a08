"""The counter, compare and waveform rules that Timer/Counter0, 1 and 2 share (DS 15, 16, 18).

``tick`` is the rule set for one timer clock (timing reference 3.2). ``catch_up`` calls it only for
ticks at which something happens besides counting, and jumps over the quiet ones.
"""

from __future__ import annotations

from enum import IntEnum

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.peripherals import adc, gpio
from avrswarm.chip.state import IDLE_SLEEP, NEVER, ChipRow, Source, TimerRow
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

TOV, OCFA, OCFB, ICF = 0x01, 0x02, 0x04, 0x20

EXTERNAL_FALLING, EXTERNAL_RISING = -1, -2

LONGEST_TRANSIENT = 6
"""Rounds of the counter after which buffers are loaded, all flags set, and pins repeat: one to come
back from above TOP, two to load the buffers, two for a whole period of the slowest mode."""


class Waveform(IntEnum):
    """Families of waveform generation modes."""

    NORMAL = 0
    CTC = 1
    FAST = 2
    PHASE = 3  # phase correct: OCR buffers load at TOP
    PHASE_FREQUENCY = 4  # phase and frequency correct: they load at BOTTOM


class TopSource(IntEnum):
    """Where a mode takes its TOP from."""

    FIXED = 0
    OCRA = 1
    ICR = 2


@kernel
def top_of(t: TimerRow) -> int:
    """Return TOP of the present mode."""
    if t.top_source == TopSource.FIXED:
        return t.fixed_top
    if t.top_source == TopSource.OCRA:
        return t.compare[0]
    return t.capture


@kernel
def _output_port(timer: int, channel: int) -> int:
    # OC0A PD6, OC0B PD5, OC1A PB1, OC1B PB2, OC2A PB3, OC2B PD3
    return gpio.B if timer == 1 or (timer == 2 and channel == 0) else gpio.D


@kernel
def _output_mask(timer: int, channel: int) -> int:
    if timer == 0:
        return 0x40 if channel == 0 else 0x20
    if timer == 1:
        return 0x02 if channel == 0 else 0x04
    return 0x08


@kernel
def _act(t: TimerRow, channel: int, action: int) -> int:
    """Toggle (1), clear (2) or set (3) an OC register; return 1 if a connected pin changed."""
    old = t.level[channel]
    new = old ^ 1 if action == 1 else action - 2
    t.level[channel] = new
    return 1 if new != old and t.output_mode[channel] else 0


@kernel
def _load_buffers(t: TimerRow) -> None:
    t.compare[0] = t.buffer[0]
    t.compare[1] = t.buffer[1]


@kernel
def _goes_down(t: TimerRow) -> int:
    """Return the direction as a timer clock finds it: only dual-slope modes count down.

    After a change of mode the direction stays what it was until the next timer clock (assumption).
    """
    return t.down if t.waveform >= Waveform.PHASE else 0


@kernel
def tick(t: TimerRow) -> int:
    """Advance by one timer clock; return a bit mask of connected OC pins that changed."""
    count = t.count
    blocked = t.blocked
    t.blocked = 0
    changed = 0
    t.down = _goes_down(t)
    if t.waveform <= Waveform.CTC:
        for channel in range(2):
            if count == t.compare[channel] and not blocked:
                t.tifr |= OCFA << channel
                if t.output_mode[channel]:
                    changed |= _act(t, channel, t.output_mode[channel]) << channel
        if count == t.maximum:
            t.tifr |= TOV
        if t.waveform == Waveform.CTC and count == top_of(t):
            if t.top_source == TopSource.ICR:
                t.tifr |= ICF
            t.count = 0
        else:
            t.count = 0 if count == t.maximum else count + 1
        return changed
    if t.waveform == Waveform.FAST:
        return _tick_fast(t, count, blocked)
    return _tick_phase(t, count, blocked)


@kernel
def _tick_fast(t: TimerRow, count: int, blocked: int) -> int:
    changed = 0
    at_top = count == top_of(t)
    wraps = at_top or count == t.maximum  # TCNT written above TOP runs on to MAX
    for channel in range(2):
        mode = t.output_mode[channel]
        old = t.level[channel]
        if count == t.compare[channel] and not blocked:
            t.tifr |= OCFA << channel
            if mode:
                _act(t, channel, mode)
        if wraps and mode >= 2:  # DS 15.7.3: the opposite action at BOTTOM wins over a match
            _act(t, channel, 5 - mode)
        if t.level[channel] != old and mode:
            changed |= 1 << channel
    if at_top:
        t.tifr |= TOV
        if t.top_source == TopSource.ICR:
            t.tifr |= ICF
    if wraps:
        # DS table 15-8 "update at BOTTOM": with the step to BOTTOM, so that no pulse is malformed.
        _load_buffers(t)
        t.count = 0
    else:
        t.count = count + 1
    return changed


@kernel
def _tick_phase(t: TimerRow, count: int, blocked: int) -> int:
    top = top_of(t)
    changed = 0
    at_top = count == top
    at_bottom = count == 0
    loads = at_top if t.waveform == Waveform.PHASE else at_bottom
    old_a, old_b = t.compare[0], t.compare[1]
    if at_top:
        t.down = 1
        if t.top_source == TopSource.ICR:
            t.tifr |= ICF
    elif count == t.maximum:
        t.down = 1  # TCNT written above TOP: MAX turns it round
    if at_bottom:
        t.down = 0
        t.tifr |= TOV
    if loads:
        _load_buffers(t)
    for channel in range(2):
        mode = t.output_mode[channel]
        old = old_a if channel == 0 else old_b
        if count == t.compare[channel] and not blocked:
            t.tifr |= OCFA << channel
            if mode == 1:
                changed |= _act(t, channel, 1) << channel
            elif mode >= 2:  # non-inverting: clear on the way up, set on the way down
                changed |= _act(t, channel, 5 - mode if t.down else mode) << channel
        elif loads and old == count and t.compare[channel] != count and mode >= 2:
            # DS 15.7.4: the old value matched TOP (or BOTTOM) and the new one does not: the pin
            # takes the level that a match further on would have given it.
            changed |= _act(t, channel, mode if at_top else 5 - mode) << channel
    if at_top and at_bottom:
        t.down = 0  # TOP = 0: the counter stays where it is
    elif t.down:
        t.count = count - 1
    else:
        t.count = count + 1
    return changed


@kernel
def _quiet_ticks(t: TimerRow) -> int:
    """Return how many ticks from now do nothing but count."""
    if t.blocked:
        return 0
    count = t.count
    if _goes_down(t):
        nearest = 0
        for channel in range(2):
            if t.compare[channel] <= count:
                nearest = max(nearest, t.compare[channel])
        top = top_of(t)
        if top <= count:  # a TOP lowered below the counter is met again on the way down
            nearest = max(nearest, top)
        return count - nearest
    if count == 0 and t.waveform >= Waveform.PHASE:
        return 0
    nearest = t.maximum
    for channel in range(2):
        if t.compare[channel] >= count:
            nearest = min(nearest, t.compare[channel])
    top = top_of(t)
    if top >= count:
        nearest = min(nearest, top)
    return nearest - count


@kernel
def _whole_periods(t: TimerRow, ticks: int) -> int:
    """Return how many of so many ticks can be left out, because everything repeats by now."""
    if t.compare[0] != t.buffer[0] or t.compare[1] != t.buffer[1]:
        return 0
    period = t.maximum + 1 if t.waveform == Waveform.NORMAL else top_of(t) + 1
    if t.waveform >= Waveform.PHASE:
        period = max(2 * top_of(t), 1)
    period *= 2  # a pin that toggles
    return max(ticks // period - 1, 0) * period


@kernel
def _is_clocked(c: ChipRow, t: TimerRow) -> bool:
    if c.asleep > IDLE_SLEEP:
        return False
    return t.divisor > 0 and (t.divisor == 1 or c.prescaler_held[t.prescaler] == 0)


@kernel
def _edge_after(c: ChipRow, t: TimerRow, ticks: int) -> int:
    """Return the cycle of the ``ticks``-th timer clock after ``t.at``."""
    if t.divisor == 1:
        return t.at + ticks
    base = c.prescaler_base[t.prescaler]
    return base + (((t.at - base) >> t.shift) + ticks << t.shift)


@kernel
def catch_up(c: ChipRow, timer: int, edge: int) -> None:
    """Let all timer clocks at edges up to and including ``edge`` happen."""
    t = c.timers[timer]
    if edge <= t.at or c.asleep > IDLE_SLEEP:
        return
    if not _is_clocked(c, t):
        t.at = edge
        return
    if t.divisor == 1:
        ticks = edge - t.at
        last = edge
    else:
        base = c.prescaler_base[t.prescaler]
        last = (edge - base) >> t.shift
        ticks = last - ((t.at - base) >> t.shift)
        last = base + (last << t.shift)
    t.at = edge
    if ticks > 0:
        t.down = _goes_down(t)
        if ticks <= _quiet_ticks(t):  # as it is most of the time
            t.count += -ticks if t.down else ticks
        else:
            _let_tick(c, timer, ticks, last, edge)


@kernel
def _let_tick(c: ChipRow, timer: int, ticks: int, last: int, edge: int) -> None:
    """Let so many timer clocks happen, of which the last is at ``last``, by ``edge``."""
    t = c.timers[timer]
    flags = t.tifr
    pins_changed = 0
    changed_at = 0
    repeats_from = -1 if t.watched else ticks - LONGEST_TRANSIENT * (t.maximum + 1)
    while ticks > 0:
        if ticks <= repeats_from:
            ticks -= _whole_periods(t, ticks)
            repeats_from = -1
        quiet = _quiet_ticks(t)
        if ticks <= quiet:
            t.count += -ticks if t.down else ticks
            break
        t.count += -quiet if t.down else quiet
        ticks -= quiet + 1
        happens_at = last - ticks * t.divisor
        if pins_changed and (t.watched or happens_at == edge):
            # Ports are told late, but the last cycle apart: PINx shows the level before it.
            refresh_outputs(c, timer, pins_changed, changed_at)
            pins_changed = 0
        before = t.tifr
        changed = tick(t)
        if t.tifr != before:
            _trigger_adc(c, timer, t.tifr & ~before, happens_at)
        if changed:
            pins_changed |= changed
            changed_at = happens_at
    if pins_changed:
        refresh_outputs(c, timer, pins_changed, changed_at)
    if t.tifr != flags:
        publish(c, timer)


@kernel
def catch_up_outputs(c: ChipRow, edge: int) -> None:
    """Bring the timers that drive pins up to date."""
    for timer in range(3):
        if c.timers[timer].output_mode[0] or c.timers[timer].output_mode[1]:
            catch_up(c, timer, edge)
            schedule(c, timer)


@kernel
def refresh_outputs(c: ChipRow, timer: int, changed: int, edge: int) -> None:
    """Bring the ports of changed OC pins up to date."""
    if changed & 1:
        gpio.refresh(c, _output_port(timer, 0), edge)
    if changed & 2 and (not changed & 1 or timer == 2):
        gpio.refresh(c, _output_port(timer, 1), edge)


@kernel
def _trigger_adc(c: ChipRow, timer: int, raised: int, edge: int) -> None:
    """Offer freshly set flags to the ADC's auto trigger (DS table 24-6)."""
    if timer == 0:
        if raised & OCFA:
            adc.trigger(c, 3, edge)
        if raised & TOV:
            adc.trigger(c, 4, edge)
    elif timer == 1:
        if raised & OCFB:
            adc.trigger(c, 5, edge)
        if raised & TOV:
            adc.trigger(c, 6, edge)
        if raised & ICF:
            adc.trigger(c, 7, edge)


@kernel
def publish(c: ChipRow, timer: int) -> None:
    """Recompute the interrupt requests of a timer from TIFRn and TIMSKn."""
    t = c.timers[timer]
    pending = t.tifr & t.enabled
    if timer == 0:
        first = Vector.TIMER0_COMPA.value
    elif timer == 1:
        first = Vector.TIMER1_COMPA.value
        set_request(c, Vector.TIMER1_CAPT, pending & ICF != 0)
    else:
        first = Vector.TIMER2_COMPA.value
    bits = (pending & OCFA) >> 1 | (pending & OCFB) >> 1 | (pending & TOV) << 2
    c.requests = c.requests & ~(7 << first) | bits << first


@kernel
def schedule(c: ChipRow, timer: int) -> None:
    """Recompute when this timer next sets a flag, or moves a pin, that somebody waits for."""
    t = c.timers[timer]
    when = NEVER
    if _is_clocked(c, t):
        wanted = t.wanted & ~t.tifr
        if t.watched or (wanted and (t.waveform != Waveform.NORMAL or t.blocked)):
            when = _edge_after(c, t, _quiet_ticks(t) + 1)
        elif wanted:
            ticks = t.maximum + 1
            if wanted & OCFA:
                ticks = ((t.compare[0] - t.count) & t.maximum) + 1
            if wanted & OCFB:
                ticks = min(ticks, ((t.compare[1] - t.count) & t.maximum) + 1)
            if wanted & TOV:
                ticks = min(ticks, t.maximum - t.count + 1)
            if wanted & (OCFA | OCFB | TOV):
                when = _edge_after(c, t, ticks)
    plan(c, Source.TIMER0 + timer, when)


@kernel
def next_flag(c: ChipRow, timer: int) -> int:
    """Return the earliest cycle at which a timer that is up to date may set a flag of TIFRn."""
    t = c.timers[timer]
    return _edge_after(c, t, _quiet_ticks(t) + 1) if _is_clocked(c, t) else NEVER


@kernel
def reaches(c: ChipRow, timer: int, count: int, cycle: int) -> int:
    """Bring a timer to ``cycle``; return until when it only counts up, and not to ``count``."""
    catch_up(c, timer, cycle)
    t = c.timers[timer]
    if not _is_clocked(c, t):
        return NEVER if t.divisor >= 0 else cycle
    if t.down:
        return cycle
    ticks = _quiet_ticks(t) + 1
    if t.count < count:
        ticks = min(ticks, count - t.count)
    return _edge_after(c, t, ticks)


@kernel
def update_wants(c: ChipRow, timer: int) -> None:
    """Recompute which flags and pin changes are events, and reschedule."""
    t = c.timers[timer]
    wanted = t.enabled
    source = adc.trigger_source(c)
    if timer == 0:
        wanted |= OCFA if source == 3 else (TOV if source == 4 else 0)
    elif timer == 1:
        wanted |= OCFB if source == 5 else (TOV if source == 6 else (ICF if source == 7 else 0))
    t.wanted = wanted
    watched = 0
    for channel in range(2):
        if t.output_mode[channel]:
            port = _output_port(timer, channel)
            mask = _output_mask(timer, channel)
            listeners = c.logged_pins[port] | gpio.listened(c, port)
            if mask & listeners:
                watched = 1
    t.watched = watched
    c.outputs_watched = c.timers[0].watched | c.timers[1].watched | c.timers[2].watched
    schedule(c, timer)


@kernel
def external_clock(c: ChipRow, timer: int, kind: int, edge: int) -> None:
    """Count one edge of Tn if the timer counts edges of that kind."""
    t = c.timers[timer]
    if t.divisor != kind:
        return
    before = t.tifr
    changed = tick(t)
    t.at = edge
    if t.tifr != before:
        _trigger_adc(c, timer, t.tifr & ~before, edge)
        publish(c, timer)
    if changed:
        refresh_outputs(c, timer, changed, edge)


@kernel
def set_outputs(c: ChipRow, timer: int, com_a: int, com_b: int, toggle_a: bool, edge: int) -> None:
    """Apply COMnA, COMnB; in PWM modes 01 disconnects unless A may toggle (DS 15.9.1)."""
    t = c.timers[timer]
    pwm = t.waveform >= Waveform.FAST
    t.output_mode[0] = 0 if pwm and com_a == 1 and not toggle_a else com_a
    t.output_mode[1] = 0 if pwm and com_b == 1 else com_b
    refresh_outputs(c, timer, 3, edge)


@kernel
def set_divisor(t: TimerRow, divisor: int) -> None:
    """Let a timer count every so many cycles; see ``TimerRow.divisor``."""
    t.divisor = divisor
    t.shift = 0
    while divisor > 1:
        t.shift += 1
        divisor >>= 1


@kernel
def set_waveform(t: TimerRow, waveform: int, top_source: int, fixed_top: int) -> None:
    """Change the waveform mode; the counter keeps its value (timing reference 3.2)."""
    t.waveform = waveform
    t.top_source = top_source
    t.fixed_top = fixed_top
    if waveform < Waveform.FAST:
        _load_buffers(t)  # in normal and CTC mode the CPU accesses OCR directly


@kernel
def set_compare(t: TimerRow, channel: int, value: int) -> None:
    """Write OCRnx: through the buffer in PWM modes, directly otherwise."""
    t.buffer[channel] = value
    if t.waveform < Waveform.FAST:
        t.compare[channel] = value


@kernel
def force_compare(c: ChipRow, timer: int, channels: int, edge: int) -> None:
    """Strobe FOCnA (bit 0), FOCnB (bit 1): a match's output action, no flag, not in PWM modes."""
    t = c.timers[timer]
    if t.waveform >= Waveform.FAST:
        return
    changed = 0
    for channel in range(2):
        if channels >> channel & 1 and t.output_mode[channel]:
            changed |= _act(t, channel, t.output_mode[channel]) << channel
    refresh_outputs(c, timer, changed, edge)


@kernel
def set_count(t: TimerRow, value: int) -> None:
    """Write TCNTn; blocks matches at the next timer clock, also when stopped (DS 15.5.2)."""
    t.count = value
    t.blocked = 1
