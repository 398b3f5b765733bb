"""Encoded images as a sequence: decoded by worker processes when they are asked for, ahead of need where told."""

import hashlib
import os
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import INPUTS_SO_FAR
from prequential.data.decode import BrokenImage, dimensions
from prequential.data.digest import digest_of_rows
from prequential.data.optional import Read, SequenceDefaults
from prequential.data.sequence import shorter
from prequential.data.workers import Batch, DecodePool, Job
from prequential.errors import PreqError, PreqWarning, whole_seed
from prequential.files import digest_of
from prequential.rng import derive, permutation

LARGEST_DEFAULT_SIZE = 224
BYTES_AHEAD = 64 << 20
SCANNED_AT_ONCE = 256


class ImageReader:
    """Decodes jobs by a pool of processes. Told what will be read, it keeps a few batches on the way."""

    def __init__(self, num_workers: int | None) -> None:
        self._num_workers = min(_num_cores(), 8) if num_workers is None else num_workers
        self._pool: DecodePool | None = None
        self._coming: Iterator[tuple[object, list[Job]]] = iter(())
        self._waiting: deque[tuple[object, Batch]] = deque()
        self._lock = threading.Lock()

    def follow(self, coming: Iterator[tuple[object, list[Job]]]) -> None:
        """What will be read, in order: a name for each batch, and its jobs."""
        with self._lock:
            self._coming = coming
            self._waiting.clear()

    def read(self, name: object, jobs: list[Job]) -> tuple[NDArray[np.uint8], list[tuple[int, str]]]:
        """The images of a batch, and the rows that are broken with the reason."""
        depth = max(2, min(8, BYTES_AHEAD // max(1, len(jobs) * 3 * jobs[0].size ** 2)))
        with self._lock:
            if self._pool is None:
                self._pool = DecodePool(self._num_workers)
            self._fill(depth)
            batch = self._take(name) or self._pool.submit(jobs)
            self._fill(depth)
        return batch.result()

    def _take(self, name: object) -> Batch | None:
        """The batch of that name, if it is on the way; those before it were not asked for and are dropped."""
        if all(waiting != name for waiting, _ in self._waiting):
            return None
        while True:
            waiting, batch = self._waiting.popleft()
            if waiting == name:
                return batch

    def _fill(self, depth: int) -> None:
        assert self._pool is not None
        while len(self._waiting) < depth and self._num_workers:
            following = next(self._coming, None)
            if following is None:
                return
            self._waiting.append((following[0], self._pool.submit(following[1])))


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class ImageFiles(SequenceDefaults):
    """Image files and their labels. Predictions see a resized centre crop, training a random part of the image."""

    root: Path
    paths: list[str]
    """Relative to the root."""
    stored_labels: torch.Tensor
    num_classes: int
    order: torch.Tensor
    size: int
    name: str
    random_crop: bool = True
    order_seed: int | None = None
    heldout: "ImageFiles | None" = None
    source: Mapping[str, Any] | None = None
    conditioned_on: str = INPUTS_SO_FAR
    reader: ImageReader = field(default_factory=lambda: ImageReader(None))

    def __len__(self) -> int:
        return len(self.order)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (3, self.size, self.size)

    @property
    def source_rows(self) -> torch.Tensor:
        return self.order

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

    def read(
        self, positions: NDArray[np.int64], key: int | None = None
    ) -> tuple[NDArray[np.uint8], list[tuple[int, str]]]:
        """The images at these positions, and the rows among them that are broken, with the reason."""
        return self.reader.read(self._batch_name(positions, key), self._jobs(positions, key))

    def describe(self, row: int) -> str:
        """What an error calls the image."""
        return str(self.root / self.paths[row])

    def _batch_name(self, positions: NDArray[np.int64], key: int | None) -> object:
        return id(self.paths), key, self.order[torch.from_numpy(positions)].numpy().tobytes()

    def _jobs(self, positions: NDArray[np.int64], key: int | None) -> list[Job]:
        rows = self.order[torch.from_numpy(positions)].tolist()
        return [Job(str(self.root / self.paths[row]), self.size, key, number) for number, row in enumerate(rows)]

    def read_ahead(self, reads: Iterator[Read]) -> None:
        """Decode what will be read in the background."""
        kept = ((positions, key if self.random_crop else None) for positions, key in reads)
        self.reader.follow((self._batch_name(*read), self._jobs(*read)) for read in kept)

    @property
    def listing(self) -> str:
        """A fingerprint of the names of the files, in sequence order."""
        return digest_of("\0".join(self.paths[row] for row in self.order.tolist()).encode()) if self.paths else ""

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return self.stored_labels[self.order[torch.from_numpy(positions)]]

    def shuffled(self, seed: int) -> "ImageFiles":
        """The same images in a random order that only `seed` and their number decide."""
        seed = whole_seed("the order seed", seed)
        shuffle = torch.from_numpy(permutation(derive(seed, "order"), len(self)))
        return replace(self, order=self.order[shuffle], order_seed=seed)

    def take(self, length: int) -> "ImageFiles":
        """The first `length` images."""
        return replace(self, order=self.order[: shorter(self, length)])

    def without_heldout(self) -> "ImageFiles":
        """The same sequence with no held-out data."""
        return replace(self, heldout=None)

    def without_broken(self) -> "ImageFiles":
        """The images that can be decoded, in the same order; each is tried once, now."""
        good, reasons = np.ones(len(self), bool), []
        spans = [np.arange(s, min(s + SCANNED_AT_ONCE, len(self))) for s in range(0, len(self), SCANNED_AT_ONCE)]
        self.read_ahead((positions, None) for positions in spans)
        for positions in spans:
            for row, reason in self.read(positions)[1]:
                good[positions[row]] = False
                reasons.append(f"{self.describe(int(self.order[positions[row]]))}: {reason}")
        heldout = None if self.heldout is None else self.heldout.without_broken()
        if reasons:
            count = f"{len(reasons):,} of {len(self):,} images of '{self.name}' are broken and left out"
            warnings.warn(f"{count} ({reasons[0]}{', …' if len(reasons) > 1 else ''})", PreqWarning, stacklevel=4)
        if not good.any():
            raise PreqError(f"every image of '{self.name}' is broken; the first is {reasons[0]}")
        return replace(self, order=self.order[torch.from_numpy(good)], heldout=heldout)

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {
            "inputs": digest_of_rows(len(self), self._content_digests, "encoded images", self.size),
            "labels": digest_of_rows(len(self), lambda p: self.labels(p).numpy(), self.num_classes),
        }

    def _content_digests(self, positions: NDArray[np.int64]) -> NDArray[np.uint8]:
        digests = []
        for position in positions:
            path = self.root / self.paths[int(self.order[position])]
            try:
                digests.append(hashlib.blake2b(path.read_bytes(), digest_size=16).digest())
            except OSError as error:
                raise PreqError(f"{path} (position {position}) cannot be read: {error.strerror}") from None
        return np.frombuffer(b"".join(digests), np.uint8).reshape(len(positions), 16)

    def digests(self) -> dict[str, str]:
        """Fingerprints of the encoded files and the labels. Every file is read once for it."""
        return self._digests


def default_size(paths: Iterable[Path]) -> int:
    """The side that images are brought to: the shorter side of the first that can be read, at most 224."""
    first: BrokenImage | None = None
    for path in paths:
        try:
            return min(LARGEST_DEFAULT_SIZE, *dimensions(path))
        except BrokenImage as error:
            first = first or error
    assert first is not None
    raise first
