"""The view of one image, and the process that decodes views. Its parent is `prequential.data.workers`. No torch.

A piece of work is a line of JSON on standard input: the fields of some views. The pixels go into a file without a name
that parent and worker map; that they are there is told by a line of JSON on standard output, the broken rows with the
reason.
"""

import json
import math
import mmap
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prequential.data.decode import BrokenImage, decode_image, strict_pillow
from prequential.rng import uniforms

WATCH_SECONDS = 5.0
"""How often a worker looks whether its parent is still there."""
Broken = list[tuple[int, str]]
"""Rows that hold no image, with the reason."""


@dataclass(frozen=True, slots=True)
class ImageView:
    """Everything that decides the pixels of one image."""

    path: str
    """The file, or what an error calls an image that is in none."""
    size: int
    """Height and width of the result."""
    crop_key: int | None = None
    """The key of the random crops of a training event; None for the centre."""
    row: int = 0
    """Which example of the training event this is: its draws are numbers 4·row … 4·row+3 under the key."""

    def decode(self, content: bytes) -> NDArray[np.uint8]:
        """What is seen of an encoded image, shape (3, size, size); inside `strict_pillow`.

        Raises:
            BrokenImage: where there is no whole image.
        """
        key, places = self.crop_key, np.arange(4) + 4 * self.row
        return decode_image(content, self.size, self.path, None if key is None else uniforms(key, places).tolist())

    def read(self) -> NDArray[np.uint8]:
        """The same of the image in the file."""
        return self.decode(content_of(self.path))


def content_of(path: str) -> bytes:
    """The file of an image.

    Raises:
        BrokenImage: where it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise BrokenImage(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def read_all(views: Sequence[ImageView], pixels: NDArray[np.uint8]) -> Broken:
    """Fill a row per view; the rows that are broken are black and returned with the reason."""
    broken = []
    with strict_pillow():
        for row, view in enumerate(views):
            try:
                pixels[row] = view.read()
            except BrokenImage as error:
                pixels[row] = 0
                broken.append((row, error.reason))
    return broken


def serve(file: str) -> None:
    """What a worker does: pieces as they come, until the parent is gone. The parent sees to the length of the file."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    answers, sys.stdout = sys.stdout, sys.stderr
    memory = np.empty(0, np.uint8)
    for line in sys.stdin:
        views = [ImageView(*values) for values in json.loads(line)]
        shape = (len(views), 3, views[0].size, views[0].size)
        if len(memory) < math.prod(shape):
            memory = mapped(int(file))
        print(json.dumps(read_all(views, memory[: math.prod(shape)].reshape(shape))), file=answers, flush=True)


def mapped(file: int) -> NDArray[np.uint8]:
    """The bytes of a file, shared with all who have it."""
    return np.frombuffer(mmap.mmap(file, 0), np.uint8)


def _watch(parent: int) -> None:
    """A pipe that closes tells the same, but not while a fork of the parent holds it open."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(0)
