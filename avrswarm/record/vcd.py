"""Waveforms as a value change dump (IEEE 1364, section 18), which GTKWave and PulseView open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import groupby
from typing import TextIO

_FIRST_CODE, _CODES = 33, 94  # identifier codes are made of the printable ASCII characters


class VcdWriter:
    """Writes changes of named signals, in order of time.

    Parameters
    ----------
    stream
        Where the text goes; the caller closes it.
    clock_hz
        Nominal frequency that turns cycles into time; changes by OSCCAL or CLKPR are not followed.
        Time is in nanoseconds where a cycle is a whole number of them, otherwise in picoseconds.
    widths
        Name and number of bits of each signal, in the order a viewer shall list them. What stands
        before a dot is the scope that the signal is shown in; default: chip.
    """

    def __init__(self, stream: TextIO, clock_hz: float, widths: Mapping[str, int]) -> None:
        self._stream = stream
        nanoseconds = Fraction(10**9) / Fraction(clock_hz)
        is_whole = nanoseconds.denominator == 1
        self._per_cycle, unit = (nanoseconds, "ns") if is_whole else (1000 * nanoseconds, "ps")
        self._widths = dict(widths)
        self._codes = {name: _code(number) for number, name in enumerate(self._widths)}
        self._values: dict[str, int | None] = {}
        self._time = -1
        stream.write(f"$version avrswarm $end\n$timescale 1 {unit} $end\n")
        for scope, names in groupby(self._widths, key=_scope):
            stream.write(f"$scope module {scope} $end\n")
            for name in names:
                shown = name.rpartition(".")[2]
                stream.write(f"$var wire {self._widths[name]} {self._codes[name]} {shown} $end\n")
            stream.write("$upscope $end\n")
        stream.write("$enddefinitions $end\n")

    def update(self, cycle: int, values: Iterable[tuple[str, int | None]]) -> None:
        """Write what differs from the values written before; cycles must not go back.

        None is a signal that has no value then (z).
        """
        changes = [
            (name, value)
            for name, value in values
            if name not in self._values or self._values[name] != value
        ]
        if changes:
            self._advance(cycle)
        for name, value in changes:
            self._values[name] = value
            code = self._codes[name]
            digits = "z" if value is None else f"{value:b}"
            is_wire = self._widths[name] == 1
            self._stream.write(f"{digits}{code}\n" if is_wire else f"b{digits} {code}\n")

    def finish(self, cycle: int) -> None:
        """Write the end of the observed time, so that a viewer shows the last values too."""
        self._advance(cycle)

    def _advance(self, cycle: int) -> None:
        time = int(cycle * self._per_cycle)
        if time < self._time:
            raise ValueError(f"cycle {cycle} comes after time {self._time}")
        if time > self._time:
            self._stream.write(f"#{time}\n")
            self._time = time


def _scope(name: str) -> str:
    return name.rpartition(".")[0] or "chip"


def _code(number: int) -> str:
    code = ""
    while True:
        number, digit = divmod(number, _CODES)
        code += chr(_FIRST_CODE + digit)
        if number == 0:
            return code
        number -= 1
