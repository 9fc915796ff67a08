"""Analog to digital converter (DS 24; timing reference 4).

A conversion is three known cycles: start (multiplexer locks), sample, done. Only the sample, and
the end if someone waits for it, are events; everything else is worked out when the CPU looks, the
number too: most conversions that a comparator triggers are never read.
"""

from __future__ import annotations

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.registers import ADCL, ADCSRA, ADCSRB, ADMUX
from avrswarm.chip.state import NEVER, RUNNING, ChipRow, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

ADEN, ADSC, ADATE, ADIF, ADIE = 0x80, 0x40, 0x20, 0x10, 0x08
FREE_RUNNING = 0
TRIGGER_SYNC_CYCLES = 3  # DS 24.4: a trigger edge passes a synchroniser of three CPU cycles

TEMPERATURE_CHANNEL, BAND_GAP_CHANNEL, GROUND_CHANNEL = 8, 14, 15
BAND_GAP_MICROVOLTS = 1_100_000
FIRST_OF_WORLD = 6
"""Voltages from this channel on may be changed between two runs, so they are sampled in time.
Others change through the tape alone, which sees to a sample that is due: it is no event."""


@kernel
def trigger_source(c: ChipRow) -> int:
    """Return ADTS if auto triggering is armed, else -1."""
    control = int(c.memory[ADCSRA])
    if control & ADEN and control & ADATE:
        return int(c.memory[ADCSRB]) & 7
    return -1


@kernel
def _clock_divisor(c: ChipRow) -> int:
    select = int(c.memory[ADCSRA]) & 7
    return 2 if select == 0 else 1 << select


@kernel
def _begin(c: ChipRow, start: int, triggered: bool) -> None:
    """Plan a conversion whose first ADC clock edge is at ``start`` (DS table 24-1)."""
    clock = _clock_divisor(c)
    c.adc_busy = 1
    c.adc_start = start
    c.adc_mux = int(c.memory[ADMUX])
    if c.adc_first:
        c.adc_sample = start + 27 * clock // 2
        c.adc_done = start + 25 * clock
        c.adc_first = 0
    elif triggered:
        c.adc_sample = start + 2 * clock
        c.adc_done = start + 27 * clock // 2
    else:
        c.adc_sample = start + 3 * clock // 2
        c.adc_done = start + 13 * clock
    c.adc_value = -1
    schedule(c)


@kernel
def trigger(c: ChipRow, source: int, edge: int) -> None:
    """Start a conversion when the selected trigger flag rises; ignored while one is running."""
    if trigger_source(c) != source or c.adc_stopped != RUNNING:
        return
    catch_up(c, edge)
    if c.adc_busy:
        return
    c.adc_base = edge + TRIGGER_SYNC_CYCLES  # DS 24.4: the prescaler is reset on a trigger
    _begin(c, edge + TRIGGER_SYNC_CYCLES, True)


@kernel
def start_single(c: ChipRow, edge: int) -> None:
    """Start a conversion at the first ADC clock edge at or after ``edge``."""
    clock = _clock_divisor(c)
    wait = (c.adc_base - edge) % clock
    _begin(c, edge + wait, False)


