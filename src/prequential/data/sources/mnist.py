"""MNIST, which the package carries, Fashion-MNIST and EMNIST: idx files of 28×28 grey images; and RGB-MNIST of MNIST.

idx is a magic number, big-endian sizes, then the values, here bytes.

RGB-MNIST is three random MNIST digits as the channels of one image; the label is the red one's. Green and blue say
nothing about the label, so a model that is given only red should have the shorter code. Conditioning on fewer channels
leaves the others out.
"""

import gzip
import math
import struct
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.download import EMNIST, FASHION_MNIST
from prequential.data.sequence import ArraySequence
from prequential.data.sources.request import PublishedFiles, Request
from prequential.errors import PreqError, PreqWarning
from prequential.rng import derive, integers_below
from prequential.scaling import INTENSITY

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
CONDITIONINGS = ("R", "RG", "RGB")
NUM_EXAMPLES, NUM_HELDOUT = 100_000, 10_000
"""Of RGB-MNIST."""
MOST_BYTES = 1 << 36
Part = tuple[np.ndarray, np.ndarray]
"""Images and labels."""


def _names(*parts: str) -> tuple[str, ...]:
    return tuple(f"{part}-{what}-ubyte" for part in parts for what in ("images-idx3", "labels-idx1"))


MNIST_FILES = PublishedFiles(names=_names("train", "t10k"), folders=("MNIST/raw", "mnist", ""), bundled=BUNDLED)
FASHION_FOLDERS = ("fashion-mnist", "FashionMNIST/raw", "fashion_mnist")
FASHION_FILES = PublishedFiles(names=MNIST_FILES.names, folders=FASHION_FOLDERS, remote=FASHION_MNIST)


def emnist_files(split: str) -> PublishedFiles:
    """The files of one split of EMNIST."""
    names = _names(f"emnist-{split}-train", f"emnist-{split}-test")
    folders = ("emnist", "EMNIST/raw", "gzip", "")
    return PublishedFiles(names=names, folders=folders, remote=(EMNIST,), member="gzip/{}.gz")


def mnist(request: Request) -> ArraySequence:
    """60,000 digits and 10,000 held out."""
    place = MNIST_FILES.found(request)
    if request.directory is not None and place == BUNDLED:
        warnings.warn(f"{request.directory} holds no MNIST files; the bundled ones are used", PreqWarning, stacklevel=4)
    parts = _read(place, MNIST_FILES)
    if parts[0][1][: len(FASHION_BEGINS)].tolist() == FASHION_BEGINS:
        raise PreqError(f"the files in {place} are Fashion-MNIST's; ask for fashion-mnist, or name another directory")
    return _sequence(request, parts, 10)


def fashion(request: Request) -> ArraySequence:
    """60,000 pieces of clothing and 10,000 held out."""
    return _sequence(request, _read(FASHION_FILES.found(request), FASHION_FILES), 10)


def emnist(request: Request) -> ArraySequence:
    """One split: upright (the files hold images transposed), labels from 0."""
    split = request.name.removeprefix("emnist-")
    published = emnist_files(split)
    place, first = published.found(request), int(split == "letters")
    read = _read(place, published)
    parts = [(images.transpose(0, 1, 3, 2), labels.astype(np.int64) - first) for images, labels in read]
    if min(labels.min() for _, labels in parts) < 0:
        raise PreqError(f"emnist-letters in {place} holds a label 0; its labels begin at 1: get the files again")
    return _sequence(request, parts, SPLITS[split][0])


def rgb_mnist(request: Request) -> ArraySequence:
    """The examples, conditioned on the channels behind the colon (default RGB)."""
    channels = request.argument or "RGB"
    digits = mnist(replace(request, order_seed=None))
    assert digits.heldout is not None
    seed = request.options.data_seed or 0
    train = _mixed(digits, request.options.examples or NUM_EXAMPLES, len(channels), derive(seed, "rgb-mnist"))
    held = _mixed(digits.heldout, NUM_HELDOUT, len(channels), derive(seed, "rgb-mnist held-out"))
    data = replace(train, name=request.name, source=request.source, heldout=replace(held, name="held-out"))
    return request.ordered(data)


def _mixed(digits: ArraySequence, length: int, num_channels: int, key: int) -> ArraySequence:
    """Which digits are put together depends on the seed alone, not on how many channels are kept."""
    chosen = torch.from_numpy(integers_below(len(digits), key, np.arange(3 * length)).reshape(length, 3))
    images = digits.stored_inputs[:, 0][chosen[:, :num_channels]]
    labels = digits.stored_labels[chosen[:, 0]]
    return ArraySequence(images, labels, digits.num_classes, torch.arange(length), scale=INTENSITY)


def _sequence(request: Request, parts: Sequence[Part], num_classes: int) -> ArraySequence:
    train, held = parts
    return request.sequence(*train, num_classes=num_classes, heldout=held, name=request.kind, scale=INTENSITY)


def _read(place: Path, files: PublishedFiles) -> list[Part]:
    """The training and the held-out part; each file plain or packed."""
    plain = [place / name for name in files.names]
    packed = [path.with_name(f"{path.name}.gz") for path in plain]
    paths = [one if one.exists() or not other.exists() else other for one, other in zip(plain, packed, strict=True)]
    parts = []
    for images_path, labels_path in (paths[:2], paths[2:]):
        images, labels = read_idx(images_path), read_idx(labels_path)
        if labels.ndim != 1 or images.shape != (len(labels), 28, 28):
            raise PreqError(f"{images_path} has shape {images.shape}, wanted 28×28 for each of {labels.shape} labels")
        parts.append((images[:, None], labels))
    return parts


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in an idx file of bytes, gzipped where its name says so. No more is read than its header says.

    Raises:
        PreqError: naming the file and what is wrong with it.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            magic = file.read(4)
            if len(magic) < 4 or magic[:3] != b"\0\0\x08":
                begin = magic.hex() or "nothing"
                raise PreqError(f"{path} is not an idx file of bytes: it begins with {begin}; get it again")
            sizes = file.read(4 * magic[3])
            if len(sizes) < 4 * magic[3]:
                raise PreqError(f"{path} is truncated inside its header; get it again")
            shape = struct.unpack(f">{magic[3]}I", sizes)
            expected = math.prod(shape)
            if expected > MOST_BYTES:
                raise PreqError(f"{path} claims {expected} bytes of values, more than {MOST_BYTES}; is it an idx file?")
            content = file.read(expected + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise PreqError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}; get it again") from None
    if len(content) != expected:
        state = "truncated" if len(content) < expected else "too long"
        raise PreqError(f"{path} is {state}: {len(content)} bytes of values, its header {shape} says {expected}")
    return np.frombuffer(content, np.uint8).reshape(shape)
