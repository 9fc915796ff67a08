"""Watching a chip alone, or robots of a scene, and keeping what was seen as arrays.

A robot of a scene is watched beside the swarm: each window is run again for it alone, from the same
state with the same light, instruction by instruction, and must end in the same state to the last
bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.chip import Chip
from avrswarm.chip.profile import LISTS, Count, Served, finish, make_ledger
from avrswarm.chip.state import TIME_UNITS_PER_SECOND, Log
from avrswarm.errors import ChipFault, UsageError
from avrswarm.jit import announce_compilation
from avrswarm.program import Program
from avrswarm.program.space import Space
from avrswarm.scene import Scene
from avrswarm.scene.read import check_scene
from avrswarm.study.firmware import vectors_in_use
from avrswarm.study.timing.calls import Calls
from avrswarm.study.timing.names import Names
from avrswarm.swarm.simulation import Simulation, Witnessed

Integers = NDArray[np.int64]

RUN_AT_S = 0.05
"""When the overhead controller starts a robot that is watched alone."""
ALL_PINS = tuple(
    f"P{port}{bit}" for port, bits in {"B": 8, "C": 7, "D": 8}.items() for bit in range(bits)
)
TICKS, SYNC_OFFSET, SYNC_HOPS = "kilo_ticks", "sync_offset", "sync_hops"
_BYTES = {TICKS: 4, SYNC_OFFSET: 4, SYNC_HOPS: 1}
"""Sizes of variables, for symbol files that do not tell them."""
_PORTS = {"B": Log.PORTB, "C": Log.PORTC, "D": Log.PORTD}


@dataclass(frozen=True)
class Observed:
    """What was seen of one chip. Lists have the columns of ``avrswarm.chip.profile``."""

    names: Names
    label: str
    clock_hz: float
    calls: Calls
    served: Integers
    blackouts: Integers
    waits: Integers
    passes: Integers
    edges: Integers
    cycles: Integers
    executions: Integers
    first_cycle: int
    last_cycle: int
    asleep: int
    too_deep: int
    clock: Integers  # rows of first cycle, world time then, time units per cycle
    light: Integers  # rows of world time and level: the comparator's output
    pins_before: dict[str, int]
    data_before: NDArray[np.uint8]
    data_after: NDArray[np.uint8]

    @property
    def program(self) -> Program:
        """What ran."""
        return self.names.program

    @property
    def length(self) -> int:
        """Cycles that were watched."""
        return self.last_cycle - self.first_cycle

    @property
    def seconds(self) -> float:
        """World time that was watched."""
        first, last = self.times(np.array([self.first_cycle, self.last_cycle]))
        return float(last - first) / TIME_UNITS_PER_SECOND

    def times(self, cycles: Integers) -> Integers:
        """Return the world time, in units, at which cycles begin."""
        piece = np.searchsorted(self.clock[:, 0], cycles, side="right") - 1
        first, time, period = self.clock[np.maximum(piece, 0)].T
        when: Integers = time + (cycles - first) * period
        return when

    def variable(self, name: str, after: bool = True) -> int | None:
        """Return an unsigned variable of the program when watching ended, or began.

        None if the program has no symbol of that name.
        """
        place = place_of(self.program, name)
        if place is None:
            return None
        data = self.data_after if after else self.data_before
        return int.from_bytes(data[place].tobytes(), "little")

    def interrupts(self, vector: int) -> Integers:
        """Return the interrupts of one vector."""
        mine: Integers = self.served[self.served[:, Served.VECTOR] == vector]
        return mine

    def pin_edges(self, pin: str) -> Integers:
        """Return rows of cycle and new level of a pin that was watched."""
        bit = int(pin[2])
        port = self.edges[(self.edges >> 8 & 0xFF) == _PORTS[pin[1]]]
        level = port >> bit & 1
        before = np.concatenate([[self.pins_before[pin]], level[:-1]])
        rows: Integers = np.column_stack([port >> 16, level])[level != before]
        return rows

    def uart(self) -> Integers:
        """Return rows of cycle and byte that the serial port sent."""
        sent = self.edges[(self.edges >> 8 & 0xFF) == Log.UART]
        return np.column_stack([sent >> 16, sent & 0xFF])


@dataclass
class Watching:
    """Collects what is seen of one chip."""

    names: Names
    label: str
    points: Sequence[int] = ()  # word addresses whose passing is noted; -1 for none
    pins: Sequence[str] = ()
    _parts: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in LISTS if name != "calls"}
    )
    _clock: list[tuple[int, int, int]] = field(default_factory=list)
    _light: list[Integers] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ledger = make_ledger([0, *self.names.starts])
        self._calls = Calls(self.names)
        for number, word in enumerate(self.points):
            if word >= 0:
                self._ledger.points[word] |= 1 << number
        self._first: int | None = None

    def prepare(self, chip: Chip) -> None:
        """Let a chip tell about the pins, before anything runs."""
        if self.pins:
            chip.watch_pins(*self.pins)

    def run(self, chip: Chip, stop: int) -> None:
        """Watch a chip until cycle ``stop``, or world time for a robot of a scene."""
        if self._first is None:
            self._first = chip.cycle
            self._data_before = chip.data
            self._pins_before = {pin: chip.pin(pin) for pin in self.pins}
        self._note_clock(chip)
        while not chip.run_watched(stop, self._ledger):
            self._drain()
        self._chip = chip

    def notice(self, seen: Witnessed) -> None:
        """Watch what a robot of a scene did in a window."""
        light = seen.tape[:, [0, 2]]
        self._light.append(light)
        self.run(seen.before, seen.end)
        same = seen.before.digest() == seen.after.digest()
        assert same, f"{self.label}: watched, it comes to another state at cycle {seen.after.cycle}"

    def result(self) -> Observed:
        """Return all that was seen."""
        if self._first is None or self._chip.cycle == self._first:
            raise UsageError(
                f"{self.label}: was not switched on in the time that was watched: watch it longer"
            )
        ledger, chip = self._ledger, self._chip
        finish(ledger, chip.cycle)
        self._drain()
        self._calls.close()
        lists = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        lists["edges"] = np.sort(lists["edges"])  # the cycle is in the upper bits
        light = np.concatenate([*self._light, np.zeros((0, 2), np.int64)])
        return Observed(
            names=self.names,
            label=self.label,
            clock_hz=chip.clock_hz,
            calls=self._calls,
            **lists,
            cycles=ledger.cycles,
            executions=ledger.executions,
            first_cycle=self._first,
            last_cycle=chip.cycle,
            asleep=int(ledger.counts[Count.ASLEEP]),
            too_deep=int(ledger.counts[Count.TOO_DEEP]),
            clock=np.array(self._clock, np.int64),
            light=np.unique(light, axis=0),
            pins_before=self._pins_before,
            data_before=self._data_before,
            data_after=chip.data,
        )

    def _note_clock(self, chip: Chip) -> None:
        now = chip.cycle
        time = chip.time_of(now)
        period = chip.time_of(now + 1) - time
        last = self._clock[-1] if self._clock else (0, -1, 0)
        if period != last[2] or time != last[1] + (now - last[0]) * period:
            self._clock.append((now, time, period))

    def _drain(self) -> None:
        ledger = self._ledger
        for number, name in enumerate(LISTS):
            rows = int(ledger.counts[number])
            if name == "calls":
                self._calls.add(ledger.calls[:rows])
            else:
                self._parts[name].append(getattr(ledger, name)[:rows].copy())
            ledger.counts[number] = 0


def watch_chip(
    program: Program,
    seconds: float,
    skip_s: float = 0.0,
    *,
    clock_hz: float = 8_000_000,
    points: Sequence[int] = (),
    pins: Sequence[str] = (),
) -> Observed:
    """Watch a chip without a world for ``seconds``, after ``skip_s`` in which nobody looks."""
    watching = Watching(Names(program), "alone", points, pins)
    with announce_compilation("profile.observe"):
        chip = Chip(program, clock_hz)
        watching.prepare(chip)
        if skip_s > 0:
            chip.run(cycles=round(skip_s * clock_hz))
        watching.run(chip, round((skip_s + seconds) * clock_hz))
    return watching.result()


def watch_robots(
    simulation: Simulation,
    robots: Sequence[int],
    seconds: float,
    skip_s: float = 0.0,
    *,
    names: Names | None = None,
    points: Sequence[int] = (),
    pins: Sequence[str] = (),
    on_step: Callable[[Simulation], object] | None = None,
) -> list[Observed]:
    """Watch robots of a swarm for ``seconds``, after ``skip_s`` in which nobody looks.

    ``names`` are used for all of them; default: what their own programs have. ``on_step`` is called
    after every step of the world in the time that is watched.
    """
    watchings = []
    for robot in robots:
        simulation.check_robot(robot)
        one = simulation.robots[robot]
        watchings.append(Watching(names or Names(one.program), f"robot {robot}", points, pins))
        watchings[-1].prepare(one.chip)
    if skip_s > 0:
        simulation.run(seconds=skip_s)
    for robot, watching in zip(robots, watchings, strict=True):
        simulation.witness(robot, watching.notice)
    with announce_compilation("profile.observe"):
        simulation.run(seconds=seconds, on_step=on_step)
    for robot, message in simulation.faults:
        if robot in robots:
            raise ChipFault(message)
    return [watching.result() for watching in watchings]


def place_of(program: Program, name: str) -> slice | None:
    """Return where one of ``_BYTES`` lies in the data space; None if there is no such symbol."""
    symbol = program.symbols.find(name, Space.DATA)
    if symbol is None:
        return None
    return slice(symbol.address, symbol.address + (symbol.size or _BYTES[name]))


def is_kilobot(program: Program) -> bool:
    """Tell whether a program listens to infrared as Kilobots do: it handles the comparator."""
    return any(vector.name == "ANALOG_COMP" for vector in vectors_in_use(program))


def table_scene(
    firmware: Path, count: int = 1, seed: int = 1, pitch_mm: float = 34.0, **sections: Any
) -> Scene:
    """Return a scene of ``count`` robots, close together, that hear each other without noise.

    The first one is in the middle; all are started soon after they were switched on.
    """
    content: dict[str, Any] = {
        "scene": {"name": firmware.stem, "seed": seed},
        "arena": {"shape": "open"},
        "robots": [
            {
                "firmware": str(firmware.resolve()),
                "count": count,
                "placement": {"kind": "hex", "pitch_mm": pitch_mm},
            }
        ],
        "optics": {"preset": "ideal", "range_mm": 300.0},
        "spread": {"start_delay_s": RUN_AT_S / 2 if count == 1 else 0.5},
        "controller": [
            {"at_s": RUN_AT_S if count == 1 else 0.5 + RUN_AT_S, "command": "run"},
        ],
    }
    return check_scene(content | sections, firmware)
