"""Pictures of the calibration studies, fit for a paper: one figure each, written as PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from avrswarm.record.drawing import STYLE, new_figure
from avrswarm.robot.distance import HIGH_ALONE_UP_TO, LOW_ALONE_FROM
from avrswarm.robot.distance_tables import DISTANCES_MM
from avrswarm.study.calibrate_distance import CALIBRATED_MM, DistanceStudy, Outcome
from avrswarm.study.calibrate_motors import MotorStudy, Robot

GIVEN, FITTED, LOW, HIGH = "#d55e00", "#0072b2", "#009e73", "#cc79a7"
QUIET = "#8c8c8c"
LAST_COUNT = 1023


def draw_distances(study: DistanceStudy, path: Path) -> None:
    """Draw estimates, errors, failures, and readings against tables."""
    with rc_context(STYLE):
        figure = new_figure(9.0, 7.8)
        (estimates, errors), (readings, failures) = figure.subplots(2, 2)
        _draw_estimates(estimates, study)
        _draw_errors(errors, study)
        _draw_readings(readings, study)
        _draw_failures(failures, study)
        last = max(float(outcome.sent.distance_mm.max()) for outcome in study.outcomes)
        for axes in (estimates, errors, readings, failures):
            axes.set_xlim(28, last + 5)
        count = len(study.outcomes)
        robots = study.outcomes[0].subject.name if count == 1 else f"{count} robots"
        source = study.program.source
        name = source.stem if source is not None else "the binary"
        figure.suptitle(f"Distance estimates of {name}, {robots}", fontsize=12)
        _save(figure, path)


def _rounds(study: DistanceStudy) -> list[tuple[str, str, list[Outcome]]]:
    """Return label, colour and results of each run that was made."""
    rounds = [("given tables", GIVEN, study.outcomes), ("fitted tables", FITTED, study.fitted)]
    return [one for one in rounds if one[2]]


def _draw_estimates(axes: Axes, study: DistanceStudy) -> None:
    last = max(float(outcome.sent.distance_mm.max()) for outcome in study.outcomes)
    axes.plot([30, last], [30, last], color=QUIET, lw=0.8, zorder=1)
    axes.text(last, last - 6, "true", color=QUIET, ha="right", va="top")
    for label, colour, outcomes in _rounds(study):
        distance = np.concatenate([o.sent.distance_mm[o.estimated] for o in outcomes])
        estimate = np.concatenate([o.estimate_mm[o.estimated] for o in outcomes])
        shift = 0.5 if colour == FITTED else -0.5 if study.fitted else 0.0
        axes.scatter(distance + shift, estimate, s=5, c=colour, alpha=0.25, lw=0, zorder=2)
        axes.scatter([], [], s=18, c=colour, lw=0, label=label)
    axes.axvspan(*CALIBRATED_MM, color="#000000", alpha=0.04, lw=0, zorder=0)
    axes.set_xlabel("true distance (mm)")
    axes.set_ylabel("estimate (mm)")
    axes.set_title("a  every message", loc="left")
    _legend_below(axes)


def _draw_errors(axes: Axes, study: DistanceStudy) -> None:
    axes.axhline(0, color=QUIET, lw=0.8)
    axes.axhspan(-2, 2, color="#000000", alpha=0.06, lw=0)
    bounds = [5.0]
    for label, colour, outcomes in _rounds(study):
        for outcome in outcomes:
            rows = [row for row in outcome.by_distance() if row["bias_mm"] is not None]
            distance, bias = (
                np.array([row[key] for row in rows]) for key in ("distance_mm", "bias_mm")
            )
            axes.plot(distance, bias, color=colour, lw=0.9, alpha=0.9)
            bounds += list(np.abs(bias[distance <= CALIBRATED_MM[1]]))
        distance, mean, spread = _pooled(outcomes)
        axes.fill_between(distance, mean - spread, mean + spread, color=colour, alpha=0.22, lw=0)
        rms = np.sqrt(np.mean(np.concatenate([_errors(o) for o in outcomes]) ** 2))
        axes.plot([], [], color=colour, lw=1.3, label=f"{label}, rms {rms:.1f} mm")
    limit = 1.15 * max(bounds)
    axes.set_ylim(-limit, limit)
    axes.axvspan(*CALIBRATED_MM, color="#000000", alpha=0.04, lw=0, zorder=0)
    axes.set_xlabel("true distance (mm)")
    axes.set_ylabel("estimate less true distance (mm)")
    axes.set_title("b  error: bias of robots, spread of all", loc="left")
    axes.fill_between([], [], [], color=QUIET, alpha=0.3, lw=0, label="mean ± spread, all messages")
    axes.plot([], [], color=QUIET, lw=0.9, label="bias of a robot")
    axes.text(0.99, 2.0, "±2 mm", color=QUIET, ha="right", va="bottom", transform=_across(axes))
    _legend_below(axes)


def _pooled(outcomes: list[Outcome]) -> tuple[Any, Any, Any]:
    """Return distances, and mean and deviation there of the errors of all robots."""
    distance = np.concatenate([o.sent.distance_mm[o.estimated] for o in outcomes])
    error = np.concatenate([o.error_mm for o in outcomes])
    places = np.unique(distance)
    at = [error[distance == place] for place in places]
    return places, np.array([e.mean() for e in at]), np.array([e.std() for e in at])


def _errors(outcome: Outcome) -> Any:
    """Return the errors within the tables' range; one zero where there are none."""
    distance = outcome.sent.distance_mm[outcome.estimated]
    inside = (distance >= CALIBRATED_MM[0]) & (distance <= CALIBRATED_MM[1])
    found = outcome.error_mm[inside]
    return found if len(found) else np.zeros(1)


