"""Where a run is kept: a directory for the record of each member, and one place for the checkpoints of all.

A run of one member has its checkpoints beside its record. That of several is a directory beside the first member's,
with `.stack` behind its name, which goes when all records are written.
"""

import contextlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of, writing
from prequential.learn.learning import Learning
from prequential.runs.checkpoints import Checkpoint, Checkpoints, DamagedError
from prequential.runs.facts import IDENTITY, differences, note_versions
from prequential.runs.leftovers import CHECKPOINTS
from prequential.runs.measured import Contents
from prequential.runs.record import (
    ARRAYS,
    OVER,
    RECORD_FILE,
    Record,
    arrays_of,
    read_facts,
    require_no_run,
    write_facts,
)
from prequential.runs.record import load as load_record
from prequential.runs.recorder import Recorder
from prequential.runs.session import Session


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
    Checkpoints(place / CHECKPOINTS, every_seconds=0).clear()
    if (place / "stack.json").exists():  # format 1 kept what was measured there as well
        with writing(place):
            for name in (*(f"{name}.npy" for name in ARRAYS), "stack.json"):
                (place / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        place.rmdir()


class RunDirectory:
    """The directories of all members of a session, and their checkpoints."""

    def __init__(self, paths: Sequence[Path], session: Session, *, stacked: bool, every_seconds: float) -> None:
        self.paths, self._session, self._facts, self._stacked = paths, session, session.facts, stacked
        self.place = stack_place(paths[0]) if stacked else paths[0]
        self._names = [os.path.relpath(path.absolute(), self.place.absolute()) for path in paths]
        self.checkpoints = Checkpoints(self.place / CHECKPOINTS, every_seconds=every_seconds)

    def finished(self) -> dict[int, Record]:
        """The records of members that are over.

        Raises:
            PreqError: where a directory holds something else than a run, or a run with other settings.
        """
        found, can_go_on = {}, bool(self.checkpoints.files())
        for number, path in enumerate(self.paths):
            if not (path / RECORD_FILE).exists():
                if not can_go_on:
                    require_no_run(path)
                continue
            try:
                content = read_facts(path)
            except PreqError as error:
                if not can_go_on:
                    raise
                warnings.warn(f"{error}; going on from the last checkpoint", PreqWarning, stacklevel=4)
                continue
            self._require_same(number, content)
            note_versions(self._facts[number], content, stacklevel=4)
            if content["status"] in OVER:
                found[number] = load_record(path)
        return found

    def _require_same(self, number: int, earlier: dict[str, Any], **more: tuple[object, object]) -> None:
        """Refuse to go on with a run that had other settings; of some it is told how they were, if known, and are."""
        different = differences(self._facts[number], earlier)
        different += [f"{name} {then} then, {now} now" for name, (then, now) in more.items() if then not in (None, now)]
        if different:
            raise PreqError(f"settings differ from the run in {self.paths[number]}: {'; '.join(different)}")

    def newest(self, missing: Sequence[int], threads: int | str | None) -> Checkpoint | None:
        """The newest whole checkpoint that has the missing members; None where the run has to begin anew.

        Args:
            missing: numbers of members among all that were asked for.
            threads: as many as were asked for.
        """
        files, note = self.checkpoints.files(), f"no checkpoint in {self.place} is whole"
        for number, file in enumerate(files):
            try:
                checkpoint = Checkpoint(file, self._names)
                numbers = checkpoint.numbers
                if len(numbers) < len(checkpoint.facts) or not set(missing) <= set(numbers):
                    note = f"{self.place} holds a stack of other members"
                    break
                evaluate = checkpoint.evaluate, self._session.plan.heldout
                wanted = checkpoint.threads, threads if isinstance(threads, int) else checkpoint.threads
                for n, earlier in zip(numbers, checkpoint.facts, strict=True):
                    self._require_same(n, earlier, evaluate=evaluate, threads=wanted)
                checkpoint.require_arrays([self.paths[n] if n in missing else None for n in numbers])
                checkpoint.take(self._session.learner_of(numbers))
            except DamagedError as damage:
                warnings.warn(f"{file} cannot be used: {damage}; trying an older one", PreqWarning, stacklevel=5)
                continue
            checkpoint.is_same_machine = note_versions(self._facts[numbers[0]], checkpoint.facts[0], stacklevel=5)
            for damaged in files[:number]:
                damaged.rename(damaged.with_suffix(".damaged"))
            return checkpoint
        if files and not self._stacked:
            raise PreqError(f"{note}; remove {self.place} and start again")
        begun = [self.paths[n] for n in missing if (self.paths[n] / RECORD_FILE).exists()]
        if files or begun:
            note = note if files else f"{begun[0]} holds no checkpoint"
            warnings.warn(f"{note}; the run begins at its beginning", PreqWarning, stacklevel=5)
        return None

    def begin(self, numbers: Sequence[int]) -> None:
        """Say that these members begin at their beginning; checkpoints that were there are of no use any more."""
        if self._stacked:
            for path in self.paths:
                discard_stack(path)
            if self.place.exists() and (not self.place.is_dir() or any(self.place.iterdir())):
                raise PreqError(f"{self.place} is where the state of the stack goes, and is not empty; move it away")
            with writing(self.place):
                self.place.mkdir(exist_ok=True)
        for number in numbers:
            self._note(number, 0.0, dict.fromkeys(arrays_of(self._facts[number].model), (0, digest_of(b""))))

    def _note(self, number: int, seconds: float, contents: Contents) -> None:
        """Write the record of a run that goes on: what is in its arrays so far."""
        facts = self._facts[number].facts() | {"status": "running", "heldout": None, "flops": None, "seconds": seconds}
        write_facts(self.paths[number], facts, contents)

    def save(self, numbers: Sequence[int], learner: Learning, recorder: Recorder) -> None:
        """Write a checkpoint: durable before the records name it and before an older one goes."""
        recorder.fetch()
        if all(member.status in OVER for member in recorder.members):
            return  # nothing is left to do, now or when it is resumed
        contents = [member.contents() for member in recorder.members]
        meta = {
            "members": [self._names[number] for number in numbers],
            "facts": [{name: getattr(self._facts[n], name) for name in (*IDENTITY, "environment")} for n in numbers],
            "counters": recorder.counters(),
            "contents": contents,
            "evaluate": self._session.plan.heldout,
        }
        self.checkpoints.add(recorder.num_events, learner, meta)
        for number, member, content in zip(numbers, recorder.members, contents, strict=True):
            if member.path is not None:
                self._note(number, recorder.seconds / len(numbers), content)
        self.checkpoints.drop_old()

    def clear(self) -> None:
        """All records are written: no checkpoint is needed any more."""
        self.checkpoints.clear()
        if self._stacked:
            discard_stack(self.paths[0])
