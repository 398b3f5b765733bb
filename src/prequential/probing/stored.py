"""Features in mapped files of a cache: written once, verified whenever they are used again."""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.files import ArrayFile, map_array, sync_directory, write_atomically, writing
from prequential.formats import FEATURES
from prequential.plain import MisfitError, read_bytes, require_shape, sealed, unsealed

Features = NDArray[np.float32]
NUMBERS = np.dtype("<f4")


def map_features(file: Path, length: int) -> Features | None:
    """The features in a file, mapped; None where there is none, or not that of so many rows, or it was changed."""
    about = file.with_suffix(".json")
    try:
        told = unsealed(read_bytes(about), "features")
        require_shape(told, FEATURES)
        mapped = map_array(file, NUMBERS, (length, told["num_features"]))
    except (OSError, PreqError, MisfitError):  # a cache that cannot be used is no cache
        return None
    found = hashlib.blake2b(digest_size=16)
    for start in range(0, length, 1024):
        found.update(mapped[start : start + 1024].data)
    return mapped if found.hexdigest() == told["digest"] else None


class FeatureFile:
    """A file of features that is being written; it has its name when it is whole."""

    def __init__(self, file: Path, length: int) -> None:
        self._file, self._length, self._num_rows = file, length, 0
        self._writer = f"{os.getpid()}-{id(self)}"  # others may probe the same by the same cache
        self._temporary = file.with_name(f".{file.name}.{self._writer}.tmp")
        self._array: ArrayFile | None = None
        self._digest = hashlib.blake2b(digest_size=16)
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)

    def write(self, rows: Features) -> None:
        """Go on with these rows."""
        rows = np.ascontiguousarray(rows, NUMBERS)
        if self._array is None:
            self._array = ArrayFile(self._temporary, NUMBERS, self._length, rows.shape[1:], create=True)
        self._array.write(self._num_rows, rows)
        self._digest.update(rows.data)
        self._num_rows += len(rows)

    def finish(self) -> None:
        """All rows are written."""
        assert self._array is not None
        assert self._num_rows == self._length
        self._array.sync()
        self._array.close()
        told = {"num_features": self._array.row_shape[0], "digest": self._digest.hexdigest()}
        with writing(self._file):
            self._temporary.replace(self._file)
            sync_directory(self._file.parent)
        write_atomically(self._file.with_suffix(".json"), sealed(told, "features"), self._writer)


def give_up(files: Iterable[FeatureFile]) -> None:
    """Remove what was begun."""
    for each in files:
        with contextlib.suppress(OSError):
            if each._array is not None:
                each._array.close()
            each._temporary.unlink(missing_ok=True)
