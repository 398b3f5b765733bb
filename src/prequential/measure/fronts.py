"""Which points no other point beats. No torch."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prequential.errors import PreqError


def pareto_front(costs: ArrayLike, values: ArrayLike) -> NDArray[np.int64]:
    """The indices of the points that no other point beats, in order of cost. Less is better in both.

    A point is beaten by one that is no worse in both and better in at least one. So of points with the same cost only
    the best value stays, of points with the same value only the cheapest; points that are equal in both stay or go
    together, and are listed by index. A point with an infinite cost or value is never on the front.

    Raises:
        PreqError: if costs and values are not two lists of the same length, or one is not a number.

    Example:
        >>> pareto_front([1, 2, 3, 4], [9, 5, 7, 5])
        array([0, 1])
    """
    cost, value = np.asarray(costs, np.float64), np.asarray(values, np.float64)
    if cost.ndim != 1 or cost.shape != value.shape:
        raise PreqError(
            f"a front needs one cost and one value for each point, got the shapes {cost.shape} and {value.shape}"
        )
    if np.isnan(cost).any() or np.isnan(value).any():
        place = int(np.flatnonzero(np.isnan(cost) | np.isnan(value))[0])
        raise PreqError(f"point {place} is no number (cost {cost[place]}, value {value[place]}); leave it out")
    finite = np.flatnonzero(np.isfinite(cost) & np.isfinite(value))
    order = finite[np.lexsort((finite, value[finite], cost[finite]))]
    front: list[int] = []
    points = list(zip(cost.tolist(), value.tolist(), strict=True))
    for index in order.tolist():
        if not front or points[index][1] < points[front[-1]][1] or points[index] == points[front[-1]]:
            front.append(index)
    return np.array(front, np.int64)
