"""Analog comparator (DS 23; timing reference 5).

The comparator's level comes from outside as the result of the comparison, already delayed by the
synchroniser (``ACO_SYNC_CYCLES``); with the band gap or the multiplexer chosen it is worked out
from the bench's voltages instead. In sleep modes without clk_IO nothing passes the synchroniser.
"""

from __future__ import annotations

from avrswarm.chip.interrupts import set_request
from avrswarm.chip.peripherals import adc, gpio
from avrswarm.chip.registers import ACSR, ADCSRA, ADCSRB, ADMUX, PRR
from avrswarm.chip.state import IDLE_SLEEP, ChipRow
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

ACD, ACBG, ACO, ACI, ACIE, ACIC = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04
_ACME, _ADEN, _PRADC = 0x40, 0x80, 0x01

ACO_SYNC_CYCLES = 2
"""Cycles from an input crossing to ACO and ACI; the datasheet says 1 to 2 (assumption: 2)."""


@kernel
def _level(c: ChipRow, given: bool) -> int:
    """Return what the comparator's output is, given its inputs."""
    if int(c.memory[ACSR]) & ACD:
        return 0
    if given:
        return c.comparator_input
    has_band_gap = int(c.memory[ACSR]) & ACBG
    positive = adc.BAND_GAP_MICROVOLTS if has_band_gap else c.ain_microvolts[0]
    channel = int(c.memory[ADMUX]) & 7
    negative = c.adc_microvolts[channel] if _is_multiplexed(c) else c.ain_microvolts[1]
    return 1 if positive > negative else 0


@kernel
def _is_multiplexed(c: ChipRow) -> bool:
    if int(c.memory[PRR]) & _PRADC:  # DS 10.11.3: no multiplexer while the ADC is shut down
        return False
    return int(c.memory[ADCSRB]) & _ACME != 0 and int(c.memory[ADCSRA]) & _ADEN == 0


@kernel
def is_given(c: ChipRow) -> bool:
    """Tell whether the outside gives the result, synchronised, instead of voltages."""
    return not int(c.memory[ACSR]) & ACBG and not _is_multiplexed(c)


@kernel
def update(c: ChipRow, edge: int) -> None:
    """Follow the inputs, or the choice of them, after a change at ``edge``."""
    given = is_given(c)
    level = _level(c, given)
    if level == c.comparator_level or c.asleep > IDLE_SLEEP:
        return
    c.comparator_level = level
    if given:
        _change(c, level, edge)
    else:
        gpio.delay(c, edge + ACO_SYNC_CYCLES, gpio.Action.COMPARATOR | level << 8)


@kernel
def synchronised(c: ChipRow, level: int, edge: int) -> None:
    """Take over a level worked out from voltages that has passed the synchroniser."""
    if not is_given(c) and level != c.comparator_output:
        _change(c, level, edge)


@kernel
def _change(c: ChipRow, level: int, edge: int) -> None:
    """Let ACO go to ``level`` at ``edge``."""
    c.comparator_output = level
    control = int(c.memory[ACSR])
    mode = control & 3
    if control & ACIC:  # DS 16.6.1: sampled like the pin, next to the synchroniser of ACO
        gpio.send_to_capture(c, level, edge - ACO_SYNC_CYCLES)
    if mode == 0 or (mode == 2 and not level) or (mode == 3 and level):
        raise_flag(c, edge)


@kernel
def raise_flag(c: ChipRow, edge: int) -> None:
    """Set ACI; its rising edge may start a conversion."""
    if not c.comparator_flag:
        c.comparator_flag = 1
        adc.trigger(c, 1, edge)
        update_request(c)


@kernel
def update_request(c: ChipRow) -> None:
    """Recompute the comparator's interrupt request."""
    set_request(c, Vector.ANALOG_COMP, c.comparator_flag != 0 and int(c.memory[ACSR]) & ACIE != 0)


@kernel
def read(c: ChipRow) -> int:
    """Read ACSR."""
    return (
        int(c.memory[ACSR])
        | (ACO if c.comparator_output else 0)
        | (ACI if c.comparator_flag else 0)
    )


@kernel
def write(c: ChipRow, value: int, edge: int) -> None:
    """Write ACSR: ACO is read only, ACI clears when written 1."""
    if value & ACI:
        c.comparator_flag = 0
    changed = int(c.memory[ACSR]) ^ value
    c.memory[ACSR] = value & ~(ACO | ACI)
    update(c, edge)
    if changed & ACIC:  # the capture unit begins with its new source's level: no edge
        c.capture_level = c.comparator_output if value & ACIC else c.pin_level[gpio.B] & 1
    update_request(c)