@kernel
def _noise(c: ChipRow, channel: int, number: int) -> int:
    """Draw from the input noise model in microvolts, by a counter: a re-run draws the same."""
    state = (c.noise_key ^ (number * 0x9E3779B97F4A7C1)) & 0x7FFFFFFFFFFFFFFF
    total = 0
    for _ in range(4):  # sum of four uniforms: near enough to Gaussian within 3.4 sigma
        state = (state * 6364136223846793 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        total += (state >> 31) & 0xFFFF
    # four uniforms on 0..65535: mean 131070, standard deviation 37837
    return (total - 131070) * int(c.adc_noise_microvolts[channel]) // 37837


@kernel
def _sample(c: ChipRow) -> int:
    """Return the microvolts at the multiplexer's output."""
    channel = c.adc_mux & 15
    if channel == BAND_GAP_CHANNEL:
        return BAND_GAP_MICROVOLTS
    if channel == GROUND_CHANNEL:
        return 0
    return int(c.adc_microvolts[channel])


@kernel
def convert(c: ChipRow) -> None:
    """Work out the result of the last conversion, if nobody has looked yet.

    That is floor(Vin * 1024 / Vref), clipped to ten bits (DS 24.7).
    """
    volts = c.adc_caught
    if volts < 0:
        return
    channel = c.adc_caught_mux & 15
    if c.adc_noise_microvolts[channel]:
        volts += _noise(c, channel, c.adc_caught_number)
    select = c.adc_caught_mux >> 6
    if select == 0:
        reference = c.aref_microvolts
    elif select == 1:
        reference = c.avcc_microvolts
    else:
        reference = BAND_GAP_MICROVOLTS
    c.adc_result = min(max(volts * 1024 // reference, 0), 1023)
    c.adc_caught = -1
    c.adc_caught_mux = c.adc_caught_number = 0


@kernel
def catch_up(c: ChipRow, edge: int) -> None:
    """Let samples and completions at edges up to and including ``edge`` happen."""
    if c.adc_stopped != RUNNING:
        return
    while c.adc_busy and c.adc_sample <= edge:
        if c.adc_value < 0:
            c.adc_value = _sample(c)
            c.adc_conversions += 1
        if c.adc_done > edge:
            break
        _finish(c)
    schedule(c)


@kernel
def _finish(c: ChipRow) -> None:
    done = c.adc_done
    if not c.adc_locked:  # DS 24.2: a result that completes between ADCL and ADCH reads is lost
        c.adc_caught = c.adc_value
        c.adc_caught_mux = c.adc_mux
        c.adc_caught_number = c.adc_conversions - 1
    c.adc_busy = 0
    c.adc_flag = 1
    update_request(c)
    if trigger_source(c) == FREE_RUNNING:
        _begin(c, done, False)


@kernel
def update_request(c: ChipRow) -> None:
    """Recompute the ADC interrupt request."""
    set_request(c, Vector.ADC, c.adc_flag != 0 and int(c.memory[ADCSRA]) & ADIE != 0)


@kernel
def schedule(c: ChipRow) -> None:
    """Recompute when the ADC next matters to others."""
    when = NEVER
    if c.adc_busy and c.adc_stopped == RUNNING:
        if c.adc_value < 0 and c.adc_mux & 15 >= FIRST_OF_WORLD:
            when = c.adc_sample
        elif int(c.memory[ADCSRA]) & ADIE or trigger_source(c) == FREE_RUNNING:
            when = c.adc_done
    plan(c, Source.ADC, when)


@kernel
def stop_clock(c: ChipRow, edge: int) -> None:
    """Freeze the ADC: PRR.PRADC was set, or its clock stands still in a deep sleep."""
    if c.adc_stopped != RUNNING:
        return
    catch_up(c, edge)
    c.adc_stopped = edge
    schedule(c)


@kernel
def start_clock(c: ChipRow, edge: int) -> None:
    """Go on where ``stop_clock`` left off."""
    if c.adc_stopped == RUNNING:
        return
    pause = edge - c.adc_stopped
    c.adc_stopped = RUNNING
    c.adc_base += pause
    c.adc_start += pause
    c.adc_sample += pause
    c.adc_done += pause
    schedule(c)


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read ADCL, ADCH or ADCSRA in ``cycle``."""
    catch_up(c, cycle)
    if address == ADCSRA:
        return int(c.memory[ADCSRA]) | (ADSC if c.adc_busy else 0) | (ADIF if c.adc_flag else 0)
    convert(c)
    result = c.adc_result << 6 if int(c.memory[ADMUX]) & 0x20 else c.adc_result
    if address == ADCL:
        c.adc_locked = 1
        return result & 0xFF
    c.adc_locked = 0
    return result >> 8


@kernel
def write_control(c: ChipRow, value: int, edge: int) -> None:
    """Write ADCSRA."""
    if c.adc_stopped != RUNNING:
        return
    catch_up(c, edge)
    old = int(c.memory[ADCSRA])
    if value & ADIF:
        c.adc_flag = 0
    c.memory[ADCSRA] = value & ~(ADSC | ADIF)
    if not value & ADEN:
        c.adc_busy = 0
    elif not old & ADEN:
        c.adc_first = 1
        c.adc_base = edge
    if value & ADEN and value & ADSC and not c.adc_busy:
        start_single(c, edge)
    update_request(c)
    schedule(c)


@kernel
def write_mux(c: ChipRow, value: int, edge: int) -> None:
    """Write ADMUX; a conversion whose first clock edge has passed keeps what it started with."""
    if c.adc_stopped != RUNNING:
        return
    catch_up(c, edge)
    c.memory[ADMUX] = value & 0xEF
    if c.adc_busy and c.adc_start > edge:
        c.adc_mux = value & 0xEF


@kernel
def write_trigger_select(c: ChipRow, value: int, was_set: bool, is_set: bool, edge: int) -> None:
    """Write ADCSRB; going from a cleared to a set trigger flag is a trigger edge (DS 24.4)."""
    if c.adc_stopped != RUNNING:
        return
    catch_up(c, edge)
    c.memory[ADCSRB] = value & 0x47
    if is_set and not was_set:
        trigger(c, value & 7, edge)
    schedule(c)
