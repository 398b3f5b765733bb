"""Where a stack is kept while it goes: its checkpoints, and what was measured so far of every member.

That is a directory beside the first member's, with `.stack` behind its name. The members' own directories get their
records at the end, and then it goes.
"""

import contextlib
import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from prequential.checkpoints import Checkpoint, Checkpoints, DamagedError, reading
from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of, read_array, write_atomically, writing
from prequential.home import differences, identity_of, note_versions, read_contents
from prequential.record import ARRAYS, claim
from prequential.recorder import COUNTERS
from prequential.stack.learner import StackedLearner
from prequential.stack.recorder import StackRecorder
from prequential.stack.session import StackSession

FORMAT = 1
STACK_FILE = "stack.json"


def stack_place(first: Path) -> Path:
    """The directory of the stack whose first member is kept in `first`.

    Example:
        >>> stack_place(Path("/sweeps/a/trials/00007")).as_posix()
        '/sweeps/a/trials/00007.stack'
    """
    first = first.absolute()
    return first.with_name(f"{first.name}.stack")


def discard_stack(first: Path) -> None:
    """Remove what a stack left behind, where there is anything; files of the user's stay."""
    place = stack_place(first)
    if (place / STACK_FILE).exists():
        Checkpoints(place / "checkpoints", every_seconds=0).clear()
        with writing(place):
            for name in (*(f"{name}.npy" for name in ARRAYS), STACK_FILE):
                (place / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        place.rmdir()


def require_no_stack(first: Path) -> None:
    """Refuse to begin where there is a stack that could be resumed."""
    place = stack_place(first)
    if any((place / "checkpoints").glob("*.safetensors")):
        raise PreqError(f"{place} already holds a stack; choose other directories, or resume it")


class _OtherMembersError(Exception):
    """A checkpoint of a stack that is not this one."""


class StackHome:
    """The directory of a stack. `paths` and `facts` are those of all members that were asked for."""

    def __init__(self, paths: Sequence[Path], session: StackSession, *, every_seconds: float) -> None:
        self.path, self._paths, self._facts = stack_place(paths[0]), paths, session.facts
        self._is_evaluated = session.alone.plan.heldout
        self._names = [os.path.relpath(path.absolute(), self.path.parent) for path in paths]
        self._checkpoints = Checkpoints(self.path / "checkpoints", every_seconds=every_seconds)

    def newest(self, missing: Sequence[int], make: Callable[[list[int]], StackedLearner]) -> "StackCheckpoint | None":
        """The newest whole checkpoint of a stack that has the missing members; None, with a note where there was
        something, if it has to begin anew.

        Args:
            missing: numbers of members among all that were asked for.
            make: the learner of members, by their numbers.
        """

        def read(file: Path) -> StackCheckpoint:
            checkpoint = StackCheckpoint(file, self._names)
            if not set(missing) <= set(checkpoint.numbers):
                raise _OtherMembersError
            self._require_same(checkpoint)
            checkpoint.require_arrays(self.path, self._facts[0]["length"])
            checkpoint.learner = make(checkpoint.numbers)
            checkpoint.require_tensors(checkpoint.learner.tensors())
            return checkpoint

        begins = f"the stack of {self._paths[0]} begins at its beginning"
        try:
            found = self._checkpoints.newest(read)
        except _OtherMembersError:
            warnings.warn(f"{self.path} holds a stack of other members; {begins}", PreqWarning, stacklevel=4)
            return None
        if found is None and self._checkpoints.files():
            warnings.warn(f"no checkpoint in {self.path} is whole; {begins}", PreqWarning, stacklevel=4)
        return found

    def _require_same(self, checkpoint: "StackCheckpoint") -> None:
        for number, earlier in zip(checkpoint.numbers, checkpoint.facts, strict=True):
            different = differences(earlier, self._facts[number])
            if checkpoint.is_evaluated != self._is_evaluated:
                different.append(f"evaluate {checkpoint.is_evaluated} then, {self._is_evaluated} now")
            if different:
                raise PreqError(f"settings differ from the run in {self._paths[number]}: {'; '.join(different)}")
        note_versions(checkpoint.facts[0], self._facts[checkpoint.numbers[0]])

    def begin(self, numbers: Sequence[int]) -> None:
        """Make room for a stack that begins at its beginning; those that its members were part of are over."""
        for path in self._paths:
            discard_stack(path)
        ours = (".writable", f".{STACK_FILE}.tmp")  # of a stack that was killed before it began
        if self.path.exists() and (not self.path.is_dir() or any(f.name not in ours for f in self.path.iterdir())):
            raise PreqError(f"{self.path} is where the state of the stack goes, and is not empty; move it away")
        claim(self.path)
        content = {"format": FORMAT, "members": [self._names[number] for number in numbers]}
        write_atomically(self.path / STACK_FILE, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")

    def save_is_due(self) -> bool:
        """Whether the last checkpoint is old enough."""
        return self._checkpoints.save_is_due()

    def save(self, numbers: Sequence[int], learner: StackedLearner, recorder: StackRecorder) -> None:
        """Write a checkpoint: arrays are durable before it, and it is before an older one goes."""
        recorder.fetch()
        if recorder.diverged:
            return
        recorder.sync()
        meta = {
            "members": [self._names[number] for number in numbers],
            "facts": [identity_of(self._facts[number]) for number in numbers],
            "counters": recorder.counters(),
            "contents": recorder.contents(),
            "evaluate": self._is_evaluated,
        }
        self._checkpoints.add(recorder.num_events, learner.tensors(), meta)
        self._checkpoints.drop_old()

    def remove(self) -> None:
        """The records of all members are written: nothing here is needed any more."""
        discard_stack(self._paths[0])


class StackCheckpoint(Checkpoint):
    """The state of a stack. `numbers` says which of the members that were asked for it has, in its order."""

    learner: StackedLearner
    """Of these members, to be restored."""

    def __init__(self, file: Path, names: Sequence[str]) -> None:
        super().__init__(file)
        with reading():
            members = [str(name) for name in self.meta["members"]]
            self.facts = [self.in_names_of_now(dict(facts)) for facts in self.meta["facts"]]
            self._counters = dict(self.meta["counters"])
            self._contents = [read_contents(contents) for contents in self.meta["contents"]]
            self.is_evaluated = bool(self.meta["evaluate"])
            told = [set(counters) for counters in self._counters["members"]]
        sizes = {len(part) for part in (members, self.facts, self._contents, told)}
        if len(sizes) > 1 or any(each != {*COUNTERS, "diverged"} for each in told):
            raise DamagedError("it does not say where the stack stood")
        if not set(members) <= set(names):
            raise _OtherMembersError
        self.numbers = [names.index(name) for name in members]

    def require_arrays(self, path: Path, length: int) -> None:
        """Refuse arrays whose parts do not begin as they did when the checkpoint was made."""
        for name in ARRAYS:
            try:
                values = read_array(path / f"{name}.npy", len(self.numbers) * length)
            except PreqError as error:
                raise DamagedError(str(error)) from None
            for member, contents in enumerate(self._contents):
                count, digest = contents[name]
                if digest_of(values[member * length : member * length + count].tobytes()) != digest:
                    raise DamagedError(f"{name}.npy does not fit it")

    def restore(self, recorder: StackRecorder) -> None:
        """Put the stack and its recorder back to where they were."""
        self.learner.restore(self.state)
        recorder.go_back_to(self._counters, self._contents)
