"""Rows appended to shards, with their fingerprints, and a note of where the work stands."""

import contextlib
import errno
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.digest import BLOCK_ROWS, BYTES_AT_ONCE, as_bytes, digest_of_blocks, new_block
from prequential.data.shards import FORMAT, INDEX_FILE, PROGRESS_FILE, Index, sealed, unsealed
from prequential.errors import PreqError
from prequential.files import HEADER_SIZE, npy_header, sync_directory, write_atomically, writing

SECONDS_BETWEEN_SAVES = 2.0
HOW_NOT_WHAT = ("workers", "skip_broken", "crop")
"""Options of a source that do not decide what is written."""


def identity(index: Index) -> dict[str, Any]:
    """What work that is gone on with must share with how it began."""
    facts = {name: value for name, value in asdict(index).items() if name not in ("blocks", "digests", "skipped")}
    source = None if index.source is None else {k: v for k, v in index.source.items() if k not in HOW_NOT_WHAT}
    return facts | {"input_shape": list(index.input_shape), "source": source}


def require_same(directory: Path, wanted: dict[str, Any], there: dict[str, Any]) -> None:
    """Refuse a directory in which other data was begun or finished."""
    different = [name for name, value in wanted.items() if there.get(name) != value]
    if different:
        name = different[0]
        raise PreqError(
            f"{directory} holds other data: its {name} is {there.get(name)}, not {wanted[name]}; "
            "choose another directory"
        )


