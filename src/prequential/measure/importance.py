"""Which settings made trials good or bad. No torch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FEWEST_TRIALS = 16
"""With fewer, a setting without any effect seems to explain more than a fifth too often (more than one in twenty)."""


def importance(settings: Sequence[Mapping[str, Any]], values: ArrayLike) -> dict[str, float] | None:
    """The share of the order of trials that each setting explains by itself, the largest first.

    A number explains it by the parabola through its ranks that fits the ranks of the values best, anything else by the
    mean rank for each of its values. Each trial is predicted from the others alone, so that what has no effect explains
    about nothing, and never more for being fitted. Settings that act only together explain little each.

    Args:
        settings: of each trial; what some lack counts as a value of its own.
        values: what trials are ordered by, such as codelengths; finite.

    Returns:
        Shares from 0 to 1, which need not add up to 1; None for fewer than `FEWEST_TRIALS`.

    Example:
        >>> trials = [{"streams": number % 8, "rate": 0.1 * (number * 7 % 5)} for number in range(40)]
        >>> shares = importance(trials, [100 - 10 * each["streams"] + each["rate"] for each in trials])
        >>> {name: round(share, 1) for name, share in shares.items()}
        {'streams': 1.0, 'rate': 0.0}
    """
    if len(settings) < FEWEST_TRIALS:
        return None
    names, ranked = dict.fromkeys(name for each in settings for name in each), ranks(np.asarray(values, np.float64))
    shares = {name: _explained([each.get(name) for each in settings], ranked) for name in names}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """The rank of each value, from 0; those that are equal share one.

    Example:
        >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
        [1.5, 0.0, 1.5]
    """
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[which], np.float64)


def _explained(given: Sequence[Any], ranked: NDArray[np.float64]) -> float:
    """1 − the squared error of predicting each trial from the others with the setting / the same without it."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        place = ranks(np.asarray(given, np.float64)) / len(given) - 0.5
        columns = np.stack([np.ones(len(given)), place, place**2], axis=1)
    else:
        texts = np.asarray([repr(value) for value in given])
        columns = (texts[:, None] == np.unique(texts)).astype(np.float64)
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes[0]]
    alone = 1 - 1 / len(given)  # what a trial does not weigh in the mean of all
    weight = np.maximum(1 - (basis**2).sum(axis=1), 1 / len(given) ** 2)
    errors, errors_without = (ranked - basis @ (basis.T @ ranked)) / weight, (ranked - ranked.mean()) / alone
    is_only = weight <= 1 / len(given) ** 2  # the only one with its value: nothing is known of it
    total = float((errors_without**2).sum())
    left = float((np.where(is_only, errors_without, errors) ** 2).sum())
    return max(1 - left / total, 0.0) if total else 0.0
