"""`preq run DATA MODEL`."""

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from prequential.cli import EXIT_DIVERGED
from prequential.cli.parse import UNSET, Count, PathText, Real, Text, Whole, default, parse
from prequential.cli.settings import MethodFlags, RecipeFlags, method_from, recipe_from
from prequential.errors import PreqError
from prequential.presets import find_preset
from prequential.record import Record, require_no_run
from prequential.report.curve import plot_curve, require_picture_path


@dataclass(frozen=True, kw_only=True)
class Run(RecipeFlags, MethodFlags):
    """Learn a data set from front to back, predicting each label before learning from it, and print the
    description length of the labels given the inputs. `preq run mnist lenet` needs no flag."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    """A data set (see preq data)."""
    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A model (see preq models), or your own as package.module:factory."""
    length: Annotated[Count, default("all")] = None
    """Take the first N examples of the shuffled whole."""
    width: Real = 1.0
    """Scale the model's layers."""
    seed: Whole = 0
    """Initialisation, dropout, perturbation."""
    order_seed: Whole = 0
    """The order of the data."""
    data_dir: Annotated[PathText, default("$PREQ_DATA")] = None
    """Where the publisher's files are; searched before what the package carries."""
    device: Text = "cpu"
    """cpu, cuda, cuda:1, ..."""
    threads: Annotated[str, tyro.conf.arg(metavar="N")] = "auto"
    """CPU threads; auto measures which number is fastest."""
    out: Annotated[PathText, UNSET] = None
    """Keep the record, and checkpoints on the way, in this directory."""
    resume: Annotated[bool, UNSET] = False
    """Go on with the run in --out from its last checkpoint; a finished one is printed at once."""
    checkpoint_seconds: Real = 60.0
    """How often the state is saved into --out."""
    picture: Annotated[PathText, UNSET] = None
    """Draw the codelength curve into this file (png, svg or pdf)."""
    json: Annotated[bool, UNSET] = False
    """Print one JSON object and nothing else."""


def main_run(arguments: list[str]) -> int:
    """Parse, run, print."""
    flags = parse(Run, "run", arguments)
    method, recipe = method_from(flags), recipe_from(find_preset(flags.preset), flags)
    if flags.threads != "auto" and not flags.threads.isdecimal():
        raise PreqError(f"--threads must be auto or a whole number, got '{flags.threads}'")
    if flags.resume and flags.out is None:
        raise PreqError("--resume needs the directory of the run; give --out")
    if flags.picture is not None:
        require_picture_path(Path(flags.picture))
        if not method.prequential:
            raise PreqError(f"{method.name} has no codelength to draw; leave --picture out")
    if flags.out is not None and not flags.resume:
        require_no_run(Path(flags.out))

    from prequential.cli.show import ProgressBar, print_result
    from prequential.data.sources import load
    from prequential.run import Interrupted, run

    data = load(flags.data, order_seed=flags.order_seed, data_dir=flags.data_dir)
    if flags.length is not None:
        data = data.take(flags.length)
    signal_number = 0
    with ProgressBar(method, len(data), plan_seed=flags.plan_seed) as bar:
        try:
            record = run(
                flags.model,
                data,
                method,
                recipe,
                seed=flags.seed,
                plan_seed=flags.plan_seed,
                width=flags.width,
                device=flags.device,
                threads=flags.threads if flags.threads == "auto" else int(flags.threads),
                out=flags.out,
                resume=flags.resume,
                checkpoint_seconds=flags.checkpoint_seconds,
                listeners=[bar],
            )
        except Interrupted as interrupted:
            record, signal_number = interrupted.record, interrupted.signal_number
    if flags.json:
        print(json.dumps(record.summary()))
    else:
        print_result(record)
    if flags.picture is not None and len(record.nats):
        path = plot_curve(record, flags.picture)
        print(f"picture: {path}", file=sys.stderr if flags.json else sys.stdout)
    return _status(record, signal_number)


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
