"""How do we run a program fast without changing a bit? By translating it to native code.

``flow.py`` finds out which words of a flash image are instructions and where control may enter;
``emit.py`` writes LLVM IR for what lies between two entries; ``translate.py`` compiles that once
per flash image, in the background, and keeps it on disk. ``avrswarm.chip.native`` is where the core
goes in and out.
"""

from __future__ import annotations

from typing import Literal, get_args

from avrswarm.engine.translate import Translation
from avrswarm.errors import UsageError

EngineName = Literal["interpreter", "translated", "auto"]
"""How to run programs: never translated, always, or as soon as the translation is there."""

ENGINES: tuple[str, ...] = get_args(EngineName)


def check_engine(name: str) -> None:
    """Refuse a name that is no engine."""
    if name not in ENGINES:
        raise UsageError(f"engine must be one of {', '.join(ENGINES)}, not {name!r}")


__all__ = ["ENGINES", "EngineName", "Translation", "check_engine"]
