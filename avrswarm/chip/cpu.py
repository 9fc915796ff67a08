"""Where the CPU stands while it runs: ``ChipRow.cpu``, slot by slot.

The core, the interpreter and translated code hand these numbers to each other. Flags are unpacked,
as the interpreter keeps them. Between two runs they are in ``ChipRow.pc``, ``cycle`` and ``sreg``
and in the data space, where ``wake_up`` takes them from and ``lie_down`` puts them.
"""

from __future__ import annotations

from enum import IntEnum

from avrswarm.chip.registers import SPH, SPL, SREG
from avrswarm.chip.state import ChipRow
from avrswarm.jit import kernel


class Stop(IntEnum):
    """Why a run ended."""

    CYCLES = 0  # reached the cycle it was asked to reach
    BREAKPOINT = 1
    FAULT = 2
    LOG = 3  # the log wants to be emptied; run again
    IMAGE = 4  # SPM on a shared flash image: give the chip its own and run again
    HALTED = 5  # nothing but a reset can change what the program does
    CLOCK = 6  # OSCCAL or CLKPR changed the clock; run again


class Slot(IntEnum):
    """What the numbers in ``ChipRow.cpu`` are."""

    PC = 0
    CYCLE = 1
    SP = 2
    LIMIT = 3  # last cycle in which an instruction may start
    CARRY = 4  # flags, unpacked
    ZERO = 5
    NEGATIVE = 6
    OVERFLOW = 7
    SIGN = 8
    HALF = 9
    T = 10
    I = 11  # noqa: E741 - the datasheet's name
    STOP = 12  # what the core was asked to reach
    CEILING = 13  # how far a probe lets instructions run
    START = 14  # cycle at which the core let instructions run
    NOTING = 15  # 1: a loop is being probed; then the following say more
    TARGET = 16  # word address at which that began; -1 = there is no probe
    ORIGIN = 17  # cycle at which it did
    STACK = 18  # stack pointer at that time; -1 = there is no probe
    PUSHED = 19  # bytes that have been pushed since
    PUSHES = 20  # for translated code: address at which to note them (``idle.FIRST_PUSH``)
    FLASH = 21  # address of the flash words
    TAPE = 22  # address of the tape, and its rows
    TAPE_ROWS = 23
    LOAD = 24  # addresses of functions in ``avrswarm.chip.native``
    STORE = 25
    CHANGE_BIT = 26
    LET_INTERRUPT = 27


@kernel
def pack_sreg(
    carry: int,
    zero: int,
    negative: int,
    overflow: int,
    sign: int,
    half: int,
    t_flag: int,
    i_flag: int,
) -> int:
    """Assemble SREG from unpacked flags."""
    return (
        carry
        | (2 if zero == 0 else 0)
        | (negative & 0x80) >> 5
        | (overflow & 0x80) >> 4
        | (sign & 0x80) >> 3
        | (half & 0x10) << 1
        | t_flag << 6
        | i_flag << 7
    )


@kernel
def status_of(c: ChipRow) -> int:
    """Return SREG of a CPU that runs."""
    n = c.cpu
    return pack_sreg(
        n[Slot.CARRY],
        n[Slot.ZERO],
        n[Slot.NEGATIVE],
        n[Slot.OVERFLOW],
        n[Slot.SIGN],
        n[Slot.HALF],
        n[Slot.T],
        n[Slot.I],
    )


@kernel
def wake_up(c: ChipRow) -> None:
    """Fill the slots of what a program sees."""
    n = c.cpu
    n[Slot.PC] = c.pc
    n[Slot.CYCLE] = c.cycle
    n[Slot.SP] = int(c.memory[SPL]) & 0xFF | (int(c.memory[SPH]) & 0xFF) << 8
    status = c.sreg
    n[Slot.CARRY] = status & 1
    n[Slot.ZERO] = (status & 2) ^ 2
    n[Slot.NEGATIVE] = (status & 4) << 5
    n[Slot.OVERFLOW] = (status & 8) << 4
    n[Slot.SIGN] = (status & 16) << 3
    n[Slot.HALF] = (status & 32) >> 1
    n[Slot.T] = status >> 6 & 1
    n[Slot.I] = status >> 7
    stop_noting(c)


@kernel
def stop_noting(c: ChipRow) -> None:
    """End a probe, or be sure that there is none."""
    n = c.cpu
    n[Slot.NOTING] = 0
    n[Slot.TARGET] = n[Slot.STACK] = -1


@kernel
def lie_down(c: ChipRow) -> None:
    """Put what a program sees back to where others look for it."""
    n = c.cpu
    c.pc = n[Slot.PC]
    c.cycle = n[Slot.CYCLE]
    c.sreg = status_of(c)
    c.memory[SPL] = n[Slot.SP] & 0xFF
    c.memory[SPH] = n[Slot.SP] >> 8
    c.memory[SREG] = c.sreg
