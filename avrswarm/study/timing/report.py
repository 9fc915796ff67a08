"""``avrswarm timing``: watch, work out, write JSON, Parquet, pictures, profiles; print tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from avrswarm.errors import RecordError, UsageError
from avrswarm.program import Program
from avrswarm.record.run_folder import make_folder
from avrswarm.scene import place_robots, read_scene
from avrswarm.study.timing import between as between_study
from avrswarm.study.timing import export, functions, interrupts, pictures, waveforms
from avrswarm.study.timing.clocks import sync_study
from avrswarm.study.timing.delays import delay_study
from avrswarm.study.timing.names import Names
from avrswarm.study.timing.observe import (
    ALL_PINS,
    Observed,
    is_kilobot,
    table_scene,
    watch_chip,
    watch_robots,
)
from avrswarm.swarm.simulation import Simulation
from avrswarm.swarm.warm_up import compile_swarm


@dataclass(frozen=True)
class Wanted:
    """What shall be watched, and for how long."""

    program: Program
    seconds: float
    skip_s: float = 0.0
    scene: str | None = None
    robots: tuple[int, ...] = ()
    overrides: tuple[str, ...] = ()
    seed: int | None = None
    bare: bool = False  # a chip without a board, even if it listens as Kilobots do
    between: tuple[str, str] | None = None
    pins: tuple[str, ...] = ()
    vcd: str | None = None
    out: str | None = None


def profile(wanted: Wanted) -> dict[str, Any]:
    """Watch, write everything into a folder, and return all figures as plain data."""
    points = [between_study.read_point(text, wanted.program) for text in wanted.between or ()]
    pins = _check_pins(wanted.pins)
    if wanted.vcd is not None and not Path(wanted.vcd).absolute().parent.is_dir():
        raise RecordError(f"{wanted.vcd}: cannot be written: there is no such folder")
    seen = watch(wanted, points, pins)
    folder = _folder(wanted, "timing")
    found: dict[str, Any] = {
        **_about(wanted, folder),
        "scene": wanted.scene,
        "watched": [_profile_one(one, folder, points, len(seen) > 1) for one in seen],
    }
    if wanted.vcd is not None:
        try:
            with open(wanted.vcd, "w", encoding="utf-8") as stream:
                waveforms.write_waveforms(stream, seen, pins)
        except OSError as error:
            raise RecordError(f"{wanted.vcd}: cannot be written: {error.strerror}") from None
        found["vcd"] = wanted.vcd
    write_json(folder / "timing.json", found)
    return found


def delays(wanted: Wanted, neighbours: Sequence[int]) -> dict[str, Any]:
    """Measure delays and interrupt load with these numbers of neighbours; write and return it."""
    compile_swarm()
    found = delay_study(wanted.program, neighbours, wanted.seconds, wanted.seed or 1)
    columns = found.pop("columns")
    folder = _folder(wanted, "delay")
    found = {**_about(wanted, folder), **found}
    write_table(folder / "delays.parquet", columns)
    found["picture"] = str(
        pictures.save(folder / "delays.png", lambda: pictures.draw_delays(found))
    )
    write_json(folder / "delays.json", found)
    return found


def sync(wanted: Wanted, hops: int, lines: int) -> dict[str, Any]:
    """Measure clocks, message times and handed-on time in lines of robots; write and return it."""
    compile_swarm()
    found = sync_study(wanted.program, hops + 1, wanted.seconds, lines, wanted.seed or 1)
    samples = found.pop("samples")
    folder = _folder(wanted, "sync")
    found = {**_about(wanted, folder), **found}
    write_table(folder / "clocks.parquet", samples)
    found["picture"] = str(
        pictures.save(folder / "sync.png", lambda: pictures.draw_sync(found, samples))
    )
    write_json(folder / "sync.json", found)
    return found


def _folder(wanted: Wanted, study: str) -> Path:
    name = f"{study}_{wanted.program.source.stem if wanted.program.source else 'program'}"
    return make_folder(Path(wanted.out) if wanted.out else None, name)


def _about(wanted: Wanted, folder: Path) -> dict[str, Any]:
    return {
        "firmware": wanted.program.name,
        "digest": wanted.program.digest,
        "folder": str(folder),
    }


def watch(
    wanted: Wanted, points: Sequence[between_study.Point], pins: Sequence[str]
) -> list[Observed]:
    """Watch a chip alone, a robot alone, or robots of a scene."""
    watched_pins = [point.pin for point in points if point.pin]
    if wanted.vcd is not None:
        watched_pins += waveforms.needed_pins(pins)
    # A pin has no word; -1 keeps the numbers of the points in order and is never passed.
    words = [-1 if point.word is None else point.word for point in points]
    look: dict[str, Any] = {"points": words, "pins": list(dict.fromkeys(watched_pins))}
    program = wanted.program
    if wanted.scene is None and (wanted.bare or not is_kilobot(program)):
        return [watch_chip(program, wanted.seconds, wanted.skip_s, **look)]
    compile_swarm()
    robots = wanted.robots or (0,)
    simulation = _simulation(wanted, robots)
    return watch_robots(
        simulation, robots, wanted.seconds, wanted.skip_s, names=Names(program), **look
    )


def _simulation(wanted: Wanted, robots: Sequence[int]) -> Simulation:
    path = wanted.program.source
    assert path is not None
    if wanted.scene is None:
        return Simulation(table_scene(path, seed=wanted.seed or 1))
    scene = read_scene(wanted.scene, wanted.overrides)
    group = place_robots(scene).group
    changes = list(wanted.overrides)
    for robot in robots:
        if not 0 <= robot < len(group):
            raise UsageError(
                f"{wanted.scene}: there is no robot {robot}: they are 0 to {len(group) - 1}"
            )
        changes.append(f"robots.{group[robot]}.firmware={path.resolve()}")
    return Simulation(read_scene(wanted.scene, changes), wanted.seed)


def _check_pins(names: Sequence[str]) -> list[str]:
    pins = [name.strip().upper() for name in names]
    for pin in pins:
        if pin not in ALL_PINS:
            raise UsageError(f"no pin '{pin}'; pins are PB0-PB7, PC0-PC6 and PD0-PD7")
    return pins


def _profile_one(
    seen: Observed, folder: Path, points: Sequence[between_study.Point], many: bool
) -> dict[str, Any]:
    """Work out and write everything about one chip."""
    place = folder / seen.label.replace(" ", "_") if many else folder
    place.mkdir(exist_ok=True)
    rows = functions.function_rows(seen)
    vectors = interrupts.vector_rows(seen)
    found: dict[str, Any] = {
        "label": seen.label,
        "cycles": seen.length,
        "seconds": seen.seconds,
        "asleep_cycles": seen.asleep,
        "calls_not_followed": seen.too_deep,
        "functions": rows,
        "call_graph": functions.call_graph(seen),
        "lines": functions.line_rows(seen),
        "interrupts": vectors,
        "interrupts_off": interrupts.blackout_rows(seen),
    }
    seen.calls.write(place / "calls.parquet")
    found["calls_table"] = {"calls": seen.calls.listed, "of": seen.calls.count}
    write_table(place / "interrupts.parquet", interrupts.served_columns(seen))
    found["speedscope"] = export.write_speedscope(seen, place / "profile.speedscope.json")
    export.write_callgrind(seen, place / "callgrind.out.avrswarm")
    found["picture"] = str(
        pictures.save(place / "timing.png", lambda: pictures.draw_profile(seen, rows, vectors))
    )
    if points:
        figures, pairs = between_study.between(seen, *points)
        found["between"] = figures
        write_table(place / "between.parquet", {"from_cycle": pairs[:, 0], "to_cycle": pairs[:, 1]})
        if len(pairs):
            found["between_picture"] = str(
                pictures.save(
                    place / "between.png",
                    lambda: pictures.draw_between(figures, pairs, seen.label),
                )
            )
    return found


def write_table(path: Path, columns: dict[str, Any]) -> None:
    """Write columns as a Parquet file."""
    pq.write_table(pa.table({name: pa.array(v) for name, v in columns.items()}), path)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write plain data as a JSON file."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


# ---- tables --------------------------------------------------------------------------------------


def profile_tables(found: dict[str, Any], top: int) -> Group:
    """Return the figures of ``profile`` as tables to print."""
    parts: list[Any] = []
    for one in found["watched"]:
        asleep = f", asleep for {one['asleep_cycles']:,}" if one["asleep_cycles"] else ""
        parts.append(f"{one['label']}: {one['seconds']:.4g} s, {one['cycles']:,} cycles{asleep}")
        parts.append(_function_table(one["functions"], top))
        parts.append(_call_table(one["call_graph"], top))
        parts.append(_line_table(one["lines"], top))
        parts.append(_vector_table(one["interrupts"]))
        parts.append(_off_table(one["interrupts_off"], top))
        if "between" in one:
            parts.append(_between_text(one["between"]))
        parts += [
            _cut_text(file, one[file])
            for file in ("speedscope", "calls_table")
            if one[file]["calls"] < one[file]["of"]
        ]
    return Group(*parts)


def new_table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    """Return a table with columns of text on the left and numbers on the right."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for text in texts:
        table.add_column(text, overflow="fold", min_width=12)
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    return table


