"""Codes that look at labels alone, for tables to stand beside: what a network must beat. No torch."""

import numpy as np
from numpy.typing import NDArray


def uniform_code(labels: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """−ln p of each label where every class is equally probable."""
    return np.full(len(labels), np.log(num_classes))


def frequency_code(labels: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """−ln p of each label by the frequencies of the labels before it (Krichevsky–Trofimov: each begins at ½).

    Example:
        >>> np.exp(-frequency_code(np.array([0, 0, 1]), 2)).round(3)
        array([0.5  , 0.75 , 0.167])
    """
    return _counting_code(labels, np.zeros(len(labels), np.int64), num_classes)


def previous_label_code(labels: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """−ln p of each label by how often it followed the label before it, so far. Hard to beat where labels persist.

    Example:
        >>> np.exp(-previous_label_code(np.array([1, 1, 1, 1]), 2)).round(3)
        array([0.5  , 0.5  , 0.75 , 0.833])
    """
    before = np.concatenate([[num_classes], labels[:-1]]).astype(np.int64)  # the first label follows none
    return _counting_code(labels, before, num_classes)


def _counting_code(labels: NDArray[np.integer], contexts: NDArray[np.int64], num_classes: int) -> NDArray[np.float64]:
    pairs = contexts * num_classes + labels.astype(np.int64)
    return np.log((_times_before(contexts) + num_classes / 2) / (_times_before(pairs) + 0.5))


def _times_before(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each value has occurred before its position."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    first = np.concatenate([[True], ranked[1:] != ranked[:-1]]) if len(ranked) else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(len(ranked)), 0))
    counts = np.empty(len(values), np.int64)
    counts[order] = np.arange(len(ranked)) - starts
    return counts
