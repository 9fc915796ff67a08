"""Run one chip and write down what it does on the way: waveforms and an instruction trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TextIO

from avrswarm.chip.registers import REGISTERS, WORD_REGISTERS
from avrswarm.errors import UsageError
from avrswarm.program import Program
from avrswarm.record.trace import TraceWriter
from avrswarm.record.vcd import VcdWriter

PINS = [f"P{port}{bit}" for port, bits in (("B", 8), ("C", 7), ("D", 8)) for bit in range(bits)]
BREAKPOINT = "breakpoint"
CYCLES = "cycles"


class BenchChip(Protocol):
    """What is asked of the chip; `avrswarm.Chip` has it."""

    program: Program

    @property
    def cycle(self) -> int: ...  # noqa: D102
    @property
    def pc(self) -> int: ...  # noqa: D102
    @property
    def sreg(self) -> int: ...  # noqa: D102
    @property
    def data(self) -> Any: ...  # noqa: D102
    @property
    def flash(self) -> Any: ...  # noqa: D102
    @property
    def clock_hz(self) -> int: ...  # noqa: D102
    def pin(self, name: str) -> int: ...  # noqa: D102
    def step(self) -> str: ...  # noqa: D102
    def run(self, cycles: int) -> str: ...  # noqa: D102
    def run_until(self, *, pc: int, max_cycles: int) -> str: ...  # noqa: D102


class Observation:
    """One run of a chip, observed by the recorders that have a stream to write to.

    Observed chips go instruction by instruction and are looked at between instructions; what
    changes within one is seen at its end. Without a recorder the chip runs at full speed.
    """

    def __init__(
        self,
        chip: BenchChip,
        *,
        vcd: TextIO | None = None,
        vcd_registers: Sequence[str] = (),
        trace: TextIO | None = None,
    ) -> None:
        self._chip = chip
        self._trace = None if trace is None else TraceWriter(trace, chip.program.symbols)
        self._registers = {name: _addresses(name) for name in vcd_registers}
        widths = dict.fromkeys(PINS, 1)
        widths |= {name: 8 * len(places) for name, places in self._registers.items()}
        self._vcd = None if vcd is None else VcdWriter(vcd, chip.clock_hz, widths)

    def run(self, until: int | None, max_cycles: int) -> str:
        """Run to the byte address ``until`` or for ``max_cycles``; return why the chip stopped."""
        chip = self._chip
        if self._vcd is not None or self._trace is not None:
            return self._run_observed(until, chip.cycle + max_cycles)
        if until is None:
            return chip.run(cycles=max_cycles)
        return chip.run_until(pc=until, max_cycles=max_cycles)

    def _run_observed(self, until: int | None, end: int) -> str:
        chip = self._chip
        stop = CYCLES
        self._look()
        while stop == CYCLES and chip.cycle < end:
            if chip.pc == until:
                stop = BREAKPOINT
            else:
                stop = self._step()
                self._look()
        if self._vcd is not None:
            self._vcd.finish(chip.cycle)
        return stop

    def _step(self) -> str:
        chip = self._chip
        if self._trace is None:
            return chip.step()
        cycle, pc, before = chip.cycle, chip.pc, self._core()
        place = pc // 2
        words = int(chip.flash[place]), int(chip.flash[(place + 1) % len(chip.flash)])
        stop = chip.step()
        self._trace.write(cycle, pc, words, before, self._core())
        return stop

    def _core(self) -> list[int]:
        return [*(int(value) for value in self._chip.data[:32]), self._chip.sreg]

    def _look(self) -> None:
        if self._vcd is not None:
            self._vcd.update(self._chip.cycle, self._signals())

    def _signals(self) -> Iterator[tuple[str, int]]:
        for pin in PINS:
            yield pin, int(self._chip.pin(pin))
        if self._registers:
            data = self._chip.data
            for name, places in self._registers.items():
                yield name, sum(int(data[place]) << (8 * n) for n, place in enumerate(places))


def _addresses(name: str) -> list[int]:
    """Return the data-space addresses of a register, low byte first."""
    if name in WORD_REGISTERS:
        return [WORD_REGISTERS[name], WORD_REGISTERS[name] + 1]
    if name in REGISTERS:
        return [REGISTERS[name]]
    raise UsageError(f"no register '{name}'; names are the datasheet's, such as TCNT1 or OCR2A")
