"""Windows over the sequence, and the mean loss or error rate in each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS = 8
"""A rolling window moves by this part of its size."""
PER_DECADE = 10
"""Windows that grow with the position: so many for each factor of ten."""
FIRST_WINDOW = 8


@dataclass(frozen=True)
class Windows:
    """Spans of positions, half-open; `text` says what they are."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    text: str

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Labels in each."""
        return self.stops - self.starts

    @property
    def centres(self) -> NDArray[np.float64]:
        """The middle of each, for labels that are counted from 1."""
        return (self.starts + self.stops + 1) / 2

    def means(self, nats: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of the values in each."""
        total = np.concatenate([[0.0], np.cumsum(nats)])
        with np.errstate(invalid="ignore"):  # behind a label of probability 0 there is no loss
            return np.asarray((total[self.stops] - total[self.starts]) / self.sizes)


def growing_windows(length: int) -> Windows:
    """Windows next to each other that grow with the position, as a logarithmic axis wants them.

    They cover the sequence once: sizes times means add up to the codelength.

    Example:
        >>> growing_windows(20).starts.tolist()
        [0, 8, 10, 13, 16]
    """
    num = max(round(PER_DECADE * np.log10(max(length / FIRST_WINDOW, 1))), 1)
    edges = np.rint(np.geomspace(min(FIRST_WINDOW, length), length, num + 1)).astype(np.int64)
    edges = np.unique(np.concatenate([[0], edges]))
    return Windows(edges[:-1], edges[1:], "mean over windows that grow with the position")


def rolling_windows(length: int, size: int) -> Windows:
    """Windows of one size, each an eighth of it further on; the last one ends at the end.

    Where the size is a multiple of eight, every eighth of them lie next to each other: their sums add up to the
    codelength of what they cover.

    Example:
        >>> rolling_windows(20, 8).starts.tolist()
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    """
    size = min(size, length)
    step = max(size // STEPS, 1)
    starts = np.unique(np.append(np.arange(0, length - size + 1, step), length - size))
    return Windows(starts, starts + size, f"rolling mean of {size:,} labels")


def windows(length: int, scale: str, size: int | None) -> Windows:
    """Rolling windows of the given size; without one, growing windows or a fiftieth of the sequence.

    Of a short sequence that would be few labels: there it is up to an eighth, at most 200.
    """
    if size is None and scale == "log":
        return growing_windows(length)
    if size is None:
        size = max(length // 50, min(length // 8, 200), STEPS) // STEPS * STEPS
    return rolling_windows(length, size)
