import io

import pytest

from avrswarm.record.vcd import VcdWriter


def test_only_changes_are_written():
    stream = io.StringIO()
    vcd = VcdWriter(stream, 8_000_000, {"PB0": 1, "TCNT1": 16})
    vcd.update(0, [("PB0", 0), ("TCNT1", 0)])
    vcd.update(1, [("PB0", 0), ("TCNT1", 0)])
    vcd.update(2, [("PB0", 1), ("TCNT1", 0)])
    vcd.update(2, [("TCNT1", 0x105)])
    vcd.finish(4)
    header, _, body = stream.getvalue().partition("$enddefinitions $end\n")
    assert "$timescale 1 ns $end" in header
    assert "$var wire 1 ! PB0 $end" in header
    assert '$var wire 16 " TCNT1 $end' in header
    assert body.split("\n") == ["#0", "0!", 'b0 "', "#250", "1!", 'b100000101 "', "#500", ""]


def test_clock_that_is_no_whole_number_of_nanoseconds():
    stream = io.StringIO()
    vcd = VcdWriter(stream, 16_000_000, {"PB0": 1})
    vcd.update(1, [("PB0", 1)])
    assert "$timescale 1 ps $end" in stream.getvalue()
    assert stream.getvalue().endswith("#62500\n1!\n")


def test_identifier_codes_are_unique_and_printable():
    stream = io.StringIO()
    VcdWriter(stream, 8_000_000, {f"signal{number}": 1 for number in range(10_000)})
    codes = [line.split()[3] for line in stream.getvalue().splitlines() if "$var" in line]
    assert len(set(codes)) == 10_000
    assert all(33 <= ord(character) <= 126 for code in codes for character in code)


def test_time_does_not_go_back():
    vcd = VcdWriter(io.StringIO(), 8_000_000, {"PB0": 1})
    vcd.update(5, [("PB0", 1)])
    with pytest.raises(ValueError, match="cycle 4"):
        vcd.update(4, [("PB0", 0)])
