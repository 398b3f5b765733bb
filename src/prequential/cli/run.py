"""`preq run DATA MODEL...`."""

import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from prequential.cli import EXIT_DIVERGED
from prequential.cli.job import JobFlags
from prequential.cli.parse import JsonFlag, PathText, flag_group
from prequential.errors import PreqError, require_known
from prequential.learn.execution import Execution
from prequential.libraries import prefix_of
from prequential.report.picture import require_picture_path
from prequential.report.plots import plot
from prequential.runs.record import Record, require_no_run
from prequential.settings import setting
from prequential.terminal import tell
from prequential.trackers import track, tracker_names

COMPILED = {"auto": None, "yes": True, "no": False}


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
    keep_weights: bool = False
    """Keep the averaged weights in --out too, with digests of the examples they learned, for preq probe."""
    track: str | None = None
    """Tell a tracker how it goes: tensorboard, wandb or mlflow, or several with commas between; needs --out."""
    picture: PathText = None
    """Draw the codelength curve into this file (png, svg or pdf)."""

    @property
    def execution(self) -> Execution:
        """With what a single run can ask for."""
        word = self.compile or "auto"
        require_known("--compile", word, COMPILED)
        return replace(super().execution, deterministic=self.deterministic, compiled=COMPILED[word])


def main_run(flags: Run) -> int:
    """Run, print."""
    job = flags.job()
    method = flags.chosen_settings.plan_method
    if flags.resume and flags.out is None:
        raise PreqError("--resume needs the directory of the run; give --out")
    if flags.keep_weights and flags.out is None:
        raise PreqError("--keep-weights needs a directory for them; give --out")
    if flags.track is not None and flags.out is None:
        raise PreqError("--track needs a directory for what it logs and remembers; give --out")
    if flags.picture is not None:
        require_picture_path(Path(flags.picture))
        if not method.prequential:
            raise PreqError(f"{method.name} has no codelength to draw; leave --picture out")
    trackers = [track(name, flags.out or ".") for name in tracker_names(flags.track)]
    if flags.out is not None and not flags.resume:
        require_no_run(Path(flags.out))

    from prequential.cli.schema import print_schema
    from prequential.cli.show import ProgressBar, print_result
    from prequential.runs.run import Interrupted, run

    data = flags.load_coded()
    print_schema(data.schema, sys.stderr if flags.json else sys.stdout)
    kept = {name: getattr(flags, name) for name in ("out", "name", "resume", "checkpoint_seconds", "keep_weights")}
    signal_number = 0
    with ProgressBar(method, len(data), plan_seed=flags.plan_seed, tell=flags.tell) as bar:
        try:
            record = run(data=data, **job, **kept, listeners=[bar, *trackers])
        except Interrupted as interrupted:
            record, signal_number = interrupted.record, interrupted.signal_number
    drawn = None
    try:
        if flags.picture is not None and len(record.nats):
            drawn = plot("curve", record, flags.picture)
    finally:  # a picture that cannot be written costs no result
        flags.result(record.summary, partial(print_result, record))
    if drawn is not None:
        flags.tell(f"picture: {drawn}")
    return _status(record, signal_number)


def _status(record: Record, signal_number: int) -> int:
    kept = f"; the record is in {record.path}" if record.path else ""
    if record.status == "stopped":
        again = ", --resume goes on" if record.path else ""
        tell(f"preq: stopped at label {len(record.nats)} of {record.length}{kept}{again}", error=True)
        return 128 + signal_number
    if record.status == "diverged":
        reason = "the weights are no numbers any more"
        if len(record.nats) and not math.isfinite(record.nats[-1]):
            reason = f"the label at position {len(record.nats) - 1} has no finite codelength"
        todo = f"try a smaller --lr (now {record.recipe['learning_rate']:g}) or a larger --eps"
        if prefix_of(record.model["name"]) is not None:
            todo = "the classifier gives no finite probabilities; try other settings of it"
        tell(f"preq: diverged: {reason}{kept}; {todo}", error=True)
        return EXIT_DIVERGED
    return 0
