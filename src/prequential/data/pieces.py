"""Stored rows that are compared with their fingerprints, piece by piece, when they are first read. No torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.digest import BLOCK_ROWS, RunningDigest
from prequential.errors import PreqError


class Pieces:
    """The rows of some arrays, one after the other, in the blocks that their fingerprint is made of.

    Each block is hashed once, before a row of it is used: on the whole as long as hashing all of them, which is little
    beside a run. Several threads may ask; at worst a block is hashed twice.

    Args:
        path: where they are stored, for errors.
        arrays: the rows, mapped; no copy of them is made but of those that are hashed as another type.
        dtype: the type that they were hashed as.
        blocks: the fingerprint of each whole block.
        whole: the fingerprint of all, which tells of the last block, if that is not whole, and of `blocks` themselves.
        context: what else decides their meaning.

    Example:
        >>> rows, running = np.array([7, 5]), RunningDigest()
        >>> running.update(rows)
        >>> pieces = Pieces(Path("labels.npy"), [rows], rows.dtype, [], running.digest(rows.dtype, ()))
        >>> rows[1] = 6
        >>> pieces.require(np.array([0]))
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: labels.npy is not what was prepared: rows 0 to 1 were changed; prepare it again
    """

    def __init__(
        self,
        path: Path,
        arrays: Sequence[NDArray[Any]],
        dtype: np.dtype[Any],
        blocks: Sequence[str],
        whole: str,
        *context: object,
    ) -> None:
        self._path, self._arrays, self._dtype, self._blocks = path, arrays, dtype, list(blocks)
        self._whole, self._context, self._length = whole, context, sum(map(len, arrays))
        if len(self._blocks) != self._length // BLOCK_ROWS:
            raise PreqError(f"{path} lacks fingerprints: {len(self._blocks)} blocks for {self._length} rows")
        self._good = np.zeros(-(-self._length // BLOCK_ROWS), bool)
        self._good_rows = 0
        """So many of the first rows are known to be good: a run reads new ones in order, and old ones often."""

    def require(self, positions: NDArray[np.int64]) -> None:
        """Refuse to go on if a block with one of these rows is not what was stored."""
        if positions.max(initial=-1) < self._good_rows:
            return
        for block in np.unique(positions // BLOCK_ROWS).tolist():
            if not self._good[block]:
                self._check(block)
        self._good_rows = self._length if self._good.all() else BLOCK_ROWS * int(self._good.argmin())

    def require_all(self, length: int) -> None:
        """The same for the first so many rows."""
        self.require(np.arange(0, length, BLOCK_ROWS))

    def _check(self, block: int) -> None:
        begin, end = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, self._length)
        running, start = RunningDigest(self._blocks[:block]), 0
        for rows in self._arrays:
            here = rows[max(begin - start, 0) : max(end - start, 0)]
            running.update(here.astype(self._dtype, copy=False))
            start += len(rows)
        is_good = running.blocks == self._blocks[: len(running.blocks)]
        if end == self._length:
            is_good &= running.digest(self._dtype, self._arrays[0].shape[1:], *self._context) == self._whole
        if not is_good:
            where = f"rows {begin} to {end - 1} were changed"
            raise PreqError(f"{self._path} is not what was prepared: {where}; prepare it again")
        self._good[block] = True
