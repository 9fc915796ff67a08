"""Numbers of a distribution: least, median, greatest, and a histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BARS = 24


def spread(values: NDArray[Any]) -> dict[str, Any] | None:
    """Return the figures of a distribution as plain data; None if there are no values."""
    if len(values) == 0:
        return None
    return {
        "count": len(values),
        "min": values.min().item(),
        "median": float(np.median(values)),
        "mean": float(np.mean(values)),
        "max": values.max().item(),
        "histogram": histogram(values),
    }


def histogram(values: NDArray[Any]) -> dict[str, list[float]]:
    """Return ``from`` (lower borders) and ``count``; few different values have a bar each."""
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= MOST_BARS:
        return {"from": different.tolist(), "count": counts.tolist()}
    counts, edges = np.histogram(values, MOST_BARS)
    return {"from": edges[:-1].tolist(), "count": counts.tolist()}