def whole(value: float | None) -> str:
    """Return a number of cycles for people."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def spread_cells(figures: dict[str, Any] | None) -> list[str]:
    """Return least, median and greatest."""
    if figures is None:
        return ["-"] * 3
    return [whole(figures[name]) for name in ("min", "median", "max")]


def _function_table(rows: Sequence[dict[str, Any]], top: int) -> Table:
    numbers = ("calls", "own %", "own", "interrupts", "min", "median", "max")
    title = "functions: own cycles; interrupts meanwhile; one call, without interrupts"
    table = new_table(title, ["function"], numbers)
    for row in rows[:top]:
        table.add_row(
            row["function"],
            whole(row["calls"]) + ("*" if row["unfinished"] else ""),
            f"{100 * row['exclusive_share']:.3f}",
            whole(row["exclusive_cycles"]),
            whole(row["interrupted_cycles"]),
            *spread_cells(row["inclusive"]),
        )
    if any(row["unfinished"] for row in rows[:top]):
        table.caption = "* some of them not seen from beginning to end"
    return table


def _call_table(rows: Sequence[dict[str, Any]], top: int) -> Table:
    table = new_table("who calls whom", ["caller", "callee"], ("calls", "cycles"))
    for row in rows[:top]:
        cycles = whole(row["inclusive_cycles"])
        table.add_row(row["caller"], row["callee"], whole(row["calls"]), cycles)
    return table


def _line_table(rows: Sequence[dict[str, Any]], top: int) -> Table:
    table = new_table("hot lines", ["line", "function"], ("cycles", "%", "times"))
    for row in rows[:top]:
        table.add_row(
            f"{row['address']:#06x}" if row["file"] is None else f"{row['file']}:{row['line']}",
            row["function"],
            whole(row["cycles"]),
            f"{100 * row['share']:.3f}",
            whole(row["executions"]),
        )
    return table


def _vector_table(rows: Sequence[dict[str, Any]]) -> Table:
    names = ("count", "per s", "load %", "latency", "median", "max", "lasts", "median", "max")
    table = new_table(
        "interrupts: cycles from flag to first instruction, and from entry to RETI",
        ["vector"],
        names,
    )
    for row in rows:
        table.add_row(
            row["name"],
            whole(row["count"]),
            f"{row['per_second']:.1f}",
            f"{100 * row['load']:.3f}",
            *spread_cells(row["latency"]),
            *spread_cells(row["duration"]),
        )
    return table


def _off_table(rows: Sequence[dict[str, Any]], top: int) -> Table:
    names = ("times", "longest", "at cycle", "in all", "%")
    table = new_table("interrupts switched off, in cycles", ["because of"], names)
    for row in rows[:top]:
        table.add_row(
            row["cause"],
            whole(row["count"]) + ("*" if row["unfinished"] else ""),
            whole(row["longest_cycles"]),
            whole(row["longest_at_cycle"]),
            whole(row["total_cycles"]),
            f"{100 * row['share']:.3f}",
        )
    if any(row["unfinished"] for row in rows[:top]):
        table.caption = "* the last of them had not ended"
    return table


def _cut_text(file: str, figures: dict[str, int]) -> str:
    """Say that a file has not all calls."""
    names = {"speedscope": "profile.speedscope.json", "calls_table": "calls.parquet"}
    share = f"the first {figures['calls']:,} of {figures['of']:,} calls"
    end = f", up to cycle {figures['to_cycle']:,}" if "to_cycle" in figures else ""
    return f"{names[file]} has {share}{end}; all figures have all of them."


def _between_text(figures: dict[str, Any]) -> str:
    route = f"{figures['from']} to {figures['to']}"
    if figures["cycles"] is None:
        return (
            f"{route}: never ({figures['from']} happened {figures['times_from']} times,"
            f" {figures['to']} {figures['times_to']} times)"
        )
    least, median, greatest = spread_cells(figures["cycles"])
    count = figures["cycles"]["count"]
    return f"{route}: {count:,} times, {least} to {greatest} cycles, median {median}"


def delay_tables(found: dict[str, Any]) -> Group:
    """Return the figures of ``delays`` as tables to print."""
    columns = (
        "k",
        "times",
        "nominal ms",
        "mean ms",
        "max ms",
        "longer %",
        "code %",
        "most %",
    )
    table = new_table(
        "delays among k neighbours, in true time; how much longer, by code, at most",
        ["wait"],
        columns,
    )
    load = new_table(
        "interrupt load",
        [],
        ("k", "kcycles/s", "% of time", "comparator/s", "sends/s", "others/s", "on air %"),
    )
    ticks = new_table(
        "kilo_ticks", [], ("k", "ticks", "extra", "error ms", "error ppm", "clock ppm")
    )
    for case in found["cases"]:
        count = str(case["neighbours"])
        for row in case["delays"]:
            table.add_row(
                row["wait"],
                count,
                whole(row["count"]),
                f"{row['nominal_ms']:.5g}" + ("*" if row["nominal_is"] == "counted" else ""),
                f"{row['real_ms']['mean']:.3f}",
                f"{row['real_ms']['max']:.3f}",
                f"{row['longer_percent']['mean']:.3f}",
                f"{row['of_that_code_percent']:.3f}",
                f"{row['longer_percent']['max']:.2f}",
            )
        talk = case["load"]
        load.add_row(
            count,
            f"{talk['kilocycles_per_second']:.1f}",
            f"{talk['percent']:.2f}",
            f"{talk['comparator_per_second']:.0f}",
            f"{talk['own_messages_per_second']:.2f}",
            f"{talk['neighbours_messages_per_second']:.2f}",
            f"{talk['airtime_percent']:.2f}",
        )
        told = case["ticks"]
        if told is not None:
            ticks.add_row(
                count,
                whole(told["ticks"]),
                f"{told['extra_ticks']:+d}",
                f"{told['error_ms']:+.3f}",
                f"{told['error_ppm']:+.0f}",
                f"{case['clock_ppm']:+.0f}",
            )
    kinds = {row["nominal_is"] for case in found["cases"] for row in case["delays"]}
    if "counted" in kinds:
        table.caption = "* not asked for, but counted from the loop's own cycles"
    parts: list[Any] = [table if kinds else "No delay or busy wait was seen to end.", load]
    parts.append(ticks if ticks.row_count else "The program has no kilo_ticks to look at.")
    if found["note"] is not None:
        parts.append(f"{found['note']}.")
    return Group(*parts)


def sync_tables(found: dict[str, Any]) -> Group:
    """Return the figures of ``sync`` as tables to print."""
    table = new_table(
        f"{found['lines']} lines of {found['robots']} robots, {found['seconds']:g} s each",
        ["what"],
        ("min", "median", "max"),
    )
    messages, drift = found["messages"], found["drift"]
    for name, figures, form in (
        ("clock against 8 MHz (ppm)", drift["ppm"], ".0f"),
        ("between two robots (ppm)", drift["pair_ppm"], ".0f"),
        ("between two robots (ms per minute)", drift["pair_ms_per_minute"], ".1f"),
        ("from frame to frame (ms)", messages["interval_ms"], ".3f"),
        ("a frame later than usual (ms)", messages["interval_jitter_ms"], ".3f"),
        ("from last pulse to a neighbour's comparator (us)", messages["arrival_us"], ".3f"),
    ):
        if figures is not None:
            table.add_row(name, *(format(figures[key], form) for key in ("min", "median", "max")))
    if found["sync"] is None:
        return Group(table, "The firmware has no sync_offset and sync_hops: no time is handed on.")
    errors = new_table(
        "time handed on from robot 0, error in us; |error| is without its sign",
        [],
        ("hops", "samples", "mean error", "median |error|", "rms", "max |error|"),
    )
    for row in found["sync"]["by_hop"]:
        names = ("mean_us", "median_absolute_us", "rms_us", "max_absolute_us")
        cells = (f"{row[name]:.0f}" for name in names)
        errors.add_row(str(row["hops"]), str(row["samples"]), *cells)
    return Group(
        table,
        errors,
        _growth_text("Root mean squares", found["sync"]["growth"]),
        _growth_text("Medians of absolute errors", found["sync"]["growth_of_median"]),
    )


def _growth_text(what: str, growth: dict[str, Any] | None) -> str:
    if growth is None:
        return f"{what}: too few hops to tell how they grow."
    words = {"sqrt": "the square root of hops", "linear": "hops"}
    off = " and ".join(f"{words[name]} {100 * growth[name]['off']:.0f} %" for name in words)
    return (
        f"{what} grow as hops^{growth['free']['exponent']:.2f}; closer to {words[growth['closer']]}"
        f" (off by: {off})."
    )


def written(found: dict[str, Any]) -> str:
    """Say where the files are."""
    return f"Pictures, tables and profiles for viewers are in {found['folder']}."
