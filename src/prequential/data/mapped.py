"""Prepared data: memory-mapped .npy files in sequence order, and the sequence that reads them.

A directory holds `prepared.json`, `labels.npy`, `inputs.npy` and, where there is held-out data, `heldout/` of the same
form. Memory holds what is being read and nothing else. What is read for the first time is compared with the fingerprint
of its block in `prepared.json`, and files that were changed since are refused. Format 1 had its inputs in several files
of `shard_rows` each, `inputs-0000.npy`, …; they are read as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import INPUTS_SO_FAR
from prequential.data.pieces import Pieces
from prequential.data.sequence import LoadedSequence, shorter
from prequential.errors import PreqError
from prequential.files import map_array
from prequential.formats import PREPARED
from prequential.plain import MisfitError, read_bytes, require_shape, unsealed
from prequential.rng import order_of_rows
from prequential.scaling import Scale

FORMAT = 2
INDEX_FILE = "prepared.json"
MOST_FILES = 1 << 16


@dataclass(frozen=True, eq=False)
class Index:
    """What `prepared.json` says."""

    name: str
    num_classes: int
    input_shape: tuple[int, ...]
    dtype: str
    label_dtype: str
    length: int
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
    scale: Scale | None = None
    """What uint8 inputs are out of; None for others, and where it was not said yet when they were prepared."""
    shard_rows: int | None = None
    """Format 1: the rows of each file of inputs but the last."""
    class_names: list[str] | None = None
    """What the classes are called, where that was known."""
    rows: int | None = None
    """How many rows the source had, where the order seed tells which of them each example is."""

    @property
    def input_files(self) -> list[tuple[str, int]]:
        """The name and the number of rows of each file of inputs."""
        if self.shard_rows is None:
            return [("inputs.npy", self.length)]
        starts = range(0, self.length, self.shard_rows)
        if len(starts) > MOST_FILES:
            raise PreqError(f"the index of '{self.name}' is damaged: it names {len(starts):,} files of inputs")
        return [(f"inputs-{k:04d}.npy", min(self.shard_rows, self.length - s)) for k, s in enumerate(starts)]


def read_index(path: Path, shape: Mapping[str, Any] = PREPARED) -> dict[str, Any]:
    """What a file about prepared data says, verified."""
    try:
        content = unsealed(read_bytes(path), "content")
        if shape is PREPARED and content.get("format") not in (1, FORMAT):
            raise PreqError(f"{path} has format {content.get('format')}, this version reads 1 and {FORMAT}")
        require_shape(content, shape)
    except MisfitError as error:
        raise PreqError(f"{path} is damaged: {error}; prepare the data again") from None
    return content


def open_prepared(directory: Path) -> "MappedSequence":
    """The sequence in a directory that `preq data prepare` has filled."""
    if not (directory / INDEX_FILE).exists():
        todo = "see preq data prepare --help; what was begun goes on with the same command"
        raise PreqError(f"{directory} holds no prepared data; {todo}")
    content = read_index(directory / INDEX_FILE)
    known = {name: value for name, value in content.items() if name in Index.__dataclass_fields__}
    index = Index(**known | {"input_shape": tuple(content["input_shape"])})
    dtype, files = np.dtype(index.dtype), index.input_files
    inputs = tuple(map_array(directory / name, dtype, (rows, *index.input_shape)) for name, rows in files)
    labels = map_array(directory / "labels.npy", np.dtype(index.label_dtype), (index.length,))
    place = directory / files[0][0] if len(files) == 1 else directory
    whole, kind = index.digests, np.dtype(np.int64)
    return MappedSequence(
        index=index,
        stored_inputs=inputs,
        stored_labels=labels,
        input_pieces=Pieces(place, inputs, dtype, index.blocks["inputs"], whole["inputs"]),
        label_pieces=Pieces(
            directory / "labels.npy", [labels], kind, index.blocks["labels"], whole["labels"], index.num_classes
        ),
        length=index.length,
        scale=index.scale,
        source={"name": f"prepared:{directory}"},
        heldout=open_prepared(directory / "heldout") if (directory / "heldout").is_dir() else None,
    )


def _of_index(name: str) -> Any:
    """What the index says of a sequence."""
    return property(attrgetter(f"index.{name}"))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MappedSequence(LoadedSequence):
    """A sequence in mapped files. Make one with `prequential.prepare`, open it with `load_data("prepared:DIR")`."""

    index: Index
    stored_inputs: tuple[NDArray[Any], ...]
    """One after the other; more than one only in what was written in format 1."""
    stored_labels: NDArray[Any]
    input_pieces: Pieces
    """What is known so far to be as it was stored; shared with shorter ones."""
    label_pieces: Pieces
    length: int
    scale: Scale | None = None
    source: Mapping[str, Any] | None = None
    heldout: "MappedSequence | None" = None

    name = _of_index("name")
    num_classes = _of_index("num_classes")
    order_seed = _of_index("order_seed")
    conditioned_on = _of_index("conditioned_on")
    input_shape = _of_index("input_shape")

    @property
    def class_names(self) -> tuple[str, ...] | None:
        names = self.index.class_names
        return tuple(names) if names is not None and len(names) == self.num_classes else None

    def __len__(self) -> int:
        return self.length

    @property
    def num_rows(self) -> int | None:
        rows = self.index.rows
        return rows if rows is not None and self.index.length <= rows and not self.index.skipped else None

    @property
    def source_rows(self) -> torch.Tensor | None:
        rows = self.num_rows
        return None if rows is None else torch.from_numpy(order_of_rows(self.order_seed, rows)[: self.length])

    @property
    def origin(self) -> str:
        """The name of the data it was made from."""
        return str((self.index.source or {}).get("name", self.name))

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        """Copies of the rows; what has not been read before is compared with its fingerprint first."""
        self._require_within(positions)
        self.input_pieces.require(positions)
        if len(self.stored_inputs) == 1:
            return torch.from_numpy(self.stored_inputs[0].take(positions, axis=0))
        rows = np.empty((len(positions), *self.input_shape), self.index.dtype)
        start = 0
        for stored in self.stored_inputs:
            here = (positions >= start) & (positions < start + len(stored))
            rows[here] = stored[positions[here] - start]
            start += len(stored)
        return torch.from_numpy(rows)

    def _require_within(self, positions: NDArray[np.int64]) -> None:
        if len(positions) and (positions.min() < 0 or positions.max() >= self.length):
            raise IndexError(f"positions must lie in [0, {self.length}), got {positions.min()} to {positions.max()}")

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        self._require_within(positions)
        self.label_pieces.require(positions)
        return torch.from_numpy(self.stored_labels[positions].astype(np.int64))

    def take(self, length: int) -> Self:
        return replace(self, length=shorter(self, length))

    @property
    def known_blocks(self) -> list[str]:
        """Kept from when the data was prepared."""
        return self.index.blocks["inputs"]

    def require_intact(self) -> None:
        """All that is left to compare with its fingerprints, held-out data too."""
        for pieces in (self.input_pieces, self.label_pieces):
            pieces.require_all(self.length)
        if self.heldout is not None:
            self.heldout.require_intact()

    def digests(self) -> dict[str, str]:
        return dict(self.index.digests) if self.length == self.index.length else self._digests
