"""`preq pareto DIR…`: what runs reached for what they cost."""

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prequential.cli.parse import UNSET, PathText, parse
from prequential.errors import PreqError
from prequential.report.pareto import plot_pareto, rows_of, write_csv
from prequential.report.picture import require_picture_path
from prequential.report.runs import Gathered, Point, gather, shown_of

NAMED = 3
"""Directories that a note names."""


@dataclass(frozen=True, kw_only=True)
class ParetoFlags:
    """Show what runs reached for what they cost: codelength against FLOPs, and the runs that no other beats in both.

    `preq pareto sweeps/a sweeps/b -o pareto.png`
    """

    directories: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="DIR...", help_behavior_hint="")
    ]
    """Runs, folders of runs, or sweeps; all on the same data."""
    heldout: Annotated[bool, UNSET] = False
    """Also the held-out error, with a front of its own; ERM has only that."""
    output: Annotated[PathText, tyro.conf.arg(aliases=("-o",), help_behavior_hint="")] = None
    """Draw the picture into this file (png, svg or pdf)."""
    csv: Annotated[PathText, UNSET] = None
    """Write every run into this file, a row each."""
    json: Annotated[bool, UNSET] = False
    """Print one JSON object and nothing else."""


def main_pareto(arguments: list[str]) -> int:
    """Parse, gather, print, draw."""
    flags = parse(ParetoFlags, "pareto", arguments)
    if not flags.directories:
        raise PreqError("preq pareto needs at least one directory of runs; name one, see preq pareto --help")
    if flags.output is not None:
        require_picture_path(Path(flags.output))
    gathered = gather(flags.directories, heldout=flags.heldout)
    if flags.heldout and not gathered.front(heldout=True):
        raise PreqError("--heldout: none of these runs was evaluated on held-out data; leave the flag out")
    for reason, paths in gathered.left_out.items():
        print(f"preq: note: left out {_runs(len(paths))} {reason}: {_names(paths)}", file=sys.stderr)
    if gathered.told:
        print(f"preq: note: {gathered.told}", file=sys.stderr)
    if flags.json:
        first = gathered.points[0]
        facts = {"data": first.data, "length": first.length, "runs": rows_of(gathered), "left_out": gathered.left_out}
        print(json.dumps(facts))
    else:
        print_fronts(gathered, heldout=flags.heldout)
    told = sys.stderr if flags.json else sys.stdout
    if flags.csv is not None:
        print(f"csv: {write_csv(gathered, flags.csv)}", file=told)
    if flags.output is not None:
        print(f"picture: {plot_pareto(gathered, flags.output, heldout=flags.heldout)}", file=told)
    return 0


def print_fronts(gathered: Gathered, *, heldout: bool) -> None:
    """The tables of the fronts."""
    console = Console(file=sys.stdout)
    first = gathered.points[0]
    told = _telling_settings(gathered.points)
    above = _common_folder([point.directory for point in gathered.points])
    for which, name in [(False, "codelength"), (True, "held-out error")]:
        front = gathered.front(heldout=which)
        if not front or (which and not heldout):
            continue
        num_runs = len(shown_of(gathered.points, heldout=which))
        title = f"{first.data} · {first.length:,} labels · {name} against FLOPs: {len(front)} of {_runs(num_runs)}"
        table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for column in ("FLOPs", "nats", "held-out\nerror"):
            table.add_column(column, justify="right", no_wrap=True)
        for column in ("method", "model", "settings", "directory"):
            table.add_column(column, overflow="fold")
        for point in front:
            table.add_row(*_row(point, above, heldout=which, told=told))
        console.print(table)
        if not which and num_runs > 1:
            note = f"choosing one of {num_runs:,} runs afterwards costs ln {num_runs:,} = {math.log(num_runs):.2f} nats"
            console.print(f"{note} more", style="dim", highlight=False)
    shared = {short: value for short, value in first.main_settings().items() if short not in told}
    if shared and len(gathered.points) > 1:
        console.print(f"in all runs: {_settings(shared)}", style="dim", highlight=False, soft_wrap=True)
    if above:
        console.print(f"directories are below {above}", style="dim", highlight=False, markup=False, soft_wrap=True)


def _row(point: Point, above: str, *, heldout: bool, told: Sequence[str]) -> list[str | Text]:
    settings = {short: value for short, value in point.main_settings().items() if short in told}
    return [
        f"{point.heldout_flops if heldout else point.flops:.3g}",
        "–" if point.nats is None else f"{point.nats:,.1f}",
        "–" if point.heldout_error is None else f"{point.heldout_error:.2%}",
        Text(point.title),
        Text(point.model),
        _settings(settings),
        Text(os.path.relpath(point.directory, above) if above else point.directory),
    ]


def _telling_settings(points: Sequence[Point]) -> list[str]:
    """The main settings in which runs differ; all of them where there is one run."""
    each = [point.main_settings() for point in points]
    names = list(dict.fromkeys(name for settings in each for name in settings))
    return [name for name in names if len(points) == 1 or len({settings.get(name) for settings in each}) > 1]


def _settings(settings: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _common_folder(directories: Sequence[str]) -> str:
    """The folder that holds all of them; nothing where some are absolute and others are not.

    Example:
        >>> _common_folder(["sweeps/a/trials/0", "sweeps/b/trials/0"]), _common_folder(["a", "/b"])
        ('sweeps', '')
    """
    parents = [Path(directory).parent for directory in directories]
    return "" if len({parent.is_absolute() for parent in parents}) > 1 else os.path.commonpath(parents)


def _runs(number: int) -> str:
    return f"{number:,} run{'' if number == 1 else 's'}"


def _names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more
