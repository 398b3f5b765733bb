"""The directory of a run: its lock, its checkpoints, its record.

A checkpoint is one .safetensors file whose name carries the fingerprint of its content. It is durable
before an older one goes, and at least two are kept, so that a crash at any moment loses only time.
"""

import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of, read_array, sync_directory, write_atomically
from prequential.learn.learner import Learner
from prequential.record import RECORD_FILE, Record, read_facts, write_facts
from prequential.record import load as load_record
from prequential.recorder import Recorder

KEPT = 2
IDENTITY = ("method", "recipe", "model", "data", "seeds", "length", "num_classes")
"""The facts that a resumed run must share with the one it goes on with."""


class Home:
    """Where a run is kept. `facts` are what a record says of its settings."""

    def __init__(self, path: Path, facts: dict[str, Any], *, every_seconds: float) -> None:
        self.path, self.facts, self._every_seconds = path, facts, every_seconds
        self._checkpoints = path / "checkpoints"
        self._last_save = time.monotonic()

    def finished_record(self) -> Record | None:
        """The record of a run that is over, if this is one with the same settings."""
        if not (self.path / RECORD_FILE).exists():
            return None
        try:
            content = read_facts(self.path)
        except PreqError as error:
            if not self._files():
                raise
            warnings.warn(f"{error}; going on from the last checkpoint", PreqWarning, stacklevel=3)
            return None
        self._require_same(content)
        return load_record(self.path) if content["status"] in ("finished", "diverged") else None

    def begin(self, recorder: Recorder) -> None:
        """Say that a run has begun here."""
        write_facts(self.path, self._record_facts(recorder), recorder.contents())

    def newest(self) -> "Checkpoint | None":
        """The newest checkpoint that is whole and fits the arrays; None where there is none at all."""
        files = self._files()
        for file in files:
            try:
                checkpoint = Checkpoint(file)
                self._require_same(checkpoint.meta["facts"])
                checkpoint.require_arrays(self.path)
            except DamagedError as damage:
                warnings.warn(f"{file} cannot be used: {damage}; trying an older one", PreqWarning, stacklevel=3)
            else:
                return checkpoint
        if files:
            raise PreqError(f"no checkpoint in {self._checkpoints} is whole; remove {self.path} and start again")
        return None

    def save_is_due(self) -> bool:
        """Whether the last checkpoint is old enough."""
        return time.monotonic() - self._last_save >= self._every_seconds

    def save(self, learner: Learner, recorder: Recorder) -> None:
        """Write a checkpoint: durable before the record names it and before an older one goes."""
        recorder.fetch()
        recorder.sync()
        self._checkpoints.mkdir(exist_ok=True)
        contents = recorder.contents()
        meta = {
            "facts": {name: self.facts[name] for name in IDENTITY},
            "counters": recorder.counters(),
            "contents": contents,
            "threads": torch.get_num_threads(),
        }
        state = learner.state()
        tensors = {f"{n}.{i}": t.contiguous().cpu() for n, values in state.items() for i, t in enumerate(values)}
        content = save(tensors, {"prequential": json.dumps(meta)})
        name = f"{recorder.num_events:014d}-{digest_of(content)}.safetensors"
        write_atomically(self._checkpoints / name, content)
        write_facts(self.path, self._record_facts(recorder), contents)
        for old in self._files()[KEPT:]:
            old.unlink()
        self._last_save = time.monotonic()

    def finish(self, recorder: Recorder, facts: dict[str, Any]) -> Record:
        """Write the record. A run that is over needs its checkpoints no more."""
        recorder.sync()
        is_over = recorder.status in ("finished", "diverged")
        if is_over:
            recorder.cut()
        write_facts(self.path, facts, recorder.contents())
        if is_over and self._checkpoints.exists():
            for file in self._checkpoints.iterdir():
                file.unlink()
            self._checkpoints.rmdir()
            sync_directory(self.path)
        return load_record(self.path)

    def _files(self) -> list[Path]:
        """Newest first: the number of events comes first in a name."""
        return sorted(self._checkpoints.glob("*.safetensors"), reverse=True)

    def _record_facts(self, recorder: Recorder) -> dict[str, Any]:
        return self.facts | {"status": "running", "heldout": None, "flops": None, "seconds": recorder.seconds}

    def _require_same(self, earlier: dict[str, Any]) -> None:
        differences = [
            f"{place} {then} then, {now} now"
            for name in IDENTITY
            for place, then, now in _differences(name, earlier.get(name), self.facts[name])
        ]
        if differences:
            raise PreqError(f"settings differ from the run in {self.path}: {'; '.join(differences)}")


def _differences(place: str, then: object, now: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*then, *now]):
            yield from _differences(f"{place}.{key}", then.get(key), now.get(key))
    elif then != now:
        yield place, then, now


class DamagedError(Exception):
    """A checkpoint that cannot be used, and why."""


class Checkpoint:
    """The state of a run between two events, read from a file and verified."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            content = file.read_bytes()
            if digest_of(content) != file.stem.partition("-")[2]:
                raise DamagedError("its content does not fit its name")
            header_size = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + header_size])
            self.meta: dict[str, Any] = json.loads(header["__metadata__"]["prequential"])
            self._tensors = load(content)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(str(error)) from None

    def require_arrays(self, path: Path) -> None:
        """Refuse arrays whose beginning is not what it was when the checkpoint was made."""
        for name, (length, digest) in self.meta["contents"].items():
            try:
                values = read_array(path / f"{name}.npy", length)
            except PreqError as error:
                raise DamagedError(str(error)) from None
            if digest_of(values.tobytes()) != digest:
                raise DamagedError(f"{name}.npy does not fit it")

    def threads(self, wanted: int | str | None) -> int:
        """The number of threads to go on with: the same, since another gives other bits."""
        then = int(self.meta["threads"])
        if isinstance(wanted, int) and wanted != then:
            place = self.file.parent.parent
            raise PreqError(f"settings differ from the run in {place}: threads {then} then, {wanted} now")
        return then

    def restore(self, learner: Learner, recorder: Recorder) -> None:
        """Put learner and recorder back to where they were."""
        state: dict[str, list[Tensor]] = {}
        for key in sorted(self._tensors, key=lambda key: (key.rpartition(".")[0], int(key.rpartition(".")[2]))):
            state.setdefault(key.rpartition(".")[0], []).append(self._tensors[key])
        learner.restore(state)
        recorder.go_back_to(self.meta["counters"], self.meta["contents"])
