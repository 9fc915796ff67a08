"""Run one chip and write down what it does on the way: waveforms and an instruction trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TextIO

from avrswarm.chip.registers import REGISTERS, WORD_REGISTERS
from avrswarm.errors import UsageError
from avrswarm.program import Program
from avrswarm.record.trace import TraceWriter
from avrswarm.record.vcd import VcdWriter

PORTS = {"B": 8, "C": 7, "D": 8}
PINS = [f"P{port}{bit}" for port, bits in PORTS.items() for bit in range(bits)]
BREAKPOINT = "breakpoint"
CYCLES = "cycles"
_INTERRUPTS_ON = 0x80  # SREG bit I


class BenchChip(Protocol):
    """What is asked of the chip; `avrswarm.Chip` has it."""

    program: Program
    clock_hz: float
    pin_log: list[tuple[int, int, int]]

    @property
    def cycle(self) -> int: ...  # noqa: D102
    @property
    def pc(self) -> int: ...  # noqa: D102
    @property
    def sp(self) -> int: ...  # noqa: D102
    @property
    def sreg(self) -> int: ...  # noqa: D102
    @property
    def registers(self) -> list[int]: ...  # noqa: D102
    @property
    def data(self) -> Any: ...  # noqa: D102
    @property
    def flash(self) -> Any: ...  # noqa: D102
    @property
    def asleep(self) -> bool: ...  # noqa: D102
    @property
    def in_reset(self) -> bool: ...  # noqa: D102
    def pin(self, name: str) -> int: ...  # noqa: D102
    def watch_pins(self, *names: str) -> None: ...  # noqa: D102
    def step(self) -> str: ...  # noqa: D102
    def run(self, cycles: int) -> str: ...  # noqa: D102
    def run_to_wake(self, max_cycles: int) -> str: ...  # noqa: D102
    def run_until(self, *, pc: int, max_cycles: int) -> str: ...  # noqa: D102


class Observation:
    """One run of a chip, observed by the recorders that have a stream to write to.

    Pins are recorded with the exact cycle of each edge. Registers are looked at between
    instructions. A trace or registers make the chip go instruction by instruction, which is slow;
    pins alone do not.
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
        self._changes: list[tuple[int, str, int]] = []  # cycle, signal, value
        self._seen: dict[str, int] = {}
        self._rests = False  # the chip sleeps or is held in reset, and the trace says so

    def run(self, until: int | None, max_cycles: int) -> str:
        """Run to the byte address ``until`` or for ``max_cycles``; return why the chip stopped."""
        chip = self._chip
        if self._vcd is not None:
            chip.watch_pins(*PINS)
            chip.pin_log.clear()
            self._vcd.update(chip.cycle, [(pin, chip.pin(pin)) for pin in PINS])
            self._look()
        try:
            if self._trace is not None or (self._vcd is not None and self._registers):
                return self._run_by_steps(until, chip.cycle + max_cycles)
            if until is None:
                return chip.run(cycles=max_cycles)
            return chip.run_until(pc=until, max_cycles=max_cycles)
        finally:  # a fault, too, ends the record properly
            if self._vcd is not None:
                self._write_waveforms(self._vcd)

    def _run_by_steps(self, until: int | None, end: int) -> str:
        chip = self._chip
        stop = CYCLES
        while stop == CYCLES and chip.cycle < end:
            stop = self._rest(end) if chip.asleep or chip.in_reset else self._step()
            self._look()
            if stop == CYCLES and chip.pc == until and not (chip.asleep or chip.in_reset):
                stop = BREAKPOINT
        return stop

    def _rest(self, end: int) -> str:
        """Let time pass in which nothing is executed, up to the wake."""
        chip = self._chip
        if self._trace is not None and not self._rests:
            self._trace.write_rest(chip.cycle, chip.pc, "asleep" if chip.asleep else "in reset")
        self._rests = True
        if self._registers:  # some may change meanwhile
            return chip.step()
        return chip.run_to_wake(max_cycles=end - chip.cycle)

    def _step(self) -> str:
        chip = self._chip
        self._rests = False
        if self._trace is None:
            return chip.step()
        cycle, pc, sp = chip.cycle, chip.pc, chip.sp
        before = [*chip.registers, chip.sreg]
        place = pc // 2
        words = int(chip.flash[place]), int(chip.flash[(place + 1) % len(chip.flash)])
        stop = chip.step()
        after = [*chip.registers, chip.sreg]
        # A step that enters an interrupt executes not this instruction but the vector's. Only an
        # entry both clears I and pushes; a vector that holds a bare `reti` is not noticed.
        if before[-1] & ~after[-1] & _INTERRUPTS_ON and chip.sp < sp:
            self._trace.write_interrupt(cycle, pc, chip.pc)
        else:
            self._trace.write(cycle, pc, words, before, after)
        return stop

    def _look(self) -> None:
        """Note registers that changed since the last look."""
        if self._vcd is None or not self._registers:
            return
        data = self._chip.data
        for name, places in self._registers.items():
            value = sum(int(data[place]) << (8 * n) for n, place in enumerate(places))
            if self._seen.get(name) != value:
                self._seen[name] = value
                self._changes.append((self._chip.cycle, name, value))

    def _write_waveforms(self, vcd: VcdWriter) -> None:
        """Write all changes in order of time: the chip tells of an edge some cycles after it."""
        for cycle, port, levels in self._chip.pin_log:
            letter = "BCD"[port]
            self._changes += [
                (cycle, f"P{letter}{bit}", levels >> bit & 1) for bit in range(PORTS[letter])
            ]
        self._chip.pin_log.clear()
        end = self._chip.cycle
        for cycle, name, value in sorted(self._changes, key=lambda change: change[0]):
            vcd.update(cycle, [(name, value)])
            end = max(end, cycle)
        vcd.finish(end)


def _addresses(name: str) -> list[int]:
    """Return the data-space addresses of a register, low byte first."""
    if name in WORD_REGISTERS:
        return [WORD_REGISTERS[name], WORD_REGISTERS[name] + 1]
    if name in REGISTERS:
        return [REGISTERS[name]]
    raise UsageError(f"no register '{name}'; names are the datasheet's, such as TCNT1 or OCR2A")
