"""Where can control go? Instructions of a flash image, and the places where translated code begins.

Code is found by following jumps, branches and calls from the reset and interrupt vectors. What is
reached only through pointers is guessed: words of flash that are no known code, and pairs of LDI,
may be addresses of functions. A wrong guess costs a little translated code that never runs; a
missed one leaves that code to the interpreter. Neither changes a result.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from avrswarm.isa.decode import FLASH_WORDS, PC_MASK
from avrswarm.isa.table import Op

VECTORS = 26
BOOT_SECTIONS = (0x3F00, 0x3E00, 0x3C00, 0x3800)
"""Word addresses at which a boot loader may begin (BOOTSZ fuses)."""

_TWO_WORDS = {Op.LDS, Op.STS, Op.JMP, Op.CALL}
_SKIPS = {Op.CPSE, Op.SBRC, Op.SBRS, Op.SBIC, Op.SBIS}
_BRANCHES = {op for op in Op if op.name.startswith("BR") and op not in (Op.BREAK, Op.BREAKPOINT)}
_CALLS = {Op.CALL, Op.RCALL}
_ENDS = {Op.RET, Op.RETI, Op.IJMP, Op.UNDEFINED, Op.ERASED}
_JUMPS = {Op.JMP, Op.RJMP, Op.RJMP_POLL}

LEFT_TO_THE_CORE = {
    Op.UNDEFINED,
    Op.ERASED,
    Op.BREAKPOINT,
    Op.SLEEP,
    Op.WDR,
    Op.SPM,
    Op.RJMP_POLL,
    Op.BRCS_COUNT,
    Op.BRCC_COUNT,
    Op.BRNE_COUNT,
}
"""Instructions that translated code stops in front of: rare ones, and the ends of loops that wait
for a peripheral, for which the core has a closed form."""

CLOSES_A_DELAY = {Op.BRNE_DELAY_DEC, Op.BRNE_DELAY_SBIW, Op.BRNE_DELAY_SUBI}
"""Branches back to the begin of a counted delay loop."""


@dataclass(frozen=True)
class Instruction:
    """One decoded instruction and where it may go next."""

    address: int  # in words
    op: Op
    a: int
    b: int
    size: int  # words

    @property
    def after(self) -> int:
        """Word address of the instruction behind it."""
        return (self.address + self.size) & PC_MASK

    @property
    def beyond(self) -> int:
        """Where a skip goes."""
        return (self.address + 2 + (self.b >> 15)) & PC_MASK

    @property
    def is_skip(self) -> bool:
        """Whether it may jump over the next instruction."""
        return self.op in _SKIPS

    @property
    def is_branch(self) -> bool:
        """Whether it jumps if a flag is set or clear."""
        return self.op in _BRANCHES

    @property
    def is_call(self) -> bool:
        """Whether it calls a known address."""
        return self.op in _CALLS

    @property
    def is_left_to_the_core(self) -> bool:
        """Whether translated code stops in front of it."""
        endless = self.op == Op.RJMP and self.b == self.address  # the core may stop for good there
        return endless or self.op in LEFT_TO_THE_CORE

    @property
    def successors(self) -> tuple[int, ...]:
        """Word addresses at which control may go on, except through pointers and returns."""
        if self.op in _ENDS:
            return ()
        if self.op in _JUMPS:
            return (self.b & PC_MASK,)
        if self.is_branch or self.is_call:
            return (self.b & PC_MASK, self.after)
        if self.is_skip:
            return (self.after, self.beyond)
        return (self.after,)


@dataclass
class Flow:
    """What is known of a program."""

    instructions: dict[int, Instruction] = field(default_factory=dict)
    entries: set[int] = field(default_factory=set)
    """Where translated functions begin: wherever control may come from more than one place."""


def instruction_at(code: NDArray[np.uint32], address: int) -> Instruction:
    """Return the decoded instruction at a word address."""
    word = int(code[address])
    op = Op(word & 0xFF)
    return Instruction(address, op, word >> 8 & 0xFF, word >> 16, 2 if op in _TWO_WORDS else 1)


def analyse(flash: NDArray[np.uint16], code: NDArray[np.uint32]) -> Flow:
    """Find a program's instructions and entries."""
    flow = Flow()
    roots = {2 * vector for vector in range(VECTORS)}
    for section in BOOT_SECTIONS:
        if int(flash[section]) != 0xFFFF:
            roots.update(section + 2 * vector for vector in range(VECTORS))
    while roots:
        _follow(flow, code, roots)
        flow.entries |= roots
        roots = _pointed_at(flow, flash) - flow.entries
    _find_entries(flow)
    return flow


def _follow(flow: Flow, code: NDArray[np.uint32], roots: set[int]) -> None:
    waiting = [root for root in roots if root not in flow.instructions]
    while waiting:
        address = waiting.pop()
        if address in flow.instructions:
            continue
        found = instruction_at(code, address)
        flow.instructions[address] = found
        waiting.extend(found.successors)


def _pointed_at(flow: Flow, flash: NDArray[np.uint16]) -> set[int]:
    """Return word addresses that data or LDI pairs seem to name and that may begin something."""
    covered = np.zeros(FLASH_WORDS, bool)
    for found in flow.instructions.values():
        covered[found.address : found.address + found.size] = True
    named = set(flash[~covered & (flash != 0xFFFF) & (flash != 0)].tolist())
    for found in flow.instructions.values():
        following = flow.instructions.get(found.after)
        if found.op == Op.LDI and following is not None and following.op == Op.LDI:
            named.add(found.b | following.b << 8)
    begins = set()
    for address in named:
        if address >= FLASH_WORDS or not address:
            continue
        before = flow.instructions.get(address - 1) or flow.instructions.get(address - 2)
        behind_an_end = before is not None and (
            before.op in _ENDS or before.op in (Op.JMP, Op.RJMP)
        )
        if address in flow.instructions or (behind_an_end and not covered[address]):
            begins.add(address)
    return begins


def _find_entries(flow: Flow) -> None:
    """Add to the entries every instruction that more than one way leads to."""
    ways: dict[int, int] = {}
    for found in flow.instructions.values():
        for target in found.successors:
            ways[target] = ways.get(target, 0) + 1
            backwards = target <= found.address
            if found.is_call or found.is_left_to_the_core or backwards:
                flow.entries.add(target)
        if found.op == Op.ICALL:
            flow.entries.add(found.after)
    flow.entries |= {address for address, count in ways.items() if count > 1}
