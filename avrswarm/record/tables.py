"""Tables on disk that grow while a run goes on and can be read at any time, even after a crash.

A Parquet file is readable only once its end is written. So a growing table is a folder of finished
part files, ``name.parquet/part-00000.parquet`` and so on; when the run ends they become one file
``name.parquet``. Readers of Parquet take a file and a folder alike.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Columns with few different values; looking for them in the others takes longer than writing.
REPEATED = ["time_s", "start_s", "sender", "receiver", "robot", "fate", "payload", "led"]
OPTIONS: Any = {"compression": "zstd", "use_dictionary": REPEATED}
OPTIONS_OF_PARTS: Any = {**OPTIONS, "compression": "lz4", "write_statistics": False}
"""Parts do not stay, and the simulation waits for them."""
PART = "part-{:05d}.parquet"


class GrowingTable:
    """One table of a run folder."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._parts: list[Path] = []

    def append(self, rows: pa.Table) -> None:
        """Write more rows; they are on disk when this returns."""
        if rows.num_rows == 0:
            return
        self._path.mkdir(exist_ok=True)
        part = self._path / PART.format(len(self._parts))
        unfinished = part.with_name(f".{part.name}")
        pq.write_table(rows, unfinished, **OPTIONS_OF_PARTS)
        os.replace(unfinished, part)
        self._parts.append(part)

    def close(self) -> None:
        """Make one file of the parts."""
        unfinished = self._path.with_name(f".{self._path.name}")
        with pq.ParquetWriter(unfinished, self._schema, **OPTIONS) as writer:
            for part in self._parts:
                writer.write_table(pq.read_table(part, schema=self._schema))
        parts = self._path.with_name(f".{self._path.name}.parts")
        if self._parts:
            os.replace(self._path, parts)
        os.replace(unfinished, self._path)
        shutil.rmtree(parts, ignore_errors=True)
        self._parts = []


def read_growing(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table, whether its run has ended, is going on, or was killed."""
    wanted = None if columns is None else list(columns)
    if path.is_file():
        return pq.read_table(path, columns=wanted)
    parts = sorted(path.glob("part-*.parquet"))
    if not parts:
        raise FileNotFoundError(path)
    return pa.concat_tables(pq.read_table(part, columns=wanted) for part in parts)
