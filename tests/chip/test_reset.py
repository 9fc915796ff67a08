"""Resets: the start-up time of the fuses, and what goes on outside meanwhile (DS 9, 11)."""

import pytest

from avrswarm.chip.state import Tape
from avrswarm.errors import ChipFault
from tests.chip.peripherals.memories import change_clock, chip_of
from tests.chip.section11 import START_UP, nops, put, put_io, run_to, sled
from tests.reference.assemble import (
    ACSR,
    DDRB,
    OSCCAL,
    PINB,
    PORTB,
    TCCR0B,
    TCNT0,
    WDTCSR,
    in_,
    inc,
    rjmp,
)

LOOP = rjmp(-1)
WATCHDOG_CYCLE = 62.5  # CPU cycles of 8 MHz per cycle of the 128 kHz oscillator
NONE, SHORT, LONG = 0, 512 * WATCHDOG_CYCLE, 8192 * WATCHDOG_CYCLE

# DS tables 9-4 to 9-17: time-outs for SUT = 0, 1, 2, 3, in addition to 14 CK.
INTERNAL = (NONE, SHORT, LONG)
EVEN_CRYSTAL, ODD_CRYSTAL = (SHORT, LONG, NONE, SHORT), (LONG, NONE, SHORT, LONG)
CLOCKS = {0: INTERNAL, 2: INTERNAL, 3: INTERNAL, 5: INTERNAL}
CLOCKS |= {select: ODD_CRYSTAL if select & 1 else EVEN_CRYSTAL for select in range(6, 16)}
FUSES = [
    (0xC0 | sut << 4 | select, times[sut])
    for select, times in CLOCKS.items()
    for sut in range(len(times))
]


@pytest.mark.jit_off
@pytest.mark.parametrize(("low", "time_out"), FUSES, ids=lambda value: f"{value:g}")
def test_start_up_by_fuses(low, time_out):
    chip = chip_of(sled(), low=low)
    chip.run(cycles=100)
    chip.reset()
    assert chip.in_reset
    assert not chip.asleep
    chip.run(cycles=13 + int(time_out))
    assert chip.in_reset
    chip.run(cycles=1)
    assert (chip.in_reset, chip.pc) == (False, 0)
    chip.step()
    assert (chip.pc, chip.cycle) == (2, 100 + 14 + time_out + 1)


@pytest.mark.jit_off
def test_start_up_with_a_divided_clock():
    """CKDIV8: 14 cycles of 1 MHz, and 64 ms are 64 000 of them."""
    chip = chip_of(sled(), low=0x62)
    chip.reset()
    assert run_to(chip, 0) == 14 + 64_000
    assert chip.seconds == pytest.approx(0.064014, abs=1e-9)


def test_start_up_after_a_changed_clock():
    """OSCCAL and CLKPR are reset at once, so that the start-up takes its time from the reset on."""
    chip = chip_of([*put(OSCCAL, 0x20), *change_clock(4), *sled()])
    chip.run(cycles=100)
    chip.reset()
    begun = chip.seconds
    run_to(chip, 0)
    assert chip.seconds - begun == pytest.approx(0.064 + 14 / 8e6, abs=1e-9)


def test_power_on_begins_with_the_first_instruction():
    chip = chip_of(sled())
    assert not chip.in_reset
    chip.step()
    assert (chip.cycle, chip.pc) == (1, 2)


def test_nothing_runs_in_reset():
    """Timers and prescalers begin with the first instruction, whatever the reset's cycle was."""
    program = [*put_io(TCCR0B, 2), *nops(100), *in_(20, TCNT0), *LOOP]
    fresh = chip_of(program)
    fresh.run(cycles=120)
    for before in (1, 77):
        chip = chip_of(program)
        chip.run(cycles=before)
        chip.reset()
        chip.run(cycles=START_UP + 120)
        assert chip.registers[20] == fresh.registers[20] > 10


