"""From a TOML file and ``--set`` options to a checked scene.

Every mistake becomes one line that names the file, the key, the value and what would be right.
"""

from __future__ import annotations

import difflib
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from avrswarm.errors import SceneError
from avrswarm.scene.model import Scene
from avrswarm.scene.shipped import find_scene

_MOST_LINES = 8
_MISSING = object()


def read_scene(path: str | Path, overrides: Iterable[str] = ()) -> Scene:
    """Return the scene of a file, or of a shipped scene's bare name.

    Parameters
    ----------
    path
        ``my/scene.toml``, or a name such as ``orbit``.
    overrides
        Changes such as ``motion.speed_mm_s=8`` or ``robots.0.count=5``; values as in TOML, and what
        is not TOML is taken as text.

    Raises
    ------
    SceneError
        If anything is wrong; the message says what and where.
    """
    found = find_scene(path)
    return scene_of(_parse(found), found, overrides)


def scene_of(content: dict[str, Any], path: Path, overrides: Iterable[str] = ()) -> Scene:
    """Return the scene of a table, with changes as ``read_scene`` takes them."""
    overrides = list(overrides)
    for override in overrides:
        _apply(content, override, path)
    return check_scene(content, path, overrides)


def check_scene(content: dict[str, Any], path: Path, overrides: Sequence[str] = ()) -> Scene:
    """Return the scene of a table that was read from ``path``."""
    try:
        scene = Scene.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        lines = [_explain(part, content, path, overrides) for part in _one_per_key(error, content)]
        more = len(lines) - _MOST_LINES
        text = "\n".join(lines[:_MOST_LINES]) + (f"\n... and {more} more" if more > 0 else "")
        raise SceneError(text) from None
    scene._path = path
    if not scene.scene.name:
        name = re.sub(r"^\d+_", "", path.stem)
        scene = scene.model_copy(update={"scene": scene.scene.model_copy(update={"name": name})})
    return scene


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SceneError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SceneError(f"{path}: is not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SceneError(f"{path}: is not TOML: {error}") from None


# ---- --set key=value -----------------------------------------------------------------------------


def _apply(content: dict[str, Any], override: str, path: Path) -> None:
    """Change one value of a table that was read from a file."""
    key, separator, text = override.partition("=")
    parts = key.strip().split(".")
    if not separator or not all(parts):
        raise SceneError(f"--set {override}: write key=value, such as motion.speed_mm_s=8")
    here: Any = content
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        if isinstance(here, list):
            if not part.isdigit() or int(part) >= len(here):
                raise SceneError(
                    f"--set {override}: {'.'.join(parts[:depth])} of {path} has"
                    f" {len(here)} entries, numbered from 0; there is no '{part}'"
                )
            if last:
                here[int(part)] = _value(text)
            here = here[int(part)]
        elif isinstance(here, dict):
            if last:
                here[part] = _value(text)
            here = here.setdefault(part, {})
        else:
            raise SceneError(
                f"--set {override}: {'.'.join(parts[:depth])} is a value and has no keys in it"
            )


def _value(text: str) -> Any:
    """Read a value as TOML does; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


# ---- what went wrong -----------------------------------------------------------------------------


def _one_per_key(error: ValidationError, content: dict[str, Any]) -> list[Any]:
    """Return pydantic's errors; of those about members of a union, the one that fits the value.

    A key that takes a number or a word is told of words if it has one, else of numbers.
    """
    found: dict[tuple[str | int, ...], Any] = {}
    for part in error.errors():
        keys, _ = _locate(part["loc"])
        if keys not in found or isinstance(_at(content, keys), str):
            found[keys] = part
    return list(found.values())


def _explain(error: Any, content: dict[str, Any], path: Path, overrides: Sequence[str]) -> str:
    """Return one line for one of pydantic's errors."""
    keys, section = _locate(error["loc"])
    key = ".".join(str(part) for part in keys)
    value = _at(content, keys)
    shown = "" if value is _MISSING or isinstance(value, dict | list) else f" = {_show(value)}"
    source = next(
        (f"--set {o}" for o in overrides if o.partition("=")[0].strip() == key), str(path)
    )
    return f"{source}: {key}{shown}: {_reason(error, keys, section, content)}".replace(": :", ":")


def _reason(
    error: Any,
    keys: tuple[str | int, ...],
    section: type[BaseModel] | None,
    content: dict[str, Any],
) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            known = list(section.model_fields) if section else []
            return f"unknown key{_nearest(str(keys[-1]), known)}; known keys: {', '.join(known)}"
        case "missing":
            if keys == ("robots",):
                return "is missing: a scene needs at least one [[robots]] table"
            return f"is missing{_meaning(section, keys)}"
        case "too_short" if keys == ("robots",):
            return "has no entries: a scene needs at least one robot"
        case "literal_error":
            allowed = context["expected"]
            choices = re.findall(r"'([^']*)'", allowed)
            value = _at(content, keys)
            return f"must be one of {allowed}{_nearest(str(value), choices)}"
        case "union_tag_invalid":
            choices = re.findall(r"'([^']*)'", context["expected_tags"])
            return (
                f"kind must be one of {', '.join(choices)}{_nearest(str(context['tag']), choices)}"
            )
        case "union_tag_not_found":
            return "needs a key 'kind'" + _kinds(section, keys)
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"must be a table of keys{_meaning(section, keys)}"
        case "finite_number":
            return "must be an ordinary number, not nan or inf"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            limits = limits_of(section, str(keys[-1])) if section else ""
            return f"must be {limits or error['msg'].removeprefix('Input should be ')}"
        case "value_error":
            return str(context["error"])
        case _:
            return f"{error['msg'][0].lower()}{error['msg'][1:]}{_meaning(section, keys)}"


def _locate(
    location: tuple[str | int, ...],
) -> tuple[tuple[str | int, ...], type[BaseModel] | None]:
    """Return the keys of an error as the user wrote them, and the section that the last one is in.

    pydantic adds the chosen member of a union to a location; those parts are left out.
    """
    keys: list[str | int] = []
    section: type[BaseModel] | None = Scene
    here: Any = Scene
    for part in location:
        if isinstance(here, type) and issubclass(here, BaseModel):
            section = here
            field = here.model_fields.get(str(part))
            keys.append(part)
            here = None if field is None else field.annotation
            continue
        options = members_of(here)
        if isinstance(part, int):
            keys.append(part)
            here = next((get_args(o)[0] for o in options if get_origin(o) is list), None)
            continue
        tagged = [o for o in options if tag_of(o) == part]
        if tagged:
            here = tagged[0]
            section = here
            continue
        models = [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
        if models and part in models[0].model_fields:
            section = models[0]
            keys.append(part)
            here = models[0].model_fields[str(part)].annotation
        # anything else is pydantic's name for a member of a union, such as 'float'
    return tuple(keys), section


def members_of(annotation: Any) -> list[Any]:
    """Return the members of a union, or the type itself, without their annotations."""
    origin = get_origin(annotation)
    if origin is typing.Annotated:
        return members_of(get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [option for member in get_args(annotation) for option in members_of(member)]
    return [annotation]


def tag_of(option: Any) -> str | None:
    """Return the value of ``kind`` that chooses this member of a union."""
    if not (isinstance(option, type) and issubclass(option, BaseModel)):
        return None
    kind = option.model_fields.get("kind")
    return str(get_args(kind.annotation)[0]) if kind else None


def _kinds(section: type[BaseModel] | None, keys: tuple[str | int, ...]) -> str:
    name = next((str(key) for key in reversed(keys) if isinstance(key, str)), "")
    field = section.model_fields.get(name) if section else None
    options = members_of(field.annotation) if field else []
    members = [
        m for o in options for m in (members_of(get_args(o)[0]) if get_origin(o) is list else [o])
    ]
    tags = [tag for tag in map(tag_of, members) if tag]
    return f": one of {', '.join(tags)}" if tags else ""


def limits_of(section: type[BaseModel], key: str) -> str:
    """Return the limits of a key in words, or nothing."""
    field = section.model_fields.get(key)
    if field is None:
        return ""
    metadata = list(field.metadata)
    for option in get_args(field.annotation):
        if get_origin(option) is typing.Annotated:
            metadata += [
                m for part in get_args(option)[1:] for m in getattr(part, "metadata", [part])
            ]
    words = []
    for attribute, word in [
        ("gt", "more than"),
        ("ge", "at least"),
        ("lt", "less than"),
        ("le", "at most"),
    ]:
        value = next((getattr(m, attribute) for m in metadata if hasattr(m, attribute)), None)
        if value is not None:
            words.append(f"{word} {value:g}" if isinstance(value, float) else f"{word} {value}")
    return " and ".join(words)


def _meaning(section: type[BaseModel] | None, keys: tuple[str | int, ...]) -> str:
    field = section.model_fields.get(str(keys[-1])) if section and keys else None
    return f" ({field.description})" if field and field.description else ""


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""


def _at(content: Any, keys: tuple[str | int, ...]) -> Any:
    for key in keys:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return content


def _show(value: Any) -> str:
    if isinstance(value, str):
        text = f'"{value}"'
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
