"""The directory of a run: its lock, its checkpoints, its record.

A checkpoint is one .safetensors file whose name carries the fingerprint of its content. It is durable
before an older one goes, and at least two are kept, so that a crash at any moment loses only time.
"""

import contextlib
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
from prequential.files import digest_of, read_array, write_atomically, writing
from prequential.learn.learner import Learner
from prequential.record import ARRAYS, OVER, RECORD_FILE, Record, read_facts, require_no_run, write_facts
from prequential.record import load as load_record
from prequential.recorder import COUNTERS, Recorder

KEPT = 2
NAME = "[0-9]" * 14 + "-" + "[0-9a-f]" * 32
"""How checkpoints are named: the number of events, then the fingerprint of the content."""
VERSIONS = ("prequential", "torch", "numpy", "device_name", "cpu_capability")
EAGER = {"engine": "eager", "precision": "fp32", "compiled": False, "deterministic": False}
"""How runs were executed before there was a choice."""
IDENTITY = ("method", "recipe", "model", "data", "seeds", "length", "num_classes")
"""The facts that a resumed run must share with the one it goes on with."""


class Home:
    """Where a run is kept. `facts` are what a record says of its settings."""

    def __init__(self, path: Path, facts: dict[str, Any], *, every_seconds: float) -> None:
        self.path, self.facts, self._every_seconds = path, facts, every_seconds
        self._checkpoints = path / "checkpoints"
        self._last_save = time.monotonic()
        for leftover in self._checkpoints.glob(".*.tmp"):
            leftover.unlink()

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
        return load_record(self.path) if content["status"] in OVER else None

    def require_ours(self) -> None:
        """Refuse to resume in a directory that holds other things than a run."""
        if not (self.path / RECORD_FILE).exists() and not self._files():
            try:
                require_no_run(self.path)
            except PreqError:
                raise PreqError(f"{self.path} holds no run to resume, and is not empty; choose another") from None

    def begin(self) -> None:
        """Say that a run begins here, before anything else is written."""
        nothing = (0, digest_of(b""))
        write_facts(self.path, self._record_facts(0.0), dict.fromkeys(ARRAYS, nothing))

    def newest(self, learner: Learner) -> "Checkpoint | None":
        """The newest checkpoint that is whole and fits the arrays; None where there is none at all."""
        files = self._files()
        for number, file in enumerate(files):
            try:
                checkpoint = Checkpoint(file)
                self._require_same(checkpoint.facts)
                checkpoint.require_arrays(self.path)
                checkpoint.require_state(learner)
            except DamagedError as damage:
                warnings.warn(f"{file} cannot be used: {damage}; trying an older one", PreqWarning, stacklevel=3)
            else:
                for damaged in files[:number]:
                    damaged.rename(damaged.with_suffix(".damaged"))
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
        if recorder.diverged:
            return
        recorder.sync()
        with writing(self._checkpoints):
            self._checkpoints.mkdir(exist_ok=True)
        contents = recorder.contents()
        meta = {
            "facts": {name: self.facts[name] for name in (*IDENTITY, "environment")},
            "counters": recorder.counters(),
            "contents": contents,
            "threads": torch.get_num_threads(),
        }
        state = learner.state()
        tensors = {f"{n}.{i}": t.contiguous().cpu() for n, values in state.items() for i, t in enumerate(values)}
        content = save(tensors, {"prequential": json.dumps(meta)})
        name = f"{recorder.num_events:014d}-{digest_of(content)}.safetensors"
        write_atomically(self._checkpoints / name, content)
        write_facts(self.path, self._record_facts(recorder.seconds), contents)
        with writing(self._checkpoints):
            for old in self._files()[KEPT:]:
                old.unlink()
        self._last_save = time.monotonic()

    def finish(self, recorder: Recorder, facts: dict[str, Any]) -> Record:
        """Write the record. A run that is over needs its checkpoints no more."""
        recorder.sync()
        is_over = recorder.status in OVER
        if is_over:
            recorder.cut()
        write_facts(self.path, facts, recorder.contents())
        if is_over and self._checkpoints.exists():
            for file in [*self._files(), *self._checkpoints.glob(f"{NAME}.damaged")]:
                file.unlink()
            with contextlib.suppress(OSError):  # a file of the user's keeps the folder
                self._checkpoints.rmdir()
        return load_record(self.path)

    def _files(self) -> list[Path]:
        """Newest first: the number of events comes first in a name."""
        return sorted(self._checkpoints.glob(f"{NAME}.safetensors"), reverse=True)

    def _record_facts(self, seconds: float) -> dict[str, Any]:
        return self.facts | {"status": "running", "heldout": None, "flops": None, "seconds": seconds}

    def _require_same(self, earlier: dict[str, Any]) -> None:
        differences = [
            f"{place} {then} then, {now} now"
            for name in IDENTITY
            for place, then, now in _differences(name, earlier.get(name), self.facts[name])
        ]
        then, now = EAGER | earlier.get("environment", {}), self.facts["environment"]
        for name in ("device", *EAGER):
            if then.get(name) != now[name]:
                differences.append(f"{name} {then.get(name)} then, {now[name]} now")
        if differences:
            raise PreqError(f"settings differ from the run in {self.path}: {'; '.join(differences)}")
        changed = [f"{name} {then.get(name)} then, {now[name]} now" for name in VERSIONS if then.get(name) != now[name]]
        if changed:
            warnings.warn(f"the bits may differ from here on: {'; '.join(changed)}", PreqWarning, stacklevel=4)


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
            meta = json.loads(header["__metadata__"]["prequential"])
            self.facts, self._counters = dict(meta["facts"]), dict(meta["counters"])
            self._contents = {name: (int(meta["contents"][name][0]), str(meta["contents"][name][1])) for name in ARRAYS}
            self._threads = int(meta["threads"])
            self._state: dict[str, list[Tensor]] = {}
            tensors = load(content)
            for key in sorted(tensors, key=lambda key: (key.rpartition(".")[0], int(key.rpartition(".")[2]))):
                self._state.setdefault(key.rpartition(".")[0], []).append(tensors[key])
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise DamagedError(str(error)) from None

    def require_state(self, learner: Learner) -> None:
        """Refuse tensors that are not those of this learner."""

        def shapes(state: dict[str, list[Tensor]]) -> dict[str, list[tuple[object, ...]]]:
            return {name: [(*tensor.shape, tensor.dtype) for tensor in tensors] for name, tensors in state.items()}

        if shapes(self._state) != shapes(learner.state()):
            raise DamagedError("its tensors are not those of this model and optimizer")
        if set(self._counters) != set(COUNTERS):
            raise DamagedError("it does not say where the run stood")

    def require_arrays(self, path: Path) -> None:
        """Refuse arrays whose beginning is not what it was when the checkpoint was made."""
        for name, (length, digest) in self._contents.items():
            try:
                values = read_array(path / f"{name}.npy", length)
            except PreqError as error:
                raise DamagedError(str(error)) from None
            if digest_of(values.tobytes()) != digest:
                raise DamagedError(f"{name}.npy does not fit it")

    def threads(self, wanted: int | str | None) -> int:
        """The number of threads to go on with: the same, since another gives other bits."""
        then = self._threads
        if isinstance(wanted, int) and wanted != then:
            place = self.file.parent.parent
            raise PreqError(f"settings differ from the run in {place}: threads {then} then, {wanted} now")
        return then

    def restore(self, learner: Learner, recorder: Recorder) -> None:
        """Put learner and recorder back to where they were."""
        learner.restore(self._state)
        recorder.go_back_to(self._counters, self._contents)
