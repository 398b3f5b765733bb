"""Randomness as a pure function: a key is hashed from (seed, purpose, index), a draw from (key, counter).

Nothing here has state, so any draw of any run can be made again on its own, in any order.
Keys are hashed, never added: derive(1, "a", 2) has nothing to do with derive(2, "a", 1).
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


def derive(seed: int, purpose: str, index: int = 0) -> int:
    """A 64-bit key for one purpose (and one event) under a seed.

    Example:
        >>> derive(0, "order") == derive(0, "order"), derive(0, "order") == derive(1, "order")
        (True, False)
    """
    text = f"{seed}\x1f{purpose}\x1f{index}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"prequential").digest(), "little")


def draw_bits(key: int, counters: NDArray[np.int64]) -> NDArray[np.uint64]:
    """64 random bits for each counter: SplitMix64, started at `key`, read at any place."""
    with np.errstate(over="ignore"):
        bits = (counters.astype(np.uint64) + np.uint64(1)) * GOLDEN + np.uint64(key)
        bits = (bits ^ (bits >> np.uint64(30))) * MIX_1
        bits = (bits ^ (bits >> np.uint64(27))) * MIX_2
        return bits ^ (bits >> np.uint64(31))


def uniforms(key: int, counters: NDArray[np.int64]) -> NDArray[np.float64]:
    """A uniform number in [0, 1) for each counter.

    Example:
        >>> u = uniforms(derive(0, "example"), np.arange(100_000))
        >>> round(float(u.mean()), 2), bool((u >= 0).all() and (u < 1).all())
        (0.5, True)
    """
    return (draw_bits(key, counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def integers_below(limit: int, key: int, counters: NDArray[np.int64]) -> NDArray[np.int64]:
    """A whole number in [0, limit) for each counter."""
    return (uniforms(key, counters) * limit).astype(np.int64)


def permutation(key: int, length: int) -> NDArray[np.int64]:
    """A uniformly random order of 0 … length−1."""
    return np.argsort(draw_bits(key, np.arange(length)), kind="stable")


def order_of_rows(seed: int | None, num_rows: int) -> NDArray[np.int64]:
    """The rows of a source in the order that a seed shuffles them into; None leaves them as they are.

    Example:
        >>> order_of_rows(None, 4), np.sort(order_of_rows(0, 4))
        (array([0, 1, 2, 3]), array([0, 1, 2, 3]))
    """
    return np.arange(num_rows) if seed is None else permutation(derive(seed, "order"), num_rows)
