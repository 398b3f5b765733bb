"""Write a sequence into mapped files, once: in sequence order, resumable, in bounded memory."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.digest import BLOCK_ROWS, BYTES_AT_ONCE, RunningDigest, digest_of_rows, spans
from prequential.data.mapped import FORMAT, INDEX_FILE, Index, MappedSequence, open_prepared, read_index
from prequential.data.optional import capabilities, is_sequence
from prequential.data.scale import scale_of
from prequential.data.sequence import DataSequence
from prequential.data.told import told_of
from prequential.errors import PreqError
from prequential.files import ArrayFile, sync_directory, write_atomically, writing
from prequential.formats import PREPARING, ROWS
from prequential.lock import DirectoryLock
from prequential.plain import sealed
from prequential.scaling import INTENSITY

PROGRESS_FILE = "progress.json"
SECONDS_BETWEEN_SAVES = 2.0
HOW_NOT_WHAT = ("workers", "skip_broken", "crop")
"""Options of a source that do not decide what is written."""
Reader = Callable[[NDArray[np.int64]], NDArray[Any]]
PrepareListener = Callable[[int, int, int], None]
"""Called with (examples read, examples in all, examples left out as broken)."""


def prepare(
    data: DataSequence, to: str | Path, *, skip_broken: bool = False, listener: PrepareListener | None = None
) -> MappedSequence:
    """Write a sequence and its held-out data into a directory of mapped files, and open it.

    A second call goes on where the first was stopped; a finished one returns at once.

    Args:
        data: any sequence; it is read once, from front to back. Going on reads again what is there, to compare it.
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
    if capabilities(data).num_inputs > len(data):
        todo = "prepare the whole, and say how many labels there are when it is read (num_labels)"
        raise PreqError(f"'{data.name}' has inputs without labels, and prepared data has a label for each; {todo}")
    if not isinstance(to, str | Path):
        raise PreqError(f"prepare needs the path of a directory, got {to}")
    directory = Path(to)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    with DirectoryLock(directory):
        index = _index_for(data)
        if (directory / INDEX_FILE).exists():
            found = open_prepared(directory)
            read = replace(found.index, length=found.index.length + found.index.skipped)
            _require_same(directory, _identity(index), _identity(read))
            _require_same_inputs(directory, data, found.index.length, lambda p: found.inputs(p).numpy())
            if data.heldout is not None and found.heldout is not None:
                prepare(data.heldout, directory / "heldout", skip_broken=skip_broken)
            return found
        _require_ours(directory)
        with contextlib.closing(Writer(directory, index)) as writer:
            _require_same_inputs(directory, data, writer.num_rows, writer.inputs)
            try:
                _write_all(writer, data, skip_broken, listener or (lambda *_: None))
            except BaseException:
                with contextlib.suppress(PreqError, OSError):  # what was committed should count
                    writer.save()
                raise
            if data.heldout is not None:
                prepare(data.heldout, directory / "heldout", skip_broken=skip_broken)
            writer.finish()
    return open_prepared(directory)


def _index_for(data: DataSequence) -> Index:
    more = capabilities(data)
    try:
        sample, _ = more.read(np.zeros(1, np.int64))  # black where it is broken, which is told when its turn comes
    except TypeError as error:
        raise PreqError(f"the inputs cannot be prepared: .npy has no such type ({error}); convert to float32") from None
    told = told_of(data)
    return Index(
        name=data.name,
        num_classes=data.num_classes,
        input_shape=tuple(sample.shape[1:]),
        dtype=sample.dtype.str,
        label_dtype=np.min_scalar_type(data.num_classes - 1).str,
        length=len(data),
        order_seed=data.order_seed,
        conditioned_on=more.conditioned_on,
        source=more.source,
        scale=scale_of(data),
        class_names=told.get("class_names"),
        rows=told.get("rows") if told.get("rows") in ROWS else None,
        given=digest_of_rows(len(data), lambda p: data.labels(p).numpy(), data.num_classes, more.listing),
    )


def _identity(index: Index) -> dict[str, Any]:
    """What work that is gone on with must share with how it began."""
    own = ("blocks", "digests", "skipped", "shard_rows", "class_names", "rows")
    facts = {name: value for name, value in asdict(index).items() if name not in own}
    if facts["scale"] in (None, INTENSITY):  # which work that was begun before there was another does not say
        del facts["scale"]
    source = None if index.source is None else {k: v for k, v in index.source.items() if k not in HOW_NOT_WHAT}
    return facts | {"input_shape": list(index.input_shape), "source": source}


def _require_same(directory: Path, wanted: dict[str, Any], there: dict[str, Any]) -> None:
    """Refuse a directory in which other data was begun or finished."""
    for name, value in wanted.items():
        if (has := there.get(name)) != value:
            raise PreqError(f"{directory} holds other data: its {name} is {has}, not {value}; choose another directory")


def _require_same_inputs(directory: Path, data: DataSequence, num_rows: int, stored: Reader) -> None:
    """The same for inputs that are quickly read; of image files the names were compared, and the labels."""
    for positions in () if capabilities(data).reads_slowly else spans(0, num_rows, BLOCK_ROWS):
        if not np.array_equal(data.inputs(positions).numpy(), stored(positions)):
            other = f"other data: its inputs are not those of '{data.name}'"
            raise PreqError(f"{directory} holds {other}; choose another directory")


