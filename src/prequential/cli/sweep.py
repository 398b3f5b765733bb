"""`preq sweep DATA MODEL`, and `preq sweep show DIR`."""

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from prequential.cli import EXIT_DIVERGED
from prequential.cli.job import JobFlags
from prequential.cli.parse import JsonFlag, flag_group
from prequential.cli.settings import DEFAULT, flags_of
from prequential.cli.show import LiveLine
from prequential.errors import PreqError, require_count
from prequential.methods import Method
from prequential.settings import setting
from prequential.terminal import tell
from prequential.trackers import tracker_names

if TYPE_CHECKING:
    from prequential.sweeps import SweepProgress


@flag_group("output")
class SweepOutputFlags(JsonFlag):
    """Where a sweep is kept, and what is told of it."""

    out: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """The directory of the sweep: its study, and a run directory for each trial."""
    resume: bool = False
    """Go on with the sweep in --out, or begin it."""
    checkpoint_seconds: float = 60.0
    """How often each running trial saves its state."""
    track: str | None = None
    """Tell a tracker how each trial goes: tensorboard, wandb or mlflow, or several with commas between."""
    top: int = 10
    """How many trials are shown."""


@flag_group("machine")
class SweepMachineFlags(JobFlags):
    """Where trials run."""

    jobs: int | None = setting(None, hint="1; with --ray as many as there is room for")
    """Worker processes, or Ray tasks at once."""
    threads: str = "1"
    """CPU threads of each job."""
    ray: str | None = setting(None, hint="off")
    """Run trials as Ray tasks at this address, or local; all its machines must see --out under the same path."""
    ray_cpus: float | None = setting(None, hint="--threads")
    """CPU cores of each Ray task, also a part of one."""
    ray_gpus: float | None = setting(None, hint="1 with --device cuda, else 0")
    """GPUs of each Ray task, also a part of one, such as 0.25: four tasks then share a GPU."""
    storage: str | None = setting(None, hint="a file in --out")
    """A study that machines share, such as postgresql://HOST/DATABASE: the same command, each its own --out."""
    grace_seconds: float = 120.0
    """With --storage: trials of a machine that has given no sign of life for so long are run by the others."""


@flag_group("sweep")
class Sweep(SweepOutputFlags, SweepMachineFlags):
    """Run many trials whose settings are drawn from a space, and say which explains the data best. Flags that are given
    go before the space. `preq sweep show DIR` tells of a sweep again."""

    space: str
    """The paper's mnist, cifar, imagenet, cloc; the first three with -pareto (also the width); or file.py:name."""
    trials: int = 50
    """How many trials in all; more than before extend a sweep that is resumed."""
    seed: int = 0
    """Of the settings that are drawn, and of the trials' own seeds."""
    sampler: str = "random"
    """random (the paper's; the same draws whatever happens), or Optuna's: tpe, gp, cma-es, qmc, nsga2, brute-force."""
    prune: str | None = setting(None, hint="off")
    """Stop trials that cannot win: regret, regret:FACTOR, median, percentile:25, hyperband, successive-halving."""
    stack: int | None = setting(None, hint="off")
    """Train up to so many trials whose plan and shapes agree as one stack."""
    grid: int = 5
    """With --stack: how many values the number of streams, the batch size and the width are drawn from."""
    width: float | None = setting(None, hint="1, or as the space draws it")
    """Scale the model's layers."""


@flag_group()
class Show(JsonFlag):
    """The best trials of a sweep, what choosing among all that were begun costs, which settings mattered, and what it
    took."""

    directory: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """The directory of the sweep."""
    top: int = 10
    """How many trials are shown."""
    storage: str | None = None
    """The address of a study that is not in a file, as it was given to the sweep."""


