"""Scenes and firmware that come with the package, found by name from any folder."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import NamedTuple

from avrswarm.errors import SceneError

PACKAGE = Path(__file__).resolve().parents[1]

_NUMBER = re.compile(r"^\d+_")


class SceneFile(NamedTuple):
    """A shipped scene: its bare name, where it is, and the first line of its text."""

    name: str
    path: Path
    title: str


def shipped_folder(kind: str) -> Path:
    """Return the folder of shipped ``scenes`` or ``firmware``: beside the package or in it."""
    installed = PACKAGE / "_shipped" / kind
    return installed if installed.is_dir() else PACKAGE.parent / kind


def list_scenes() -> list[SceneFile]:
    """Return all shipped scenes, lessons in their order first."""
    paths = sorted(shipped_folder("scenes").glob("*.toml"))
    paths.sort(key=lambda path: (not path.stem[0].isdigit(), path.stem))
    return [SceneFile(_NUMBER.sub("", path.stem), path, _title(path)) for path in paths]


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return next(lines, "").lstrip("# ").strip()


def find_scene(name: str | Path) -> Path:
    """Return the file of a scene: a path as it is, a bare name among the shipped ones."""
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        if path.is_file():
            return path
        raise SceneError(f"{path}: there is no such scene file{_instead(path.stem)}")
    for scene in list_scenes():
        if str(name) in (scene.name, scene.path.stem):
            return scene.path
    names = ", ".join(scene.name for scene in list_scenes())
    raise SceneError(
        f"no shipped scene is called '{name}'{_instead(str(name))}; there are: {names}"
    )


def _instead(name: str) -> str:
    names = [scene.name for scene in list_scenes()]
    near = difflib.get_close_matches(_NUMBER.sub("", name), names, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def firmware_names() -> list[str]:
    """Return the names of shipped firmware."""
    return sorted(
        folder.name
        for folder in shipped_folder("firmware").iterdir()
        if (folder / f"{folder.name}.hex").is_file()
    )


def find_firmware(name: str, folder: Path) -> Path:
    """Return the file of a firmware: a path relative to the scene's folder, or a shipped name."""
    path = Path(name)
    if path.suffix or len(path.parts) > 1:
        found = folder / path
        if found.is_file():
            return found.resolve()
        raise SceneError(f"there is no such file: {found}")
    shipped = shipped_folder("firmware") / name / f"{name}.hex"
    if shipped.is_file():
        return shipped
    near = difflib.get_close_matches(name, firmware_names(), n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise SceneError(
        f"no shipped firmware has this name{hint} (a path to a .hex or .elf file works too);"
        f" there are: {', '.join(firmware_names())}"
    )
