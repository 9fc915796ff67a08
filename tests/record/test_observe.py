"""The observer against a chip that plays a script, so that every line it writes is known."""

import io

import pytest

from avrswarm.chip.registers import REGISTERS
from avrswarm.errors import ChipFault, UsageError
from avrswarm.program import Program
from avrswarm.record.observe import Observation

LDI_R24_1, OUT_PORTB_R24, RJMP_SELF = 0xE081, 0xB985, 0xCFFF


class ScriptedChip:
    """Loads 1 into r24, writes it to PORTB (PB0 rises) and loops."""

    clock_hz = 8_000_000
    asleep = in_reset = False

    def __init__(self):
        self.program = Program.from_words([LDI_R24_1, OUT_PORTB_R24, RJMP_SELF])
        self.flash = self.program.flash
        self.data = bytearray(0x900)
        self.cycle = self.pc = self.sreg = 0
        self.sp = 0x8FF
        self.pin_log = []
        self.calls = []

    @property
    def registers(self):
        return list(self.data[:32])

    def pin(self, name):
        return 0

    def watch_pins(self, *names):
        assert "PB0" in names

    def step(self):
        if self.pc == 0:
            self.data[24], self.sreg = 1, 2
        elif self.pc == 2:
            self.pin_log.append((2, 0, 1))
            self.data[REGISTERS["TCNT1H"]] = 2
        is_loop = self.pc == 4
        self.pc += 0 if is_loop else 2
        self.cycle += 2 if is_loop else 1
        return "cycles"

    def run(self, cycles):
        self.calls.append(("run", cycles))
        return "cycles"

    def run_until(self, *, pc, max_cycles):
        self.calls.append(("run_until", pc, max_cycles))
        return "breakpoint"


def test_unobserved_chip_runs_at_full_speed():
    chip = ScriptedChip()
    assert Observation(chip).run(None, 100) == "cycles"
    assert Observation(chip).run(4, 100) == "breakpoint"
    assert chip.calls == [("run", 100), ("run_until", 4, 100)]


def test_trace():
    stream = io.StringIO()
    chip = ScriptedChip()
    assert Observation(chip, trace=stream).run(None, 5) == "cycles"
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert [line[:3] for line in lines] == [
        ["0", "0000", "0x0000"],
        ["1", "0002", "0x0002"],
        ["2", "0004", "0x0004"],
        ["4", "0004", "0x0004"],
    ]
    assert lines[0][3:] == ["ldi", "r24,", "0x01", "r24=01", "SREG=ithsvnZc"]
    assert lines[1][3:] == ["out", "0x05,", "r24"]
    assert chip.cycle == 6  # the first instruction boundary at or after cycle 5


def test_waveforms_with_registers():
    stream = io.StringIO()
    assert Observation(ScriptedChip(), vcd=stream, vcd_registers=["TCNT1"]).run(4, 100) == (
        "breakpoint"
    )
    body = stream.getvalue().partition("$enddefinitions $end\n")[2]
    assert body.endswith("#250\nb1000000000 8\n1!\n")
    assert body.startswith("#0\n0!\n")


def test_an_edge_that_is_told_late_is_written_at_its_time():
    stream = io.StringIO()
    chip = ScriptedChip()
    script = chip.step

    def step():
        stop = script()
        if chip.cycle == 4:
            chip.pin_log.append((1, 2, 0x80))  # PD7, before TCNT1 changed at cycle 2
        return stop

    chip.step = step
    Observation(chip, vcd=stream, vcd_registers=["TCNT1"]).run(None, 4)
    body = stream.getvalue().partition("$enddefinitions $end\n")[2]
    assert body.endswith("#125\n17\n#250\nb1000000000 8\n1!\n#500\n")


def test_stop_reason_of_the_chip_ends_the_run():
    chip = ScriptedChip()
    chip.step = lambda: "break"
    assert Observation(chip, trace=io.StringIO()).run(None, 100) == "break"


def test_pins_alone_need_no_steps():
    stream = io.StringIO()
    chip = ScriptedChip()

    def run(cycles):
        chip.pin_log += [(3, 2, 0x80), (7, 0, 1), (5, 2, 0)]
        chip.cycle = cycles
        return "cycles"

    chip.run = run
    Observation(chip, vcd=stream).run(None, 16)
    body = stream.getvalue().partition("$enddefinitions $end\n")[2]
    assert body.endswith("#375\n17\n#625\n07\n#875\n1!\n#2000\n")


def test_step_into_an_interrupt_is_told():
    stream = io.StringIO()
    chip = ScriptedChip()
    chip.sreg = 0x80

    def step():
        chip.sreg, chip.sp, chip.pc, chip.cycle = 0, 0x8FD, 4, 6
        return "cycles"

    chip.step = step
    Observation(chip, trace=stream).run(None, 1)
    assert " ".join(stream.getvalue().split()) == "0 0000 0x0000 -- interrupt, to 0x0004"


def test_a_fault_ends_the_waveform():
    stream = io.StringIO()
    chip = ScriptedChip()

    def run(cycles):
        chip.cycle = 9
        raise ChipFault("undefined opcode")

    chip.run = run
    with pytest.raises(ChipFault):
        Observation(chip, vcd=stream).run(None, 100)
    assert stream.getvalue().endswith("#1125\n")


def test_unknown_register():
    with pytest.raises(UsageError, match="no register 'TCNT9'"):
        Observation(ScriptedChip(), vcd=io.StringIO(), vcd_registers=["TCNT9"])
