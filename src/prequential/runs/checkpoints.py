"""Checkpoints on disk: each is one .safetensors file whose name carries the fingerprint of its content.

It is durable before an older one goes, and at least two are kept, so that a crash at any moment loses only time.
"""

import contextlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of, write_atomically, writing
from prequential.names_of_before import FORMATS, in_names_of_now, require_format

KEPT = 2
NAME = "[0-9]" * 14 + "-" + "[0-9a-f]" * 32
"""How checkpoints are named: the number of events, then the fingerprint of the content."""

Kind = TypeVar("Kind", bound="Checkpoint")
State = dict[str, list[Tensor]]


class DamagedError(Exception):
    """A checkpoint that cannot be used, and why."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Inside, whatever a file that is not what it should be leads to is damage."""
    try:
        yield
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise DamagedError(str(error)) from None


class Checkpoint:
    """A state between two events, read from a file and verified: its tensors, and what was written beside them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with reading():
            content = file.read_bytes()
            if digest_of(content) != file.stem.partition("-")[2]:
                raise DamagedError("its content does not fit its name")
            header_size = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + header_size])
            self.meta: dict[str, Any] = dict(json.loads(header["__metadata__"]["prequential"]))
            self._threads = int(self.meta["threads"])
            self.state: State = {}
            tensors = load(content)
            for key in sorted(tensors, key=lambda key: (key.rpartition(".")[0], int(key.rpartition(".")[2]))):
                self.state.setdefault(key.rpartition(".")[0], []).append(tensors[key])
        require_format(self._format, file)

    @property
    def _format(self) -> object:
        return self.meta.get("format", 1)  # those of format 1 do not say so

    def in_names_of_now(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What the checkpoint says of a run."""
        return in_names_of_now(facts, self._format)

    def require_tensors(self, wanted: State) -> None:
        """Refuse tensors that are not like those of this state."""

        def shapes(state: State) -> dict[str, list[tuple[object, ...]]]:
            return {name: [(*tensor.shape, tensor.dtype) for tensor in tensors] for name, tensors in state.items()}

        if shapes(self.state) != shapes(wanted):
            raise DamagedError("its tensors are not those of this model and optimizer")

    def threads(self, wanted: int | str | None) -> int:
        """The number of threads to go on with: the same, since another gives other bits."""
        then = self._threads
        if isinstance(wanted, int) and wanted != then:
            place = self.file.parent.parent
            raise PreqError(f"settings differ from the run in {place}: threads {then} then, {wanted} now")
        return then


class Checkpoints:
    """A folder of checkpoints, made when the first one is saved."""

    def __init__(self, folder: Path, *, every_seconds: float) -> None:
        self.folder, self._every_seconds = folder, every_seconds
        self._last_save = time.monotonic()
        for leftover in folder.glob(".*.tmp"):
            leftover.unlink()

    def files(self) -> list[Path]:
        """Newest first: the number of events comes first in a name."""
        return sorted(self.folder.glob(f"{NAME}.safetensors"), reverse=True)

    def newest(self, read: Callable[[Path], Kind]) -> Kind | None:
        """The newest that can be read; None where there is none, or none is whole."""
        files = self.files()
        for number, file in enumerate(files):
            try:
                checkpoint = read(file)
            except DamagedError as damage:
                warnings.warn(f"{file} cannot be used: {damage}; trying an older one", PreqWarning, stacklevel=4)
            else:
                for damaged in files[:number]:
                    damaged.rename(damaged.with_suffix(".damaged"))
                return checkpoint
        return None

    def save_is_due(self) -> bool:
        """Whether the last one is old enough."""
        return time.monotonic() - self._last_save >= self._every_seconds

    def add(self, num_events: int, state: State, meta: dict[str, Any]) -> None:
        """Write one; when this returns, it is durable."""
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)
        meta = meta | {"format": FORMATS[-1], "threads": torch.get_num_threads()}
        tensors = {f"{n}.{i}": t.contiguous().cpu() for n, values in state.items() for i, t in enumerate(values)}
        content = save(tensors, {"prequential": json.dumps(meta, allow_nan=False)})
        write_atomically(self.folder / f"{num_events:014d}-{digest_of(content)}.safetensors", content)

    def drop_old(self) -> None:
        """Remove all but the newest ones."""
        with writing(self.folder):
            for old in self.files()[KEPT:]:
                old.unlink()
        self._last_save = time.monotonic()

    def clear(self) -> None:
        """Remove all of them, and the folder unless something of the user's is in it."""
        if self.folder.exists():
            with writing(self.folder):
                for file in [*self.files(), *self.folder.glob(f"{NAME}.damaged")]:
                    file.unlink()
            with contextlib.suppress(OSError):
                self.folder.rmdir()
