"""Codelengths of prefixes, from a file that is still being written."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from prequential.files import read_values

BLOCK = 4096
"""Positions between two sums that are kept: memory does not grow with the nats themselves."""


class Sums:
    """Codelengths of the prefixes of a nats.npy that grows."""

    def __init__(self, file: Path) -> None:
        self._file, self._blocks, self._length, self._inode = file, [0.0], 0, -1
        self._known: dict[int, float] = {0: 0.0}

    def extend(self, length: int) -> None:
        """The first `length` values count now; a run that went back to a checkpoint is read again from there."""
        inode = self._file.stat().st_ino if length and self._file.exists() else -1
        if length < self._length or inode != self._inode:
            self._inode, length_kept = inode, length if inode == self._inode else 0
            self._blocks = self._blocks[: length_kept // BLOCK + 1]
        self._known, self._length = {0: 0.0}, length
        while len(self._blocks) * BLOCK <= length:
            begin = (len(self._blocks) - 1) * BLOCK
            self._blocks.append(self._blocks[-1] + float(self._read(begin, begin + BLOCK).sum()))

    def at(self, position: int) -> float:
        """The codelength of the first labels, as many as `position` says."""
        if position not in self._known:
            block = position // BLOCK
            rest = self._read(block * BLOCK, position)
            self._known[position] = self._blocks[block] + float(rest.sum())
        return self._known[position]

    def _read(self, begin: int, end: int) -> NDArray[Any]:
        return read_values(self._file, begin, end)
