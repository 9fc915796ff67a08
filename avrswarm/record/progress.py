"""A progress bar for a run: simulated time, speed in relation to real time, time to go.

On a terminal it is a bar that stays in place; elsewhere (a log file, CI) a line now and then.
"""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn
from rich.text import Text

from avrswarm.jit import compile_seconds

REFRESH_S = 0.2
LINE_EVERY_S = 10.0
SMOOTHING_S = 5.0
"""Speed is an average over about so much wall time."""


class RunProgress:
    """Shows how far a run is; use it as a context and call ``update`` as often as you like.

    Parameters
    ----------
    name
        What is run.
    seconds
        Simulated time that the run will take.
    console
        Where to show it; default: stderr.
    """

    def __init__(self, name: str, seconds: float, console: Console | None = None) -> None:
        self._name = name
        self._seconds = seconds
        self._console = console or Console(stderr=True)
        self._done = self._latest = 0.0
        self._speed: float | None = None
        self._first: tuple[float, float] | None = None  # when, and how far, the first step came
        self._bar: Progress | None = None
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=None),
                _Figures(),
                console=self._console,
                expand=True,
                auto_refresh=False,
                transient=False,
            )

    def __enter__(self) -> RunProgress:
        self._shown = self._wall = self._now = _working_time()
        if self._bar is not None:
            self._task = self._bar.add_task(self._name, total=self._seconds, figures="starting")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            if self._first is not None and self._now > self._first[0]:  # speed of the whole run
                self._speed = (self._latest - self._first[1]) / (self._now - self._first[0])
            self._show()
            self._bar.stop()

    def update(self, done_s: float) -> None:
        """Tell that so much time of the run has been simulated."""
        now = self._now = _working_time()
        self._latest = done_s
        if self._first is None:  # what came before was preparation
            self._first = self._wall, self._done = now, done_s
        if now - self._shown < (REFRESH_S if self._bar is not None else LINE_EVERY_S):
            return
        passed, progress = now - self._wall, done_s - self._done
        if passed > 0:
            share = min(1.0, passed / SMOOTHING_S)
            before = progress / passed if self._speed is None else self._speed
            self._speed = before + share * (progress / passed - before)
        self._wall, self._done, self._shown = now, done_s, now
        self._show()

    def _show(self) -> None:
        figures = describe(self._latest, self._seconds, self._speed)
        if self._bar is None:
            self._console.print(f"{self._name}: {figures}", highlight=False)
        else:
            self._bar.update(self._task, completed=self._latest, figures=figures, refresh=True)


def _working_time() -> float:
    """Return a clock that stands still while code is compiled: that says nothing about speed."""
    return time.perf_counter() - compile_seconds()


def describe(done_s: float, seconds: float, speed: float | None) -> str:
    """Return the figures of a bar.

    >>> describe(12.34, 60, 1.5)
    '12.3 / 60.0 s  1.50x real time  32 s to go'
    >>> describe(0, 60, None)
    '0.0 / 60.0 s'
    """
    text = f"{done_s:.1f} / {seconds:.1f} s"
    if speed:
        digits = 2 if speed < 10 else 0
        text += f"  {speed:.{digits}f}x real time"
        if done_s < seconds:
            text += f"  {_duration((seconds - done_s) / speed)} to go"
    return text


def _duration(seconds: float) -> str:
    """Return a length of time in words.

    >>> _duration(59.6), _duration(3599.9), _duration(86399)
    ('1 min 00 s', '1 h 00 min', '24 h 00 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


class _Figures(TextColumn):
    """The figures right of the bar, never wrapped."""

    def __init__(self) -> None:
        super().__init__("{task.fields[figures]}")

    def render(self, task: Task) -> Text:
        """Return the text of a task."""
        text = super().render(task)
        text.no_wrap = True
        return text
