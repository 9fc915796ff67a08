"""Timer/Counter prescalers (DS 17, 18.10): free running, shared, reset and held through GTCCR."""

from __future__ import annotations

from avrswarm.chip.peripherals import timer_unit
from avrswarm.chip.registers import GTCCR
from avrswarm.chip.state import ChipRow
from avrswarm.jit import kernel

TSM, PSRASY, PSRSYNC = 0x80, 0x02, 0x01


@kernel
def write_gtccr(c: ChipRow, value: int, edge: int) -> None:
    """Write GTCCR: reset prescalers, or hold them in reset while TSM stays set."""
    for timer in range(3):
        timer_unit.catch_up(c, timer, edge)
    hold = value & TSM != 0
    for prescaler in range(2):
        bit = PSRSYNC if prescaler == 0 else PSRASY
        if c.prescaler_held[prescaler] or value & bit:
            c.prescaler_base[prescaler] = edge
        c.prescaler_held[prescaler] = 1 if hold and value & bit else 0
    c.memory[GTCCR] = value & (TSM | PSRASY | PSRSYNC) if hold else 0
    for timer in range(3):
        timer_unit.schedule(c, timer)