class ShardWriter:
    """Appends rows to shards, keeps their fingerprints, and saves where it stands."""

    def __init__(self, directory: Path, index: Index) -> None:
        self.directory, self.index = directory, index
        self.dtype, self.labels_dtype = np.dtype(index.dtype), np.dtype(index.label_dtype)
        self.row_bytes = self.dtype.itemsize * int(np.prod(index.input_shape))
        self.num_read = self.num_rows = self.skipped = 0
        self.blocks: dict[str, list[str]] = {"inputs": [], "labels": []}
        self.commit(num_read=0, skipped=0)
        self._partial = {name: new_block() for name in self.blocks}
        self._files: dict[str, Any] = {}
        self._last_save = time.monotonic()
        if (directory / PROGRESS_FILE).exists():
            self._resume(unsealed(directory / PROGRESS_FILE))
        else:
            self.save()  # from here on the files in the directory are known to be ours

    def _resume(self, progress: dict[str, Any]) -> None:
        require_same(self.directory, identity(self.index), progress["identity"])
        self.num_rows, self.blocks = progress["num_rows"], progress["blocks"]
        self.commit(num_read=progress["num_read"], skipped=progress["skipped"])
        begin = len(self.blocks["inputs"]) * BLOCK_ROWS
        for row in range(begin, self.num_rows, max(1, BYTES_AT_ONCE // self.row_bytes)):
            stop = min(row + max(1, BYTES_AT_ONCE // self.row_bytes), self.num_rows)
            for name, content in (("inputs", self._read_rows(row, stop)), ("labels", self._read_labels(row, stop))):
                self._partial[name].update(content)

    def commit(self, *, num_read: int, skipped: int) -> None:
        """Say how much was read for the rows that are here. Only this is saved: work may stop inside an `append`."""
        blocks = {name: list(digests) for name, digests in self.blocks.items()}
        self.num_read, self.skipped = num_read, skipped
        self._committed = {"num_read": num_read, "num_rows": self.num_rows, "skipped": skipped, "blocks": blocks}

    def append(self, inputs: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Write rows behind those that are there."""
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < self.index.num_classes:
            raise PreqError(f"'{self.index.name}' has no labels, or labels outside 0 … {self.index.num_classes - 1}")
        done = 0
        while done < len(inputs):
            shard, row = divmod(self.num_rows, self.index.shard_rows)
            room = min(self.index.shard_rows - row, BLOCK_ROWS - self.num_rows % BLOCK_ROWS, len(inputs) - done)
            rows, some_labels = inputs[done : done + room], labels[done : done + room]
            self._write(f"inputs-{shard:04d}.npy", row * self.row_bytes, np.ascontiguousarray(rows, self.dtype))
            offset = self.num_rows * self.labels_dtype.itemsize
            self._write("labels.npy", offset, some_labels.astype(self.labels_dtype))
            self._partial["inputs"].update(as_bytes(rows))
            self._partial["labels"].update(as_bytes(some_labels))
            self.num_rows += room
            done += room
            if self.num_rows % BLOCK_ROWS == 0:
                for name, state in self._partial.items():
                    self.blocks[name].append(state.hexdigest())
                    self._partial[name] = new_block()

    def _write(self, name: str, offset: int, values: NDArray[Any]) -> None:
        self._write_bytes(name, HEADER_SIZE + offset, as_bytes(values))

    def _write_bytes(self, name: str, offset: int, content: memoryview) -> None:
        with writing(self.directory / name):
            while len(content):
                written = os.pwrite(self._file(name).fileno(), content, offset)
                if not written:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                content, offset = content[written:], offset + written

    def _file(self, name: str) -> Any:
        if name not in self._files:
            path = self.directory / name
            self._files[name] = path.open("r+b" if path.exists() else "w+b", buffering=0)
        return self._files[name]

    def _read_rows(self, start: int, stop: int) -> bytes:
        parts = []
        while start < stop:
            shard, row = divmod(start, self.index.shard_rows)
            count = min(stop - start, self.index.shard_rows - row)
            parts.append(self._pread(f"inputs-{shard:04d}.npy", row * self.row_bytes, count * self.row_bytes))
            start += count
        return b"".join(parts)

    def _read_labels(self, start: int, stop: int) -> bytes:
        size = self.labels_dtype.itemsize
        content = self._pread("labels.npy", start * size, (stop - start) * size)
        return np.frombuffer(content, self.labels_dtype).astype(np.int64).tobytes()

    def _pread(self, name: str, offset: int, size: int) -> bytes:
        content = os.pread(self._file(name).fileno(), size, HEADER_SIZE + offset)
        if len(content) != size:
            raise PreqError(f"{self.directory / name} is truncated; remove {self.directory} and prepare again")
        return content

    def save_if_due(self) -> None:
        """Make what was written durable, every few seconds."""
        if time.monotonic() - self._last_save > SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self) -> None:
        """Make what was written durable, and note where the work stands."""
        for name, file in self._files.items():
            with writing(self.directory / name):
                os.fsync(file.fileno())
        write_atomically(self.directory / PROGRESS_FILE, sealed({"identity": identity(self.index)} | self._committed))
        self._last_save = time.monotonic()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def finish(self, extra: Mapping[str, str]) -> None:
        """Give every file its header, and the directory its index; `extra` fingerprints of the whole are kept too."""
        if not self.num_rows:
            raise PreqError(f"'{self.index.name}': every example is broken; there is nothing to prepare")
        index = replace(self.index, length=self.num_rows, blocks=self.blocks, skipped=self.skipped)
        for name, rows in index.shards:
            self._seal(name, self.dtype, (rows, *index.input_shape))
        self._seal("labels.npy", self.labels_dtype, (self.num_rows,))
        self.close()
        content = {"format": FORMAT} | asdict(replace(index, digests={**self._digests(), **extra}))
        write_atomically(self.directory / INDEX_FILE, sealed(content | {"input_shape": list(index.input_shape)}))
        with contextlib.suppress(OSError):
            (self.directory / PROGRESS_FILE).unlink()
            sync_directory(self.directory)

    def _digests(self) -> dict[str, str]:
        partial = self.num_rows % BLOCK_ROWS > 0
        blocks = {n: [*self.blocks[n], *([self._partial[n].hexdigest()] if partial else [])] for n in self.blocks}
        length, shape = self.num_rows, self.index.input_shape
        return {
            "inputs": digest_of_blocks(blocks["inputs"], length, self.dtype, shape),
            "labels": digest_of_blocks(blocks["labels"], length, np.dtype(np.int64), (), self.index.num_classes),
        }

    def _seal(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        with writing(self.directory / name):
            self._write_bytes(name, 0, memoryview(npy_header(dtype, shape)))
            file = self._file(name)
            os.ftruncate(file.fileno(), HEADER_SIZE + int(np.prod(shape)) * dtype.itemsize)
            os.fsync(file.fileno())
