"""`sweep`: what is given is checked and written down, and the sweep is conducted."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError, require_count, require_number, whole_seed
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.libraries import prefix_of
from prequential.lock import DirectoryLock
from prequential.measure.choosing import SWEEP_FILE
from prequential.methods import Method, ReplayStreams
from prequential.methods.all_inputs import given_all_inputs
from prequential.methods.joint import method_settings
from prequential.runs.record import require_writable
from prequential.runs.signals import StopRequest
from prequential.scaling import INTENSITY
from prequential.settings import plain_value, settings_of
from prequential.sweeps.address import storage_url
from prequential.sweeps.conduct import Conductor, SweepListener
from prequential.sweeps.directory import begun_in
from prequential.sweeps.execute import Executor, InThisProcess, Processes
from prequential.sweeps.ledger import Ledger
from prequential.sweeps.pruning import Rule
from prequential.sweeps.ray_executor import RayTasks
from prequential.sweeps.sampling import LEARNING, RANDOM, Space, make_sampler, require_countable
from prequential.sweeps.spaces import Resolved, find_space, on_grid, require_draws, require_space
from prequential.sweeps.storage import usable
from prequential.sweeps.summary import Summary, summarise
from prequential.sweeps.trials import Loader, Work
from prequential.trackers import require_trackers

if TYPE_CHECKING:
    from prequential.data.sequence import DataSequence
    from prequential.experts.settings import AnyModel


def sweep(
    make_model: "AnyModel",
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
    grace_seconds: float = 120.0,
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    execution: Execution | None = None,
    threads: int = 1,
    checkpoint_seconds: float = 60.0,
    executor: Executor | None = None,
    track: Sequence[str] = (),
    listeners: Iterable[SweepListener] = (),
    study_dir: str | Path | None = None,
) -> Summary:
    """Run many trials whose settings are drawn from a space.

    Args:
        make_model: as for `run`. With several jobs it must be a name, or defined at the top of a module. Of experts the
            space changes what they take from the run; what one has of its own it keeps.
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
        storage: where the study is kept, as Optuna writes it. None: a file in `out`. Sweeps with the same settings
            and another `out` share its trials, and each ends when all are done.
        grace_seconds: with `storage`, how long a directory that shares it may give no sign of life before the
            others take its trials over.
        plan_seed: of the plan, which all trials share.
        width: scales the layers of models that have a width, unless the space does.
        device: as for `run`.
        execution: as for `run`; a stack has an engine of its own.
        threads: CPU threads of each job.
        checkpoint_seconds: how often each running trial saves its state.
        executor: who executes trials, such as `RayTasks`. None: this process for one job, else worker processes.
        track: trackers that are told how each trial goes, by name (see `prequential.track`).
        listeners: called with `SweepProgress` at the beginning and after each trial.
        study_dir: as for `run`: trials that do the same study do it once, if they run one after the other.

    Returns:
        A summary of all trials.

    Raises:
        PreqError: for mistakes in what was given.
        SweepInterrupted: on Ctrl-C or SIGTERM, when all that runs has saved its state.

    Example:
        >>> import tempfile, prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> space = {"learning_rate": pq.LogUniform(1e-4, 1e-2), "num_streams": 1}
        >>> with tempfile.TemporaryDirectory() as out:
        ...     result = pq.sweep("mlp1", data, space=space, trials=2, width=0.1, seed=0, out=out)
        >>> result.counts["finished"], result.best.codelength == min(t.codelength for t in result.trials)
        (2, True)
    """
    base = Resolved(method or ReplayStreams(), recipe or Recipe(), width, 0)
    execution = execution or Execution()
    _require_fitting(make_model, base.method, stack, sampler, prune, execution.engine)
    chosen, rule = _chosen(space, base.method, stack, grid), None if prune is None else Rule.parse(prune)
    _require_numbers(width, grace_seconds, trials=trials, jobs=jobs, threads=threads)
    if isinstance(executor, RayTasks):
        executor.require_device(device)
    seed = whole_seed("seed", seed)
    make_sampler(sampler, seed, 0)
    require_countable(sampler, chosen, trials)
    if not (Path(out) / SWEEP_FILE).exists():
        require_draws(chosen, seed, trials, base)
    track = require_trackers(track, out)
    run_settings = {"plan_seed": plan_seed, "device": device, "threads": threads}
    facts = {
        **_model_facts(make_model),
        "data": _data_facts(data),
        "method": method_settings(base.method),
        "recipe": settings_of(base.recipe),
        "width": float(width),
        "space": {name: plain_value(value) for name, value in chosen.items()},
        "seed": seed,
        "sampler": sampler,
        "prune": prune,
        **run_settings,
        **execution.facts(),
    }
    url, directory = storage_url(Path(out), storage), require_writable(Path(out))
    with (
        DirectoryLock(directory),
        StopRequest() as stop,
        begun_in(directory, facts, trials=trials, resume=resume, storage=storage) as begun,
        usable(url),
    ):
        arguments = run_settings | {"checkpoint_seconds": checkpoint_seconds, "execution": execution}
        arguments |= {} if study_dir is None else {"study_dir": study_dir}
        work = Work(make_model, data, base, directory, arguments, rule, stack is not None, track)
        ledger = Ledger(
            url, begun.study, space=chosen, seed=seed, sampler=sampler, mark=begun.mark, num_trials=trials,
            grace_seconds=None if storage is None else grace_seconds, pruner=None if rule is None else rule.pruner(),
            stack=None if stack is None else (stack, base),
        )  # fmt: skip
        with contextlib.closing(ledger):
            conductor = Conductor(work, ledger, storage, listeners)
            conductor.go(executor or (InThisProcess() if jobs == 1 else Processes(jobs)), stop)
        return summarise(directory, storage)


def _chosen(space: str | Space, method: Method, stack: int | None, grid: int) -> Space:
    """The space that was meant; on a grid, where trials are stacked."""
    found = find_space(space) if isinstance(space, str) else space
    require_space(found, method)
    return found if stack is None else on_grid(found, method, grid)


def _require_numbers(width: float, grace_seconds: float, **counts: int) -> None:
    """Refuse what is no number that makes sense."""
    for name, count in counts.items():
        require_count(name, count)
    require_number("width", width, above=0)
    require_number("grace_seconds", grace_seconds, above=0)


def _require_fitting(
    make_model: object, method: Method, stack: int | None, sampler: str, prune: str | None, engine: str
) -> None:
    """Refuse what cannot go together."""
    if prefix_of(make_model) is not None:
        raise PreqError(f"a sweep is about the training of networks, and '{make_model}' is none; make runs of it")
    if experts := getattr(make_model, "each", ()):
        if stack is not None:
            told = "a stack trains models of one kind together, and experts have learners of their own"
            raise PreqError(f"{told}; leave it out")
        if all(prefix_of(each.model) is not None or (each.method and each.recipe) for each in experts):
            raise PreqError("every expert has all settings of its own, so that a space changes nothing; leave some out")
    if prune is not None and not method.prequential:
        raise PreqError(f"{method.name} has no codelength to prune by; leave pruning out")
    if stack is None:
        return
    require_count("stack", stack)
    if given_all_inputs(method) is not None:
        raise PreqError("networks that are given all inputs are not stacked; leave out either stack or all inputs")
    if sampler in LEARNING:
        raise PreqError(f"a stack draws its trials before any has run, and {sampler} learns from them; leave one out")
    if prune is not None:
        raise PreqError("a stack runs its trials to their end; leave out either stack or prune")
    if engine != "auto":
        raise PreqError(f"a stack has an engine of its own, and '{engine}' was asked for; leave one out")


def _model_facts(make_model: "AnyModel") -> dict[str, Any]:
    """The name of the model; of experts also what each has of its own, and how they are mixed."""
    from prequential.experts.settings import Experts

    if not isinstance(make_model, Experts):
        return {"model": _model_name(make_model)}
    experts = [
        {name: getattr(each, name) for name in ("width", "seed")}
        | {"model": _model_name(each.model), "averages": list(each.averages)}
        | {"method": None if each.method is None else method_settings(each.method)}
        | {"recipe": None if each.recipe is None else settings_of(each.recipe)}
        for each in make_model.each
    ]
    mixed = {"mixer": settings_of(make_model.mixer), "simple_codes": make_model.simple_codes}
    return {"model": make_model.name, "experts": experts, **mixed}


def _model_name(make_model: object) -> str:
    if isinstance(make_model, str):
        return make_model
    return f"{getattr(make_model, '__module__', '')}:{getattr(make_model, '__qualname__', type(make_model).__name__)}"


def _data_facts(data: "DataSequence | Loader") -> Mapping[str, Any]:
    if isinstance(data, Loader):
        return data.facts
    from prequential.data.scale import scale_of

    scaled = {} if (scale := scale_of(data)) in (None, INTENSITY) else {"scale": scale}
    return {"name": data.name, "length": len(data), "order_seed": data.order_seed, **scaled, **data.digests()}