def main_sweep(flags: Sweep) -> int:
    """Sweep, print."""
    flags = _as_in_the_paper(flags)
    job = flags.job()
    require_count("--top", flags.top)
    if not flags.threads.isdecimal():
        raise PreqError(f"--threads of a sweep must be a whole number, got '{flags.threads}'")
    from prequential.cli.sweep_table import print_summary
    from prequential.sweeps import SweepInterrupted, sweep
    from prequential.sweeps.trials import Loader

    source = {name: value for name, value in flags.options().items() if value is not None and name != "data_dir"}
    few = {} if flags.num_labels is None else {"num_labels": flags.num_labels}
    data = Loader(flags.load_coded, {"name": flags.data, "length": flags.length, **few, **source})
    with _Bar() as bar:
        try:
            summary = sweep(data=data, **job, **_arguments(flags, job["method"]), listeners=[bar])
        except SweepInterrupted as stopped:
            again = "the same command with --resume goes on"
            tell(f"preq: stopped after {bar.done} of {flags.trials} trials; {again}", error=True)
            return 128 + stopped.signal_number
    flags.result(partial(summary.as_json, flags.top), partial(print_summary, summary, flags.top))
    return 0 if summary.best is not None else EXIT_DIVERGED


def main_sweep_show(flags: Show) -> None:
    """Tell of a sweep again."""
    require_count("--top", flags.top)
    from prequential.cli.sweep_table import print_summary
    from prequential.sweeps import summarise

    summary = summarise(flags.directory, flags.storage)
    flags.result(partial(summary.as_json, flags.top), partial(print_summary, summary, flags.top))


def _as_in_the_paper(flags: Sweep) -> Sweep:
    """In the paper's spaces no label has more steps than another, whatever the preset says."""
    from prequential.sweeps.spaces import SPACES

    if flags.space not in SPACES or "early_labels" not in flags_of(flags.method or DEFAULT):
        return flags
    return replace(flags, given={"early_labels": 0} | flags.given)


def _arguments(flags: Sweep, method: Method) -> dict[str, Any]:
    """What `sweep` takes beyond what `run` does."""
    names = "out trials resume sampler prune stack grid storage grace_seconds checkpoint_seconds"
    return {name: getattr(flags, name) for name in names.split()} | {
        "space": _space(flags, method),
        "jobs": 1 if flags.jobs is None else flags.jobs,
        "executor": _ray_tasks(flags),
        "track": tracker_names(flags.track),
    }


def _ray_tasks(flags: Sweep) -> Any:
    if flags.ray is None:
        for flag in ("ray_cpus", "ray_gpus"):
            if getattr(flags, flag) is not None:
                raise PreqError(f"--{flag.replace('_', '-')} has no meaning without --ray")
        return None
    from prequential.sweeps import RayTasks

    gpus = float(flags.device.startswith("cuda")) if flags.ray_gpus is None else flags.ray_gpus
    cpus = float(flags.threads) if flags.ray_cpus is None else flags.ray_cpus
    return RayTasks(flags.ray, cpus=cpus, gpus=gpus, most=flags.jobs)


def _space(flags: Sweep, method: Method) -> Any:
    """The space without what the flags fix."""
    from prequential.catalogue import own_name
    from prequential.sweeps.sampling import drawn
    from prequential.sweeps.spaces import find_space, require_space

    space = find_space(flags.space)
    require_space(space, method)
    fixed = {*flags.of_method, *flags.of_recipe, *flags.of_all_inputs}
    fixed |= {"width"} if flags.width is not None else set()
    fixed |= {"ema_step_size"} if flags.averages is not None else set()  # each average has its own
    left = {name: value for name, value in space.items() if (own_name(name, method) or name) not in fixed}
    if not drawn(left):
        raise PreqError(f"flags fix all that the space draws ({', '.join(drawn(space))}); leave one of them out")
    return left


class _Bar(LiveLine):
    """A live line on standard error: trials done, the best so far."""

    def __init__(self) -> None:
        self.done = 0
        super().__init__(BarColumn(bar_width=24), TextColumn("{task.fields[said]}"), TimeElapsedColumn())
        self._sweep = self.add_task("sweep", total=None, said="")

    def __call__(self, progress: "SweepProgress") -> None:
        self.done = progress.done
        best = "" if progress.best is None or math.isinf(progress.best) else f"  best {progress.best:,.1f} nats"
        said = f"{progress.done}/{progress.trials} trials{best}"
        self.update(self._sweep, completed=progress.done, total=progress.trials, said=said)
        if progress.outcome is not None and progress.outcome.status == "failed":
            tell(f"preq: trial {progress.outcome.number} failed: {progress.outcome.error}", error=True)
