"""CIFAR-10 and CIFAR-100 from their binary version: label bytes, then 3,072 bytes of red, green and blue."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prequential.data.arrays import from_arrays
from prequential.data.download import DownloadBar, cache_directory, extract, fetch
from prequential.data.remote import CIFAR10, CIFAR100, RemoteFile
from prequential.data.sequence import ArraySequence
from prequential.data.sources.request import Request, find_files
from prequential.errors import PreqError

PIXELS = 3 * 32 * 32


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which files hold a set, and how its rows are made."""

    num_classes: int
    folder: str
    train: tuple[str, ...]
    test: str
    rows: tuple[int, int]
    """Images in a training file and in the test file."""
    label_bytes: int
    """The last of them is the label."""
    remote: tuple[RemoteFile, ...]


TEN = Layout(
    num_classes=10,
    folder="cifar-10-batches-bin",
    train=tuple(f"data_batch_{k}.bin" for k in range(1, 6)),
    test="test_batch.bin",
    rows=(10_000, 10_000),
    label_bytes=1,
    remote=(CIFAR10,),
)
HUNDRED = Layout(
    num_classes=100,
    folder="cifar-100-binary",
    train=("train.bin",),
    test="test.bin",
    rows=(50_000, 10_000),
    label_bytes=2,
    remote=(CIFAR100,),
)


def cifar10(request: Request) -> ArraySequence:
    """50,000 photographs of ten things, 10,000 held out."""
    return _read(TEN, request)


def cifar100(request: Request) -> ArraySequence:
    """50,000 photographs of a hundred things (the fine labels), 10,000 held out."""
    return _read(HUNDRED, request)


def finder(layout: Layout) -> Callable[[Path | None], Path | None]:
    """The function that says where the files are, if they are."""

    def find(directory: Path | None) -> Path | None:
        short = "cifar10" if layout is TEN else "cifar100"
        return find_files(directory, (layout.folder, short), (*layout.train, layout.test))

    return find


def _read(layout: Layout, request: Request) -> ArraySequence:
    place = finder(layout)(request.directory) or _download(layout)
    parts = [_rows(place / name, layout, layout.rows[0]) for name in layout.train]
    train = np.concatenate(parts) if len(parts) > 1 else parts[0]
    test = _rows(place / layout.test, layout, layout.rows[1])
    data = from_arrays(
        *_split(train, layout),
        num_classes=layout.num_classes,
        heldout=_split(test, layout),
        name=request.name,
        source=request.source,
    )
    return request.ordered(data)


def _download(layout: Layout) -> Path:
    place = cache_directory() / layout.folder
    with DownloadBar() as bar:
        archive = fetch(layout.remote[0], listener=bar)
    extract(archive, {f"{layout.folder}/{name}": name for name in (*layout.train, layout.test)}, place)
    return place


def _rows(path: Path, layout: Layout, num_rows: int) -> np.ndarray:
    row_size = layout.label_bytes + PIXELS
    try:
        content = np.fromfile(path, np.uint8)
    except OSError as error:
        raise PreqError(f"{path} cannot be read: {error.strerror}; get the binary version again") from None
    if len(content) != num_rows * row_size:
        state = "truncated" if len(content) < num_rows * row_size else "too long"
        raise PreqError(
            f"{path} is {state}: {len(content):,} bytes, wanted {num_rows * row_size:,} ({num_rows:,} images of "
            f"{row_size:,}); get the binary version again"
        )
    return content.reshape(num_rows, row_size)


def _split(rows: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    images = np.ascontiguousarray(rows[:, layout.label_bytes :]).reshape(-1, 3, 32, 32)
    return images, rows[:, layout.label_bytes - 1].astype(np.int64)
