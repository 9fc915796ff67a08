"""A simulation run to its end with everything recorded, whatever ends it.

>>> from avrswarm import Simulation, read_scene
>>> from avrswarm.record.recorded_run import run_recorded
>>> run = run_recorded(Simulation(read_scene("blink")), seconds=1)  # doctest: +SKIP
>>> run.reason, run.folder  # doctest: +SKIP
('finished', PosixPath('runs/blink'))
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from avrswarm.errors import ChipFault
from avrswarm.jit import compile_seconds
from avrswarm.record.run_folder import RunRecorder
from avrswarm.swarm.simulation import Simulation

if TYPE_CHECKING:
    from avrswarm.record.live import LiveWindow


class RecordedRun(NamedTuple):
    """How a run ended: ``finished``, ``interrupted`` or ``fault``, and where it is."""

    reason: str
    folder: Path
    info: dict[str, Any]
    """What ``run.json`` holds."""

    @property
    def pictures(self) -> list[Path]:
        """Pictures and film that were drawn, the most telling first."""
        names = [*self.info.get("pictures", [])]
        if "film" in self.info:
            names.append(self.info["film"])
        return [self.folder / name for name in names]


def run_recorded(
    simulation: Simulation,
    seconds: float | None = None,
    folder: str | Path | None = None,
    *,
    film: bool = False,
    live: LiveWindow | None = None,
    on_progress: Callable[[float], object] | None = None,
) -> RecordedRun:
    """Run a simulation, write its run folder and draw its pictures.

    Ctrl-C ends the run after the current step of the world; what was recorded until then is kept
    and drawn. A second Ctrl-C is not waited for. If the scene wants a fault to stop the run, the
    run ends there and its folder says so.

    Parameters
    ----------
    simulation
        What is run.
    seconds
        Simulated time; default: the scene's.
    folder
        Where to write, as for `RunRecorder`.
    film
        Also make a film.
    live
        A window that shows the run while it goes on.
    on_progress
        Called with the simulated time after every step.
    """
    recorder = RunRecorder(simulation, folder, film=film)
    recorder.start()
    compiled_s = compile_seconds()
    reason = "finished"
    with _interrupts() as pressed:

        def after_step(running: Simulation) -> bool:
            try:
                recorder.sample()
            except KeyboardInterrupt:  # it came while rows were being taken, and was put off
                pressed.append(True)
            if on_progress is not None:
                on_progress(running.time_s)
            if live is not None:
                live.update(running)
            return not pressed

        try:
            simulation.run(seconds, after_step)
        except ChipFault:
            reason = "fault"
        except BaseException:
            recorder.finish("error", compile_seconds() - compiled_s, compiled_s)
            raise
        if pressed:
            reason = "interrupted"
    shown_s = 0.0 if live is None else live.spent_s
    recorder.finish(reason, compile_seconds() - compiled_s, compiled_s, shown_s)
    assert recorder.folder is not None
    return RecordedRun(reason, recorder.folder, recorder.info)


@contextmanager
def _interrupts() -> Iterator[list[bool]]:
    """Note the first Ctrl-C in a list instead of raising it at any odd place."""
    pressed: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        pressed.append(True)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
