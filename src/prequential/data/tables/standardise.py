"""Columns with mean 0 and variance 1, over the whole table or over the rows up to each one; holes become the mean.

A hole is a NaN. Statistics are those of the values that are there, so a hole is 0 after standardising.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

Numbers = NDArray[np.float64]
WAYS = ("table", "causal", "none")


def standardised_column(values: Numbers, later: Numbers, how: str, order: NDArray[np.int64], alone: bool) -> Any:
    """One column, standardised, and its held-out rows by the statistics of all others.

    Args:
        values: of the rows of the sequence, as they are stored.
        later: of the held-out rows, which are evaluated at the end and never coded.
        how: "table" (all rows), "causal" (for each row, those up to and including it: the first one that has a value
            is 0) or "none" (as they are, a hole the mean so far).
        order: the rows in the order of the sequence.
        alone: whether it is the only column.

    Example:
        >>> rows = np.array([1.0, np.nan, 3.0])
        >>> standardised_column(rows, rows[:1], "causal", np.arange(3), False)[0].tolist()
        [0.0, 0.0, 1.0]
    """
    holes, held_holes = np.isnan(values), np.isnan(later)
    mean, scale = _over_all(values[~holes] if holes.any() else values, alone)
    if how == "none":
        if holes.any():
            values = values.copy()
            values[order] = np.where(holes[order], _so_far(values[order])[0], values[order])
        return values, np.where(held_holes, mean, later)
    held = np.where(held_holes, 0, (later - mean) * scale)
    if how == "table":
        scaled = (values - mean) * scale
    else:
        scaled, means, variances = np.zeros_like(values), *_so_far(values[order])
        moves = variances > 0
        scaled[order] = (values[order] - means) * np.where(moves, 1 / np.sqrt(np.where(moves, variances, 1)), 0)
    scaled[holes] = 0
    return scaled, held


def _over_all(values: Numbers, alone: bool) -> tuple[float, float]:
    """Mean, and what to multiply with: 0 for a column that does not move, which stays at zero."""
    if not len(values):
        return 0.0, 0.0

    def total(terms: Numbers) -> float:
        # row after row, as the sum over the rows of a matrix is taken: the last bit is that of runs made before columns
        # were summed one by one
        return float(terms.sum() if alone else np.add.accumulate(terms)[-1])

    mean = total(values) / len(values)
    variance = total(np.square(values - mean)) / len(values)
    moves = values.max() > values.min() and variance > 0  # the first against rounding, the second against underflow
    return mean, float(1 / np.sqrt(variance)) if moves else 0.0


def _so_far(values: Numbers) -> tuple[Numbers, Numbers]:
    """Mean and variance of the values up to and including each one; sums are taken around the first value.

    Before there is a value both are 0.
    """
    present = ~np.isnan(values)
    if not present.any():
        return np.zeros_like(values), np.zeros_like(values)
    first, counts = values[present.argmax()], np.maximum(np.cumsum(present), 1)
    centred = np.where(present, values - first, 0)
    mean = np.cumsum(centred) / counts
    variance = np.cumsum(np.square(centred)) / counts - np.square(mean)
    began = np.cumsum(present) > 0
    return np.where(began, mean + first, 0), np.where(variance > 1e-12 * np.square(mean), variance, 0)  # else rounding


def standardised_matrix(
    values: NDArray[Any], later: NDArray[Any], how: str, order: NDArray[np.int64], what: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Columns of numbers, each standardised; behind one with holes comes a column that is 1 where they were.

    What is held out decides nothing: where it alone has holes in a column, they are the mean.

    Example:
        >>> rows = np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0]])
        >>> standardised_matrix(rows, rows[:0], "table", np.arange(3), "x")[0].tolist()
        [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    made: list[tuple[Numbers, Numbers]] = []
    for number in range(values.shape[1]):
        column, held = (np.ascontiguousarray(part[:, number], np.float64) for part in (values, later))
        require_finite(column, f"column {number} of {what}")
        require_finite(held, f"column {number} of the held-out rows of {what}")
        made.append(standardised_column(column, held, how, order, values.shape[1] == 1))
        if np.isnan(column).any():
            made.append((np.isnan(column), np.isnan(held)))
    return tuple(_joined([pair[part] for pair in made], part_of) for part, part_of in enumerate((values, later)))  # type: ignore[return-value]


def _joined(columns: list[Numbers], rows: NDArray[Any]) -> NDArray[np.float32]:
    joined = np.empty((len(rows), len(columns)), np.float32)
    for number, column in enumerate(columns):
        joined[:, number] = column
    return joined


def require_finite(values: Numbers, what: str) -> None:
    """Refuse infinities."""
    if len(bad := np.flatnonzero(np.isinf(values))):
        raise PreqError(f"{what} holds {values[bad[0]]} in row {bad[0] + 1}; leave it empty or remove the row")
