"""Pictures of timing studies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, ScalarFormatter

from avrswarm.record.drawing import STYLE, new_figure
from avrswarm.study.timing.observe import Observed

FUNCTIONS_SHOWN = 14
PUBLIC_LOAD_PERCENT = ((0, 0.9), (5, 2.3), (10, 3.7), (20, 6.6), (40, 12.3))
"""Neighbours, and the interrupt load of the public Kilobot library (hardware reference 4.4)."""
PLAIN, INTERRUPT = "#4292c6", "#d55e00"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d")


def save(path: Path, draw: Callable[[], Figure]) -> Path:
    """Draw a figure in our style, and write it."""
    with rc_context(STYLE):
        draw().savefig(path, bbox_inches="tight", pad_inches=0.12)
    return path


def draw_profile(
    seen: Observed, functions: list[dict[str, Any]], vectors: list[dict[str, Any]]
) -> Figure:
    """Draw where the time went, and latency and duration of interrupts."""
    figure = new_figure(10.5, 5.0)
    places = figure.add_gridspec(2, 2, width_ratios=(1.15, 1.0))
    _draw_functions(figure.add_subplot(places[:, 0]), functions)
    above, below = (figure.add_subplot(places[row, 1]) for row in range(2))
    _draw_steps(above, vectors, "latency", "flag to first instruction (cycles)")
    _draw_steps(below, vectors, "duration", "interrupt, entry to RETI (cycles)")
    name = seen.program.source.stem if seen.program.source else "program"
    figure.suptitle(f"{name}, {seen.label}: {seen.seconds:.4g} s, {seen.length:,} cycles")
    return figure


def _draw_functions(axes: Axes, functions: list[dict[str, Any]]) -> None:
    shown = functions[:FUNCTIONS_SHOWN][::-1]
    places = np.arange(len(shown))
    shares = [100 * row["exclusive_share"] for row in shown]
    colours = [INTERRUPT if row["interrupt"] else PLAIN for row in shown]
    axes.barh(places, shares, color=colours, height=0.72)
    axes.set_yticks(places, [row["function"] for row in shown])
    axes.set_xscale("log")
    axes.set_xlabel("own time, without interrupts and called functions (%)")
    least = min((share for share in shares if share > 0), default=1e-3)
    axes.set_xlim(least / 3, 900)
    for place, row, share in zip(places.tolist(), shown, shares, strict=True):
        axes.text(
            share * 1.15, place, f"{share:.3g} %, {row['calls']:,} x", va="center", fontsize=8
        )
    axes.bar([0], [0], color=PLAIN, label="function")
    axes.bar([0], [0], color=INTERRUPT, label="interrupt handler")
    axes.legend(loc="lower right")


def _draw_steps(axes: Axes, vectors: list[dict[str, Any]], what: str, label: str) -> None:
    """Draw how many are at most so long, one line per vector."""
    for number, row in enumerate(vectors):
        if row[what] is None:
            continue
        bars = row[what]["histogram"]
        values = np.array([*bars["from"], row[what]["max"]], float)
        shares = 100 * np.cumsum([*bars["count"], 0]) / sum(bars["count"])
        colour = COLOURS[number % len(COLOURS)]
        text = f"{row['name']} ({row['count']:,})"
        axes.step(values, shares, where="post", color=colour, lw=1.6, label=text)
        axes.plot(values[0], shares[0], "o", color=colour, ms=3.5)
    axes.set_xlabel(label)
    axes.set_ylabel("at most so long (%)")
    axes.set_ylim(-3, 105)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if any(row[what] and row[what]["max"] > 20 * max(1, row[what]["min"]) for row in vectors):
        axes.set_xscale("log")
    if vectors:
        axes.legend(loc="lower right", fontsize=8)
    else:
        axes.text(0.5, 0.5, "no interrupts", transform=axes.transAxes, ha="center", color="#777777")


def draw_delays(found: dict[str, Any]) -> Figure:
    """Draw how much longer delays are, what interrupts take, and how far ticks run away."""
    figure = new_figure(11.0, 3.9)
    left, middle, right = figure.subplots(1, 3)
    cases = found["cases"]
    neighbours = [case["neighbours"] for case in cases]
    kinds = list(dict.fromkeys(row["wait"] for case in cases for row in case["delays"]))
    kinds = [kind for kind in kinds if kind.startswith("delay(")][: len(COLOURS)]
    for number, kind in enumerate(kinds):
        rows = [
            (case["neighbours"], row["longer_percent"])
            for case in cases
            for row in case["delays"]
            if row["wait"] == kind
        ]
        x = np.array([count for count, _ in rows]) + 0.35 * (number - (len(kinds) - 1) / 2)
        mean, least, most = ([row[name] for _, row in rows] for name in ("mean", "min", "max"))
        colour = COLOURS[number]
        left.vlines(x, least, most, color=colour, lw=1.0, alpha=0.6)
        left.plot(x, mean, "o-", color=colour, ms=4, lw=1.2, label=kind.replace(")", " ms)"))
    left.set_yscale("log")
    left.set_ylabel("longer than asked for (%)")
    left.set_title("delays: mean, least and most")
    least, most = left.get_ylim()
    left.set_ylim(least, 12 * most)  # room for the legend
    left.legend(loc="upper left", fontsize=8)
    _draw_load(middle, cases)
    for number, case in enumerate(cases):
        time_s, error_ms = (np.array(case["tick_error"][name]) for name in ("time_s", "error_ms"))
        against_clock = error_ms * 1000 - case["clock_ppm"] * time_s
        colour, text = COLOURS[number % len(COLOURS)], f"{case['neighbours']} neighbours"
        right.plot(time_s, against_clock, ".-", color=colour, lw=0.6, ms=3, label=text)
    right.set_xlabel("true time (s)")
    right.set_ylabel("kilo_ticks ahead of the chip's clock (us)")
    right.set_title(f"ticks (the clock itself: {cases[0]['clock_ppm']:+.0f} ppm)")
    right.legend(loc="lower right", fontsize=7)
    for axes in (left, middle):
        axes.set_xlabel("neighbours")
        axes.set_xticks(neighbours)
    return figure


def _draw_load(axes: Axes, cases: list[dict[str, Any]]) -> None:
    neighbours = np.array([case["neighbours"] for case in cases])
    vectors = list(dict.fromkeys(name for case in cases for name in case["load"]["by_vector"]))
    bottom = np.zeros(len(cases))
    width = 0.6 * min(np.diff(np.unique(neighbours)), default=2)
    for number, vector in enumerate(vectors):
        load = np.array([case["load"]["by_vector"].get(vector, 0.0) for case in cases])
        axes.bar(
            neighbours, load, width, bottom, color=COLOURS[number % len(COLOURS)], label=vector
        )
        bottom += load
    public = [(count, load) for count, load in PUBLIC_LOAD_PERCENT if count <= neighbours.max()]
    axes.plot(*zip(*public, strict=True), "k--", lw=1, label="public library, random data")
    axes.set_ylabel("time in interrupts (%)")
    axes.set_title("interrupt load")
    axes.legend(loc="upper left", fontsize=7)


def draw_sync(found: dict[str, Any], samples: dict[str, Any]) -> Figure:
    """Draw clocks that run away, times between messages, and errors against hops."""
    figure = new_figure(11.0, 3.9)
    left, middle, right = figure.subplots(1, 3)
    first = samples["line"] == samples["line"][0]
    for robot in np.unique(samples["robot"][first]).tolist():
        mine = first & (samples["robot"] == robot)
        left.plot(samples["time_s"][mine], samples["clock_ahead_ms"][mine], lw=1.0)
    left.set_xlabel("true time (s)")
    left.set_ylabel("clock ahead of true time (ms)")
    left.set_title(f"clocks of one line (deviation {found['drift']['deviation_ppm']:.0f} ppm)")
    jitter = found["messages"]["interval_jitter_ms"]
    if jitter is not None:
        bars = jitter["histogram"]
        width = min(np.diff(bars["from"]), default=1.0)
        middle.bar(bars["from"], bars["count"], width, align="edge", color=PLAIN)
        middle.set_yscale("log")
        middle.set_title(f"frames, every {found['messages']['interval_ms']['median']:.1f} ms")
    middle.set_xlabel("later than usual (ms)")
    middle.set_ylabel("frames")
    _draw_growth(right, found["sync"], found["lines"])
    return figure


def _draw_growth(axes: Axes, sync: dict[str, Any] | None, lines: int) -> None:
    axes.set_xlabel("hops from robot 0")
    axes.set_ylabel("error of handed-on time (ms)")
    if sync is None or not sync["by_hop"]:
        text = "no time is handed on"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color="#777777")
        return
    hops = np.array([row["hops"] for row in sync["by_hop"]])
    for number, (what, words) in enumerate(
        (("rms_us", "root mean square"), ("median_us", "median"))
    ):
        errors = np.array([row[what] for row in sync["by_hop"]]) / 1000
        colour = COLOURS[number]
        growth = sync["growth" if what == "rms_us" else "growth_of_median"]
        exponent = "" if growth is None else f", as n^{growth['free']['exponent']:.2f}"
        axes.plot(hops, errors, "o", color=colour, ms=5, label=f"{words}{exponent}")
        if growth is not None:
            for name, power, style in (("sqrt", 0.5, "-"), ("linear", 1.0, "--")):
                fit = growth[name]["us_at_one_hop"] / 1000 * hops**power
                axes.plot(hops, fit, style, color=colour, lw=1.0)
    axes.plot([], [], "k-", lw=1.0, label="as sqrt(n)")
    axes.plot([], [], "k--", lw=1.0, label="as n")
    axes.set_title(f"time handed on, {lines} {'line' if lines == 1 else 'lines'}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(
        hops, [str(hop) if hop in (1, 2, 3, 5, 7, 10, 15, 20, 30) else "" for hop in hops]
    )
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()
    axes.set_ylim(axes.get_ylim()[0] / 4)  # room for the legend
    axes.legend(loc="lower right", fontsize=8)


def draw_between(figures: dict[str, Any], pairs: Any, label: str) -> Figure:
    """Draw the distribution of cycles between two points."""
    figure = new_figure(6.5, 3.6)
    axes = figure.subplots()
    cycles = pairs[:, 1] - pairs[:, 0]
    different = np.unique(cycles)
    if len(different) <= 40:
        axes.vlines(
            different, 0, [np.sum(cycles == value) for value in different], lw=3, color=PLAIN
        )
    else:
        axes.hist(cycles, bins=60, color=PLAIN)
    if cycles.max() > 100 * max(1, cycles.min()):
        axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("cycles")
    axes.set_ylabel("times")
    found = figures["cycles"]
    axes.set_title(
        f"{figures['from']} to {figures['to']}, {label}: {found['min']:,} to {found['max']:,},"
        f" median {found['median']:,.6g}"
    )
    return figure
