"""Pictures of timing studies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from avrswarm.record.drawing import STYLE, new_figure
from avrswarm.study.timing.observe import Observed

FUNCTIONS_SHOWN = 14
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
    axes.set_ylim(bottom=0)
    axes.set_xlabel("cycles")
    axes.set_ylabel("times")
    found = figures["cycles"]
    axes.set_title(
        f"{figures['from']} to {figures['to']}, {label}: {found['min']:,} to {found['max']:,},"
        f" median {found['median']:,.6g}"
    )
    return figure
