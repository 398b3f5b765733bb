"""The state of a run, of one member or of many, read from a file and verified."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prequential.errors import PreqError
from prequential.files import digest_of, read_array
from prequential.learn.learning import Learning
from prequential.runs.checkpoints import Checkpoint, DamagedError, reading
from prequential.runs.measured import COUNTERS, Contents
from prequential.runs.record import ARRAYS
from prequential.runs.recorder import Recorder


class OtherMembersError(Exception):
    """A checkpoint of a stack that is not this one."""


class RunCheckpoint(Checkpoint):
    """The state of a run. `numbers` says which of the members that were asked for it has, in its order."""

    learner: Learning
    """Of these members, to be restored."""

    def __init__(self, file: Path, names: Sequence[str]) -> None:
        super().__init__(file)
        with reading():
            meta = self.meta if "members" in self.meta else _of_one_member(self.meta)
            members = [str(name) for name in meta["members"]]
            self.facts = [self.in_names_of_now(dict(facts)) for facts in meta["facts"]]
            self._counters = dict(meta["counters"])
            self._contents = [read_contents(contents) for contents in meta["contents"]]
            self.evaluate: bool | None = meta["evaluate"]
            told = [set(counters) for counters in self._counters["members"]]
        sizes = {len(part) for part in (members, self.facts, self._contents, told)}
        if len(sizes) > 1 or any(each != {*COUNTERS, "diverged"} for each in told):
            raise DamagedError("it does not say where the run stood")
        if not set(members) <= set(names):
            raise OtherMembersError
        self.numbers = [names.index(name) for name in members]

    def require_arrays(self, paths: Sequence[Path | None]) -> None:
        """Refuse arrays whose beginning is not what it was when the checkpoint was made."""
        for path, contents in zip(paths, self._contents, strict=True):
            if path is None:
                continue
            for name, (length, digest) in contents.items():
                try:
                    values = read_array(path / f"{name}.npy", length)
                except PreqError as error:
                    raise DamagedError(str(error)) from None
                if digest_of(values.tobytes()) != digest:
                    raise DamagedError(f"{name}.npy does not fit it")

    def restore(self, recorder: Recorder) -> None:
        """Put learner and recorder back to where they were."""
        self.learner.restore(self.state)
        recorder.go_back_to(self._counters, self._contents)


def read_contents(described: dict[str, Any]) -> Contents:
    """Length and fingerprint of each array, as a checkpoint describes them."""
    return {name: (int(described[name][0]), str(described[name][1])) for name in ARRAYS}


def _of_one_member(meta: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint of format 1 says, which knew of one member only."""
    counters = dict(meta["counters"])
    seconds = counters.pop("seconds")
    members = [counters | {"diverged": False}]
    return {
        "members": ["."],
        "facts": [meta["facts"]],
        "counters": {"seconds": seconds, "members": members},
        "contents": [meta["contents"]],
        "evaluate": None,
    }
