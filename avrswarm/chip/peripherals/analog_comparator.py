"""Analog comparator (DS 23; timing reference 5).

The comparator's level comes from outside as the result of the comparison, already delayed by the
synchroniser (``ACO_SYNC_CYCLES``); with the band gap or the multiplexer chosen it is worked out
from the bench's voltages instead.
"""

from __future__ import annotations

from avrswarm.chip.interrupts import set_request
from avrswarm.chip.peripherals import adc, timer1
from avrswarm.chip.registers import ACSR, ADCSRA, ADCSRB, ADMUX
from avrswarm.chip.state import ChipRow
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

ACD, ACBG, ACO, ACI, ACIE, ACIC = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04
_ACME, _ADEN = 0x40, 0x80

ACO_SYNC_CYCLES = 2
"""Cycles from an input crossing to ACO and ACI; the datasheet says 1 to 2 (assumption: 2)."""


@kernel
def _level(c: ChipRow) -> int:
    """Return what the comparator's output is, given its inputs."""
    control = int(c.memory[ACSR])
    if control & ACD:
        return 0
    multiplexed = int(c.memory[ADCSRB]) & _ACME != 0 and int(c.memory[ADCSRA]) & _ADEN == 0
    if not multiplexed and not control & ACBG:
        return c.comparator_input
    positive = adc.BAND_GAP_MICROVOLTS if control & ACBG else c.ain_microvolts[0]
    negative = c.adc_microvolts[int(c.memory[ADMUX]) & 7] if multiplexed else c.ain_microvolts[1]
    return 1 if positive > negative else 0


@kernel
def update(c: ChipRow, edge: int) -> None:
    """Bring ACO up to date with its inputs at ``edge`` and act on an edge of it."""
    level = _level(c)
    if level == c.comparator_output:
        return
    c.comparator_output = level
    control = int(c.memory[ACSR])
    mode = control & 3
    if control & ACIC:
        timer1.capture_edge(c, level, edge)
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
    c.memory[ACSR] = value & ~(ACO | ACI)
    update(c, edge)
    update_request(c)
