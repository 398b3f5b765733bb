"""MNIST, which the package carries, and Fashion-MNIST: idx files of the same names."""

import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np

from prequential.data.arrays import from_arrays
from prequential.data.download import DownloadBar, cache_directory, fetch
from prequential.data.remote import FASHION_MNIST
from prequential.data.sequence import ArraySequence
from prequential.data.sources.idx import read_idx
from prequential.data.sources.request import Request, find_files, find_own
from prequential.errors import PreqError, PreqWarning

BUNDLED = Path(str(files("prequential.data"))) / "files"
FASHION_BEGINS = [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
"""The first labels of Fashion-MNIST, whose files have the names and sizes of MNIST's."""
MNIST_FOLDERS = ("MNIST/raw", "mnist", "")
FASHION_FOLDERS = ("FashionMNIST/raw", "fashion-mnist", "fashion_mnist")
STEMS = tuple(f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))


def mnist(request: Request) -> ArraySequence:
    """60,000 digits and 10,000 held out."""
    place = mnist_directory(request.directory)
    if request.directory is not None and place == BUNDLED:
        warnings.warn(f"{request.directory} holds no MNIST files; the bundled ones are used", PreqWarning, stacklevel=4)
    data = _read(place, request)
    if data.stored_labels[: len(FASHION_BEGINS)].tolist() == FASHION_BEGINS:
        raise PreqError(f"the files in {place} are Fashion-MNIST's; ask for fashion-mnist, or name another directory")
    return request.ordered(data)


def mnist_directory(directory: Path | None) -> Path:
    """Where MNIST is read from."""
    return find_own(directory, MNIST_FOLDERS, STEMS) or BUNDLED


def fashion(request: Request) -> ArraySequence:
    """60,000 pieces of clothing and 10,000 held out."""
    place = fashion_directory(request.directory)
    if place is None:
        place = cache_directory() / "fashion-mnist"
        with DownloadBar() as bar:
            for file in FASHION_MNIST:
                fetch(file, place, listener=bar)
    return request.ordered(_read(place, request))


def fashion_directory(directory: Path | None) -> Path | None:
    """Where Fashion-MNIST is, if it is."""
    return find_files(directory, FASHION_FOLDERS, STEMS)


def _read(place: Path, request: Request) -> ArraySequence:
    def part(prefix: str, length: int) -> tuple[np.ndarray, np.ndarray]:
        images = read_stem(place, f"{prefix}-images-idx3-ubyte", (length, 28, 28))
        return images[:, None], read_stem(place, f"{prefix}-labels-idx1-ubyte", (length,))

    return from_arrays(
        *part("train", 60_000),
        num_classes=10,
        heldout=part("t10k", 10_000),
        name=request.name.partition(":")[0],
        source=request.source,
    )


def read_stem(place: Path, stem: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """The array in an idx file, plain or packed; its shape must fit (None: any size)."""
    plain, packed = place / stem, place / f"{stem}.gz"
    path = plain if plain.exists() or not packed.exists() else packed
    values = read_idx(path)
    fits = len(values.shape) == len(shape) and all(w in (None, h) for w, h in zip(shape, values.shape, strict=True))
    if not fits or values.dtype != np.uint8:
        wanted = str(shape).replace("None", "any")
        raise PreqError(f"{path} holds {values.dtype} of shape {values.shape}, wanted uint8 of shape {wanted}")
    return values.copy()
