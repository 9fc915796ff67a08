"""Variables of the firmware, looked up in the robots' memories while a run goes on.

Names and types come from the debug information of an ELF file. A robot that was given a ``.hex``
file is served by the ``.elf`` file next to it, if both hold the same program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from avrswarm.errors import AvrSwarmError, UsageError
from avrswarm.program import Program, load_program
from avrswarm.program.space import Space
from avrswarm.program.variables import Scalar
from avrswarm.scene.model import Scene


class _Group(NamedTuple):
    """Robots of one program, and where the variable lies in it."""

    robots: NDArray[np.int64]
    address: int
    dtype: np.dtype[Any]
    shift: int
    bits: int


class _Watched(NamedTuple):
    name: str
    groups: list[_Group]
    is_float: bool


class Watch:
    """The variables that a scene wants to be kept with the trajectory.

    Parameters
    ----------
    scene
        ``record.watch`` names them: ``mydata.gradient``, ``neighbours[3].dist``.
    programs
        What each robot runs. A robot whose program lacks a variable has no value for it.
    """

    def __init__(self, scene: Scene, programs: Sequence[Program]) -> None:
        self._count = len(programs)
        self._watched = []
        robots: dict[str, list[int]] = {}
        by_digest: dict[str, Program] = {}
        for number, program in enumerate(programs if scene.record.watch else ()):
            robots.setdefault(program.digest, []).append(number)
            by_digest.setdefault(program.digest, program)
        known = {digest: _with_symbols(program) for digest, program in by_digest.items()}
        for name in scene.record.watch:
            groups, reasons = [], []
            for digest, program in known.items():
                try:
                    groups.append(_locate(program, name, np.array(robots[digest])))
                except UsageError as error:
                    reasons.append(str(error))
            if not groups:
                raise scene.error("record.watch", reasons[0])
            is_float = any(group.dtype.kind == "f" for group in groups)
            self._watched.append(_Watched(name, groups, is_float))

    @property
    def fields(self) -> list[pa.Field]:
        """Columns that the trajectory gets."""
        return [
            pa.field(item.name, pa.float64() if item.is_float else pa.int64())
            for item in self._watched
        ]

    def read(self, memory: NDArray[np.uint8]) -> list[pa.Array]:
        """Return the values of all robots now, one array for each variable."""
        columns = []
        for item in self._watched:
            values = np.zeros(self._count, np.float64 if item.is_float else np.int64)
            missing = np.ones(self._count, bool)
            for group in item.groups:
                end = group.address + group.dtype.itemsize
                found = np.ascontiguousarray(memory[group.robots, group.address : end])
                numbers = found.view(group.dtype)[:, 0]
                if group.bits:
                    numbers = numbers >> group.shift & ((1 << group.bits) - 1)
                values[group.robots] = numbers
                missing[group.robots] = False
            columns.append(pa.array(values, mask=missing))
        return columns


def _locate(program: Program, name: str, robots: NDArray[np.int64]) -> _Group:
    place = program.variables.place(name)
    if place.space is not Space.DATA:
        raise UsageError(f"'{name}' lies in {place.space}, only variables in RAM can be watched")
    if not isinstance(place.type, Scalar) or not place.format:
        raise UsageError(f"'{name}' is a {place.type.name}, not a number; name a part of it")
    letter = place.format.replace("c", "B")
    return _Group(robots, place.address, np.dtype(letter), place.shift, place.bits)


def _with_symbols(program: Program) -> Program:
    """Return the program with debug information, from the ELF file beside it if need be."""
    if program.elf is not None or program.source is None:
        return program
    beside = program.source.with_suffix(".elf")
    try:
        other = load_program(beside)
    except (AvrSwarmError, OSError):
        return program
    return other if np.array_equal(other.flash, program.flash) else program
