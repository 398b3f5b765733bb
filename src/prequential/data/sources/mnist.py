"""MNIST, which the package carries, Fashion-MNIST and EMNIST: idx files of 28×28 grey images."""

import warnings
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from prequential.data.arrays import from_arrays
from prequential.data.download import EMNIST, FASHION_MNIST
from prequential.data.sequence import ArraySequence
from prequential.data.sources.idx import read_idx
from prequential.data.sources.request import PublishedFiles, Request
from prequential.errors import PreqError, PreqWarning

BUNDLED = Path(str(files("prequential.data"))) / "files"
FASHION_BEGINS = [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
"""The first labels of Fashion-MNIST, whose files have the names and sizes of MNIST's."""
SPLITS = {
    "balanced": (47, "112,800 letters and digits, 28×28 grey, 47 classes of equal size"),
    "byclass": (62, "697,932 letters and digits, 62 classes"),
    "bymerge": (47, "697,932 letters and digits, 47 classes"),
    "letters": (26, "124,800 letters, 26 classes"),
    "digits": (10, "240,000 digits, 10 classes"),
    "mnist": (10, "60,000 digits, 10 classes, made as MNIST is"),
}
"""The splits of EMNIST: how many classes, and what they are."""
Part = tuple[np.ndarray, np.ndarray]
"""Images and labels."""


def _names(*parts: str) -> tuple[str, ...]:
    return tuple(f"{part}-{what}-ubyte" for part in parts for what in ("images-idx3", "labels-idx1"))


MNIST_FILES = PublishedFiles(names=_names("train", "t10k"), folders=("MNIST/raw", "mnist", ""), bundled=BUNDLED)
FASHION_FILES = PublishedFiles(
    names=MNIST_FILES.names,
    folders=("fashion-mnist", "FashionMNIST/raw", "fashion_mnist"),
    remote=FASHION_MNIST,
)


def emnist_files(split: str) -> PublishedFiles:
    """The files of one split of EMNIST."""
    names = _names(f"emnist-{split}-train", f"emnist-{split}-test")
    folders = ("emnist", "EMNIST/raw", "gzip", "")
    return PublishedFiles(names=names, folders=folders, remote=(EMNIST,), member="gzip/{}.gz")


def mnist(request: Request) -> ArraySequence:
    """60,000 digits and 10,000 held out."""
    place = MNIST_FILES.found(request.directory)
    if request.directory is not None and place == BUNDLED:
        warnings.warn(f"{request.directory} holds no MNIST files; the bundled ones are used", PreqWarning, stacklevel=4)
    parts = _read(place, MNIST_FILES.names, (60_000, 10_000))
    if parts[0][1][: len(FASHION_BEGINS)].tolist() == FASHION_BEGINS:
        raise PreqError(f"the files in {place} are Fashion-MNIST's; ask for fashion-mnist, or name another directory")
    return _sequence(request, parts, 10)


def fashion(request: Request) -> ArraySequence:
    """60,000 pieces of clothing and 10,000 held out."""
    place = FASHION_FILES.found(request.directory)
    return _sequence(request, _read(place, FASHION_FILES.names, (60_000, 10_000)), 10)


def emnist(split: str) -> Callable[[Request], ArraySequence]:
    """The function that reads one split: upright (the files hold images transposed), labels from 0."""
    published = emnist_files(split)

    def read(request: Request) -> ArraySequence:
        place = published.found(request.directory)
        first = int(split == "letters")
        parts = [
            (np.ascontiguousarray(images.transpose(0, 1, 3, 2)), labels.astype(np.int64) - first)
            for images, labels in _read(place, published.names, (None, None))
        ]
        if min(labels.min() for _, labels in parts) < 0:
            raise PreqError(f"emnist-letters in {place} holds a label 0; its labels begin at 1: get the files again")
        return _sequence(request, parts, SPLITS[split][0])

    return read


def _sequence(request: Request, parts: Sequence[Part], num_classes: int) -> ArraySequence:
    train, held = parts
    data = from_arrays(*train, num_classes=num_classes, heldout=held, name=request.kind, source=request.source)
    return request.ordered(data)


def _read(place: Path, names: Sequence[str], lengths: Sequence[int | None]) -> list[Part]:
    """The training and the held-out part; None for a length that may be any."""
    parts = []
    for length, images_name, labels_name in zip(lengths, names[::2], names[1::2], strict=True):
        images = _read_array(place, images_name, (length, 28, 28))
        parts.append((images[:, None], _read_array(place, labels_name, (len(images),))))
    return parts


def _read_array(place: Path, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """The array in an idx file, plain or packed; its shape must fit (None: any size)."""
    plain, packed = place / name, place / f"{name}.gz"
    path = plain if plain.exists() or not packed.exists() else packed
    values = read_idx(path)
    fits = len(values.shape) == len(shape) and all(w in (None, h) for w, h in zip(shape, values.shape, strict=True))
    if not fits or values.dtype != np.uint8:
        wanted = str(shape).replace("None", "any")
        raise PreqError(f"{path} holds {values.dtype} of shape {values.shape}, wanted uint8 of shape {wanted}")
    return values.copy()
