"""Write a sequence into mapped shards, once: in sequence order, resumable, in bounded memory."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.digest import BLOCK_ROWS, BYTES_AT_ONCE, digest_of_rows
from prequential.data.optional import capabilities, is_own, is_sequence
from prequential.data.sequence import DataSequence
from prequential.data.shard_writer import ShardWriter, identity, require_same
from prequential.data.shards import (
    INDEX_FILE,
    PROGRESS_FILE,
    Index,
    MappedSequence,
    label_dtype,
    open_prepared,
    rows_per_shard,
)
from prequential.errors import PreqError
from prequential.files import writing
from prequential.lock import DirectoryLock

PrepareListener = Callable[[int, int, int], None]
"""Called with (examples read, examples in all, examples left out as broken)."""


def prepare(
    data: DataSequence, to: str | Path, *, skip_broken: bool = False, listener: PrepareListener | None = None
) -> MappedSequence:
    """Write a sequence and its held-out data into a directory of mapped shards, and open it.

    A second call goes on where the first was stopped; a finished one returns at once.

    Args:
        data: any sequence; it is read once, from front to back.
        to: the directory; new, or one in which the same data was begun.
        skip_broken: leave out images that cannot be decoded, and count them, instead of stopping.
        listener: hears of progress.

    Example:
        >>> import tempfile, prequential as pq
        >>> data = pq.load_data("mnist").take(100).without_heldout()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     prepared = pq.prepare(data, folder)
        ...     prepared.digests() == data.digests()
        True
    """
    if not is_sequence(data):
        raise PreqError(f"prepare takes a sequence, from from_arrays or load_data, got {type(data).__name__}")
    if not isinstance(to, str | Path):
        raise PreqError(f"prepare needs the path of a directory, got {to}")
    directory = Path(to)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    with DirectoryLock(directory):
        index = _index_for(data, skip_broken=skip_broken)
        if (directory / INDEX_FILE).exists():
            return _finished(directory, index)
        _require_ours(directory)
        writer = ShardWriter(directory, index)
        try:
            _write_all(writer, data, skip_broken, listener or (lambda *_: None))
        except BaseException:
            with contextlib.suppress(PreqError, OSError):  # what was committed should count
                writer.save()
            raise
        finally:
            writer.close()
        if data.heldout is not None:
            prepare(data.heldout, directory / "heldout", skip_broken=skip_broken)
        shared = capabilities(data).examples is not None
        writer.finish(extra={"examples": data.digests()["examples"]} if shared else {})
    return open_prepared(directory)


def _index_for(data: DataSequence, *, skip_broken: bool) -> Index:
    more, first = capabilities(data), np.zeros(1, np.int64)
    can_be_broken = skip_broken and is_own(data, "read")
    sample = more.read(first)[0] if can_be_broken else _as_array(data.inputs(first))
    shape = tuple(sample.shape[1:])
    return Index(
        name=data.name,
        num_classes=data.num_classes,
        input_shape=shape,
        dtype=sample.dtype.str,
        label_dtype=label_dtype(data.num_classes).str,
        length=len(data),
        shard_rows=rows_per_shard(sample.dtype.itemsize * int(np.prod(shape))),
        order_seed=data.order_seed,
        conditioned_on=more.conditioned_on,
        source=more.source,
        given=digest_of_rows(len(data), lambda p: data.labels(p).numpy(), data.num_classes, more.listing),
    )


def _as_array(inputs: torch.Tensor) -> NDArray[Any]:
    if inputs.dtype == torch.bfloat16:
        raise PreqError("bfloat16 inputs cannot be prepared: .npy has no such type; convert to float32")
    array: NDArray[Any] = inputs.numpy()
    return array


def _finished(directory: Path, index: Index) -> MappedSequence:
    found = open_prepared(directory)
    read = replace(found.index, length=found.index.length + found.index.skipped)
    require_same(directory, identity(index), identity(read))
    return found


def _require_ours(directory: Path) -> None:
    """Refuse a directory with anything in it that this work did not put there."""
    begun = (directory / PROGRESS_FILE).exists()
    ours = {"lock", PROGRESS_FILE, f".{PROGRESS_FILE}.tmp"} | ({f".{INDEX_FILE}.tmp", "heldout"} if begun else set())
    for file in directory.iterdir():
        if file.name not in ours and not (begun and file.name.endswith(".npy")):
            raise PreqError(f"{directory} is not empty ({file.name}); choose another directory for the prepared data")


def _write_all(writer: ShardWriter, data: DataSequence, skip_broken: bool, listener: PrepareListener) -> None:
    at_once = max(1, min(BLOCK_ROWS, BYTES_AT_ONCE // max(writer.row_bytes, 1)))

    def spans() -> Iterator[NDArray[np.int64]]:
        for start in range(writer.num_read, len(data), at_once):
            yield np.arange(start, min(start + at_once, len(data)))

    more = capabilities(data)
    more.read_ahead((positions, None) for positions in spans())
    listener(writer.num_read, len(data), writer.skipped)
    for positions in spans():
        labels, num_broken = data.labels(positions).numpy(), 0
        if not skip_broken:
            writer.append(data.inputs(positions).numpy(), labels)
        else:
            images, broken = more.read(positions)
            good = np.setdiff1d(np.arange(len(positions)), [row for row, _ in broken])
            writer.append(images[good], labels[good])
            num_broken = len(broken)
        writer.commit(num_read=writer.num_read + len(positions), skipped=writer.skipped + num_broken)
        writer.save_if_due()
        listener(writer.num_read, len(data), writer.skipped)
    writer.save()
