"""Numbers of a distribution: least, median, greatest, and a histogram."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BARS = 24


def spread(values: NDArray[Any]) -> dict[str, Any] | None:
    """Return the figures of a distribution as plain data; None if there are no values."""
    different, counts = np.unique(values, return_counts=True)
    return _figures(different, counts)


def spread_of_counts(times: Counter[int]) -> dict[str, Any] | None:
    """Return the figures of a distribution that says how often each value occurred."""
    different = np.array(sorted(times), np.int64)
    return _figures(different, np.array([times[value] for value in different.tolist()], np.int64))


def _figures(different: NDArray[Any], counts: NDArray[np.int64]) -> dict[str, Any] | None:
    if len(different) == 0:
        return None
    count = int(counts.sum())
    middle = different[np.searchsorted(np.cumsum(counts), [(count - 1) // 2, count // 2], "right")]
    return {
        "count": count,
        "min": different[0].item(),
        "median": float(middle.mean()),
        "mean": float(different @ counts / count),
        "max": different[-1].item(),
        "histogram": _histogram(different, counts),
    }


def _histogram(different: NDArray[Any], counts: NDArray[np.int64]) -> dict[str, list[float]]:
    """Return borders (``from``, ``to``) and ``count``; few different values have a bar each."""
    if len(different) <= MOST_BARS:
        same = different.tolist()
        return {"from": same, "to": same, "count": counts.tolist()}
    bars, edges = np.histogram(different, MOST_BARS, weights=counts)
    return {
        "from": edges[:-1].tolist(),
        "to": edges[1:].tolist(),
        "count": bars.astype(np.int64).tolist(),
    }
