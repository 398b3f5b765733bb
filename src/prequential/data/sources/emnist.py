"""EMNIST: handwritten letters and digits in six splits, idx files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from prequential.data.arrays import from_arrays
from prequential.data.download import DownloadBar, cache_directory, extract, fetch
from prequential.data.remote import EMNIST
from prequential.data.sequence import ArraySequence
from prequential.data.sources.mnist import read_stem
from prequential.data.sources.request import Request, find_files
from prequential.errors import PreqError

FILES = (EMNIST,)
FOLDERS = ("EMNIST/raw", "emnist", "gzip", "")
SPLITS = {
    "balanced": "112,800 letters and digits, 28×28 grey, 47 classes of equal size",
    "byclass": "697,932 letters and digits, 62 classes",
    "bymerge": "697,932 letters and digits, 47 classes",
    "letters": "124,800 letters, 26 classes",
    "digits": "240,000 digits, 10 classes",
    "mnist": "60,000 digits, 10 classes, made as MNIST is",
}
NUM_CLASSES = {"balanced": 47, "byclass": 62, "bymerge": 47, "letters": 26, "digits": 10, "mnist": 10}


def reader(split: str) -> Callable[[Request], ArraySequence]:
    """The function that reads one split."""

    def read(request: Request) -> ArraySequence:
        place = finder(split)(request.directory) or _download(split)
        return request.ordered(
            from_arrays(
                *_part(place, split, "train"),
                num_classes=NUM_CLASSES[split],
                heldout=_part(place, split, "test"),
                name=request.name,
                source=request.source,
            )
        )

    return read


def finder(split: str) -> Callable[[Path | None], Path | None]:
    """The function that says where one split is."""

    def find(directory: Path | None) -> Path | None:
        return find_files(directory, FOLDERS, _stems(split))

    return find


def _stems(split: str) -> list[str]:
    return [
        f"emnist-{split}-{part}-{what}-ubyte" for part in ("train", "test") for what in ("images-idx3", "labels-idx1")
    ]


def _download(split: str) -> Path:
    place = cache_directory() / "emnist"
    with DownloadBar() as bar:
        archive = fetch(EMNIST, listener=bar)
    extract(archive, {f"gzip/{stem}.gz": f"{stem}.gz" for stem in _stems(split)}, place)
    return place


def _part(place: Path, split: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images upright (the files hold them transposed) and labels from 0 (those of `letters` begin at 1)."""
    images = read_stem(place, f"emnist-{split}-{part}-images-idx3-ubyte", (None, 28, 28))
    labels = read_stem(place, f"emnist-{split}-{part}-labels-idx1-ubyte", (len(images),)).astype(np.int64)
    if split == "letters":
        labels -= 1
    if labels.min() < 0:
        raise PreqError(f"emnist-letters in {place} holds a label 0; its labels begin at 1: get the files again")
    return np.ascontiguousarray(images.transpose(0, 2, 1))[:, None], labels