def _require_ours(directory: Path) -> None:
    """Refuse a directory with anything in it that this work did not put there."""
    begun = (directory / PROGRESS_FILE).exists()
    ours = {"lock", PROGRESS_FILE, f".{PROGRESS_FILE}.tmp"} | ({f".{INDEX_FILE}.tmp", "heldout"} if begun else set())
    for file in directory.iterdir():
        if file.name not in ours and not (begun and file.name.endswith(".npy")):
            raise PreqError(f"{directory} is not empty ({file.name}); choose another directory for the prepared data")


def _write_all(writer: "Writer", data: DataSequence, skip_broken: bool, listener: PrepareListener) -> None:
    at_once = min(BLOCK_ROWS, writer.at_once)
    more = capabilities(data)
    more.read_ahead((positions, None) for positions in spans(writer.num_read, len(data), at_once))
    listener(writer.num_read, len(data), writer.skipped)
    for positions in spans(writer.num_read, len(data), at_once):
        inputs, broken = more.read(positions) if skip_broken else (data.inputs(positions).numpy(), [])
        good = np.setdiff1d(np.arange(len(positions)), [row for row, _ in broken])
        labels = data.labels(positions).numpy()
        writer.append(*(inputs[good], labels[good]) if broken else (inputs, labels))
        writer.commit(num_read=writer.num_read + len(positions), skipped=writer.skipped + len(broken))
        if time.monotonic() - writer.last_save > SECONDS_BETWEEN_SAVES:
            writer.save()
        listener(writer.num_read, len(data), writer.skipped)
    writer.save()


class Writer:
    """Appends rows to the files, keeps their fingerprints, and saves where it stands."""

    def __init__(self, directory: Path, index: Index) -> None:
        self.directory, self.index = directory, index
        self._identity = {"format": FORMAT} | _identity(index)
        path = directory / PROGRESS_FILE
        there = read_index(path, PREPARING) if path.exists() else None
        if there is not None:
            _require_same(directory, self._identity, there["identity"])
        begun = there or {"num_read": 0, "num_rows": 0, "skipped": 0, "blocks": {"inputs": [], "labels": []}}
        self._digests = {name: RunningDigest(blocks) for name, blocks in begun["blocks"].items()}
        self.num_rows = begun["num_rows"]
        self.commit(num_read=begun["num_read"], skipped=begun["skipped"])
        self._note()  # from here on the files in the directory are known to be ours
        self._files = {}
        for name, dtype, row_shape in (("inputs", index.dtype, index.input_shape), ("labels", index.label_dtype, ())):
            file = directory / f"{name}.npy"
            self._files[name] = ArrayFile(file, np.dtype(dtype), index.length, row_shape, create=not file.exists())
        self.at_once = max(1, BYTES_AT_ONCE // max(self._files["inputs"].row_size, 1))
        for start in range(self._digests["inputs"].num_rows, self.num_rows, self.at_once):
            for name, read in self._files.items():  # what was written behind the last whole block is hashed again
                rows = read.read(start, min(start + self.at_once, self.num_rows))
                self._digests[name].update(rows.astype(np.int64) if name == "labels" else rows)

    def inputs(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Those that were written, at positions one after the other."""
        return self._files["inputs"].read(int(positions[0]), int(positions[-1]) + 1)

    def append(self, inputs: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Write rows behind those that are there."""
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < self.index.num_classes:
            raise PreqError(f"'{self.index.name}' has no labels, or labels outside 0 … {self.index.num_classes - 1}")
        for name, rows in (("inputs", inputs), ("labels", labels)):
            self._files[name].write(self.num_rows, rows)
            self._digests[name].update(rows)
        self.num_rows += len(labels)

    def commit(self, *, num_read: int, skipped: int) -> None:
        """Say how much was read for the rows that are here. Only this is saved: work may stop inside an `append`."""
        blocks = {name: list(each.blocks) for name, each in self._digests.items()}
        self.num_read, self.skipped = num_read, skipped
        self._committed = {"num_read": num_read, "num_rows": self.num_rows, "skipped": skipped, "blocks": blocks}

    def save(self) -> None:
        """Make what was written durable, and note where the work stands."""
        for file in self._files.values():
            file.sync()
        self._note()

    def _note(self) -> None:
        noted = sealed({"identity": self._identity} | self._committed, "content")
        write_atomically(self.directory / PROGRESS_FILE, noted)
        self.last_save = time.monotonic()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def finish(self) -> None:
        """Cut the files to what was written, and write the index."""
        if not self.num_rows:
            raise PreqError(f"'{self.index.name}': every example is broken; there is nothing to prepare")
        for file in self._files.values():
            file.cut(self.num_rows)
        digests = {
            "inputs": self._digests["inputs"].digest(np.dtype(self.index.dtype), self.index.input_shape),
            "labels": self._digests["labels"].digest(np.dtype(np.int64), (), self.index.num_classes),
        }
        blocks = self._committed["blocks"]
        index = replace(self.index, length=self.num_rows, blocks=blocks, digests=digests, skipped=self.skipped)
        content = {"format": FORMAT} | asdict(index) | {"input_shape": list(index.input_shape)}
        write_atomically(self.directory / INDEX_FILE, sealed(content, "content"))
        with contextlib.suppress(OSError):
            (self.directory / PROGRESS_FILE).unlink()
            sync_directory(self.directory)
