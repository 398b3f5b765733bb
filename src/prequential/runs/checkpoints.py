"""Checkpoints on disk: each is one .safetensors file whose name carries the fingerprint of its content.

It is durable before an older one goes, and at least two are kept, so that a crash at any moment loses only time.
"""

import contextlib
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of, read_array, write_atomically, writing
from prequential.formats import CHECKPOINT, SAFETENSORS
from prequential.learn.base import BaseLearner
from prequential.learn.learning import Learning
from prequential.learn.repeated import networks_of, prediction_of_few, require_repeated, training_of_few
from prequential.mixers.kept import columns_of
from prequential.names_of_before import FORMATS, in_names_of_now, require_format
from prequential.plain import MOST_BYTES, parsed, require_shape
from prequential.runs.leftovers import NAME, clear_checkpoints
from prequential.runs.recorder import Recorder

KEPT = 2
PREDICTED, TRAINED = REMEMBERED = "remembered prediction", "remembered training"
"""What the outputs for a few examples are called, beside the tensors of a learner."""

State = dict[str, list[Tensor]]


class DamagedError(Exception):
    """A checkpoint that cannot be used, and why."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Inside, whatever a file that is not what it should be leads to is damage."""
    try:
        yield
    except DamagedError:
        raise
    except Exception as error:  # a foreign file fails in many ways
        raise DamagedError(str(error)) from None


class Checkpoint:
    """The state of a run between two events, read from a file and verified.

    `numbers` says which of the members that were asked for it has, in its order; `facts` what is told of each of its
    members, `evaluate` whether held-out data was to be evaluated, `threads` the number of threads, to go on with the
    same, since another gives other bits.
    """

    learner: Learning
    """Of these members, to be restored."""
    is_same_machine: bool
    """Whether the bits depend on nothing that has changed since."""

    def __init__(self, file: Path, names: Sequence[str]) -> None:
        self._state = State()
        with reading():
            content = file.read_bytes()
            if digest_of(content) != file.stem.partition("-")[2]:
                raise DamagedError("its content does not fit its name")
            header = json.loads(content[8 : 8 + min(int.from_bytes(content[:8], "little"), 4 * MOST_BYTES)])
            require_shape(header, SAFETENSORS)
            meta: dict[str, Any] = parsed(header["__metadata__"]["prequential"])
            require_shape(meta, {})
            tensors = load(content)
            for key in sorted(tensors, key=lambda key: (key.rpartition(".")[0], int(key.rpartition(".")[2]))):
                self._state.setdefault(key.rpartition(".")[0], []).append(tensors[key])
            self._place = file.parent.parent
            self._remembered = {name: self._state.pop(name) for name in REMEMBERED if name in self._state}
        file_format = meta.get("format", 1)  # those of format 1 do not say so
        require_format(file_format, file)
        with reading():
            meta = meta if "members" in meta else _of_one_member(meta)
            require_shape(meta, CHECKPOINT)
            parts = meta["members"], meta["facts"], meta["contents"], meta["counters"]["members"]
            if len({len(part) for part in parts}) > 1:
                raise DamagedError("its parts are not about as many members")
            self.numbers = [names.index(name) for name in meta["members"] if name in names]
            self.facts = [in_names_of_now(facts, file_format) for facts in meta["facts"]]
            self.evaluate: bool | None = meta["evaluate"]
            self._columns = columns_of(self.facts[0]["model"]) if self.facts else {}
            self._counters, self._contents, self.threads = meta["counters"], meta["contents"], int(meta["threads"])

    def require_arrays(self, paths: Sequence[Path | None]) -> None:
        """Refuse arrays whose beginning is not what it was when the checkpoint was made."""
        with reading():
            for path, contents in zip(paths, self._contents, strict=True):
                for name, (length, digest) in contents.items():
                    columns = self._columns.get(name)
                    if path and digest_of(read_array(path / f"{name}.npy", length, 0, columns).tobytes()) != digest:
                        raise DamagedError(f"{name}.npy does not fit it")

    def take(self, learner: Learning) -> None:
        """Keep the learner that is to be restored; refuse tensors that are not like those it has."""

        def shapes(state: State) -> dict[str, list[tuple[object, ...]]]:
            return {name: [(*tensor.shape, tensor.dtype) for tensor in tensors] for name, tensors in state.items()}

        getattr(learner, "expect", lambda names: None)(set(self._state))
        if shapes(self._state) != shapes(learner.tensors()):
            raise DamagedError("its tensors are not those of this model and optimizer")
        self.learner = learner

    def restore(self, recorder: Recorder) -> None:
        """Put learner and recorder back to where they were; refuse a model that is no longer what it was."""
        self.learner.restore(self._state)
        recorder.go_back_to(self._counters)
        networks, is_same = networks_of(self.learner), self.is_same_machine
        members = list(recorder.going) if len(recorder.members) > 1 else None
        for name, outputs in _outputs(networks).items():
            for before, now, network in zip(self._remembered.get(name, ()), outputs, networks, strict=False):
                require_repeated(before, now, network, members, exactly=is_same, place=self._place)
        if len(self._remembered.get(PREDICTED, ())) < len(networks):
            note = f"the checkpoint in {self._place} is of an earlier version, which remembered no prediction"
            warnings.warn(f"{note}; a model that has changed since is not noticed", PreqWarning, stacklevel=5)


def _outputs(networks: Sequence[BaseLearner]) -> State:
    """What each network gives for a few examples, in both modes; in the second nothing is known of networks that can be
    made only once, or that come again with what they have learned."""
    found = {PREDICTED: [*map(prediction_of_few, networks)]}
    with contextlib.suppress(PreqError):
        found[TRAINED] = [*map(training_of_few, networks)]
    return found


def _of_one_member(meta: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint of format 1 says, which knew of one member only."""
    counters = {"diverged": False, **meta["counters"]}
    counters = {"seconds": counters.pop("seconds"), "members": [counters]}
    one = {"facts": [meta["facts"]], "contents": [meta["contents"]], "counters": counters}
    return meta | one | {"members": ["."], "evaluate": None}


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

    def save_is_due(self) -> bool:
        """Whether the last one is old enough."""
        return time.monotonic() - self._last_save >= self._every_seconds

    def add(self, num_events: int, learner: Learning, meta: dict[str, Any]) -> None:
        """Write one; when this returns, it is durable."""
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)
        meta = meta | {"format": FORMATS[-1], "threads": torch.get_num_threads()}
        state = learner.tensors() | {name: found for name, found in _outputs(networks_of(learner)).items() if found}
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
        with writing(self.folder):
            clear_checkpoints(self.folder)