def test_the_watchdog_does_not_count_in_reset():
    """16 ms is less than the start-up: it must begin with the program."""
    chip = chip_of([*put(WDTCSR, 0x08), *sled()])
    chip.run(cycles=10)
    first = run_to(chip, 0)
    second = run_to(chip, 0)
    assert first == pytest.approx(128_000 + START_UP, abs=5)
    assert second - first == pytest.approx(128_000 + START_UP, abs=5)


def test_a_comparator_edge_in_reset_leaves_no_flag():
    chip = chip_of([*put_io(ACSR, 0x00), *sled()])
    chip.run(cycles=10)
    chip.reset()
    chip.set_comparator(1, at=chip.cycle + 1000)
    chip.run(cycles=START_UP + 100)
    assert chip.read("ACSR") == 0x20


def test_a_reset_during_the_start_up_begins_it_again():
    chip = chip_of(sled())
    chip.reset()
    chip.run(cycles=1000)
    chip.reset()
    assert run_to(chip, 0) == 1000 + START_UP


def test_outputs_are_released_in_reset():
    chip = chip_of([*put_io(DDRB, 1), *put_io(PORTB, 1), *sled()])
    chip.run(cycles=10)
    assert chip.pin("PB0") == 1
    chip.reset()
    assert chip.pin("PB0") == 0


def test_reset_ends_a_fault():
    chip = chip_of([*inc(20), 0x0001])
    for count in (1, 2):
        with pytest.raises(ChipFault):
            chip.run(cycles=2 * START_UP)
        assert (chip.registers[20], chip.fault_pc) == (count, 2)
        chip.reset()
        assert chip.fault_pc is None


# ---- the outside goes on -------------------------------------------------------------------------


def resetting(reset):
    """A chip that a reset interrupts at about cycle 128 000, with stimuli before, in and after."""
    mode = 0x08 if reset == "watchdog" else 0
    count = [*in_(21, ACSR), *in_(22, PINB), *rjmp(-3)]
    chip = chip_of([*inc(20), *put(WDTCSR, mode), *count])
    level = 0
    for cycle in range(1000, 900_000, 37_001):
        level ^= 1
        chip.set_pin("PB5", level, at=cycle)
        chip.set_comparator(level, at=cycle + 11)
        chip.set_adc("ADC3", level, at=cycle + 20)
    return chip


def go(chip, reset, lengths):
    """Run in stretches; an external reset comes at a stretch's end."""
    for number, length in enumerate(lengths):
        chip.run(cycles=length - (chip.cycle - sum(lengths[:number])))
        if reset == "external" and sum(lengths[: number + 1]) == 128_000:
            chip.reset()


@pytest.mark.parametrize("reset", ["watchdog", "external"])
@pytest.mark.parametrize("in_time", [False, True])
def test_one_go_is_in_pieces(reset, in_time):
    rows = {}
    for name, lengths in {
        "one go": (128_000, 772_000),
        "pieces": (128_000, *[1000] * 772),
        "odd pieces": (1001, 126_999, 100_003, 411_999, 14, 1, 1, *[17_998] * 5, 169_992),
    }.items():
        chip = resetting(reset)
        if in_time:
            chip._c.tape_in_time = 1
            chip._tape[:, 0] *= int(chip._c.period)
        go(chip, reset, lengths)
        rows[name] = chip.digest()
        assert chip.registers[20] == 2
        assert int(chip._c.tape_next) == len(chip._tape)
    assert len(set(rows.values())) == 1, rows


def test_the_tape_goes_on_after_a_watchdog_reset_in_one_go():
    chip = resetting("watchdog")
    chip.run(cycles=900_000)
    last = chip._tape[chip._tape[:, 1] == Tape.PIN][-1]
    assert chip.pin("PB5") == last[3]
    assert chip.read("ACSR") >> 5 & 1 == last[3]
    assert int(chip._c.tape_next) == len(chip._tape)
