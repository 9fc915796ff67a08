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
WAITS_SHOWN = 6
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
    figure = new_figure(10.5, 5.4)
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
    axes.set_xlim(least / 3, 100)
    beside = axes.get_yaxis_transform()  # x from 0 to 1, y as data
    for place, row, share in zip(places.tolist(), shown, shares, strict=True):
        text = f"{share:.3g} %, {row['calls']:,} x"
        axes.text(1.02, place, text, va="center", fontsize=8, transform=beside)
    axes.bar([0], [0], color=PLAIN, label="function")
    axes.bar([0], [0], color=INTERRUPT, label="interrupt handler")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=8)


def _draw_steps(axes: Axes, vectors: list[dict[str, Any]], what: str, label: str) -> None:
    """Draw how many are at most so long, one line per vector, later ones thinner."""
    for number, row in enumerate(vectors):
        if row[what] is None:
            continue
        values, shares = cumulated(row[what]["histogram"])
        colour = COLOURS[number % len(COLOURS)]
        text = f"{row['name']} ({row['count']:,})"
        width = max(4.5 - 1.5 * number, 1.2)
        axes.step(values, shares, where="post", color=colour, lw=width, label=text)
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


def cumulated(bars: dict[str, list[float]]) -> tuple[list[float], list[float]]:
    """Return values and the share that is at most so great (%), of a histogram.

    How values lie within a bar is not known, so its count is complete at its upper border.
    """
    shares = 100 * np.cumsum(bars["count"]) / sum(bars["count"])
    return [bars["from"][0], *bars["to"]], [0.0, *shares.tolist()]


def draw_delays(found: dict[str, Any]) -> Figure:
    """Draw how much longer delays are, what interrupts take, and how far ticks run away."""
    figure = new_figure(11.0, 5.0)
    left, middle, right = figure.subplots(1, 3)
    cases = found["cases"]
    _draw_waits(left, cases)
    _draw_load(middle, cases)
    _draw_ticks(right, cases)
    for axes in (left, middle):
        axes.set_xlabel("neighbours")
        axes.set_xticks([case["neighbours"] for case in cases])
    return figure


def _draw_waits(axes: Axes, cases: list[dict[str, Any]]) -> None:
    """Draw the waits that took most of the time."""
    lasted: dict[tuple[str, float, str], float] = {}
    for case in cases:
        for row in case["delays"]:
            key = (row["wait"], row["nominal_ms"], row["nominal_is"])
            lasted[key] = lasted.get(key, 0.0) + row["count"] * row["nominal_ms"]
    longest = sorted(lasted, key=lambda key: -lasted[key])[:WAITS_SHOWN]
    shown = [key for key in lasted if key in longest]
    counts = [case["neighbours"] for case in cases]
    apart = 0.1 * min(np.diff(np.unique(counts)), default=1)
    for number, key in enumerate(shown):
        rows = [
            (case["neighbours"], row["longer_percent"])
            for case in cases
            for row in case["delays"]
            if (row["wait"], row["nominal_ms"], row["nominal_is"]) == key
        ]
        x = np.array([count for count, _ in rows]) + apart * (number - (len(shown) - 1) / 2)
        mean, least, most = ([row[name] for _, row in rows] for name in ("mean", "min", "max"))
        colour = COLOURS[number]
        name, nominal_ms, kind = key
        text = f"{name}, {nominal_ms:.4g} ms counted" if kind == "counted" else f"{name[:-1]} ms)"
        axes.vlines(x, least, most, color=colour, lw=1.0, alpha=0.6)
        axes.plot(x, mean, "o-", color=colour, ms=4, lw=1.2, label=text)
    axes.set_title("delays: mean, least and most")
    if not shown:
        axes.text(0.5, 0.5, "none seen", transform=axes.transAxes, ha="center", color="#777777")
        axes.set_yticks([])
        return
    axes.axhline(0, color="#777777", lw=0.8)
    axes.set_yscale("symlog", linthresh=0.1)  # a fast clock makes them shorter
    shortest = min(row["longer_percent"]["min"] for case in cases for row in case["delays"])
    axes.set_ylim(bottom=min(1.2 * shortest, -0.01))
    axes.set_ylabel("longer than nominal (%)")
    _legend_below(axes)


def _draw_ticks(axes: Axes, cases: list[dict[str, Any]]) -> None:
    """Draw how far kilo_ticks runs away; the widest line first, so that all are seen."""
    for number, case in enumerate(cases):
        time_s, error_ms = (np.array(case["tick_error"][name]) for name in ("time_s", "error_ms"))
        colour, width = COLOURS[number % len(COLOURS)], 1.5 + 1.5 * (len(cases) - 1 - number)
        text = f"{case['neighbours']} neighbours"
        axes.plot(time_s, error_ms, color=colour, lw=width, solid_capstyle="butt", label=text)
        clock = f"by the clock alone: {cases[0]['clock_ppm']:+.0f} ppm" if number == 0 else None
        axes.plot(time_s, case["clock_ppm"] / 1000 * time_s, "k--", lw=0.8, zorder=3, label=clock)
    axes.axhline(0, color="#777777", lw=0.8)
    axes.set_xlabel("true time (s)")
    axes.set_ylabel("kilo_ticks ahead of true time (ms)")
    axes.set_title("error of ticks")
    _legend_below(axes)


def _legend_below(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(-0.1, -0.16), fontsize=7, ncols=2)


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
    _legend_below(axes)


def draw_sync(found: dict[str, Any], samples: dict[str, Any]) -> Figure:
    """Draw clocks that run away, times between messages, and errors against hops."""
    figure = new_figure(11.0, 3.9)
    left, middle, right = figure.subplots(1, 3)
    first = samples["line"] == samples["line"][0]
    robots = np.unique(samples["robot"][first]).tolist()
    for robot in robots:
        mine = first & (samples["robot"] == robot)
        time_s, ahead_ms = samples["time_s"][mine], samples["clock_ahead_ms"][mine]
        (curve,) = left.plot(time_s, ahead_ms, lw=1.0)
        left.annotate(
            str(robot),
            (time_s[-1], ahead_ms[-1]),
            (3 + 8 * (robot % 3), 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=curve.get_color(),
        )
    left.set_xlabel("true time (s)")
    left.set_ylabel("clock ahead of true time (ms)")
    left.set_title("clocks of the first line, by robot")
    deviation = f"all lines: standard deviation {found['drift']['deviation_ppm']:.0f} ppm"
    left.text(0.02, 0.02, deviation, transform=left.transAxes, fontsize=8)
    jitter = found["messages"]["interval_jitter_ms"]
    if jitter is not None:
        bars = jitter["histogram"]
        width = min(np.diff(bars["from"]), default=1.0)
        middle.bar(bars["from"], bars["count"], width, align="edge", color=PLAIN)
        middle.set_yscale("log")
        middle.set_title(f"frames, every {found['messages']['interval_ms']['median']:.1f} ms")
    else:
        text = "no robot sent two frames"
        middle.text(0.5, 0.5, text, transform=middle.transAxes, ha="center", color="#777777")
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
        (("rms_us", "root mean square"), ("median_absolute_us", "median of |error|"))
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
