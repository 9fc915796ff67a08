"""All keys of scenes as a table, made from the model itself."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from avrswarm.scene.model import Optics, Scene
from avrswarm.scene.read import limits_of, members_of, tag_of
from avrswarm.world.optics import PRESETS

_UNITS = {
    "mm": "mm",
    "mm_s": "mm/s",
    "deg": "degrees",
    "deg_s": "degrees/s",
    "s": "s",
    "ms": "ms",
    "us": "us",
    "hz": "Hz",
    "percent": "%",
    "counts": "ADC counts",
    "lux": "lux",
    "lux_per_m": "lux/m",
    "volts_per_lux": "V/lux",
    "cd": "cd",
    "g": "g",
    "c": "degrees C",
    "mah": "mAh",
    "duty": "0 to 255",
    "fps": "1/s",
}


class Key(NamedTuple):
    """One key: its path, unit, type or choices, limits, default and meaning."""

    path: str
    unit: str
    type: str
    limits: str
    default: str
    meaning: str


def describe_keys() -> list[Key]:
    """Return every key that a scene may have, in the order of the model."""
    return list(_walk(Scene, ""))


def describe_text(keys: Iterable[Key] | None = None) -> str:
    """Return keys (default: all) as text, one per line, section by section."""
    lines = []
    section = None
    for key in describe_keys() if keys is None else keys:
        here, _, name = key.path.rpartition(".")
        if here != section:
            lines.append(f"\n[{here}]")
            section = here
        facts = ", ".join(part for part in (key.unit, key.type, key.limits) if part)
        lines.append(f"  {name} = {key.default}  ({facts}) {key.meaning}")
    return "\n".join(lines).strip()


def _walk(section: type[BaseModel], prefix: str) -> Iterator[Key]:
    for name, field in section.model_fields.items():
        path = f"{prefix}{name}"
        inner = list(_sections(field.annotation))
        if inner:
            mark = "[]" if _is_list(field.annotation) else ""
            for model in inner:
                tag = tag_of(model)
                yield from _walk(model, f"{path}{mark}{f'({tag})' if tag else ''}.")
            continue
        yield Key(
            path,
            _unit(name),
            _type(field.annotation),
            limits_of(section, name),
            _default(section, name),
            field.description or ("chooses the kind" if name == "kind" else ""),
        )


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    for option in members_of(annotation):
        if get_origin(option) is list:
            yield from _sections(get_args(option)[0])
        elif isinstance(option, type) and issubclass(option, BaseModel):
            yield option


def _is_list(annotation: Any) -> bool:
    return any(get_origin(option) is list for option in members_of(annotation))


def _unit(name: str) -> str:
    parts = name.split("_")
    for start in range(1, len(parts)):
        unit = _UNITS.get("_".join(parts[start:]))
        if unit:
            return unit
    return _UNITS.get(name, "")


def _type(annotation: Any) -> str:
    names = []
    for option in members_of(annotation):
        if get_origin(option) is typing.Literal:
            names.append(" | ".join(f'"{choice}"' for choice in get_args(option)))
        elif get_origin(option) is list:
            names.append(f"list of {_type(get_args(option)[0])}")
        elif option is not type(None):
            names.append(
                {"str": "text", "Path": "file", "float": "number", "int": "whole number"}.get(
                    option.__name__, option.__name__
                )
            )
    return " or ".join(names)


def _default(section: type[BaseModel], name: str) -> str:
    if section is Optics and name in PRESETS["lab"]._fields:
        return "from the preset"
    value = section.model_fields[name].get_default()
    if value is PydanticUndefined:
        return "(needed)"
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    return (
        f'"{value}"'
        if isinstance(value, str)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
