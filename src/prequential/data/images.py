"""Encoded images as a sequence: decoded by worker processes when they are asked for, ahead of need where told."""

import hashlib
import os
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import INPUTS_SO_FAR
from prequential.data.decode import dimensions
from prequential.data.digest import spans
from prequential.data.optional import Read
from prequential.data.sequence import ReorderableSequence
from prequential.data.views import ImageView, content_of
from prequential.data.workers import Batch, Decoded, DecodePool
from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of
from prequential.scaling import INTENSITY

LARGEST_DEFAULT_SIZE = 224
BYTES_AHEAD = 64 << 20
SCANNED_AT_ONCE = 256


class ImageReader:
    """Decodes views by a pool of processes. Told what will be read, it keeps a few batches on the way."""

    def __init__(self, num_workers: int | None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._num_workers = min(cores, 8) if num_workers is None else num_workers
        self._coming: Iterator[list[ImageView]] = iter(())
        self._waiting: deque[tuple[list[ImageView], Batch]] = deque()
        self._lock = threading.Lock()

    @cached_property
    def _pool(self) -> DecodePool:
        return DecodePool(self._num_workers)

    def follow(self, coming: Iterator[list[ImageView]]) -> None:
        """What will be read, in order."""
        with self._lock:
            self._coming = coming
            self._waiting.clear()

    def read(self, views: list[ImageView]) -> Decoded:
        """The images of a batch, and the rows that are broken with the reason."""
        depth = max(2, min(8, BYTES_AHEAD // max(1, len(views) * 3 * views[0].size ** 2)))
        with self._lock:
            self._fill(depth)
            batch = self._take(views) or self._pool.submit(views)
            self._fill(depth)
        return batch.result()

    def _take(self, views: list[ImageView]) -> Batch | None:
        """The batch of these views, if it is on the way; those before it were not asked for and are dropped."""
        told = [waiting for waiting, _ in self._waiting]
        if views not in told:
            return None
        for _ in range(told.index(views)):
            self._waiting.popleft()
        return self._waiting.popleft()[1]

    def _fill(self, depth: int) -> None:
        while self._num_workers and len(self._waiting) < depth and (views := next(self._coming, None)) is not None:
            self._waiting.append((views, self._pool.submit(views)))


@dataclass(frozen=True, eq=False, repr=False)
class ImageFiles(ReorderableSequence):
    """Image files and their labels. Predictions see a resized centre crop, training a random part of the image."""

    root: Path
    paths: list[str]
    """Relative to the root."""
    stored_labels: torch.Tensor
    num_classes: int
    order: torch.Tensor
    name: str
    size: int = 0
    """The side in pixels; see `sized`."""
    random_crop: bool = True
    order_seed: int | None = None
    heldout: "ImageFiles | None" = None
    source: Mapping[str, Any] | None = None
    conditioned_on: str = INPUTS_SO_FAR
    class_names: tuple[str, ...] | None = None
    reader: ImageReader = field(default_factory=lambda: ImageReader(None))

    @property
    def scale(self) -> int:
        """A decoded image has intensities out of 255, however dark it is."""
        return INTENSITY

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (3, self.size, self.size)

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return self._whole(positions, None)

    @property
    def training_view(self) -> str | None:
        """What training sees, where that is not what prediction sees."""
        return "random crops" if self.random_crop else None

    def training_inputs(self, positions: NDArray[np.int64], key: int) -> torch.Tensor:
        """A random part of each image, drawn from the key; the centre where random crops are switched off."""
        return self._whole(positions, key if self.random_crop else None)

    def _whole(self, positions: NDArray[np.int64], key: int | None) -> torch.Tensor:
        images, broken = self.read(positions, key)
        if broken:
            row, reason = broken[0]
            raise PreqError(
                f"{self.describe(int(self.order[positions[row]]))} (position {positions[row]}) is broken: {reason}; "
                "replace it, or leave such images out with --skip-broken"
            )
        return torch.from_numpy(images)

    def read(self, positions: NDArray[np.int64], key: int | None = None) -> Decoded:
        """The images at these positions, and the rows among them that are broken, with the reason."""
        return self.reader.read(self._views(positions, key))

    def describe(self, row: int) -> str:
        """What an error calls the image."""
        return str(self.root / self.paths[row])

    def _views(self, positions: NDArray[np.int64], key: int | None) -> list[ImageView]:
        rows = self.rows(positions).tolist()
        return [ImageView(self.describe(row), self.size, key, number) for number, row in enumerate(rows)]

    def read_ahead(self, reads: Iterator[Read]) -> None:
        """Decode what will be read in the background."""
        self.reader.follow(self._views(positions, key if self.random_crop else None) for positions, key in reads)

    @property
    def listing(self) -> str:
        """A fingerprint of the names of the files, in sequence order."""
        return digest_of("\0".join(self.paths[row] for row in self.order.tolist()).encode()) if self.paths else ""

    def without_broken(self) -> Self:
        """The images that can be decoded, in the same order; each is tried once, now."""
        good, reasons = np.ones(len(self), bool), []
        self.read_ahead((positions, None) for positions in spans(0, len(self), SCANNED_AT_ONCE))
        for positions in spans(0, len(self), SCANNED_AT_ONCE):
            for row, reason in self.read(positions)[1]:
                good[positions[row]] = False
                reasons.append(f"{self.describe(int(self.order[positions[row]]))}: {reason}")
        heldout = None if self.heldout is None else self.heldout.without_broken()
        if reasons:
            left = "is" if len(reasons) == 1 else "are"
            count = f"{len(reasons):,} of {len(self):,} images of '{self.name}' {left} broken and left out"
            warnings.warn(f"{count} ({reasons[0]}{', …' if len(reasons) > 1 else ''})", PreqWarning, stacklevel=4)
        if not good.any():
            raise PreqError(f"every image of '{self.name}' is broken; the first is {reasons[0]}")
        return replace(self, order=self.order[torch.from_numpy(good)], heldout=heldout)

    @property
    def hashed_as(self) -> tuple[object, ...]:
        return "encoded images", self.size

    def hashed(self, positions: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Of encoded images their fingerprints. Every file is read once for it."""
        digests = [hashlib.blake2b(self.content(row), digest_size=16).digest() for row in self.rows(positions).tolist()]
        return np.frombuffer(bytearray().join(digests), np.uint8).reshape(len(positions), 16)

    def sized(self, size: int | None) -> Self:
        """Images brought to this size. Default: the shorter side of the first that can be read, at most 224."""
        first: PreqError | None = None
        for row in range(0 if size else len(self)):
            try:
                size = min(LARGEST_DEFAULT_SIZE, *dimensions(self.content(row), self.describe(row)))
                break
            except PreqError as error:
                first = first or error
        if not size:
            raise first or PreqError(f"'{self.name}' holds no image")
        return replace(self, size=size)

    def content(self, row: int) -> bytes:
        """The encoded image of a row."""
        return content_of(self.describe(row))