def _draw_readings(axes: Axes, study: DistanceStudy) -> None:
    for outcome in study.outcomes:
        told = outcome.estimated
        for counts, colour in ((outcome.low, LOW), (outcome.high, HIGH)):
            axes.scatter(
                outcome.sent.distance_mm[told], counts[told], s=4, c=colour, alpha=0.25, lw=0
            )
    for dashes, outcomes in ((":", study.outcomes), ("-", study.fitted)):
        for outcome in outcomes:
            for table, colour in zip(outcome.subject.tables, (LOW, HIGH), strict=True):
                shown = np.where(np.array(table) <= 1400, table, np.nan)
                axes.plot(DISTANCES_MM, shown, dashes, color=colour, lw=1.2)
    axes.axhspan(HIGH_ALONE_UP_TO, LOW_ALONE_FROM, color="#000000", alpha=0.06, lw=0, zorder=0)
    axes.axhline(LAST_COUNT, color=QUIET, lw=0.8)
    axes.text(1.0, LAST_COUNT + 8, "ADC ends", color=QUIET, ha="right", transform=_across(axes))
    axes.text(1.0, 800, "hand-over", color=QUIET, ha="right", va="center", transform=_across(axes))
    for colour, label in ((HIGH, "high gain"), (LOW, "low gain")):
        axes.scatter([], [], s=18, c=colour, lw=0, label=label)
    axes.plot([], [], ":", color=QUIET, label="given table")
    if study.fitted:
        axes.plot([], [], "-", color=QUIET, label="fitted table")
    axes.set_ylim(0, 1230)
    axes.set_xlabel("true distance (mm)")
    axes.set_ylabel("reading (ADC counts)")
    axes.set_title("c  readings and tables", loc="left")
    _legend_below(axes)


def _draw_failures(axes: Axes, study: DistanceStudy) -> None:
    for number, outcome in enumerate(study.outcomes):
        rows = outcome.by_distance()
        axes.step(
            [row["distance_mm"] for row in rows],
            [row["failures_percent"] for row in rows],
            where="mid",
            color=GIVEN,
            lw=1.2,
            alpha=0.8,
            label=None if number else "a robot, given tables",
        )
    axes.axvspan(*CALIBRATED_MM, color="#000000", alpha=0.04, lw=0, zorder=0)
    axes.set_ylim(-3, 103)
    axes.set_xlabel("true distance (mm)")
    axes.set_ylabel("messages without estimate (%)")
    axes.set_title("d  failures", loc="left")
    axes.fill_between([], [], [], color="#000000", alpha=0.1, lw=0, label="range of the tables")
    _legend_below(axes)


