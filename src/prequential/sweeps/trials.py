"""What a trial is, alone or in a stack, how it is run, whoever executes it, and what became of it."""

import math
import shutil
import signal
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError, PreqWarning, in_one_line
from prequential.events import Predict, Train
from prequential.learn.recipe import SHARED
from prequential.lock import DirectoryLock
from prequential.methods import Method
from prequential.plan import Plan
from prequential.runs.leftovers import remove_leftovers
from prequential.runs.progress import Listener, Progress
from prequential.runs.record import OVER, Record, load, read_facts, require_writable
from prequential.sweeps.directory import trial_path
from prequential.sweeps.fingerprints import change_of_data, fingerprints_of
from prequential.sweeps.pruning import Rule, make_listener
from prequential.sweeps.spaces import Resolved, resolve
from prequential.trackers import track

if TYPE_CHECKING:
    from prequential.data.sequence import DataSequence

LOCK_SECONDS = 60.0
"""How long to wait for a worker of a killed sweep that is still saving its state."""
STACK = "stack"
"""The engine that records of stacks name."""


@dataclass(frozen=True)
class Trial:
    """A trial that is ours to run."""

    number: int
    settings: Mapping[str, Any]
    seed: int
    attempt: Any = field(default=None, compare=False, repr=False)
    """What Optuna's pruners are told by, where one is used."""


@dataclass(frozen=True)
class Outcome:
    """How a trial went: "finished", "diverged", "pruned", "failed" or "stopped"."""

    number: int
    status: str
    value: float | None = None
    """The codelength in nats, infinite where it diverged; of a method without one the held-out loss."""
    positions: int = 0
    seconds: float = 0.0
    flops: float | None = None
    heldout: dict[str, float] | None = None
    trained_share: float = 1.0
    """Of the examples that the whole plan trains on: less than 1 where the trial was pruned."""
    error: str | None = None
    is_mistake: bool = False
    """Whether the error is one in what the user gave."""
    is_for_all: bool = False
    """Whether the same error awaits every trial here."""
    died: bool = False
    """Whether the process died."""
    signal_number: int = 0
    data: Mapping[str, Any] | None = None
    """The fingerprints of what it was about."""


def all_of(trials: Sequence[Trial], status: str, **more: Any) -> list[Outcome]:
    """The same outcome for each of the trials."""
    return [Outcome(trial.number, status, **more) for trial in trials]


def outcome_of(number: int, record: Record, trained_share: float = 1.0) -> Outcome:
    """What a record says of its trial."""
    value = record.codelength if record.prequential else (record.heldout or {}).get("loss")
    value, flops = math.inf if record.status == "diverged" else value, (record.flops or {}).get("code")
    told = (number, record.status, value, len(record.nats), record.seconds, flops, record.heldout, trained_share)
    return Outcome(*told, data=fingerprints_of(record.data))


@dataclass(frozen=True)
class Loader:
    """Data that is loaded where a trial runs, and what a sweep's file says of it."""

    load: Callable[[], "DataSequence"]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """Everything the trials of a sweep share. It can be sent to another process."""

    make_model: Any
    data: "DataSequence | Loader"
    base: Resolved
    directory: Path
    arguments: Mapping[str, Any]
    """What `run` takes besides: plan_seed, device, execution, threads, checkpoint_seconds."""
    prune: Rule | None = None
    stack: bool = False
    track: tuple[str, ...] = ()
    """Trackers that are told how each trial goes."""
    known: Outcome | None = None
    """A trial that is over, and tells what data the sweep is about."""


def stacks(trials: Sequence[Trial], base: Resolved, size: int) -> list[tuple[Trial, ...]]:
    """The trials in groups of at most `size` whose plans and shapes agree, in the order of their first numbers.

    Example:
        >>> from prequential.learn.recipe import Recipe
        >>> from prequential.methods import ReplayStreams
        >>> trials = [Trial(n, {"num_streams": 2 + n % 2, "eps": 10.0**-n}, seed=n) for n in range(5)]
        >>> groups = stacks(trials, Resolved(ReplayStreams(), Recipe(), 1.0, 0), 2)
        >>> [[trial.number for trial in group] for group in groups]
        [[0, 2], [1, 3], [4]]
    """
    groups: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        run = resolve(trial.settings, base)
        shared = [getattr(run.recipe, name) for name in SHARED]
        groups.setdefault(repr((run.method, run.width, shared)), []).append(trial)
    parts = (tuple(each[start : start + size]) for each in groups.values() for start in range(0, len(each), size))
    return sorted(parts, key=lambda part: part[0].number)


