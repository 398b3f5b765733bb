"""Codes that look at labels alone, for tables to stand beside: what a network must beat. No torch."""

import numpy as np
from numpy.typing import NDArray

BLOCK_SIZE = 1 << 16
"""Labels counted at a time."""


def uniform_code(labels: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """−ln p of each label where every class is equally probable."""
    return np.full(len(labels), np.log(num_classes))


def frequency_code(labels: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """−ln p of each label by the frequencies of the labels before it (Krichevsky–Trofimov: each begins at ½).

    Example:
        >>> np.exp(-frequency_code(np.array([0, 0, 1]), 2)).round(3)
        array([0.5  , 0.75 , 0.167])
    """
    return _counting_code(labels, np.broadcast_to(np.uint8(0), len(labels)), num_classes)


def previous_label_code(labels: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """−ln p of each label by how often it followed the label before it, so far. Hard to beat where labels persist.

    Example:
        >>> np.exp(-previous_label_code(np.array([1, 1, 1, 1]), 2)).round(3)
        array([0.5  , 0.5  , 0.75 , 0.833])
    """
    before = np.append(num_classes, labels[:-1]).astype(np.min_scalar_type(num_classes))  # the first label follows none
    return _counting_code(labels, before, num_classes)


def _counting_code(labels: NDArray[np.integer], contexts: NDArray[np.integer], num_classes: int) -> NDArray[np.float64]:
    """Block by block, so that memory holds little else; all at once where there are more pairs than labels."""
    num_pairs = (num_classes + 1) * num_classes
    is_one_block = num_pairs > max(len(labels), BLOCK_SIZE)
    size = max(len(labels), 1) if is_one_block else BLOCK_SIZE
    seen = np.zeros(0 if is_one_block else num_classes + 1, np.int64)
    seen_pairs = np.zeros(0 if is_one_block else num_pairs, np.int64)
    nats = np.empty(len(labels))
    for start in range(0, len(labels), size):
        here = slice(start, start + size)
        context = contexts[here].astype(np.int64)
        pairs = context * num_classes + labels[here].astype(np.int64)
        nats[here] = np.log((_times_before(context, seen) + num_classes / 2) / (_times_before(pairs, seen_pairs) + 0.5))
    return nats


def _times_before(values: NDArray[np.int64], seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each value has occurred before its position, in this block and, by `seen`, before; adds the block."""
    is_small = 0 < len(seen) <= 1 << 16
    order = np.argsort(values.astype(np.uint16) if is_small else values, kind="stable")  # numbers of 16 bits sort fast
    ranked = values[order]
    first = np.append(True, ranked[1:] != ranked[:-1])
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, len(ranked)))
    counts = np.empty(len(values), np.int64)
    counts[order] = np.arange(len(ranked)) - np.repeat(starts, sizes)
    if len(seen):
        counts += seen[values]
        seen[ranked[starts]] += sizes
    return counts
