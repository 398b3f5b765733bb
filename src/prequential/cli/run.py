"""`preq run DATA MODEL`."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

from prequential.cli import EXIT_DIVERGED
from prequential.cli.job import JobFlags, job_from
from prequential.cli.parse import JsonFlag, PathText, flag_group
from prequential.cli.settings import parse_settings
from prequential.errors import PreqError, unknown_name
from prequential.learn.execution import Execution
from prequential.report.picture import require_picture_path
from prequential.report.plots import plot
from prequential.runs.record import Record, require_no_run
from prequential.settings import setting
from prequential.trackers import track, tracker_names


@flag_group("machine")
class RunMachineFlags:
    """How one run is computed."""

    deterministic: bool = False
    """Make a GPU give the same bits each time, so that preq verify can prove the run. A CPU always does."""
    compile: str | None = setting(None, hint="auto")
    """Fuse the network's kernels, which takes half a minute: yes, no, or auto: for long runs on a GPU."""


@flag_group("output")
class Run(JobFlags, RunMachineFlags, JsonFlag):
    """Learn a data set from front to back, predicting each label before learning from it, and print the
    description length of the labels given the inputs. `preq run mnist lenet` needs no flag."""

    out: PathText = None
    """Keep the record, and checkpoints on the way, in this directory."""
    name: str | None = setting(None, hint="the directory's")
    """What tables, plots and reports call the run."""
    resume: bool = False
    """Go on with the run in --out from its last checkpoint, or begin it; a finished one is printed at once."""
    checkpoint_seconds: float = 60.0
    """How often the state is saved into --out."""
    track: str | None = None
    """Tell a tracker how it goes: tensorboard, wandb or mlflow, or several with commas between; needs --out."""
    picture: PathText = None
    """Draw the codelength curve into this file (png, svg or pdf)."""

    @property
    def execution(self) -> Execution:
        """With what a single run can ask for."""
        return replace(super().execution, deterministic=self.deterministic, compiled=_compiled(self.compile))


def main_run(arguments: list[str]) -> int:
    """Parse, run, print."""
    flags = parse_settings(Run, "run", arguments)
    job = job_from(flags)
    if flags.resume and flags.out is None:
        raise PreqError("--resume needs the directory of the run; give --out")
    if flags.picture is not None:
        require_picture_path(Path(flags.picture))
        if not job.method.prequential:
            raise PreqError(f"{job.method.name} has no codelength to draw; leave --picture out")
    if flags.track is not None and flags.out is None:
        raise PreqError("--track needs a directory for what it logs and remembers; give --out")
    trackers = [track(name, flags.out or ".") for name in tracker_names(flags.track)]
    if flags.out is not None and not flags.resume:
        require_no_run(Path(flags.out))

    from prequential.cli.show import ProgressBar, print_result
    from prequential.runs.run import Interrupted, run

    data = job.load()
    signal_number = 0
    with ProgressBar(job.method, len(data), plan_seed=flags.plan_seed) as bar:
        try:
            record = run(
                flags.model,
                data,
                **job.arguments(),
                out=flags.out,
                name=flags.name,
                resume=flags.resume,
                checkpoint_seconds=flags.checkpoint_seconds,
                listeners=[bar, *trackers],
            )
        except Interrupted as interrupted:
            record, signal_number = interrupted.record, interrupted.signal_number
    if flags.json:
        print(json.dumps(record.summary()))
    else:
        print_result(record)
    if flags.picture is not None and len(record.nats):
        path = plot("curve", record, flags.picture)
        print(f"picture: {path}", file=sys.stderr if flags.json else sys.stdout)
    return _status(record, signal_number)


def _compiled(word: str | None) -> bool | None:
    choices = {None: None, "auto": None, "yes": True, "no": False}
    if word not in choices:
        raise unknown_name("--compile", str(word), ("auto", "yes", "no"))
    return choices[word]


def _status(record: Record, signal_number: int) -> int:
    kept = f"; the record is in {record.path}" if record.path else ""
    if record.status == "stopped":
        again = ", --resume goes on" if record.path else ""
        print(f"preq: stopped at label {len(record.nats)} of {record.length}{kept}{again}", file=sys.stderr)
        return 128 + signal_number
    if record.status == "diverged":
        print(
            f"preq: diverged: {_divergence(record)}{kept}; "
            f"try a smaller --lr (now {record.recipe['learning_rate']:g}) or a larger --eps",
            file=sys.stderr,
        )
        return EXIT_DIVERGED
    return 0


def _divergence(record: Record) -> str:
    if len(record.nats) and not math.isfinite(record.nats[-1]):
        return f"the label at position {len(record.nats) - 1} has no finite codelength"
    return "the weights are no numbers any more"
