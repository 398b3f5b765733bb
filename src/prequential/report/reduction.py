"""Fewer points, the same picture.

Of curves that are compared (`reduced`): few positions, the same for all runs, so that the difference of any two of them
is exact there, and straight lines between them lose no kink. Of a single line on paper (`kept`): in each column of the
paper the first, the last, the lowest and the highest point.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
GROUP_SIZE = 1 << 20
"""Numbers looked at together: what bounds the memory."""
COLUMNS = 800
"""More than a panel has dots, at the size and resolution in which pictures are written."""
Worst = tuple[float, int, int, int]
"""Of what lies between two kept positions: minus the distance from the line where it is largest (so that in a heap the
worst come first), the position there, and the two."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduced:
    """Codelengths after some numbers of labels, and how far from the truth straight lines between them are."""

    kept: NDArray[np.int64]
    """The numbers of labels, from 0 to the length of the longest run."""
    totals: list[Floats]
    """For each run the codelength after each of them, up to where the run ends, in nats."""
    error: float
    """No codelength of any run, after any label, is further than this from the line between its kept neighbours."""


def reduced(nats: Sequence[Floats], most: int = 2000) -> Reduced:
    """Choose at most `most` positions, the same for all runs, and give the codelengths there.

    Half of them are spread evenly on a logarithmic axis. The others go, one after the other, where the codelength of
    some run is furthest from the line between its neighbours: Ramer's and Douglas and Peucker's rule, worst first. So
    a jump or a bend that is larger than `error` is never passed over. Positions where a run ends are always kept.

    Args:
        nats: −ln p of each label, for each run, of at least one. A run ends before the first infinite one.
        most: positions to keep, beside the ends of runs.

    Example:
        >>> nats = np.full(100_000, 0.25)
        >>> nats[70_001] = 40.0
        >>> found = reduced([nats], 64)
        >>> bool(np.isin([0, 70_001, 70_002, 100_000], found.kept).all()), found.error < 1e-6
        (True, True)
    """
    curves = [each[: finite_length(each)] for each in nats]
    ends = {0, *map(len, curves)}
    length = max(ends)
    even = np.geomspace(1, max(length, 1), max(most // 2 - 1, 1)).round().astype(np.int64)
    kept = sorted(ends | set(even[even <= length].tolist()))
    waiting = [_worst(curves, start, stop) for start, stop in pairwise(kept)]
    heapq.heapify(waiting)
    while len(kept) < most and waiting and waiting[0][0] < 0:
        _, position, start, stop = heapq.heappop(waiting)
        kept.append(position)
        heapq.heappush(waiting, _worst(curves, start, position))
        heapq.heappush(waiting, _worst(curves, position, stop))
    positions = np.array(sorted(kept), np.int64)
    return Reduced(
        kept=positions,
        totals=[totals_after(curve, positions) for curve in curves],
        error=abs(waiting[0][0]) if waiting else 0.0,
    )


def finite_length(nats: Floats) -> int:
    """How many labels there are before the first that has an infinite code."""
    lost = ~np.isfinite(nats)
    return int(lost.argmax()) if lost.any() else len(nats)


def totals_after(nats: Floats, kept: NDArray[np.int64]) -> Floats:
    """The codelength after each of the kept numbers of labels, as far as there are labels.

    Example:
        >>> totals_after(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 3, 9]))
        array([0., 1., 7.])
    """
    within = kept[kept <= len(nats)]
    sums = np.add.reduceat(nats[: within[-1]], within[:-1]) if len(within) > 1 else np.zeros(0)
    return np.append(0.0, np.cumsum(sums))


def _worst(curves: Iterable[Floats], start: int, stop: int) -> Worst:
    """Where between two kept positions some codelength is furthest from the line."""
    size = stop - start
    covering = [curve[start:stop] for curve in curves if len(curve) >= stop]
    if size < 2 or not covering:
        return 0.0, start, start, stop
    share = np.arange(1, size + 1) / size
    furthest = np.zeros(size)
    rows = max(GROUP_SIZE // size, 1)
    for first in range(0, len(covering), rows):
        totals = np.cumsum(np.stack(covering[first : first + rows]), axis=1)
        rounding = 1e-12 * np.abs(totals[:, -1:])
        np.subtract(totals, totals[:, -1:] * share, out=totals)
        np.abs(totals, out=totals)
        totals[totals < rounding] = 0.0
        np.maximum(furthest, totals.max(axis=0), out=furthest)
    at = int(furthest[:-1].argmax())
    return -float(furthest[at]), start + at + 1, start, stop


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
