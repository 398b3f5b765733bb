"""What a trial is, whoever executes it: settings in, a run directory and an outcome out."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError, PreqWarning
from prequential.lock import DirectoryLock
from prequential.plan import Plan
from prequential.runs.progress import Listener, Progress
from prequential.runs.record import Record, require_writable
from prequential.sweeps.claims import Claim, Outcome, outcome_of
from prequential.sweeps.pruning import Rule, make_listener, trial_path
from prequential.sweeps.spaces import Resolved, resolve
from prequential.sweeps.storage import close_study, open_study, reopen_trial
from prequential.trackers import track

if TYPE_CHECKING:
    from prequential.data.sequence import DataSequence

LOCK_SECONDS = 60.0
"""How long to wait for a worker of a killed sweep that is still saving its state."""


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
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What `run` takes besides: plan_seed, device, execution, threads, checkpoint_seconds."""
    prune: Rule | None = None
    storage: str = ""
    study: str = ""
    stack: bool = False
    track: tuple[str, ...] = ()
    """Trackers that are told how each trial goes."""


class TrialRunner:
    """Executes trials, one after another; the data is loaded once."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._data: DataSequence | None = None

    def __call__(self, claims: Sequence[Claim], listeners: Sequence[Listener] = ()) -> list[Outcome]:
        """Run one trial, or several as a stack. Whatever a run raises becomes an outcome."""
        from prequential.runs.run import Interrupted

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*holds no checkpoint", PreqWarning)
                return self._run_stack(claims, listeners) if self.work.stack else [self._run(claims[0], listeners)]
        except Interrupted as stopped:
            return [Outcome(each.number, "stopped", signal_number=stopped.signal_number) for each in claims]
        except KeyboardInterrupt:
            return [Outcome(each.number, "stopped", signal_number=2) for each in claims]
        except Exception as error:  # a model may fail in any way, and the other trials go on
            text = str(error) if isinstance(error, PreqError) else f"{type(error).__name__}: {error}"
            line, mistake = (text.splitlines() or [""])[0], isinstance(error, PreqError)
            return [Outcome(each.number, "failed", error=line, is_mistake=mistake) for each in claims]

    @property
    def data(self) -> "DataSequence":
        """The data, loaded when it is first asked for."""
        if self._data is None:
            self._data = self.work.data.load() if isinstance(self.work.data, Loader) else self.work.data
        return self._data

    def _run(self, claimed: Claim, listeners: Sequence[Listener]) -> Outcome:
        from prequential.runs.run import run
        from prequential.sweeps.stacking import leave_stack

        trial, path, watch = self._resolved(claimed), self._place(claimed), _Watch()
        if (done := leave_stack(path)) is not None:
            return outcome_of(claimed.number, done)
        study = None
        stoppers: list[Listener] = [*listeners, watch, *(track(name, path) for name in self.work.track)]
        if self.work.prune is not None:
            rule = self.work.prune

            def open_trial() -> tuple[Any, set[int]]:
                nonlocal study
                study = open_study(self.work.storage, self.work.study, create=False, pruner=rule.pruner())
                frozen = study.get_trials(deepcopy=False)[claimed.number]
                return reopen_trial(study, frozen), set(frozen.intermediate_values)

            stoppers.append(make_listener(rule, self.work.directory, claimed.number, open_trial))
        try:
            record = run(
                self.work.make_model,
                self.data,
                trial.method,
                trial.recipe,
                seed=trial.seed,
                width=trial.width,
                out=path,
                resume=True,
                listeners=stoppers,
                **self.work.arguments,
            )
        finally:
            if study is not None:
                close_study(study)
        return outcome_of(claimed.number, record, self._share(trial, record, watch))

    def _run_stack(self, claims: Sequence[Claim], listeners: Sequence[Listener]) -> list[Outcome]:
        from prequential.sweeps.stacking import run_as_stack

        trials, paths = [self._resolved(each) for each in claims], [self._place(each) for each in claims]

        def trackers(path: Path) -> list[Listener]:
            return [track(name, path) for name in self.work.track]

        records = run_as_stack(self.work.make_model, self.data, trials, paths, self.work.arguments, listeners, trackers)
        return [outcome_of(each.number, record) for each, record in zip(claims, records, strict=True)]

    def _resolved(self, claimed: Claim) -> Resolved:
        base = self.work.base
        return resolve(claimed.settings, Resolved(base.method, base.recipe, base.width, claimed.seed))

    def _place(self, claimed: Claim) -> Path:
        path = require_writable(trial_path(self.work.directory, claimed.number))
        _wait_until_free(path)
        return path

    def _share(self, trial: Resolved, record: Record, watch: "_Watch") -> float:
        """What was trained of what the whole plan trains; only a pruned trial falls short of it."""
        if record.status != "pruned" or watch.trained_examples is None:
            return 1.0
        plan_seed = self.work.arguments.get("plan_seed", 0)
        plan = Plan(trial.method, record.length, plan_seed, heldout=self.data.heldout is not None)
        return min(watch.trained_examples / max(plan.counts().trained_examples, 1), 1.0)


class _Watch:
    """A listener that remembers how far the training went."""

    trained_examples: int | None = None

    def __call__(self, progress: Progress) -> None:
        self.trained_examples = progress.trained_examples


def _wait_until_free(path: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            with DirectoryLock(path):
                return
        except PreqError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
