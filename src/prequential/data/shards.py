"""Prepared data: memory-mapped .npy shards in sequence order, and the sequence that reads them.

A directory holds `prepared.json`, `labels.npy`, `inputs-0000.npy`, … and, where there is held-out data,
`heldout/` of the same form. Memory holds what is being read and nothing else.
"""

import contextlib
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import INPUTS_SO_FAR
from prequential.data.digest import BLOCK_ROWS, digest_of_rows
from prequential.data.optional import SequenceDefaults
from prequential.data.sequence import shorter
from prequential.errors import PreqError
from prequential.files import HEADER_SIZE, digest_of, npy_header

FORMAT = 1
INDEX_FILE = "prepared.json"
PROGRESS_FILE = "progress.json"
SHARD_BYTES = 1 << 30
"""About how large a shard is."""
WINDOW_BYTES = 1 << 20
"""A sequential reader that enters a window of this size has the next one read in the background."""


@dataclass(frozen=True, eq=False)
class Index:
    """What `prepared.json` says."""

    name: str
    num_classes: int
    input_shape: tuple[int, ...]
    dtype: str
    label_dtype: str
    length: int
    shard_rows: int
    order_seed: int | None
    conditioned_on: str = INPUTS_SO_FAR
    source: Mapping[str, Any] | None = None
    blocks: Mapping[str, list[str]] = field(default_factory=dict)
    """Fingerprints of every whole block of `inputs` and `labels`."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the whole."""
    given: str = ""
    """A fingerprint of what was given to read: labels and, of files, their names; broken ones too."""
    skipped: int = 0
    """Examples that could not be read and were left out."""

    @property
    def shards(self) -> list[tuple[str, int]]:
        """File name and number of rows of each shard."""
        starts = range(0, self.length, self.shard_rows)
        return [(f"inputs-{k:04d}.npy", min(self.shard_rows, self.length - s)) for k, s in enumerate(starts)]


def sealed(content: Mapping[str, Any]) -> bytes:
    """JSON with a checksum of itself."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    whole = {"checksum": digest_of(text.encode()), "content": content}
    return json.dumps(whole, indent=1, ensure_ascii=False).encode() + b"\n"


def unsealed(path: Path) -> dict[str, Any]:
    """What `sealed` wrote, verified."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        content = whole["content"]
        text = json.dumps(content, indent=1, ensure_ascii=False)
        if whole["checksum"] != digest_of(text.encode(errors="replace")) or not isinstance(content, dict):
            raise ValueError("its checksum does not fit its content")
    except OSError as error:
        raise PreqError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PreqError(f"{path} is damaged: {error}; prepare the data again") from None
    return content


def open_prepared(directory: Path) -> "MappedSequence":
    """The sequence in a directory that `preq data prepare` has filled."""
    if not (directory / INDEX_FILE).exists():
        unfinished = " (it was begun: the same command goes on)" if (directory / PROGRESS_FILE).exists() else ""
        raise PreqError(f"{directory} holds no prepared data{unfinished}; see preq data prepare --help")
    content = unsealed(directory / INDEX_FILE)
    if content.get("format") != FORMAT:
        raise PreqError(f"{directory / INDEX_FILE} has format {content.get('format')}, this version reads {FORMAT}")
    content["input_shape"] = tuple(content["input_shape"])
    index = Index(**{name: value for name, value in content.items() if name != "format"})
    dtype = np.dtype(index.dtype)
    shards = tuple(_map(directory / name, dtype, (rows, *index.input_shape)) for name, rows in index.shards)
    labels = _map(directory / "labels.npy", np.dtype(index.label_dtype), (index.length,))
    heldout = open_prepared(directory / "heldout") if (directory / "heldout").is_dir() else None
    return MappedSequence(index, shards, labels, index.length, str(directory), heldout)


@dataclass(frozen=True, eq=False)
class MappedArray:
    """An array in a mapped file."""

    values: NDArray[Any]
    mapping: mmap.mmap


def _map(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> MappedArray:
    """The array in an .npy file, whose header and size must be exactly what the index says."""
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_SIZE)
            size = file.seek(0, 2)
            wanted = HEADER_SIZE + int(np.prod(shape)) * dtype.itemsize
            if header != npy_header(dtype, shape) or size != wanted:
                raise PreqError(f"{path} is damaged: {size} bytes where {wanted} should be, or another header")
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise PreqError(f"{path} cannot be read: {error.strerror}") from None
    return MappedArray(np.frombuffer(mapping, dtype, offset=HEADER_SIZE).reshape(shape), mapping)


