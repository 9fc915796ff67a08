"""Exact idle skipping: jump over what a waiting program does, without changing what comes out.

Two kinds of waiting have a closed form. A counted delay loop is recognised when the program is
decoded; all but its last iterations are skipped, and those run normally, so that flags come out
right. Any other loop is probed: if the program comes back to an address with the same registers,
flags and SRAM, and has neither written to the I/O space nor read anything there that changes with
time, it will repeat exactly until the next event. The core then skips whole periods.

A delay loop can be entered at its branch with Z clear and a count of 0 (an interrupt routine that
spoils the flags does it): then it counts all the way round, like the loop on the chip.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.state import DATA_SIZE, SRAM_START, ChipRow
from avrswarm.isa.decode import PC_MASK
from avrswarm.isa.table import Op
from avrswarm.jit import kernel

# Trade-offs of speed only; no value here can change a result.
WORTH_SKIPPING = 400  # cycles to the next event below which a probe cannot pay
LONGEST_PROBE = 400  # instructions after which a loop is given up
SHORTEST_WAIT = 300  # calm cycles before a probe
LONGEST_WAIT = 1 << 15
COUNTING_WAIT = 2000  # after a loop that came back with other registers: it may be counting down

_WORD = 0xFFFFFFFF


@kernel
def disturb(c: ChipRow, cycle: int) -> None:
    """Forget the proven loop: an interrupt, wake or reset changed what the program does."""
    c.idle_period = 0
    c.calm_since = cycle
    c.probe_wait = max(c.probe_wait // 2, SHORTEST_WAIT)  # it may be idle in another way now


@kernel
def give_up(c: ChipRow, cycle: int, counting: bool) -> None:
    """Wait before the next probe: longer and longer while the program is busy."""
    c.calm_since = cycle
    c.probe_wait = COUNTING_WAIT if counting else min(2 * c.probe_wait, LONGEST_WAIT)


@kernel
def copy_memory(data: NDArray[np.uint8], scratch: NDArray[np.uint8]) -> None:
    """Save the working registers and SRAM."""
    for place in range(DATA_SIZE):
        scratch[place] = data[place]


@kernel
def same_memory(data: NDArray[np.uint8], scratch: NDArray[np.uint8]) -> bool:
    """Tell whether working registers and SRAM are as they were saved."""
    different = 0
    for place in range(32):
        different |= int(data[place]) ^ int(scratch[place])
    if different:
        return False
    for place in range(SRAM_START, DATA_SIZE):
        different |= int(data[place]) ^ int(scratch[place])
    return different == 0


@kernel
def skip_sbiw_loop(data: NDArray[np.uint8], word: int, cycle: int, limit: int) -> int:
    """Skip iterations of ``sbiw r, 1 ; brne`` (4 cycles) up to ``limit``; return the cycle."""
    if word & 0xFF != Op.SBIW:  # a breakpoint stands there
        return cycle
    register = word >> 8 & 0xFF
    count = int(data[register]) & 0xFF | (int(data[register + 1]) & 0xFF) << 8
    skipped = min((count - 1) & 0xFFFF, (limit - cycle) // 4)
    count -= skipped
    data[register] = count & 0xFF
    data[register + 1] = count >> 8 & 0xFF
    return cycle + 4 * skipped


@kernel
def skip_dec_loop(data: NDArray[np.uint8], word: int, cycle: int, limit: int) -> int:
    """Skip iterations of ``dec r ; brne`` (3 cycles)."""
    if word & 0xFF != Op.DEC:
        return cycle
    register = word >> 8 & 0xFF
    count = int(data[register]) & 0xFF
    skipped = min((count - 1) & 0xFF, (limit - cycle) // 3)
    data[register] = (count - skipped) & 0xFF
    return cycle + 3 * skipped


@kernel
def skip_subi_loop(
    data: NDArray[np.uint8],
    code: NDArray[np.uint32],
    first: int,
    counted: int,
    cycle: int,
    limit: int,
) -> int:
    """Skip iterations of ``subi ; sbci ; ... ; brne`` over ``counted`` bytes (``counted`` + 2)."""
    count = 0
    for number in range(counted):
        word = int(code[(first + number) & PC_MASK]) & _WORD
        if word & 0xFF != (Op.SUBI if number == 0 else Op.SBCI):
            return cycle
        count |= (int(data[word >> 8 & 0xFF]) & 0xFF) << (8 * number)
    skipped = min((count - 1) & ((1 << 8 * counted) - 1), (limit - cycle) // (counted + 2))
    count -= skipped
    for number in range(counted):
        word = int(code[(first + number) & PC_MASK]) & _WORD
        data[word >> 8 & 0xFF] = count >> (8 * number) & 0xFF
    return cycle + (counted + 2) * skipped
