"""The shipped timing probe: figures agree with its pin toggles and with hand-counted code."""

from functools import cache

import numpy as np
import pytest

from avrswarm import load_program
from avrswarm.chip.profile import Served
from avrswarm.chip.vectors import Vector
from avrswarm.study.firmware import open_firmware
from avrswarm.study.timing.between import between, read_point
from avrswarm.study.timing.functions import call_graph, function_rows, line_rows
from avrswarm.study.timing.interrupts import blackout_rows, vector_rows
from avrswarm.study.timing.names import Names
from avrswarm.study.timing.observe import table_scene, watch_robots
from avrswarm.swarm.simulation import Simulation

CALL, LDI, SBI = 4, 1, 2
# sbiw 2, breq 1, ldi 1, ldi 1; per ms: movw 1, 2000 x (sbiw 2, brne 2) - 1, nop, nop, sbiw 2,
# brne 2; the last brne is not taken; ret 4.
DELAY_MS = 1 + 2000 * 4 - 1 + 2 + 2 + 2
DELAY_REST = 2 + 1 + 1 + 1 - 1 + 4


@cache
def probe():
    program = open_firmware("timing_probe")
    points = [program.symbols.resolve(name) // 2 for name in ("loop", "set_color")]
    simulation = Simulation(table_scene(program.source), threads=1)
    (seen,) = watch_robots(simulation, [0], 1.3, points=points, pins=["PB4", "PB0"])
    return seen


def rows(make):
    return {row["function"]: row for row in make(probe())}


def test_delay_costs_what_its_code_says():
    done = probe().calls.of("delay")
    assert set(done["argument"]) == {1, 10, 20, 100}
    assert DELAY_MS == 8006
    assert (done["inclusive_cycles"] == DELAY_MS * done["argument"] + DELAY_REST).all()


def test_pins_agree_with_calls_and_with_counted_code():
    """PB4 rises at the end of SBI, then come two LDI, the call, the function and CBI."""
    seen = probe()
    figures, pairs = between(
        seen, read_point("PB4+", seen.program), read_point("PB4-", seen.program)
    )
    high = pairs[:, 1] - pairs[:, 0]
    assert figures["cycles"]["count"] == len(high) > 60
    inside = np.array(
        [
            seen.served[
                (seen.served[:, Served.TAKEN] >= a) & (seen.served[:, Served.TAKEN] < b), Served.OWN
            ].sum()
            for a, b in pairs
        ]
    )
    alone = high - inside  # without interrupts that fell into it
    measured = alone[: len(alone) // 9 * 9].reshape(-1, 9)
    assert (measured[:, 0] == SBI).all()
    for column, ms in ((1, 1), (2, 10), (3, 100)):
        counted = 2 * LDI + CALL + DELAY_MS * ms + DELAY_REST + SBI
        assert (measured[:, column] == counted).all(), ms
    crc = rows(function_rows)["message_crc"]["inclusive"]
    assert crc["min"] == crc["max"] == 155  # avr-objdump: 10 bytes of 14 cycles, and the rest
    assert (measured[:, 8] == 155 + 2 * LDI + CALL + 2 * 2 + SBI).all()


def test_the_frame_takes_what_the_transmitter_says():
    """firmware/kilolib/transmit.S: last stop bit 34968 cycles after the first pulse."""
    seen = probe()
    edges = seen.pin_edges("PB0")
    rises = edges[edges[:, 1] == 1, 0]
    frame = rises[rises < rises[0] + 40_000]
    assert frame[-1] - frame[0] == 34_968
    sending = rows(function_rows)["kilo_message_send"]["inclusive"]
    assert sending["min"] == sending["max"] == 35_263


def test_interrupts_by_hand():
    """A start bit by firmware/kilolib/receive.S, with entry and the vector's jump."""
    found = {row["name"]: row for row in vector_rows(probe())}
    start_bit = 3 + 3 + 2 + 1 + 2 + 2 + 1 + 1 + 2 + 2 + 2 + 2 + 4
    assert found["ANALOG_COMP"]["duration"]["min"] == start_bit
    assert found["ANALOG_COMP"]["handler"] == "__vector_23"
    ticks = found["TIMER0_COMPA"]
    assert ticks["per_second"] == pytest.approx(8e6 / 262_144, rel=0.03)  # clocks differ
    for row in found.values():
        assert row["latency"]["min"] == 4
        assert row["latency"]["max"] <= 7  # no interrupt waits for another here
    served = probe().interrupts(Vector.TIMER0_COMPA)
    assert (np.diff(served[:, Served.RAISED]) == 262_144).all()


def test_who_keeps_interrupts_off():
    longest, *others = blackout_rows(probe())
    assert longest["cause"] == "interrupt TIMER0_COMPA (__vector_14)"
    assert longest["longest_cycles"] == 35_413  # a frame is sent
    assert {row["cause"] for row in others} >= {
        "start",
        "interrupt ANALOG_COMP (__vector_23)",
        "cli in kilo_read_adc",
    }


def test_every_cycle_is_accounted_for():
    seen = probe()
    assert seen.cycles.sum() == seen.length
    found = rows(function_rows)
    assert sum(row["exclusive_cycles"] for row in found.values()) == seen.length
    assert sum(row["cycles"] for row in line_rows(seen)) == seen.length
    graph = {(row["caller"], row["callee"]): row for row in call_graph(seen)}
    assert graph["kilo_start", "loop"]["calls"] == found["loop"]["calls"]
    assert graph["kilo_start", "loop"]["inclusive_cycles"] == found["loop"]["inclusive_cycles"]


def test_hot_lines_are_the_delay_loop():
    first, *_ = line_rows(probe())
    assert first["file"].endswith("util/delay_basic.h")
    assert first["function"] == "delay"


def test_between_symbols():
    """From loop to its first call of set_color: ldi and call."""
    seen = probe()
    a, b = (read_point(text, seen.program) for text in ("loop", "set_color"))
    figures, pairs = between(seen, a, b)
    assert len(pairs) == rows(function_rows)["loop"]["calls"]
    assert figures["cycles"]["min"] == LDI + CALL


def test_names_without_symbols():
    names = Names(load_program(probe().program.source.with_suffix(".hex")))
    with_symbols = Names(probe().program)
    delay = open_firmware("timing_probe").symbols.find("delay").address // 2
    assert delay in names.starts
    assert names.name(delay) == "0x0310"
    assert names.name(delay + 1) == "0x0310+0x2"
    called = {
        word for word in with_symbols.starts if with_symbols.name(word).startswith("__vector_")
    }
    assert called <= set(names.starts)
