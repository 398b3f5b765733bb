"""Data sets by name. The package carries MNIST; a directory the user names is searched first."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from prequential.data.arrays import from_arrays
from prequential.data.idx import read_idx
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError, PreqWarning, unknown_name

BUNDLED = Path(str(files("prequential.data"))) / "files"


@dataclass(frozen=True)
class Source:
    """A data set that can be asked for by name."""

    name: str
    description: str
    load: Callable[[Path | None], ArraySequence]
    """Reads it, in the publisher's order, from the user's directory or else from the package."""
    where: Callable[[Path | None], Path]
    """Where `load` would read it."""


def load(name: str, *, order_seed: int | None = 0, data_dir: str | Path | None = None) -> ArraySequence:
    """The data set of that name, shuffled with `order_seed` (None: in the publisher's order).

    Args:
        data_dir: a directory that holds the publisher's files; searched before the bundled copy.
            Default: the environment variable PREQ_DATA.

    Example:
        >>> data = load("mnist")
        >>> len(data), data.num_classes, data.input_shape, len(data.heldout)
        (60000, 10, (1, 28, 28), 10000)
    """
    if name not in SOURCES:
        raise unknown_name("data set", name, SOURCES)
    data = SOURCES[name].load(user_directory(data_dir))
    return data if order_seed is None else data.shuffled(order_seed)


def user_directory(data_dir: str | Path | None) -> Path | None:
    """The directory named by the user, or by PREQ_DATA; it must exist."""
    named = data_dir or os.environ.get("PREQ_DATA")
    if not named:
        return None
    path = Path(named)
    if not path.is_dir():
        raise PreqError(f"the data directory {path} is not there; check --data-dir or PREQ_DATA")
    return path


def _mnist_directory(directory: Path | None) -> Path:
    for place in [directory / "MNIST" / "raw", directory / "mnist", directory] if directory else []:
        if any(place.glob("train-*-ubyte*")) or any(place.glob("t10k-*-ubyte*")):
            return place
    if directory is not None:
        warnings.warn(f"{directory} holds no MNIST files; the bundled ones are used", PreqWarning, stacklevel=5)
    return BUNDLED


def _mnist(directory: Path | None) -> ArraySequence:
    place = _mnist_directory(directory)

    def read(stem: str, shape: tuple[int, ...]) -> np.ndarray:
        plain, packed = place / stem, place / f"{stem}.gz"
        path = plain if plain.exists() or not packed.exists() else packed
        values = read_idx(path)
        if values.shape != shape or values.dtype != np.uint8:
            raise PreqError(f"{path} holds {values.dtype} of shape {values.shape}, MNIST has uint8 of shape {shape}")
        return values.copy()

    def part(prefix: str, length: int) -> tuple[np.ndarray, np.ndarray]:
        images = read(f"{prefix}-images-idx3-ubyte", (length, 28, 28))
        return images[:, None], read(f"{prefix}-labels-idx1-ubyte", (length,))

    return from_arrays(*part("train", 60_000), num_classes=10, heldout=part("t10k", 10_000), name="mnist")


SOURCES = {
    "mnist": Source(
        "mnist", "60,000 handwritten digits, 28×28 grey, 10 classes; 10,000 held out", _mnist, _mnist_directory
    ),
}
