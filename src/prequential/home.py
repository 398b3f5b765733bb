"""The directory of a run: its checkpoints and its record."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prequential.checkpoints import Checkpoint, Checkpoints, DamagedError, reading
from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of, read_array
from prequential.learn.learner import Learner
from prequential.names_of_before import hint
from prequential.record import ARRAYS, OVER, RECORD_FILE, Record, read_facts, require_no_run, write_facts
from prequential.record import load as load_record
from prequential.recorder import COUNTERS, Contents, Recorder

VERSIONS = ("prequential", "torch", "numpy", "device_name", "cpu_capability")
EAGER = {"engine": "eager", "precision": "fp32", "compiled": False, "deterministic": False}
"""How runs were executed before there was a choice."""
IDENTITY = ("method", "recipe", "model", "data", "seeds", "length", "num_classes")
"""The facts that a resumed run must share with the one it goes on with."""


class Home:
    """Where a run is kept. `facts` are what a record says of its settings."""

    def __init__(self, path: Path, facts: dict[str, Any], *, every_seconds: float) -> None:
        self.path, self.facts = path, facts
        self._checkpoints = Checkpoints(path / "checkpoints", every_seconds=every_seconds)

    def finished_record(self) -> Record | None:
        """The record of a run that is over, if this is one with the same settings."""
        if not (self.path / RECORD_FILE).exists():
            return None
        try:
            content = read_facts(self.path)
        except PreqError as error:
            if not self._checkpoints.files():
                raise
            warnings.warn(f"{error}; going on from the last checkpoint", PreqWarning, stacklevel=3)
            return None
        self._require_same(content)
        return load_record(self.path) if content["status"] in OVER else None

    def require_ours(self) -> None:
        """Refuse to resume in a directory that holds other things than a run."""
        if not (self.path / RECORD_FILE).exists() and not self._checkpoints.files():
            try:
                require_no_run(self.path)
            except PreqError:
                raise PreqError(f"{self.path} holds no run to resume, and is not empty; choose another") from None

    def begin(self) -> None:
        """Say that a run begins here, before anything else is written."""
        nothing = (0, digest_of(b""))
        write_facts(self.path, self._record_facts(0.0), dict.fromkeys(ARRAYS, nothing))

    def newest(self, learner: Learner) -> "RunCheckpoint | None":
        """The newest checkpoint that is whole and fits the arrays; None where there is none at all."""

        def read(file: Path) -> RunCheckpoint:
            checkpoint = RunCheckpoint(file)
            self._require_same(checkpoint.facts)
            checkpoint.require_arrays(self.path)
            checkpoint.require_state(learner)
            return checkpoint

        found = self._checkpoints.newest(read)
        if found is None and self._checkpoints.files():
            raise PreqError(f"no checkpoint in {self._checkpoints.folder} is whole; remove {self.path} and start again")
        return found

    def save_is_due(self) -> bool:
        """Whether the last checkpoint is old enough."""
        return self._checkpoints.save_is_due()

    def save(self, learner: Learner, recorder: Recorder) -> None:
        """Write a checkpoint: durable before the record names it and before an older one goes."""
        recorder.fetch()
        if recorder.diverged:
            return
        recorder.sync()
        contents = recorder.contents()
        meta = {"facts": identity_of(self.facts), "counters": recorder.counters(), "contents": contents}
        self._checkpoints.add(recorder.num_events, learner.state(), meta)
        write_facts(self.path, self._record_facts(recorder.seconds), contents)
        self._checkpoints.drop_old()

    def finish(self, recorder: Recorder, facts: dict[str, Any]) -> Record:
        """Write the record. A run that is over needs its checkpoints no more."""
        recorder.sync()
        is_over = recorder.status in OVER
        if is_over:
            recorder.cut()
        write_facts(self.path, facts, recorder.contents())
        if is_over:
            self._checkpoints.clear()
        return load_record(self.path)

    def _record_facts(self, seconds: float) -> dict[str, Any]:
        return self.facts | {"status": "running", "heldout": None, "flops": None, "seconds": seconds}

    def _require_same(self, earlier: dict[str, Any]) -> None:
        if different := differences(earlier, self.facts):
            raise PreqError(f"settings differ from the run in {self.path}: {'; '.join(different)}")
        note_versions(earlier, self.facts)


def identity_of(facts: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of the run it belongs to."""
    return {name: facts[name] for name in (*IDENTITY, "environment")}


def differences(earlier: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    """What keeps a run with these facts from going on with an earlier one."""
    found = [
        f"{place} {then} then, {now} now{hint(then, now)}"
        for name in IDENTITY
        for place, then, now in _differences(name, earlier.get(name), facts[name])
    ]
    before, now = EAGER | earlier.get("environment", {}), facts["environment"]
    executed = [name for name in ("device", *EAGER) if before.get(name) != now[name]]
    return found + [f"{name} {before.get(name)} then, {now[name]} now" for name in executed]


def note_versions(earlier: dict[str, Any], facts: dict[str, Any]) -> None:
    """Say so where what the bits depend on is no longer what it was."""
    then, now = earlier.get("environment", {}), facts["environment"]
    changed = [f"{name} {then.get(name)} then, {now[name]} now" for name in VERSIONS if then.get(name) != now[name]]
    if changed:
        warnings.warn(f"the bits may differ from here on: {'; '.join(changed)}", PreqWarning, stacklevel=5)


def _differences(place: str, then: object, now: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*then, *now]):
            yield from _differences(f"{place}.{key}", then.get(key), now.get(key))
    elif then != now:
        yield place, then, now


class RunCheckpoint(Checkpoint):
    """The state of one run."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        with reading():
            self.facts = self.in_names_of_now(dict(self.meta["facts"]))
            self._counters = dict(self.meta["counters"])
            self._contents = read_contents(self.meta["contents"])

    def require_state(self, learner: Learner) -> None:
        """Refuse tensors that are not those of this learner."""
        self.require_tensors(learner.state())
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

    def restore(self, learner: Learner, recorder: Recorder) -> None:
        """Put learner and recorder back to where they were."""
        learner.restore(self.state)
        recorder.go_back_to(self._counters, self._contents)


def read_contents(described: dict[str, Any]) -> Contents:
    """Length and fingerprint of each array, as a checkpoint describes them."""
    return {name: (int(described[name][0]), str(described[name][1])) for name in ARRAYS}
