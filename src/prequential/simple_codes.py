"""Codes that look at labels alone, for tables to stand beside: what a network must beat. No torch."""

from typing import Any

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
    return _counting_code(labels, np.zeros(len(labels)), num_classes)


def previous_label_code(labels: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """−ln p of each label by how often it followed the label before it, so far. Hard to beat where labels persist.

    Example:
        >>> np.exp(-previous_label_code(np.array([1, 1, 1, 1]), 2)).round(3)
        array([0.5  , 0.5  , 0.75 , 0.833])
    """
    before = np.append(num_classes, labels[:-1])[: len(labels)]  # the first label follows none
    return _counting_code(labels, before, num_classes)


def _counting_code(labels: NDArray[Any], contexts: NDArray[Any], num_classes: int) -> NDArray[np.float64]:
    small = np.min_scalar_type((num_classes + 1) * num_classes)  # up to 16 bits are sorted several times faster
    contexts, labels = contexts.astype(small), labels.astype(small)
    odds = _times_before(contexts).astype(np.float64)
    odds += num_classes / 2
    odds /= _times_before(contexts * small.type(num_classes) + labels) + 0.5
    return np.log(odds, out=odds)


def _times_before(values: NDArray[Any]) -> NDArray[np.int64]:
    """How often each value has occurred before its position."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    starts = np.arange(len(ranked))
    starts[1:][ranked[1:] == ranked[:-1]] = 0
    np.maximum.accumulate(starts, out=starts)
    counts = np.empty(len(values), np.int64)
    counts[order] = np.subtract(np.arange(len(ranked)), starts, out=starts)
    return counts
