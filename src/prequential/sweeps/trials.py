"""What a trial is, whoever executes it: settings in, a run directory and an outcome out."""

import math
import signal
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError, PreqWarning, in_one_line
from prequential.lock import DirectoryLock
from prequential.plan import Plan
from prequential.runs.progress import Listener, Progress
from prequential.runs.record import Record, require_writable
from prequential.sweeps.directory import trial_path
from prequential.sweeps.pruning import Rule, make_listener
from prequential.sweeps.spaces import Resolved, resolve
from prequential.sweeps.stacking import leave_stack, run_as_stack
from prequential.trackers import track

if TYPE_CHECKING:
    from prequential.data.sequence import DataSequence

LOCK_SECONDS = 60.0
"""How long to wait for a worker of a killed sweep that is still saving its state."""


@dataclass(frozen=True)
class Trial:
    """A trial that is ours to run."""

    number: int
    settings: Mapping[str, Any]
    seed: int
    attempt: Any = field(default=None, compare=False, repr=False)
    """What Optuna's pruners are told by, where one is used."""


@dataclass(frozen=True)
class Measured:
    """What is known of a trial that has run."""

    number: int
    status: str
    positions: int = 0
    seconds: float = 0.0
    flops: float | None = None
    heldout: dict[str, float] | None = None
    trained_share: float = 1.0
    """Of the examples that the whole plan trains on: less than 1 where the trial was pruned."""
    error: str | None = None


@dataclass(frozen=True)
class Outcome(Measured):
    """How a trial went: "finished", "diverged", "pruned", "failed" or "stopped"."""

    value: float | None = None
    """The codelength in nats, infinite where it diverged; of a method without one the held-out loss."""
    is_mistake: bool = False
    """Whether the error is one in what the user gave."""
    died: bool = False
    """Whether the process died."""
    signal_number: int = 0


def all_of(trials: Sequence[Trial], status: str, **more: Any) -> list[Outcome]:
    """The same outcome for each of the trials."""
    return [Outcome(trial.number, status, **more) for trial in trials]


def outcome_of(number: int, record: Record, trained_share: float = 1.0) -> Outcome:
    """What a record says of its trial."""
    value = record.codelength if record.prequential else (record.heldout or {}).get("loss")
    return Outcome(
        number,
        record.status,
        value=math.inf if record.status == "diverged" else value,
        positions=len(record.nats),
        seconds=record.seconds,
        flops=None if record.flops is None else record.flops["code"],
        heldout=record.heldout,
        trained_share=trained_share,
    )


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


@dataclass(eq=False)
class TrialRunner:
    """Executes trials, one after another; the data is loaded once."""

    work: Work

    def __call__(self, trials: Sequence[Trial], listeners: Sequence[Listener] = ()) -> list[Outcome]:
        """Run one trial, or several as a stack. Whatever a run raises becomes an outcome."""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*holds no checkpoint", PreqWarning)
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

    def _run(self, trial: Trial, listeners: Sequence[Listener]) -> Outcome:
        from prequential.runs.run import run

        resolved, path, last = self._resolved(trial), self._place(trial), deque[Progress](maxlen=1)
        if (done := leave_stack(path)) is not None:
            return outcome_of(trial.number, done)
        heard: list[Listener] = [*listeners, last.append, *self.trackers(path)]
        if self.work.prune is not None:
            heard.append(make_listener(self.work.prune, self.work.directory, trial.number, trial.attempt))
        record = run(
            self.work.make_model,
            self.data,
            resolved.method,
            resolved.recipe,
            seed=resolved.seed,
            width=resolved.width,
            out=path,
            resume=True,
            listeners=heard,
            **self.work.arguments,
        )
        return outcome_of(trial.number, record, self._share(resolved, record, last))

    def _run_stack(self, trials: Sequence[Trial], listeners: Sequence[Listener]) -> list[Outcome]:
        members, paths = [self._resolved(each) for each in trials], [self._place(each) for each in trials]
        records = run_as_stack(self, members, paths, listeners)
        return [outcome_of(each.number, record) for each, record in zip(trials, records, strict=True)]

    def trackers(self, path: Path) -> list[Listener]:
        """What tells the trackers of the run in a directory."""
        return [track(name, path) for name in self.work.track]

    def _resolved(self, trial: Trial) -> Resolved:
        return resolve(trial.settings, replace(self.work.base, seed=trial.seed))

    def _place(self, trial: Trial) -> Path:
        path = require_writable(trial_path(self.work.directory, trial.number))
        with DirectoryLock(path, LOCK_SECONDS):
            return path

    def _share(self, trial: Resolved, record: Record, last: Sequence[Progress]) -> float:
        """What was trained of what the whole plan trains; only a pruned trial falls short of it."""
        if record.status != "pruned" or not last:
            return 1.0
        plan_seed = self.work.arguments.get("plan_seed", 0)
        plan = Plan(trial.method, record.length, plan_seed, heldout=self.data.heldout is not None)
        return min(last[0].trained_examples / max(plan.counts().trained_examples, 1), 1.0)
