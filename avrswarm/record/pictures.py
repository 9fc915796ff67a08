"""Pictures of a run: where robots went, how far messages carry, what they say of distance.

Each function draws one figure and returns it, or None where the run has nothing to show;
``draw_run`` writes all of them into the run folder as PNG files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from avrswarm.record.drawing import (
    BODY_EDGE,
    LAMP,
    STYLE,
    Stage,
    Tracks,
    Window,
    add_robots,
    led_rgb,
    new_figure,
    nose_colours,
    path_colours,
)
from avrswarm.record.fates import CONTROLLER, FATE_NAMES, Fate
from avrswarm.record.run_folder import Run
from avrswarm.robot.led import name_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FATE_COLOURS = {
    Fate.RECEIVED: "#009e73",
    Fate.CRC_BAD: "#d55e00",
    Fate.ABORTED: "#9a9a9a",
    Fate.DEAF: "#56b4e9",
    Fate.WEAK: "#d9d9d9",
    Fate.MERGED: "#e69f00",
    Fate.LOST: "#cc79a7",
}
FATE_TEXTS = {
    Fate.RECEIVED: "received",
    Fate.CRC_BAD: "checksum wrong",
    Fate.ABORTED: "broken off by sender",
    Fate.DEAF: "receiver was sending",
    Fate.WEAK: "too weak",
    Fate.MERGED: "merged with another",
    Fate.LOST: "lost otherwise",
}
FEW_ROBOTS = 7
COLOURED_ROBOTS = 100  # more paths than this are too fine for colours
LABELLED_ROBOTS = 30
MOST_POINTS = 600_000  # of all paths together
LED_SECONDS = 5.0
LED_ROWS = 200  # robots shown in a picture of LEDs
FEWEST_BLINKS = 5  # fewer make no rhythm
SCATTERED = 1500  # more messages than this are shown as density
CALIBRATED_MM = (33.0, 98.0)
_DENSITY = LinearSegmentedColormap.from_list("density", ["#c6dbef", "#4292c6", "#08306b"])


def draw_run(run: Run) -> list[Path]:
    """Draw everything that the run has data for; return the files."""
    drawn = []
    for name, draw in PICTURES.items():
        with rc_context(STYLE):
            figure = draw(run)
            if figure is not None:
                path = run.path / f"{name}.png"
                figure.savefig(path, bbox_inches="tight", pad_inches=0.12)
                drawn.append(path)
    return drawn


# ---- where robots went ---------------------------------------------------------------------------


def draw_trajectories(run: Run) -> Figure | None:
    """Draw paths from start to end on the stage; robots stand at the end, with their LEDs."""
    tracks = Tracks.of(run)
    times, x, y = tracks.times_s, tracks.x_mm, tracks.y_mm
    if len(times) == 0:
        return None
    count = x.shape[1]
    stage = Stage.of(run)
    window = stage.window(x, y, margin_mm=max(45.0, 1.5 * float(run.radius_mm.max())))
    figure = window.figure()
    axes = figure.subplots()
    discs = np.column_stack([tracks.disc_x_mm[-1], tracks.disc_y_mm[-1]])
    light = stage.draw(axes, window, discs).light
    _draw_paths(axes, x, y, tracks.led)
    shown = _last_colours(times, tracks.led)
    rgb = led_rgb(shown)
    add_robots(axes, x[-1], y[-1], tracks.heading_rad[-1], run.radius_mm, rgb)
    if count <= LABELLED_ROBOTS:
        _label_robots(axes, window, x[-1], y[-1], run.radius_mm, rgb)
    if light is not None:
        bar = figure.colorbar(light, ax=axes, shrink=0.75, pad=0.02)
        bar.set_label("illuminance (lux)")
    axes.set_title(f"{_title(run)}, positions after {times[-1] - times[0]:.4g} s")
    handles = _led_handles(shown)
    if _moved(x, y).any():
        path: Any = {"color": "#777777", "lw": 1.2, "marker": "o", "markersize": 3}
        colour = ", in the colour of its LED" if count <= COLOURED_ROBOTS else ""
        words = f"path from its start (dot){colour}"
        handles.insert(0, Line2D([], [], **path, markerfacecolor=BODY_EDGE, label=words))
        if count <= COLOURED_ROBOTS:
            handles += _path_handles(x, y, tracks.led, shown)
    if stage.lamps_in(window).size:
        handles.append(Line2D([], [], linestyle="", **LAMP, markersize=11, label="lamp"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)))
    return figure


def _draw_paths(axes: Axes, x: Floats, y: Floats, led: Integers) -> None:
    """Draw each path in the colours that the robot's LED showed on its way."""
    count = x.shape[1]
    step = max(1, x.size // MOST_POINTS)
    keep = np.unique(np.r_[np.arange(0, len(x), step), len(x) - 1])
    moved = np.flatnonzero(_moved(x, y))
    pieces, colours = [], []
    for robot in moved:
        shown = led[keep[:-1], robot] if count <= COLOURED_ROBOTS else np.zeros(1, np.int64)
        changes = np.flatnonzero(np.diff(shown)) + 1
        starts = np.r_[0, changes]
        for start, stop in zip(starts, np.r_[changes, len(keep) - 1], strict=True):
            part = keep[start : stop + 1]
            pieces.append(np.column_stack([x[part, robot], y[part, robot]]))
        colours.append(shown[starts])
    few = count <= FEW_ROBOTS
    width, alpha = (1.6, 1.0) if few else (1.0, 0.8) if count <= COLOURED_ROBOTS else (0.4, 0.5)
    shades: Any = "#44729e"
    if pieces and count <= COLOURED_ROBOTS:
        shades = path_colours(np.concatenate(colours))
    axes.add_collection(
        LineCollection(pieces, colors=shades, linewidths=width, alpha=alpha, zorder=2)
    )
    dot = 22.0 if few else 9.0 if count <= COLOURED_ROBOTS else 2.0
    axes.scatter(x[0, moved], y[0, moved], s=dot, c=BODY_EDGE, linewidths=0, zorder=3)


def _moved(x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Tell which robots have left their places."""
    return np.asarray(np.ptp(x, axis=0) + np.ptp(y, axis=0) > 1.0)


def _last_colours(times: Floats, led: Integers) -> Integers:
    """Return the colour each robot's LED had when it was last lit; 0 if that was long ago."""
    recent = led[times >= times[-1] - LED_SECONDS][::-1]
    latest = (recent != 0).argmax(axis=0)  # 0 also where nothing is lit
    return np.asarray(recent[latest, np.arange(recent.shape[1])])


def _label_robots(
    axes: Axes, window: Window, x: Floats, y: Floats, radius: Floats, rgb: Floats
) -> None:
    """Write robots' numbers: inside where there is room, otherwise beside them."""
    points_per_mm = 72 * window.inches_per_mm
    for robot, colour in enumerate(nose_colours(rgb)):
        style: dict[str, Any] = {"fontsize": 7.5, "color": BODY_EDGE}
        place = x[robot] + 0.75 * radius[robot], y[robot] + 0.75 * radius[robot]
        if radius[robot] * points_per_mm > 9:
            style = {"fontsize": 8, "color": colour, "ha": "center", "va": "center_baseline"}
            place = x[robot], y[robot]
        axes.annotate(str(robot), place, zorder=6, annotation_clip=True, **style)


def _led_handles(colours: Integers) -> list[Any]:
    values, counts = np.unique(colours, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:7]
    return [
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=8,
            markerfacecolor=led_rgb(values[k : k + 1])[0],
            markeredgecolor=BODY_EDGE,
            label=f"LED {name_of(int(values[k]))}",
        )
        for k in most
    ]


def _path_handles(x: Floats, y: Floats, led: Integers, known: Integers) -> list[Any]:
    """Return handles for colours that much of the paths has, and that no robot shows at the end."""
    way = np.hypot(np.diff(x, axis=0), np.diff(y, axis=0))
    lengths = np.bincount(led[:-1].ravel(), way.ravel(), 64)
    lengths[known] = 0
    values = np.flatnonzero(lengths > 0.02 * way.sum())
    return [
        Line2D([], [], color=shade, lw=1.6, label=f"LED {name_of(int(value))}")
        for value, shade in zip(values, path_colours(values), strict=True)
    ]


# ---- what LEDs showed ----------------------------------------------------------------------------


def draw_leds(run: Run) -> Figure | None:
    """Draw the LEDs of all robots against time, and the spread of robots that blink in a rhythm."""
    tracks = Tracks.of(run)
    times, led = tracks.times_s, tracks.led
    if len(times) < 2 or not (led != led[0]).any():
        return None
    count = led.shape[1]
    rhythm = find_rhythm(times, led)
    figure = new_figure(6.5, 2.2 + min(2.6, 0.25 * count) + (2.0 if rhythm else 0.0))
    panels = figure.subplots(
        2 if rhythm else 1, 1, sharex=True, squeeze=False, height_ratios=[3, 2][: 1 + bool(rhythm)]
    )[:, 0]
    above = panels[0]
    rows = np.unique(np.linspace(0, count - 1, min(count, LED_ROWS)).round().astype(np.int64))
    half = np.diff(times).mean() / 2
    above.imshow(
        led_rgb(led[:, rows]).swapaxes(0, 1),
        extent=(times[0] - half, times[-1] + half, count - 0.5, -0.5),
        aspect="auto",
        interpolation="nearest",
    )
    above.set_ylabel("robot")
    above.yaxis.set_major_locator(MaxNLocator(min(count, 9), integer=True, min_n_ticks=1))
    above.set_title(f"{_title(run)}, colours of LEDs")
    if rhythm:
        below = panels[1]
        dots: Any = {"color": "#0072b2", "markersize": 3.5, "lw": 1.2, "clip_on": False}
        below.plot(rhythm.times_s, rhythm.spread_s, "o-", **dots)
        below.set_ylabel("spread of blinks (s),\nstandard deviation")
        seen_s = float(np.diff(times).mean())  # nobody looked more closely
        below.set_ylim(0, max(seen_s, 1.05 * rhythm.spread_s.max()))
        below.grid(color="#e5e5e5")
        words = f"{rhythm.robots} robots blink every {rhythm.period_s:.2f} s"
        below.set_title(words, fontsize=9, loc="right")
    panels[-1].set_xlabel("simulated time (s)")
    return figure


class Rhythm(NamedTuple):
    """Robots that blink with a common period, and how far apart they are, once per period."""

    robots: int
    period_s: float
    times_s: Floats
    spread_s: Floats  # standard deviation of phases on a circle


def find_rhythm(times: Floats, led: Integers) -> Rhythm | None:
    """Return the common rhythm of at least three robots that blink regularly, if there is one."""
    usual = np.array([np.bincount(column, minlength=64).argmax() for column in led.T])
    lit = led != usual
    begins = [times[1:][lit[1:, k] & ~lit[:-1, k]] for k in range(led.shape[1])]
    begins = [begin for begin in begins if len(begin) > FEWEST_BLINKS]
    if len(begins) < 3:
        return None
    gaps = np.concatenate([np.diff(begin) for begin in begins])
    early, period, late = np.quantile(gaps, [0.1, 0.5, 0.9])
    if late - early > 0.5 * period:
        return None
    blinks = np.sort(np.concatenate(begins))
    starts = np.arange(blinks[0], blinks[-1] - period, period)
    middles, spreads = [], []
    for start in starts:
        these = blinks[(blinks >= start) & (blinks < start + period)]
        if len(these) < 2:
            continue
        order = abs(np.exp(2j * np.pi * these / period).mean())
        middles.append(start + period / 2)
        spreads.append(period / (2 * np.pi) * np.sqrt(max(0.0, -2 * np.log(max(order, 1e-9)))))
    return Rhythm(len(begins), float(period), np.array(middles), np.array(spreads))


def _title(run: Run) -> str:
    count = run.info["robots"]
    return f"{run.info['name']}: {count} robot{'s' if count != 1 else ''}"


# ---- messages against distance -------------------------------------------------------------------


def draw_message_success(run: Run) -> Figure | None:
    """Draw how many frames were received against distance, and what became of the others."""
    table = run.table("messages", ["sender", "fate", "distance_mm"])
    fate = _fates(table)
    distance = table["distance_mm"].to_numpy()
    use = (table["sender"].to_numpy() != CONTROLLER) & (fate != Fate.ABORTED)
    fate, distance = fate[use], distance[use]
    if len(fate) == 0:
        return None
    edges = _bins(distance)
    bins = np.clip(np.digitize(distance, edges) - 1, 0, len(edges) - 2)
    counts = np.zeros((len(edges) - 1, len(Fate)), np.int64)
    np.add.at(counts, (bins, fate), 1)
    total = counts.sum(axis=1)
    middle = np.bincount(bins, distance, len(total)) / np.maximum(total, 1)

    figure = new_figure(6.5, 5.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    some = total > 0
    share, low, high = _wilson(counts[some, Fate.RECEIVED], total[some])
    above.errorbar(
        middle[some],
        100 * share,
        yerr=100 * np.abs(np.vstack([share - low, high - share])),
        fmt="o-",
        color=FATE_COLOURS[Fate.RECEIVED],
        ecolor="#555555",
        elinewidth=0.9,
        capsize=2.5,
        markersize=4.5,
        lw=1.2,
        label="received (bars: 95 % interval)",
    )
    nominal = run.info["scene"]["optics"]["range_mm"]
    above.axvline(nominal, color="#999999", ls="--", lw=1.0, label=f"nominal range {nominal:g} mm")
    above.set_ylabel("complete frames\nreceived (%)")
    above.set_ylim(-2, 104)
    above.grid(color="#e5e5e5")
    above.legend(loc="lower left")
    above.set_title(
        f"{_title(run)}, {_counted(len(fate), 'frame')} at robots in earshot\n"
        "(for an attentive receiver in the robot's place; firmware may miss more)"
    )

    base = np.zeros(len(middle))
    centre, width = (edges[:-1] + edges[1:]) / 2, 0.92 * np.diff(edges)
    for kind in (Fate.MERGED, Fate.DEAF, Fate.CRC_BAD, Fate.WEAK, Fate.LOST):
        part = 100 * counts[:, kind] / np.maximum(total, 1)
        if part.any():
            below.bar(centre, part, width, base, color=FATE_COLOURS[kind], label=FATE_TEXTS[kind])
            base += part
    below.set_ylabel("not received (%)")
    below.set_xlabel("distance between centres (mm)")
    below.set_ylim(0, max(1.0, 1.05 * base.max()))
    below.grid(axis="y", color="#e5e5e5")
    if base.any():
        figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    else:
        below.text(
            0.5,
            0.5,
            "everything was received",
            ha="center",
            va="center",
            transform=below.transAxes,
            color="#777777",
        )
    return figure


def _fates(table: Any) -> Integers:
    """Return the fates of a messages table as numbers."""
    column = table["fate"].combine_chunks().dictionary_decode().dictionary_encode()
    if hasattr(column, "chunks"):
        column = column.combine_chunks()
    names = column.dictionary.to_pylist()
    numbers = np.array([FATE_NAMES.index(name) for name in names] or [0])
    return np.asarray(numbers[column.indices.to_numpy(zero_copy_only=False)])


def _bins(distance: Floats) -> Floats:
    """Return bins round multiples of a round width, about 25 at most, not narrower than 5 mm."""
    low, high = float(distance.min()), float(distance.max())
    width = next(w for w in (5.0, 10.0, 20.0, 50.0, 1e6) if (high - low) / w <= 25)
    number = np.arange(round(low / width), round(high / width) + 2, dtype=np.float64)
    return (number - 0.5) * width


def _wilson(hits: Integers, total: Integers) -> tuple[Floats, Floats, Floats]:
    """Return a share and its 95 % interval (Wilson, 1927)."""
    z, n = 1.96, total.astype(np.float64)
    share = hits / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    spread = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return share, middle - spread, middle + spread


# ---- distance estimate ---------------------------------------------------------------------------


def draw_distance_estimate(run: Run) -> Figure | None:
    """Draw what firmware computes from both gains, without its ADC's noise, against the truth."""
    table = run.table("messages", ["distance_mm", "estimate_mm"])
    truth = table["distance_mm"].to_numpy()
    estimate = table["estimate_mm"].to_numpy()
    known = ~(np.isnan(truth) | np.isnan(estimate))
    truth, estimate = truth[known], estimate[known].astype(np.float64)
    if len(truth) == 0:
        return None
    error = estimate - truth
    inside = (truth >= CALIBRATED_MM[0]) & (truth <= CALIBRATED_MM[1])
    figure = new_figure(6.5, 6.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    ends = [float(truth.min()), float(truth.max())]
    above.plot(ends, ends, color="#777777", lw=1.0, ls="--", label="estimate = truth", zorder=3)
    below.axhline(0, color="#777777", lw=1.0, ls="--", zorder=3)
    if len(truth) <= SCATTERED:
        style: dict[str, Any] = {"s": 9, "alpha": 0.45, "linewidths": 0, "color": "#0072b2"}
        above.scatter(truth, estimate, **style, label=_counted(len(truth), "message"))
        below.scatter(truth, error, **style)
    else:
        above.plot([], [], "s", color="#4292c6", label=_counted(len(truth), "message"))
        _draw_density(above, truth, estimate)
        shade = _draw_density(below, truth, error)
        bar = figure.colorbar(shade, ax=[above, below], shrink=0.6, pad=0.02)
        bar.set_label("messages per cell")
    _draw_errors(below, truth, error)
    most = np.quantile(np.abs(error[inside] if inside.any() else error), 0.9995)
    below.set_ylim(-1.1 * max(most, 2.0), 1.1 * max(most, 2.0))
    text = f"rms error {np.sqrt((error**2).mean()):.2f} mm"
    if inside.any() and not inside.all():
        rms = np.sqrt((error[inside] ** 2).mean())
        text = f"rms error {rms:.2f} mm within the tables (33 to 98 mm)"
    above.set_title(f"{_title(run)}, {text}\n(readings without the noise of the robots' ADCs)")
    above.set_ylabel("estimated distance (mm)")
    above.grid(color="#e5e5e5")
    above.legend(loc="upper left", frameon=True, framealpha=0.85, edgecolor="none")
    below.set_ylabel("estimate \N{MINUS SIGN} truth (mm)")
    below.set_xlabel("true distance between centres (mm)")
    below.grid(color="#e5e5e5")
    below.legend(loc="upper left", frameon=True, framealpha=0.85, edgecolor="none")
    return figure


def _draw_density(axes: Axes, x: Floats, y: Floats) -> Any:
    """Shade cells, one millimetre high as estimates are, by how many points are in them."""
    columns, rows = (np.arange(round(v.min()), round(v.max()) + 2) - 0.5 for v in (x, y))
    columns = columns[0] + np.arange(0, np.ptp(columns) + 2, max(1.0, round(np.ptp(x) / 50)))
    counts, *_ = np.histogram2d(x, y, [columns, rows])
    shown = np.ma.masked_equal(counts.T, 0)
    return axes.pcolormesh(columns, rows, shown, norm="log", cmap=_DENSITY, rasterized=True)


def _draw_errors(axes: Axes, truth: Floats, error: Floats) -> None:
    """Draw mean and deviation of the error against distance."""
    bins = np.digitize(truth, _bins(truth))
    groups = [bins == k for k in np.unique(bins)]
    groups = [group for group in groups if group.sum() >= 5]
    axes.errorbar(
        [truth[group].mean() for group in groups],
        [error[group].mean() for group in groups],
        [error[group].std() for group in groups],
        fmt="o-",
        color="#d55e00",
        lw=1.2,
        markersize=4,
        capsize=2.5,
        zorder=4,
        label="mean and standard deviation",
    )


# ---- channel load --------------------------------------------------------------------------------


def draw_channel_load(run: Run) -> Figure | None:
    """Draw how busy the channel is at an average robot, and what became of its messages."""
    frames = run.table("frames", ["start_s", "end_s", "sender", "in_earshot"])
    own = frames["sender"].to_numpy() != CONTROLLER
    start, end = frames["start_s"].to_numpy()[own], frames["end_s"].to_numpy()[own]
    if len(start) == 0:
        return None
    listeners = frames["in_earshot"].to_numpy()[own]
    count = run.info["robots"]
    times = run.table("trajectory", ["time_s"])["time_s"].to_numpy()
    first, last = float(times[0]), float(times[-1])
    width = _time_bin(last - first)
    edges = first + width * np.arange(int(np.ceil((last - first) / width - 1e-9)) + 1)
    spans = np.minimum(edges[1:], last) - edges[:-1]
    bins = np.clip(((start - first) / width).astype(np.int64), 0, len(spans) - 1)
    heard = np.bincount(bins, (end - start) * listeners, minlength=len(spans))
    said = np.bincount(bins, end - start, minlength=len(spans))

    figure = new_figure(6.5, 5.6)
    above, below = figure.subplots(2, 1, sharex=True)
    step: dict[str, Any] = {"edges": edges, "baseline": None, "lw": 1.4}
    above.stairs(
        100 * (heard + said) / count / spans,
        color="#0072b2",
        **step,
        label="others in earshot, and its own",
    )
    above.stairs(100 * said / count / spans, color="#d55e00", **step, label="its own")
    above.set_ylabel("time on the air at\nan average robot (%)")
    above.set_ylim(bottom=0)
    above.grid(color="#e5e5e5")
    above.legend(loc="best")
    above.set_title(f"{_title(run)}, {_counted(len(start), 'frame')} sent")

    table = run.table("messages", ["time_s", "sender", "fate"])
    use = table["sender"].to_numpy() != CONTROLLER
    fate, time = _fates(table)[use], table["time_s"].to_numpy()[use]
    bins = np.clip(((time - first) / width).astype(np.int64), 0, len(spans) - 1)
    base = np.zeros(len(spans))
    for kind in sorted(FATE_COLOURS, key=lambda kind: (kind != Fate.RECEIVED, kind == Fate.WEAK)):
        part = np.bincount(bins[fate == kind], minlength=len(spans)) / count / spans
        if part.any():
            below.stairs(
                base + part,
                edges,
                baseline=base,
                fill=True,
                color=FATE_COLOURS[kind],
                label=FATE_TEXTS[kind],
            )
            base = base + part
    below.set_ylabel("frames in earshot\nper robot and second")
    below.set_xlabel("simulated time (s)")
    below.set_ylim(bottom=0)
    below.grid(axis="y", color="#e5e5e5")
    if base.any():
        figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _time_bin(seconds: float) -> float:
    """Return a round length of time that cuts a run into 20 to 60 pieces, not below 0.5 s."""
    return next(
        (w for w in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0) if seconds / w <= 60),
        600.0,
    )


def _counted(number: int, word: str) -> str:
    """Return a number with its word: '1 frame', '12 345 frames'."""
    return f"{number:,} {word}{'s' if number != 1 else ''}".replace(",", " ")


PICTURES = {
    "trajectories": draw_trajectories,
    "leds": draw_leds,
    "message_success": draw_message_success,
    "distance_estimate": draw_distance_estimate,
    "channel_load": draw_channel_load,
}
__all__ = ["PICTURES", "draw_run"]
