"""A waveform file of a real run, parsed back by a reader that knows only the format."""

import io

import pytest

from avrswarm.record.observe import Observation
from tests.chip.section11 import boot, put, put_io, sled
from tests.reference.assemble import DDRB, PORTB, TCCR1B, UBRR0L, UCSR0B, UDR0, ldi, out, sts

BIT = 64  # cycles: UBRR = 3
TXEN = 0x08


def parse(text):
    """Read a value change dump: time unit in seconds, and each signal's (time, value) list.

    Signals of a chip have plain names, those of other scopes ``scope.name``.
    """
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "fs": 1e-15}
    tokens = iter(text.split())
    unit, names, widths, changes, now = None, {}, {}, {}, None
    for token in tokens:
        if token == "$timescale":
            number, name = next(tokens), next(tokens)
            unit = int(number) * units[name]
        elif token == "$scope":
            assert next(tokens) == "module"
            scope = next(tokens)
        elif token == "$var":
            kind, width, code, name = (next(tokens) for _ in range(4))
            name = name if scope == "chip" else f"{scope}.{name}"
            assert kind == "wire"
            assert code not in names
            names[code], widths[code], changes[name] = name, int(width), []
        elif token.startswith("#"):
            assert now is None or int(token[1:]) > now
            now = int(token[1:])
        elif token[0] in "01":
            assert widths[token[1:]] == 1
            changes[names[token[1:]]].append((now, int(token[0])))
        elif token[0] == "b":
            code = next(tokens)
            assert len(token) - 1 <= widths[code]
            changes[names[code]].append((now, None if token == "bz" else int(token[1:], 2)))
    return unit, changes


def value_at(changes, time):
    return [value for at, value in changes if at <= time][-1]


@pytest.mark.parametrize("clock_hz", [8_000_000, 7_372_800])
def test_serial_bytes_are_read_back_from_the_line(clock_hz):
    chip = boot(
        put(UBRR0L, 3), put(UCSR0B, TXEN), ldi(17, 0x5A), ldi(18, 0xC3),
        sts(UDR0, 17), sts(UDR0, 18), sled(),
    )  # fmt: skip
    chip.clock_hz = clock_hz  # what the file's times are made of
    stream = io.StringIO()
    Observation(chip, vcd=stream).run(None, 30 * BIT)
    unit, changes = parse(stream.getvalue())
    cycle = 1 / clock_hz / unit
    line = changes["PD1"]
    start = next(time for time, value in line[1:] if value == 0)
    assert round(start / cycle) == 3 + 3 + 1 + 1 + 2  # where the write of UDR0 lands
    middles = [value_at(line, start + (n + 0.5) * BIT * cycle) for n in range(21)]
    frames = [middles[0:10], middles[10:20]]
    assert [(bits[0], bits[9]) for bits in frames] == [(0, 1), (0, 1)]
    assert [sum(bit << n for n, bit in enumerate(bits[1:9])) for bits in frames] == [0x5A, 0xC3]
    assert middles[20] == 1


def test_pins_and_registers_to_the_cycle():
    chip = boot(
        put_io(DDRB, 0x21), ldi(16, 0x01), ldi(17, 0x20), ldi(18, 0x00),
        out(PORTB, 16), out(PORTB, 17), out(PORTB, 18), put(TCCR1B, 1), sled(),
    )  # fmt: skip
    stream = io.StringIO()
    Observation(chip, vcd=stream, vcd_registers=["PORTB", "TCNT1"]).run(None, 40)
    unit, changes = parse(stream.getvalue())
    cycles = {
        name: [(round(time * unit * 8_000_000), value) for time, value in found]
        for name, found in changes.items()
    }
    assert cycles["PB0"] == [(0, 0), (6, 1), (7, 0)]
    assert cycles["PB5"] == [(0, 0), (7, 1), (8, 0)]
    assert cycles["PORTB"] == [(0, 0), (6, 0x01), (7, 0x20), (8, 0x00)]
    counts = cycles["TCNT1"]
    assert counts[0] == (0, 0)
    assert counts[1:4] == [(12, 1), (13, 2), (14, 3)]  # TCCR1B lands at 11, first count at 12