def draw_motors(study: MotorStudy, path: Path) -> None:
    """Draw straight paths, turns, what straight is like, and the values."""
    with rc_context(STYLE):
        figure = new_figure(9.0, 7.8)
        (paths, turns), (rates, values) = figure.subplots(2, 2)
        rounds = [("given", GIVEN, study.robots), ("fitted", FITTED, study.fitted)]
        rounds = [one for one in rounds if one[2]]
        for _, colour, robots in rounds:
            _draw_paths(paths, colour, robots)
            _draw_turns(turns, colour, robots)
            _draw_rates(rates, colour, robots, study)
            _draw_values(values, colour, robots)
        for axes in (paths, turns):
            axes.set_aspect("equal", "datalim")
            axes.set_xlabel("x (mm)")
            axes.set_ylabel("y (mm)")
        _finish_rates(rates, study)
        _finish_values(values, study)
        seconds = "straight on" if not study.fitted else "straight on, before and after"
        paths.set_title(f"a  {seconds}", loc="left")
        turns.set_title("b  turning left and right", loc="left")
        for axes in (paths, turns, rates, values):
            for name, colour, _ in rounds:
                axes.plot([], [], "-", color=colour, lw=3, label=f"{name} values")
            _legend_below(axes, columns=3)
        count = len(study.robots)
        figure.suptitle(f"Motor values of {count} robot{'s' if count > 1 else ''}", fontsize=12)
        _save(figure, path)


def _draw_paths(axes: Axes, colour: str, robots: list[Robot]) -> None:
    for robot in robots:
        x, y = robot.motion("straight").path_mm.T
        axes.plot(x, y, color=colour, lw=1.3, alpha=0.85)
        axes.plot(x[-1], y[-1], "o", color=colour, ms=3)


def _draw_turns(axes: Axes, colour: str, robots: list[Robot]) -> None:
    for robot in robots:
        for mode in ("turn_left", "turn_right"):
            x, y = robot.motion(mode).path_mm.T
            axes.plot(x, y, color=colour, lw=1.0, alpha=0.7)
            axes.plot(x[-1], y[-1], "o", color=colour, ms=3)


def _draw_rates(axes: Axes, colour: str, robots: list[Robot], study: MotorStudy) -> None:
    wanted = study.wanted
    shift = 0.0 if not study.fitted else -0.12 if colour == GIVEN else 0.12
    spread = np.linspace(-0.06, 0.06, len(robots)) if len(robots) > 1 else np.zeros(1)
    for place, robot in zip(spread, robots, strict=True):
        left, right = (robot.motion(m).rate_deg_s for m in ("turn_left", "turn_right"))
        straight = robot.motion("straight")
        turns = (left / wanted.turn_deg_s, right / wanted.turn_deg_s)
        speed = straight.speed_mm_s / wanted.speed_mm_s
        veer = 1 + straight.turn_deg_s / wanted.turn_deg_s  # above 1: to the left
        for column, figure in enumerate((*turns, speed, veer)):
            axes.plot(column + shift + place, figure, "o", color=colour, ms=3.5, alpha=0.8)


def _finish_rates(axes: Axes, study: MotorStudy) -> None:
    axes.axhline(1, color=QUIET, lw=0.8, zorder=0)
    axes.axhspan(0.95, 1.05, color="#000000", alpha=0.06, lw=0, zorder=0)
    turn, speed = study.wanted.turn_deg_s, study.wanted.speed_mm_s
    axes.set_xticks(
        range(4),
        ["turn left", "turn right", "straight on:\nspeed", "straight on:\nturns"],
    )
    axes.set_ylabel("in relation to wanted")
    axes.set_title(f"c  rates; 1 is {turn:g} °/s, {speed:g} mm/s; band of ±5 %", loc="left")
    text = f"turns: 1 is straight,\n1.1 is {turn / 10:.3g} °/s to the left"
    axes.plot([], [], " ", label=text)


def _draw_values(axes: Axes, colour: str, robots: list[Robot]) -> None:
    values = np.array([robot.values for robot in robots])
    for column, marker in enumerate("<>^v"):
        axes.plot(range(len(robots)), values[:, column], marker, color=colour, ms=5, alpha=0.85)


def _finish_values(axes: Axes, study: MotorStudy) -> None:
    names = ("turn left", "turn right", "straight left", "straight right")
    for marker, name in zip("<>^v", names, strict=True):
        axes.plot([], [], marker, color=QUIET, ms=5, label=name)
    count = len(study.robots)
    step = -(-count // 12)
    axes.set_xticks(range(0, count, step), [str(r.uid) for r in study.robots[::step]])
    axes.set_xlabel("uid")
    axes.set_ylabel("motor value")
    axes.set_title("d  values", loc="left")


def _legend_below(axes: Axes, columns: int = 2) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(-0.05, -0.17), ncols=columns, fontsize=8)


def _across(axes: Axes) -> Any:
    """Return coordinates that are relative along x and data along y."""
    return axes.get_yaxis_transform()


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", pad_inches=0.12)
