"""Variables of the firmware, looked up in the robots' memories while a run goes on.

Names and types come from the debug information of an ELF file. A robot that was given a ``.hex``
file is served by the ``.elf`` file next to it, if both hold the same program. Each variable becomes
a column with its own type: an ``int16_t`` is a 16-bit integer there, a ``_Bool`` a truth value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from avrswarm.errors import UsageError
from avrswarm.program import Program, with_debug_information
from avrswarm.program.space import Space
from avrswarm.program.variables import Encoding, Place, Scalar
from avrswarm.scene.model import Scene


class _Group(NamedTuple):
    """Robots of one program (as places in the list of chosen ones), and where the variable lies."""

    robots: NDArray[np.int64]
    place: Place
    dtype: np.dtype[Any]


class _Watched(NamedTuple):
    name: str
    groups: list[_Group]
    dtype: np.dtype[Any]


class Watch:
    """The variables that a scene wants to be kept.

    Parameters
    ----------
    scene
        ``record.watch`` names them: ``mydata.gradient``, ``neighbours[3].dist``;
        ``record.watch_robots`` says whose, default: everybody's.
    programs
        What each robot runs. A robot whose program lacks a variable has no value for it.

    Attributes
    ----------
    robots
        The robots that are looked at.
    """

    def __init__(self, scene: Scene, programs: Sequence[Program]) -> None:
        wanted = scene.record.watch
        self.robots = _chosen(scene, len(programs)) if wanted else np.zeros(0, np.int64)
        members: dict[str, list[int]] = {}
        by_digest: dict[str, Program] = {}
        for number, robot in enumerate(self.robots.tolist()):
            program = programs[robot]
            members.setdefault(program.digest, []).append(number)
            by_digest.setdefault(program.digest, program)
        known = {digest: with_debug_information(one) for digest, one in by_digest.items()}
        self._watched = []
        for name in wanted:
            groups, reasons = [], []
            for digest, program in known.items():
                try:
                    place = locate_number(program, name)
                except UsageError as error:
                    reasons.append(str(error))
                else:
                    groups.append(_Group(np.array(members[digest]), place, dtype_of(place)))
            if not groups:
                raise scene.error("record.watch", reasons[0])
            dtype = np.result_type(*(group.dtype for group in groups))
            self._watched.append(_Watched(name, groups, dtype))

    @property
    def fields(self) -> list[pa.Field]:
        """One column for each variable."""
        return [pa.field(item.name, pa.from_numpy_dtype(item.dtype)) for item in self._watched]

    def read(self, memory: NDArray[np.uint8]) -> list[pa.Array]:
        """Return the values of the chosen robots now, one array for each variable."""
        columns = []
        for item in self._watched:
            values = np.zeros(len(self.robots), item.dtype)
            missing = np.ones(len(self.robots), bool)
            for group in item.groups:
                end = group.place.address + group.place.size
                rows = memory[self.robots[group.robots], group.place.address : end]
                values[group.robots] = _numbers(rows, group)
                missing[group.robots] = False
            columns.append(pa.array(values, mask=missing))
        return columns


def locate_number(program: Program, name: str) -> Place:
    """Return where a number in RAM lies; UsageError if that is not what the name leads to."""
    place = program.variables.place(name)
    if place.space is not Space.DATA:
        raise UsageError(f"'{name}' lies in {place.space}, only variables in RAM can be watched")
    if not isinstance(place.type, Scalar) or not place.type.is_number:
        raise UsageError(f"'{name}' is a {place.type.name}, not a number; name a part of it")
    return place


def dtype_of(place: Place) -> np.dtype[Any]:
    """Return the type of a number's column: its own, or the next larger one for 24 bits."""
    kind = place.type
    assert isinstance(kind, Scalar)
    if kind.encoding is Encoding.BOOLEAN:
        return np.dtype(np.bool_)
    if kind.encoding is Encoding.FLOAT:
        return np.dtype(kind.format)
    size = next(size for size in (1, 2, 4, 8) if size >= kind.size)
    return np.dtype(f"{'i' if kind.encoding is Encoding.SIGNED else 'u'}{size}")


def _chosen(scene: Scene, count: int) -> NDArray[np.int64]:
    robots = scene.record.watch_robots
    for robot in robots:
        if robot >= count:
            raise scene.error(
                "record.watch_robots", f"there is no robot {robot}; robots are 0 to {count - 1}"
            )
    return np.array(sorted(set(robots)) or range(count), np.int64)


def _numbers(rows: NDArray[np.uint8], group: _Group) -> NDArray[Any]:
    """Return the numbers that rows of bytes, lowest first, stand for."""
    if group.dtype.kind == "f":
        floats: NDArray[Any] = np.ascontiguousarray(rows).view(group.dtype)[:, 0]
        return floats
    place = group.place
    assert isinstance(place.type, Scalar)
    whole = np.zeros(len(rows), np.uint64)
    for number in range(rows.shape[1]):
        whole |= rows[:, number].astype(np.uint64) << np.uint64(8 * number)
    # The value's highest bit goes to the top and back down: an arithmetic shift keeps its sign.
    bits = place.bits or 8 * place.type.size
    up, down = np.uint64(64 - bits - place.shift), np.uint64(64 - bits)
    whole <<= up
    if group.dtype.kind == "i":
        return (whole.view(np.int64) >> down.astype(np.int64)).astype(group.dtype)
    return (whole >> down).astype(group.dtype)
