"""Fewer points, the same picture: in each column of the paper the first, the last, the lowest and the highest."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

COLUMNS = 800
"""More than a panel has dots, at the size and resolution in which pictures are written."""


def columns(length: int, scale: str, most: int = COLUMNS) -> NDArray[np.int64]:
    """Edges that divide 0 … length−1 into at most `most` columns that look equally wide on a linear or log axis.

    Example:
        >>> columns(1000, "log", 4).tolist(), columns(6, "linear", 3).tolist()
        ([0, 5, 31, 177, 1000], [0, 2, 4, 6])
    """
    edges = np.geomspace(1, length + 1, most + 1) - 1 if scale == "log" else np.linspace(0, length, most + 1)
    return np.unique(np.rint(edges).astype(np.int64))


def kept(values: NDArray[np.floating], scale: str = "linear", most: int = COLUMNS) -> NDArray[np.int64]:
    """Which values to draw, in order: at most four for each column. No jump and no kink gets lost.

    Example:
        >>> spike = np.zeros(10_000)
        >>> spike[7_777] = 1.0
        >>> indices = kept(spike, most=10)
        >>> len(indices), 7_777 in indices
        (21, True)
    """
    if len(values) <= 4 * most:
        return np.arange(len(values))
    edges = columns(len(values), scale, most)
    found = [edges[:-1], edges[1:] - 1]
    for low, high in pairwise(edges.tolist()):
        piece = values[low:high]
        found.append(np.array([low + piece.argmin(), low + piece.argmax()]))
    return np.unique(np.concatenate(found))
