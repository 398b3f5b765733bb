"""A sweep from beginning to end: claim trials, have them executed, write down what became of them."""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError, require_count, require_number, whole_seed
from prequential.files import DirectoryLock
from prequential.learn.recipe import Recipe
from prequential.methods import Method, ReplayStreams
from prequential.record import claim
from prequential.settings import plain_value, settings_of
from prequential.signals import StopRequest
from prequential.sweep.claims import Outcome
from prequential.sweep.execute import Executor, InThisProcess, Processes
from prequential.sweep.home import SweepHome
from prequential.sweep.pruning import REGRET, Rule, note_best
from prequential.sweep.sampling import RANDOM, make_sampler
from prequential.sweep.spaces import Resolved, Space, find_space, on_grid, require_space
from prequential.sweep.storage import storage_url
from prequential.sweep.study import Trials
from prequential.sweep.summary import Summary, summarise
from prequential.sweep.trials import Loader, Work
from prequential.trackers import require_trackers

if TYPE_CHECKING:
    from prequential.data.sequence import DataSequence
    from prequential.models import ModelFactory


@dataclass(frozen=True)
class SweepProgress:
    """Where a sweep stands."""

    done: int
    """Trials that have come to an end, in this sweep or one it goes on with."""
    trials: int
    best: float | None
    """The shortest codelength so far."""
    outcome: Outcome | None = None
    """What has just come to an end."""


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM: the trials that were running have saved their state."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("the sweep was stopped; resume goes on")
        self.signal_number = signal_number


def sweep(
    make_model: "str | ModelFactory",
    data: "DataSequence | Loader",
    method: Method | None = None,
    recipe: Recipe | None = None,
    *,
    space: str | Space,
    seed: int,
    out: str | Path,
    trials: int = 50,
    resume: bool = False,
    jobs: int = 1,
    sampler: str = RANDOM,
    prune: str | None = None,
    stack: int | None = None,
    grid: int = 5,
    storage: str | None = None,
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    engine: str = "auto",
    precision: str = "auto",
    threads: int = 1,
    checkpoint_seconds: float = 60.0,
    executor: Executor | None = None,
    track: Sequence[str] = (),
    listeners: Iterable[Callable[[SweepProgress], object]] = (),
) -> Summary:
    """Run many trials whose settings are drawn from a space.

    Args:
        make_model: as for `run`. With several jobs it must be a name, or defined at the top of a module.
        data: the sequence.
        method: as for `run`; the space changes its settings.
        recipe: as for `run`; the space changes its settings.
        space: a dictionary of distributions and fixed values, one of SPACES by name, or `file.py:name`.
        seed: of the settings that are drawn and of the trials' own seeds.
        out: a directory for the study and, under `trials`, a run directory for each trial.
        trials: how many in all. A sweep that is resumed with more is extended.
        resume: go on with the sweep in `out`, or begin it.
        jobs: worker processes.
        sampler: "random", whose draws depend on nothing but seed and number of a trial, or one of Optuna's.
        prune: "regret", "regret:FACTOR", or one of Optuna's pruners. None: every trial runs to its end.
        stack: train up to so many trials whose plan and shapes agree as one stack.
        grid: with `stack`, how many values number of streams, batch size and width are drawn from.
        storage: where the study is kept, as Optuna writes it. None: a file in `out`.
        plan_seed: of the plan, which all trials share.
        width: scales the layers of models that have a width, unless the space does.
        device: as for `run`, as are `engine`, `precision` and `checkpoint_seconds`.
        engine: see `device`.
        precision: see `device`.
        threads: CPU threads of each job.
        checkpoint_seconds: how often each running trial saves its state.
        executor: who executes trials. None: this process for one job, else worker processes.
        track: trackers that are told how each trial goes, by name (see `prequential.track`).
        listeners: called with `SweepProgress` at the beginning and after each trial.

    Returns:
        A summary of all trials.

    Raises:
        PreqError: for mistakes in what was given.
        SweepInterrupted: on Ctrl-C or SIGTERM, when all that runs has saved its state.

    Example:
        >>> import tempfile, prequential as pq
        >>> from prequential.sweep import LogUniform
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> space = {"learning_rate": LogUniform(1e-4, 1e-2), "num_streams": 1}
        >>> with tempfile.TemporaryDirectory() as out:
        ...     result = pq.sweep("mlp1", data, space=space, trials=2, width=0.1, seed=0, out=out)
        >>> result.counts["finished"], result.best.codelength == min(t.codelength for t in result.trials)
        (2, True)
    """
    base = Resolved(method or ReplayStreams(), recipe or Recipe(), width, 0)
    chosen = _checked_space(space, base.method, stack, grid)
    rule = _checked_rule(prune, base.method, stack)
    for name, count in (("trials", trials), ("jobs", jobs), ("threads", threads)):
        require_count(name, count)
    require_number("width", width, above=0)
    seed = whole_seed("seed", seed)
    make_sampler(sampler, chosen, seed, 0)
    track = require_trackers(track, out)
    run_settings = {
        "plan_seed": plan_seed, "device": device, "engine": engine, "precision": precision, "threads": threads
    }  # fmt: skip
    facts = {
        "model": _model_name(make_model),
        "data": _data_facts(data),
        "method": settings_of(base.method),
        "recipe": settings_of(base.recipe),
        "width": float(width),
        "space": {name: plain_value(value) for name, value in chosen.items()},
        "seed": seed,
        "sampler": sampler,
        "prune": prune,
        **run_settings,
    }
    directory = claim(Path(out))
    with DirectoryLock(directory), StopRequest() as stop:
        home = SweepHome.begin(directory, facts, trials=trials, resume=resume, storage=storage)
        url = storage_url(directory, storage)
        work = Work(
            make_model, data, base, directory, run_settings | {"checkpoint_seconds": checkpoint_seconds},
            rule, url, home.study, stack is not None, track,
        )  # fmt: skip
        claims = Trials(
            url, home.study, space=chosen, seed=seed, sampler=sampler, mark=home.mark, is_shared=storage is not None,
            limit=trials, pruner=None if rule is None else rule.pruner(),
            stack=None if stack is None else (stack, base),
        )  # fmt: skip
        with contextlib.closing(claims):
            _Conductor(work, claims, trials, list(listeners)).go(executor or _executor(jobs), stop)
        return summarise(directory, storage)


