"""SPI at the level of registers and time (DS 18; timing reference 10).

A master transfer takes eight SCK periods from the edge at which the write of SPDR lands. Bytes, not
bits, reach the outside: no waveform appears on SCK, MOSI and MISO, and the SPI does not override
the direction of its pins. ``ChipRow.spi_input`` is the byte that the outside shifts in, in the same
bit order as SPDR; -1 means that MOSI is wired to MISO.

SS (PB2) as an input and low turns a master into a slave. An unconnected PB2 without its pull-up
reads as 0 here, so a program that neither makes SS an output nor pulls it up will not stay master.

As a slave the chip exchanges whole bytes with ``exchange``, which a bench's master calls.
"""

from __future__ import annotations

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.peripherals import gpio
from avrswarm.chip.registers import DDRB, SPCR, SPDR, SPSR
from avrswarm.chip.state import NEVER, RUNNING, ChipRow, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

SPIE, SPE, DORD, MSTR, CPOL, CPHA = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04
SPIF, WCOL, SPI2X = 0x80, 0x40, 0x01

_SS = 0x04  # PB2


@kernel
def reset(c: ChipRow) -> None:
    """Forget everything that is not a register in ``c.memory``, as any reset does."""
    c.spi_flag = 0
    c.spi_collision = 0
    c.spi_status_read = 0
    c.spi_end = NEVER
    c.spi_stopped = RUNNING
    update_request(c)
    schedule(c)


@kernel
def power_on(c: ChipRow) -> None:
    """Set what is not zero at power-on."""
    c.spi_input = -1
    reset(c)


@kernel
def sck_period(c: ChipRow) -> int:
    """Return the cycles per SCK period (DS table 18-5)."""
    select = int(c.memory[SPCR]) & 3
    period = 128 if select == 3 else 4 << (2 * select)
    return period // 2 if int(c.memory[SPSR]) & SPI2X else period


@kernel
def _is_master(c: ChipRow) -> bool:
    return int(c.memory[SPCR]) & (SPE | MSTR) == SPE | MSTR


@kernel
def _finish(c: ChipRow, received: int) -> None:
    c.spi_end = NEVER
    c.memory[SPDR] = received & 0xFF
    c.spi_flag = 1
    c.spi_status_read &= ~SPIF
    update_request(c)


@kernel
def catch_up(c: ChipRow, edge: int) -> None:
    """Let a transfer that ends at or before ``edge`` end."""
    if c.spi_end > edge or c.spi_stopped != RUNNING:
        return
    _finish(c, c.spi_out if c.spi_input < 0 else c.spi_input)
    schedule(c)


@kernel
def slave_select(c: ChipRow, edge: int) -> None:
    """Act on the level of SS: a master whose SS is an input and low becomes a slave (DS 18.3.2).

    Call it when PB2 or its direction changes; accesses of the SPI's registers call it themselves.
    """
    is_low_input = (int(c.memory[DDRB]) | c.pin_level[gpio.B]) & _SS == 0
    if _is_master(c) and is_low_input and c.spi_stopped == RUNNING:
        catch_up(c, edge)
        c.memory[SPCR] = int(c.memory[SPCR]) & ~MSTR
        c.spi_end = NEVER
        c.spi_flag = 1
        update_request(c)
        schedule(c)


@kernel
def exchange(c: ChipRow, value: int, edge: int) -> int:
    """Let an outside master exchange a byte that is complete at ``edge``; -1 if nobody listens."""
    control = int(c.memory[SPCR])
    selected = c.pin_level[gpio.B] & _SS == 0
    if not control & SPE or control & MSTR or not selected or c.spi_stopped != RUNNING:
        return -1
    sent = c.spi_out
    c.spi_out = value  # what comes in is what goes out next, unless the CPU writes SPDR
    _finish(c, value)
    return int(sent)


@kernel
def update_request(c: ChipRow) -> None:
    """Recompute the SPI interrupt request."""
    set_request(c, Vector.SPI_STC, c.spi_flag != 0 and int(c.memory[SPCR]) & SPIE != 0)


@kernel
def schedule(c: ChipRow) -> None:
    """Recompute when the SPI next matters to others."""
    waiting = int(c.memory[SPCR]) & SPIE != 0 and c.spi_stopped == RUNNING
    plan(c, Source.SPI, c.spi_end if waiting else NEVER)


@kernel
def stop_clock(c: ChipRow, edge: int) -> None:
    """Freeze the SPI: PRR.PRSPI was set, or clk_IO stands still in a deep sleep."""
    if c.spi_stopped != RUNNING:
        return
    catch_up(c, edge)
    c.spi_stopped = edge
    schedule(c)


@kernel
def start_clock(c: ChipRow, edge: int) -> None:
    """Go on where ``stop_clock`` left off."""
    if c.spi_stopped == RUNNING:
        return
    if c.spi_end != NEVER:
        c.spi_end += edge - c.spi_stopped
    c.spi_stopped = RUNNING
    schedule(c)


@kernel
def peek(c: ChipRow, address: int, cycle: int) -> int:
    """Return what a read in ``cycle`` would, without the read's effect on SPIF and WCOL."""
    slave_select(c, cycle)
    catch_up(c, cycle)
    if address == SPSR:
        value = int(c.memory[SPSR]) & SPI2X
        if c.spi_flag:
            value |= SPIF
        if c.spi_collision:
            value |= WCOL
        return value
    return int(c.memory[address])


@kernel
def _clear_seen_flags(c: ChipRow) -> None:
    """Clear on an access of SPDR what SPSR showed when it was last read (DS 18.5.2)."""
    if c.spi_status_read & SPIF:
        c.spi_flag = 0
    if c.spi_status_read & WCOL:
        c.spi_collision = 0
    c.spi_status_read = 0
    update_request(c)


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read SPCR, SPSR or SPDR in ``cycle``."""
    value = peek(c, address, cycle)
    if address == SPSR:
        c.spi_status_read = value & (SPIF | WCOL)
    elif address == SPDR:
        _clear_seen_flags(c)
    return value


@kernel
def write(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Write SPCR, SPSR or SPDR."""
    if c.spi_stopped != RUNNING:
        return
    catch_up(c, edge)
    if address == SPDR:
        _clear_seen_flags(c)
        if c.spi_end != NEVER:
            c.spi_collision = 1
        else:
            slave_select(c, edge)
            c.spi_out = value
            if _is_master(c):
                c.spi_end = edge + 8 * sck_period(c)
    elif address == SPSR:
        c.memory[SPSR] = value & SPI2X
    else:
        c.memory[SPCR] = value
        if not _is_master(c):
            c.spi_end = NEVER
        slave_select(c, edge)
    update_request(c)
    schedule(c)
