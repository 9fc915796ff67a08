"""Tables of numbers that a scene refers to: CSV files with a header line."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

Columns = dict[str, list[float]]


def read_columns(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> Columns:
    """Return the named columns of a CSV file; ValueError names the line and column of a mistake."""
    known = [*needed, *optional]
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(line for line in file if line.strip() and not line.startswith("#"))
        try:
            header = [name.strip() for name in next(rows, [])]
            missing = [name for name in needed if name not in header]
            if missing:
                raise ValueError(
                    f"{path}: column '{missing[0]}' is missing; the first line must name"
                    f" {', '.join(needed)}"
                    + (f" and may name {', '.join(optional)}" if optional else "")
                )
            columns: Columns = {name: [] for name in header if name in known}
            for number, row in enumerate(rows, 2):
                if len(row) != len(header):
                    raise ValueError(
                        f"{path}: row {number} has {len(row)} values, not {len(header)}"
                    )
                for name, text in zip(header, row, strict=True):
                    if name in columns:
                        columns[name].append(_number(path, number, name, text))
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} is not a CSV file: {error}") from None
    return columns


def _number(path: Path, row: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{path}: row {row}, {name}: '{text}' is not a number")
    return value