@dataclass(frozen=True, eq=False)
class MappedSequence(SequenceDefaults):
    """A sequence in mapped files. Make one with `prequential.prepare`, open it with `load_data("prepared:DIR")`."""

    index: Index
    shards: tuple[MappedArray, ...]
    stored_labels: MappedArray
    length: int
    directory: str
    heldout: "MappedSequence | None" = None

    def __len__(self) -> int:
        return self.length

    @property
    def name(self) -> str:
        return self.index.name

    @property
    def num_classes(self) -> int:
        return self.index.num_classes

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.index.input_shape

    @property
    def order_seed(self) -> int | None:
        return self.index.order_seed

    @property
    def source(self) -> Mapping[str, Any] | None:
        return {"name": f"prepared:{self.directory}"}

    @property
    def origin(self) -> str:
        """The name of the data it was made from."""
        return str((self.index.source or {}).get("name", self.name))

    @property
    def conditioned_on(self) -> str:
        return self.index.conditioned_on

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        """Copies of the rows. A run of successive positions is one copy, and what follows it is read ahead."""
        count = len(positions)
        if not count:
            return torch.from_numpy(np.empty((0, *self.input_shape), self.index.dtype))
        first, stop = int(positions[0]), int(positions[-1]) + 1
        successive = stop - first == count and _successive(positions)
        if not (successive and first >= 0 and stop <= self.length):
            self._require_within(positions)
        number, rows = divmod(first, self.index.shard_rows)
        shard = self.shards[number]
        last = rows + count
        if successive and last <= len(shard.values):
            self._ask_for_next(shard, rows, last)
            return torch.from_numpy(shard.values[rows:last].copy())
        if len(self.shards) == 1:
            return torch.from_numpy(shard.values[positions])
        numbers, rows_of = np.divmod(positions, self.index.shard_rows)
        gathered = np.empty((count, *self.input_shape), self.index.dtype)
        for each in np.unique(numbers):
            here = numbers == each
            gathered[here] = self.shards[each].values[rows_of[here]]
        return torch.from_numpy(gathered)

    def _require_within(self, positions: NDArray[np.int64]) -> None:
        if len(positions) and (positions.min() < 0 or positions.max() >= self.length):
            raise IndexError(f"positions must lie in [0, {self.length}), got {positions.min()} to {positions.max()}")

    def _ask_for_next(self, shard: MappedArray, start: int, stop: int) -> None:
        """Have the system read what a sequential reader will want next, if it is entering a new window."""
        row_bytes = shard.values.strides[0]
        before, after = (HEADER_SIZE + row * row_bytes for row in (start, stop))
        if before // WINDOW_BYTES == after // WINDOW_BYTES:
            return
        begin = after // WINDOW_BYTES * WINDOW_BYTES
        size = min(max(WINDOW_BYTES, after - before), len(shard.mapping) - begin)
        if size > 0:
            with contextlib.suppress(OSError, AttributeError):  # only advice, and not on every system
                shard.mapping.madvise(mmap.MADV_WILLNEED, begin, size)

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        self._require_within(positions)
        return torch.from_numpy(self.stored_labels.values[positions].astype(np.int64))

    def take(self, length: int) -> "MappedSequence":
        """The first `length` examples."""
        return replace(self, length=shorter(self, length))

    def without_heldout(self) -> "MappedSequence":
        """The same sequence with no held-out data."""
        return replace(self, heldout=None)

    @cached_property
    def _digests(self) -> dict[str, str]:
        if self.length == self.index.length:
            return dict(self.index.digests)
        blocks, classes = self.index.blocks, self.num_classes
        return {
            "inputs": digest_of_rows(self.length, lambda p: self.inputs(p).numpy(), known=blocks["inputs"]),
            "labels": digest_of_rows(self.length, lambda p: self.labels(p).numpy(), classes, known=blocks["labels"]),
        }

    def digests(self) -> dict[str, str]:
        """Fingerprints, kept from when the data was prepared."""
        return self._digests


def _successive(positions: NDArray[np.int64]) -> bool:
    return bool((positions[1:] - positions[:-1] == 1).all())


def label_dtype(num_classes: int) -> np.dtype[Any]:
    """The smallest type that holds the labels."""
    return np.min_scalar_type(num_classes - 1)


def rows_per_shard(row_bytes: int) -> int:
    """Rows in one shard: whole blocks where rows are small."""
    rows = max(1, SHARD_BYTES // max(row_bytes, 1))
    return rows // BLOCK_ROWS * BLOCK_ROWS or rows
