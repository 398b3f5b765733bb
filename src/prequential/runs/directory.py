"""Where a run is kept: a directory for the record of each member, and one place for the checkpoints of all.

A run of one member has its checkpoints beside its record. That of several is a directory beside the first member's,
with `.stack` behind its name, which goes when all records are written.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of, writing
from prequential.learn.learning import Learning
from prequential.runs.checkpoints import Checkpoint, Checkpoints, OtherMembersError
from prequential.runs.facts import Facts, differences, identity_of, note_versions
from prequential.runs.measured import Contents, Measured
from prequential.runs.record import ARRAYS, OVER, RECORD_FILE, Record, read_facts, require_no_run, write_facts
from prequential.runs.record import load as load_record
from prequential.runs.recorder import Recorder


def stack_place(first: Path) -> Path:
    """Where the checkpoints of a stack are whose first member is kept in `first`.

    Example:
        >>> stack_place(Path("/sweeps/a/trials/00007")).as_posix()
        '/sweeps/a/trials/00007.stack'
    """
    first = first.absolute()
    return first.with_name(f"{first.name}.stack")


def discard_stack(first: Path) -> None:
    """Remove the checkpoints that a stack left behind, where there are any; files of the user's stay."""
    place = stack_place(first)
    Checkpoints(place / "checkpoints", every_seconds=0).clear()
    if (place / "stack.json").exists():  # format 1 kept what was measured there as well
        with writing(place):
            for name in (*(f"{name}.npy" for name in ARRAYS), "stack.json"):
                (place / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        place.rmdir()


class MemberDirectory:
    """The record of one member, from its first event on. `facts` are what it says of its settings."""

    def __init__(self, path: Path, facts: Facts) -> None:
        self.path, self.facts = path, facts

    def note(self, seconds: float, contents: Contents) -> None:
        """Write the record of a run that goes on: what is in its arrays so far."""
        facts = self.facts.facts() | {"status": "running", "heldout": None, "flops": None, "seconds": seconds}
        write_facts(self.path, facts, contents)

    def finish(self, member: Measured, facts: dict[str, Any], *, is_over: bool) -> Record:
        """Write the record; that of a run which is over for good."""
        if is_over:
            member.cut()
        write_facts(self.path, facts, member.contents())
        return load_record(self.path)

    def require_empty(self) -> None:
        """Refuse to resume in a directory that holds other things than a run."""
        try:
            require_no_run(self.path)
        except PreqError:
            raise PreqError(f"{self.path} holds no run to resume, and is not empty; choose another") from None

    def require_same(self, earlier: dict[str, Any]) -> None:
        """Refuse to go on with a run that had other settings."""
        if different := differences(self.facts, earlier):
            raise PreqError(f"settings differ from the run in {self.path}: {'; '.join(different)}")


class RunDirectory:
    """The directories of all members that were asked for, and their checkpoints."""

    def __init__(
        self, paths: Sequence[Path], facts: Sequence[Facts], *, stacked: bool, evaluate: bool, every_seconds: float
    ) -> None:
        self.members = [MemberDirectory(*member) for member in zip(paths, facts, strict=True)]
        self.place, self._stacked, self._evaluate = stack_place(paths[0]) if stacked else paths[0], stacked, evaluate
        self._names = [os.path.relpath(path.absolute(), self.place.absolute()) for path in paths]
        self.checkpoints = Checkpoints(self.place / "checkpoints", every_seconds=every_seconds)

    def finished(self) -> dict[int, Record]:
        """The records of members that are over.

        Raises:
            PreqError: where a directory holds something else than a run, or a run with other settings.
        """
        found, can_go_on = {}, bool(self.checkpoints.files())
        for number, member in enumerate(self.members):
            if not (member.path / RECORD_FILE).exists():
                if not can_go_on:
                    member.require_empty()
                continue
            try:
                content = read_facts(member.path)
            except PreqError as error:
                if not can_go_on:
                    raise
                warnings.warn(f"{error}; going on from the last checkpoint", PreqWarning, stacklevel=4)
                continue
            member.require_same(content)
            note_versions(member.facts, content, stacklevel=4)
            if content["status"] in OVER:
                found[number] = load_record(member.path)
        return found

    def newest(self, missing: Sequence[int], learner_of: Callable[[Sequence[int]], Learning]) -> Checkpoint | None:
        """The newest whole checkpoint that has the missing members; None where the run has to begin anew.

        Args:
            missing: numbers of members among all that were asked for.
            learner_of: the learner of members, by their numbers.
        """

        def read(file: Path) -> Checkpoint:
            checkpoint = Checkpoint(file, self._names)
            if not set(missing) <= set(checkpoint.numbers):
                raise OtherMembersError
            self._require_same(checkpoint)
            checkpoint.require_arrays([self.members[n].path if n in missing else None for n in checkpoint.numbers])
            checkpoint.take(learner_of(checkpoint.numbers))
            return checkpoint

        path = self.members[0].path
        begins = f"the stack of {path} begins at its beginning"
        try:
            found = self.checkpoints.newest(read)
        except OtherMembersError:
            warnings.warn(f"{self.place} holds a stack of other members; {begins}", PreqWarning, stacklevel=4)
            return None
        if found is None and self.checkpoints.files():
            if not self._stacked:
                raise PreqError(f"no checkpoint in {self.checkpoints.folder} is whole; remove {path} and start again")
            warnings.warn(f"no checkpoint in {self.place} is whole; {begins}", PreqWarning, stacklevel=4)
        elif found is None and any((begun := self.members[n].path / RECORD_FILE).exists() for n in missing):
            note = f"{begun.parent} holds no checkpoint; the run begins at its beginning"
            warnings.warn(note, PreqWarning, stacklevel=4)
        return found

    def _require_same(self, checkpoint: Checkpoint) -> None:
        for number, earlier in zip(checkpoint.numbers, checkpoint.facts, strict=True):
            member = self.members[number]
            member.require_same(earlier)
            if checkpoint.evaluate not in (None, self._evaluate):
                raise PreqError(
                    f"settings differ from the run in {member.path}: evaluate {checkpoint.evaluate} then, "
                    f"{self._evaluate} now"
                )
        note_versions(self.members[checkpoint.numbers[0]].facts, checkpoint.facts[0], stacklevel=6)

    def begin(self, numbers: Sequence[int]) -> None:
        """Say that these members begin at their beginning; checkpoints that were there are of no use any more."""
        if self._stacked:
            for member in self.members:
                discard_stack(member.path)
            if self.place.exists() and (not self.place.is_dir() or any(self.place.iterdir())):
                raise PreqError(f"{self.place} is where the state of the stack goes, and is not empty; move it away")
            with writing(self.place):
                self.place.mkdir(exist_ok=True)
        for number in numbers:
            self.members[number].note(0.0, dict.fromkeys(ARRAYS, (0, digest_of(b""))))

    def save(self, numbers: Sequence[int], learner: Learning, recorder: Recorder) -> None:
        """Write a checkpoint: durable before the records name it and before an older one goes."""
        recorder.fetch()
        if all(member.status in OVER for member in recorder.members):
            return  # nothing is left to do, now or when it is resumed
        contents = [member.contents() for member in recorder.members]
        meta = {
            "members": [self._names[number] for number in numbers],
            "facts": [identity_of(self.members[number].facts) for number in numbers],
            "counters": recorder.counters(),
            "contents": contents,
            "evaluate": self._evaluate,
        }
        self.checkpoints.add(recorder.num_events, learner.tensors(), meta)
        for number, member, content in zip(numbers, recorder.members, contents, strict=True):
            if member.is_kept:
                self.members[number].note(recorder.seconds / len(numbers), content)
        self.checkpoints.drop_old()

    def finish(self, numbers: Sequence[int], recorder: Recorder, facts: Sequence[dict[str, Any]]) -> dict[int, Record]:
        """Write the records of the members that had none. Where all are over, nothing needs the checkpoints; else even
        those that have diverged are as the others, since they go on together."""
        left = next((member.status for member in recorder.members if member.status not in OVER), None)
        found = {}
        for number, member, told in zip(numbers, recorder.members, facts, strict=True):
            if member.is_kept:
                more = {} if left is None else {"status": left, "flops": None}
                found[number] = self.members[number].finish(member, told | more, is_over=left is None)
        if left is None:
            self.clear()
        return found

    def clear(self) -> None:
        """All records are written: no checkpoint is needed any more."""
        self.checkpoints.clear()
        if self._stacked:
            discard_stack(self.members[0].path)