@dataclass(eq=False)
class TrialRunner:
    """Executes trials, one after another; the data is loaded once."""

    work: Work

    def __call__(self, trials: Sequence[Trial], listeners: Sequence[Listener] = ()) -> list[Outcome]:
        """Run one trial, or several as a stack. Whatever a run raises becomes an outcome."""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*holds no checkpoint", PreqWarning)
                if self._change is not None:
                    return all_of(trials, "failed", error=self._change, is_mistake=True, is_for_all=True)
                if all(trial.number for trial in trials):  # what is wrong with the model is told once, not by each
                    warnings.filterwarnings("ignore", "the model ", PreqWarning)
                return self._run_stack(trials, listeners) if self.work.stack else [self._run(trials[0], listeners)]
        except KeyboardInterrupt as stopped:  # of a run, or before it could listen itself
            return all_of(trials, "stopped", signal_number=getattr(stopped, "signal_number", signal.SIGINT))
        except PreqError as error:
            return all_of(trials, "failed", error=str(error), is_mistake=True)
        except Exception as error:  # a model may fail in any way, and the other trials go on
            return all_of(trials, "failed", error=in_one_line(error))

    @cached_property
    def data(self) -> "DataSequence":
        """The data, loaded when it is first asked for."""
        return self.work.data.load() if isinstance(self.work.data, Loader) else self.work.data

    @cached_property
    def _change(self) -> str | None:
        """What is wrong with data that has changed since the sweep began: of what is loaded, only its name is known."""
        known = self.work.known if isinstance(self.work.data, Loader) else None
        return None if known is None else change_of_data(self.data.digests(), known.data, known.number)

    def _run(self, trial: Trial, listeners: Sequence[Listener]) -> Outcome:
        from prequential.runs.directory import discard_stack
        from prequential.runs.run import run

        work, path, last = self.work, self._place(trial), deque[Progress](maxlen=1)
        discard_stack(path)
        if (done := finished_before(path, in_stack=False)) is not None:
            return outcome_of(trial.number, done, self._share(trial, done, ()))
        heard: list[Listener] = [*listeners, last.append, *self._trackers(path)]
        if work.prune is not None:
            heard.append(make_listener(work.prune, work.directory, trial.number, trial.attempt))
        given = vars(self._resolved(trial)) | dict(work.arguments)
        record = run(work.make_model, self.data, out=path, resume=True, listeners=heard, **given)
        return outcome_of(trial.number, record, self._share(trial, record, last))

    def _run_stack(self, trials: Sequence[Trial], listeners: Sequence[Listener]) -> list[Outcome]:
        """A stack of the same trials that was stopped goes on where its last checkpoint left it. Trials that have come
        to an end are not run again."""
        from prequential.runs.directory import discard_stack
        from prequential.runs.run import run_stack

        runs = {self._place(trial): self._resolved(trial) for trial in trials}
        found = {path: record for path in runs if (record := finished_before(path, in_stack=True)) is not None}
        if len(found) < len(runs):
            # a killed stack may have written some records: these are members of the one its checkpoint has
            alone = [path for path, record in found.items() if record.environment.get("engine") != STACK]
            members = {path: run for path, run in runs.items() if path not in alone}
            first, recipes = next(iter(runs.values())), [run.recipe for run in members.values()]
            trackers = [self._trackers(path) for path in members]
            given = {"seeds": [run.seed for run in members.values()], "width": first.width, **self.work.arguments}
            given |= {"out": list(members), "resume": True, "listeners": listeners, "listeners_of_each": trackers}
            records = run_stack(self.work.make_model, self.data, first.method, recipes, **given)
            found |= zip(members, records, strict=True)
        for path in runs:
            discard_stack(path)
        return [outcome_of(trial.number, found[path]) for trial, path in zip(trials, runs, strict=True)]

    def _trackers(self, path: Path) -> list[Listener]:
        return [track(name, path) for name in self.work.track]

    def _resolved(self, trial: Trial) -> Resolved:
        return resolve(trial.settings, replace(self.work.base, seed=trial.seed))

    def _method(self, trial: Trial) -> Method:
        """Of its plan: that of the run, of experts all of theirs together."""
        run, model = self._resolved(trial), self.work.make_model
        method: Method = (model.completed(**vars(run)) if hasattr(model, "completed") else run).method
        return method

    def _place(self, trial: Trial) -> Path:
        path = require_writable(trial_path(self.work.directory, trial.number))
        with DirectoryLock(path, LOCK_SECONDS):
            return path

    def _share(self, trial: Trial, record: Record, last: Sequence[Progress]) -> float:
        """What was trained of what the whole plan trains; only a pruned trial falls short of it."""
        if record.status != "pruned":
            return 1.0
        plan_seed = self.work.arguments.get("plan_seed", 0)
        plan = Plan(self._method(trial), record.length, plan_seed, heldout=self.data.heldout is not None)
        trained = before = 0
        for event in plan.events():
            if isinstance(event, Predict) and event.start < len(record.nats):
                before = trained  # where a record is found again, nothing else tells how much it was
            trained += len(event.indices) if isinstance(event, Train) else getattr(event, "num_trained", 0)
        return min((last[0].trained_examples if last else before) / max(trained, 1), 1.0)


def finished_before(path: Path, *, in_stack: bool) -> Record | None:
    """The record of a trial that has come to an end. What else is there is of no use to a run of another kind, by
    itself or in a stack, and goes; of what is wrong with a record of its own kind the run tells."""
    engine = None
    with suppress(PreqError):
        facts = read_facts(path)
        engine = facts.get("environment", {}).get("engine")
        if facts["status"] in OVER:
            remove_leftovers(path, facts["status"])
            return load(path)
    if (engine == STACK) != in_stack:
        shutil.rmtree(path, ignore_errors=True)
    return None
