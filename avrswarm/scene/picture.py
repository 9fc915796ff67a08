"""Pictures that a scene refers to, as grey values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LEAST_PIXELS, MOST_PIXELS = 2, 4096


def read_grey(path: Path) -> NDArray[np.float64]:
    """Return a picture as grey values from 0 (black) to 1 (white), first row at the top.

    Transparent pixels count as white. ValueError says what is wrong with the file.
    """
    from matplotlib import image  # takes a while, and few scenes have a picture

    try:
        raw = np.asarray(image.imread(path))
    except Exception as error:  # whatever the decoder of that format raises
        raise ValueError(f"{path} is not a picture: {error}") from None
    pixels = raw / 255.0 if raw.dtype == np.uint8 else raw.astype(np.float64)
    if pixels.ndim == 3:
        colours = pixels[..., :3] if pixels.shape[2] >= 3 else pixels[..., :1]
        weights = np.array([0.299, 0.587, 0.114]) if colours.shape[2] == 3 else np.ones(1)
        grey = colours @ weights
        if pixels.shape[2] in (2, 4):
            opacity = pixels[..., -1]
            grey = grey * opacity + 1.0 - opacity
        pixels = grey
    if min(pixels.shape) < LEAST_PIXELS or max(pixels.shape) > MOST_PIXELS:
        rows, columns = pixels.shape
        raise ValueError(
            f"{path} has {columns} x {rows} pixels;"
            f" {LEAST_PIXELS} to {MOST_PIXELS} each way are possible"
        )
    return np.ascontiguousarray(np.round(np.clip(pixels, 0.0, 1.0), 6))
