"""Fingerprints of data: equal only if the content is.

Rows are hashed in blocks and the blocks' fingerprints together, so that a prefix of stored data costs
the hashing of one block. No torch.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 4096
BYTES_AT_ONCE = 16 << 20


def digest_of_rows(
    length: int, read: Callable[[NDArray[np.int64]], NDArray[np.generic]], *context: object, known: Iterable[str] = ()
) -> str:
    """A 128-bit fingerprint of rows 0 … length−1, their type, and what else decides their meaning.

    It does not depend on how the rows are stored: the same sequence has the same fingerprint.

    Args:
        read: gives the rows at some positions.
        known: fingerprints of leading whole blocks, where they are at hand.

    Example:
        >>> digest_of_rows(2, lambda positions: np.array([7, 5])[positions])
        '60df7379a00033291d4b8e261bd675d4'
    """
    blocks = list(known)[: length // BLOCK_ROWS]
    sample = read(np.zeros(1, np.int64))
    for start in range(len(blocks) * BLOCK_ROWS, length, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, length)
        state = new_block()
        at_once = max(1, BYTES_AT_ONCE // max(sample.nbytes, 1))
        for some in range(start, stop, at_once):
            state.update(as_bytes(read(np.arange(some, min(some + at_once, stop)))))
        blocks.append(state.hexdigest())
    return digest_of_blocks(blocks, length, sample.dtype, sample.shape[1:], *context)


def new_block() -> hashlib.blake2b:
    """The state that hashes a block."""
    return hashlib.blake2b(digest_size=16)


def as_bytes(rows: NDArray[Any]) -> memoryview:
    """What an array consists of, without a copy where it lies together."""
    return memoryview(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)


def digest_of_blocks(
    blocks: list[str], length: int, dtype: np.dtype[Any], row_shape: tuple[int, ...], *context: object
) -> str:
    """The fingerprint of rows whose blocks have these fingerprints."""
    meaning = f"{dtype.name}{(length, *row_shape)}{context}"
    return hashlib.blake2b("".join([meaning, *blocks]).encode(), digest_size=16).hexdigest()