class _Conductor:
    """Takes outcomes as they come."""

    def __init__(self, work: Work, claims: Trials, limit: int, listeners: list[Callable[[Any], object]]) -> None:
        self._work, self._claims, self._limit, self._listeners = work, claims, limit, listeners
        so_far = [each for each in summarise(work.directory, work.storage).trials if each.number < limit]
        self._done = sum(each.is_over for each in so_far)
        self._any_ended = self._done > 0
        finished = [each for each in so_far if each.status == "finished" and each.codelength is not None]
        best = min(finished, key=lambda each: each.codelength or math.inf, default=None)
        self._best = None if best is None else best.codelength
        here = [each for each in finished if each.path is not None]
        if here and work.prune is not None and work.prune.name == REGRET:
            note_best(work.directory, min(here, key=lambda each: each.codelength or math.inf).number)

    def go(self, executor: Executor, stop: StopRequest) -> None:
        self._tell(None)
        signal_number = 0
        with contextlib.closing(executor.run(self._work, self._claims.take, stop)) as outcomes:
            for outcome in outcomes:
                signal_number = signal_number or outcome.signal_number
                self._take_note(outcome)
        if stop.requested or signal_number:
            raise SweepInterrupted(stop.signal_number or signal_number)

    def _take_note(self, outcome: Outcome) -> None:
        self._claims.settle(outcome)
        if outcome.is_mistake and not self._any_ended:
            raise PreqError(str(outcome.error))  # what is wrong for the first trial is wrong for all
        if outcome.status in ("finished", "diverged", "pruned"):
            self._done += 1
            self._any_ended = True
        is_best = outcome.value is not None and outcome.value < (math.inf if self._best is None else self._best)
        if outcome.status == "finished" and is_best:
            self._best = outcome.value
            if self._work.prune is not None and self._work.prune.name == REGRET:
                note_best(self._work.directory, outcome.number)
        if outcome.status != "stopped":
            self._tell(outcome)

    def _tell(self, outcome: Outcome | None) -> None:
        for listener in self._listeners:
            listener(SweepProgress(self._done, self._limit, self._best, outcome))


def _executor(jobs: int) -> Executor:
    return InThisProcess() if jobs == 1 else Processes(jobs)


def _checked_space(space: str | Space, method: Method, stack: int | None, grid: int) -> Space:
    if isinstance(space, str):
        space = find_space(space)
    require_space(space, method)
    if stack is None:
        return space
    require_count("stack", stack)
    return on_grid(space, method, grid)


def _checked_rule(prune: str | None, method: Method, stack: int | None) -> Rule | None:
    if prune is None:
        return None
    if not method.prequential:
        raise PreqError(f"{method.name} has no codelength to prune by; leave pruning out")
    if stack is not None:
        raise PreqError("a stack runs its trials to their end; leave out either stack or prune")
    return Rule.parse(prune)


def _model_name(make_model: object) -> str:
    if isinstance(make_model, str):
        return make_model
    return f"{getattr(make_model, '__module__', '')}:{getattr(make_model, '__qualname__', type(make_model).__name__)}"


def _data_facts(data: "DataSequence | Loader") -> Mapping[str, Any]:
    if isinstance(data, Loader):
        return data.facts
    return {"name": data.name, "length": len(data), "order_seed": data.order_seed, **data.digests()}
