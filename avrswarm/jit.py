"""How Python kernels become machine code, and where that code is kept between runs.

Two decorators mark compiled functions:

* ``kernel`` for everything that is called from other compiled code,
* ``entry`` for the few functions that Python calls; only these are cached on disk, with all
  kernels they call inside them.

numba's own cache looks only at the file of the cached function and would serve stale code after an
edit in another module. The cache therefore lives in a folder named by a digest of every source file
that compiled code can depend on: an edit in any of them starts an empty one.

``NUMBA_DISABLE_JIT=1`` and ``NUMBA_BOUNDSCHECK=1`` work as usual; the latter gets its own cache
folder.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event

from avrswarm.whole_program import EntryCompiler, KernelCompiler, share_one_version

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parent

_njit: Any = numba.njit  # its annotations leave out the options that we use
_config: Any = numba.config

JIT_DISABLED = bool(_config.DISABLE_JIT)
"""True under ``NUMBA_DISABLE_JIT=1``: kernels run as plain Python, a thousand times slower."""


NEVER_COMPILED = ("record", "study", "cli.py")
"""Parts of the package that hold no compiled code, and that no module with compiled code imports
(tests see to both): an edit there leaves the cache as it is."""


def source_digest() -> str:
    """Return a digest of all sources that compiled code can depend on, and of numba's version."""
    digest = hashlib.sha256(f"numba {numba.__version__} boundscheck {_config.BOUNDSCHECK}".encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in NEVER_COMPILED:
            continue
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder of compiled code of all versions (``AVRSWARM_CACHE`` overrides it)."""
    chosen = os.environ.get("AVRSWARM_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "avrswarm"


def _use_cache_folder() -> Path:
    folder = cache_root() / source_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: compile into a folder of this process
        folder = Path(tempfile.mkdtemp(prefix="avrswarm-cache-"))
    _forget_old_caches(folder)
    _config.CACHE_DIR = str(folder)
    return folder


def _forget_old_caches(current: Path, keep: int = 8) -> None:
    """Keep the newest few cache folders; each edit of the package leaves one behind."""
    try:
        folders = sorted(
            (path for path in current.parent.iterdir() if path.is_dir() and len(path.name) == 16),
            key=lambda path: path.stat().st_mtime,
            reverse=True,
        )
    except OSError:
        return
    for folder in folders[keep:]:
        if folder != current:
            shutil.rmtree(folder, ignore_errors=True)


CACHE_FOLDER = _use_cache_folder()

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def kernel(function: F) -> F:
    """Compile a function that only compiled code calls."""
    compile_kernel = _njit(
        pipeline_class=KernelCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS
    )
    compiled: F = compile_kernel(function)
    if not JIT_DISABLED:
        share_one_version(compiled)
    return compiled


def entry(function: F) -> F:
    """Compile a function that Python calls, and keep the result on disk."""
    compile_entry = _njit(
        cache=True, pipeline_class=EntryCompiler, no_cfunc_wrapper=True, **_OPTIONS
    )
    compiled: F = compile_entry(function)
    return compiled


class _CompileClock(event.Listener):
    """Adds up the time that compiling and loading compiled code take."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def on_start(self, event: Any) -> None:
        """Begin; kernels are compiled while their callers are."""
        if self._depth == 0:
            self._start = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """End."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._start


_clock = _CompileClock()
_register: Any = event.register
_register("numba:compiler_lock", _clock)


def compile_seconds() -> float:
    """Return how long this process has compiled, or loaded compiled code, so far."""
    return _clock.seconds


def is_warm(entries: str = "") -> bool:
    """Tell whether compiled code of exactly these sources is already on disk.

    Parameters
    ----------
    entries
        Module and name of an entry, such as ``window.run_round``; default: any.
    """
    return JIT_DISABLED or any(CACHE_FOLDER.rglob(f"{entries}*.nbi"))


class announce_compilation:  # noqa: N801 - reads as a verb at its call site
    """Say on stderr that a first start compiles, and how long it took.

    Parameters
    ----------
    entries
        What is compiled, as for ``is_warm``.
    about_s
        How long that takes on an ordinary machine.
    """

    def __init__(self, entries: str = "", about_s: int = 15) -> None:
        self.cold = not is_warm(entries)
        self.about_s = about_s
        self.seconds = 0.0

    def __enter__(self) -> announce_compilation:
        self._start = time.perf_counter()
        self._collects = gc.isenabled()
        if self.cold:
            gc.disable()  # the compiler makes millions of small objects: a tenth of its time
            print(
                "avrswarm: first start of this version: compiling"
                f" (about {self.about_s} s, kept on disk) ...",
                file=sys.stderr,
                flush=True,
            )
        return self

    def __exit__(self, *_exception: object) -> None:
        self.seconds = time.perf_counter() - self._start
        if self._collects:
            gc.enable()
        if self.cold:
            print(f"avrswarm: compiled in {self.seconds:.1f} s", file=sys.stderr, flush=True)
