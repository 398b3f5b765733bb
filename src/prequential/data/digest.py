"""Fingerprints of data: equal only if the content is.

Rows are hashed in blocks and the blocks' fingerprints together, so that a prefix of stored data costs
the hashing of one block. No torch.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.files import bytes_of

BLOCK_ROWS = 4096
BYTES_AT_ONCE = 16 << 20


def spans(start: int, stop: int, size: int) -> Iterator[NDArray[np.int64]]:
    """The positions from `start` to `stop`, so many at a time.

    Example:
        >>> [span.tolist() for span in spans(1, 6, 2)]
        [[1, 2], [3, 4], [5]]
    """
    return (np.arange(begin, min(begin + size, stop)) for begin in range(start, stop, size))


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
    running = RunningDigest(list(known)[: length // BLOCK_ROWS])
    sample = read(np.zeros(1, np.int64))
    at_once = max(1, BYTES_AT_ONCE // max(sample.nbytes, 1))
    for positions in spans(running.num_rows, length, at_once):
        running.update(read(positions))
    return running.digest(sample.dtype, sample.shape[1:], *context)


def digests_of_each(
    positions: NDArray[np.int64], read: Callable[[NDArray[np.int64]], NDArray[np.generic]]
) -> Iterator[bytes]:
    """A fingerprint of each row by itself, few of them in memory at a time: equal only if the rows are.

    Example:
        >>> one, other, again = digests_of_each(np.arange(3), lambda positions: np.array([7, 5, 7])[positions])
        >>> one == again, one == other
        (True, False)
    """
    at_once = max(1, BYTES_AT_ONCE // max(read(positions[:1]).nbytes, 1))
    for span in spans(0, len(positions), at_once):
        for row in read(positions[span]):
            yield hashlib.blake2b(row.tobytes(), digest_size=16).digest()


class RunningDigest:
    """The fingerprint of rows that come one after the other, behind whole blocks with known fingerprints.

    Example:
        >>> running = RunningDigest()
        >>> running.update(np.array([7]))
        >>> running.update(np.array([5]))
        >>> running.digest(np.dtype(np.int64), ())
        '60df7379a00033291d4b8e261bd675d4'
    """

    def __init__(self, blocks: Iterable[str] = ()) -> None:
        self.blocks = list(blocks)
        """Fingerprints of the whole blocks so far."""
        self.num_rows = len(self.blocks) * BLOCK_ROWS
        self._begun = hashlib.blake2b(digest_size=16)

    def update(self, rows: NDArray[Any]) -> None:
        """Go on with these rows."""
        while len(rows):
            some = rows[: BLOCK_ROWS - self.num_rows % BLOCK_ROWS]
            self._begun.update(bytes_of(some))
            self.num_rows += len(some)
            rows = rows[len(some) :]
            if self.num_rows % BLOCK_ROWS == 0:
                self.blocks.append(self._begun.hexdigest())
                self._begun = hashlib.blake2b(digest_size=16)

    def digest(self, dtype: np.dtype[Any], row_shape: tuple[int, ...], *context: object) -> str:
        """The fingerprint of all rows, their type, and what else decides their meaning."""
        begun = [self._begun.hexdigest()] if self.num_rows % BLOCK_ROWS else []
        meaning = f"{dtype.name}{(self.num_rows, *row_shape)}{context}"
        return hashlib.blake2b("".join([meaning, *self.blocks, *begun]).encode(), digest_size=16).hexdigest()
