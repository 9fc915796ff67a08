"""How fast are we? One chip on benchmark firmware, beside Debian's simavr on the same files.

Every figure is the best of a few repetitions, in seconds of processor time, so that other work on
the machine counts little; ratios are of one run. Programs are translated to native code before;
the plain interpreter's speed stands beside it. The benchmark programs end by themselves, asleep
with interrupts off, which simavr takes as the end too. simavr is used if it is there: nothing is
installed.
"""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from avrswarm.chip.chip import Chip, StopReason
from avrswarm.engine import Translation
from avrswarm.errors import AvrSwarmError
from avrswarm.program import Program, load_program
from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import Message, MessageType, pulse_cycles
from avrswarm.scene.shipped import shipped_folder

CLOCK_HZ = 8_000_000
_LONGEST_RUN = 1 << 34  # cycles after which a program that does not end is given up
_ENOUGH_SECONDS = 0.2  # short measurements are repeated until they take this long together

# Message receive: what a robot with 12 neighbours hears at the default rate, without collisions.
_FRAMES_PER_SECOND = 24
_RECEIVE_SECONDS = 10
_ACO_HIGH_CYCLES = 200
_AFTER_RUN_CYCLES = 4_000_000


@dataclass(frozen=True)
class Row:
    """One line of the table; None where a figure does not apply or simavr is absent."""

    name: str
    mhz: float  # emulated cycles per microsecond of processor time
    simavr_mhz: float | None
    ratio: float | None  # ours over simavr's
    realtime_factor: float
    us_per_pulse: float | None  # processor time per light pulse heard
    interpreter_mhz: float | None  # the same without translated code


@dataclass(frozen=True)
class _Case:
    name: str
    firmware: str
    skip_idle: bool = True


_CASES = (
    _Case("compute", "bench_compute"),
    _Case("idle", "bench_idle"),
    _Case("idle, skipping off", "bench_idle", skip_idle=False),
    _Case("polling", "bench_polling"),
    _Case("ADC polling", "bench_adc"),
)


def simavr_version() -> str | None:
    """Return where Debian's simavr is, or None."""
    return shutil.which("simavr")


def bench_chip(repeats: int = 3) -> Iterator[Row]:
    """Measure one chip, case by case."""
    simavr_mhz: dict[str, float] = {}
    for case in _CASES:
        path = shipped_folder("firmware") / case.firmware / f"{case.firmware}.elf"
        program = load_program(path)
        native = Translation(program.flash, wait=True)
        cycles, seconds = _run_to_end(program, case.skip_idle, native, repeats)
        _, interpreted = _run_to_end(program, case.skip_idle, None, repeats)
        if case.firmware not in simavr_mhz and simavr_version() is not None:
            simavr_mhz[case.firmware] = cycles / _simavr_seconds(str(path), repeats) / 1e6
        yield _row(
            case.name,
            cycles / seconds / 1e6,
            simavr_mhz.get(case.firmware),
            None,
            cycles / interpreted / 1e6,
        )
    yield _receive(repeats)


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what ``avrswarm bench --json`` prints."""
    return {"simavr": simavr_version() is not None, "rows": [asdict(row) for row in rows]}


def _row(
    name: str,
    mhz: float,
    simavr_mhz: float | None,
    us_per_pulse: float | None,
    interpreter_mhz: float,
) -> Row:
    ratio = None if simavr_mhz is None else mhz / simavr_mhz
    return Row(name, mhz, simavr_mhz, ratio, mhz * 1e6 / CLOCK_HZ, us_per_pulse, interpreter_mhz)


def _best(repeats: int, prepare: Callable[[], Chip], cycles: int) -> tuple[Chip, float]:
    """Run fresh chips; return the last one and the shortest processor time."""
    shortest, total, done = float("inf"), 0.0, 0
    while done < repeats or (total < _ENOUGH_SECONDS and done < 20 * repeats):
        chip = prepare()
        start = time.process_time()
        chip.run(cycles)
        seconds = max(time.process_time() - start, 1e-9)
        shortest = min(shortest, seconds)
        total += seconds
        done += 1
    return chip, shortest


def _run_to_end(
    program: Program, skip_idle: bool, native: Translation | None, repeats: int
) -> tuple[int, float]:
    def prepare() -> Chip:
        return Chip(program, stop_when_halted=True, skip_idle=skip_idle, native=native)

    prepare().run(1000)  # compiles, if that is still to be done
    chip, seconds = _best(repeats, prepare, _LONGEST_RUN)
    if chip.run(1) != StopReason.HALTED:
        raise AvrSwarmError(f"{program.name} did not end by itself; rebuild the firmware")
    return chip.cycle, seconds


def _simavr_seconds(path: str, repeats: int) -> float:
    shortest = float("inf")
    for _ in range(repeats):
        before = _children_seconds()
        subprocess.run(
            ["simavr", "-m", "atmega328p", "-f", str(CLOCK_HZ), path],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=600,
        )
        shortest = min(shortest, _children_seconds() - before)
    return shortest


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _receive(repeats: int) -> Row:
    """Measure the path pulse, comparator, interrupt, back to idle; simavr has no such input."""
    program = load_program(shipped_folder("firmware") / "listener" / "listener.elf")
    first = pulse_cycles(Message.make(MessageType.RUN).pack())
    pulses = _frames(_AFTER_RUN_CYCLES, _RECEIVE_SECONDS)

    def prepare(native: Translation | None) -> Chip:
        chip = Chip(program, eeprom=EepromMap(uid=1).pack(), native=native)
        chip.pulse_comparator([10_000 + cycle for cycle in first], _ACO_HIGH_CYCLES)
        chip.pulse_comparator(pulses, _ACO_HIGH_CYCLES)
        chip.run(_AFTER_RUN_CYCLES)
        return chip

    cycles = _RECEIVE_SECONDS * CLOCK_HZ
    native = Translation(program.flash, wait=True)
    _, seconds = _best(repeats, lambda: prepare(native), cycles)
    _, interpreted = _best(repeats, lambda: prepare(None), cycles)
    return _row(
        "message receive",
        cycles / seconds / 1e6,
        None,
        seconds / len(pulses) * 1e6,
        cycles / interpreted / 1e6,
    )


def _frames(start: int, seconds: int) -> list[int]:
    """Return pulses of frames at random times that do not overlap."""
    draw = random.Random(12)
    slot = CLOCK_HZ // _FRAMES_PER_SECOND
    pulses: list[int] = []
    for number in range(seconds * _FRAMES_PER_SECOND):
        frame = pulse_cycles(Message.make(MessageType.NORMAL, draw.randbytes(9)).pack())
        at = start + number * slot + draw.randrange(slot - frame[-1] - 1000)
        pulses += [at + cycle for cycle in frame]
    return pulses
