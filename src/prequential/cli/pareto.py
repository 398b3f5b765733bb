"""`preq pareto DIR…`: what runs reached for what they cost."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from prequential.catalogue import short_names
from prequential.cli.parse import JsonFlag, PathText, Runs, SameInputs
from prequential.errors import PreqError
from prequential.report.names import data_of, main_settings
from prequential.report.picture import require_picture_path
from prequential.report.plots.front import Front, place, plot_pareto, shown_of
from prequential.report.seeds import SeedGroup
from prequential.report.table import Column, columns_that_say, print_table, say, write_csv
from prequential.report.text import counted, number, percentage
from prequential.terminal import tell


@dataclass(frozen=True, kw_only=True)
class ParetoFlags(JsonFlag):
    """Show what runs reached for what they cost: codelength against FLOPs, and the runs that no other beats in both.

    `preq pareto sweeps/a sweeps/b -o pareto.png`
    """

    directories: Runs
    """Runs, folders of runs, or sweeps; all on the same labels."""
    heldout: bool = False
    """Also the held-out error, with a front of its own; ERM has only that."""
    each_seed: bool = False
    """Every run by itself, no means over seeds."""
    same_inputs: SameInputs = False
    output: Annotated[PathText, tyro.conf.arg(aliases=("-o",), help_behavior_hint="")] = None
    """Draw the picture into this file (png, svg or pdf)."""
    csv: PathText = None
    """Write every run into this file, a row each."""


def main_pareto(flags: ParetoFlags) -> None:
    """Gather, draw, print."""
    if flags.output is not None:
        require_picture_path(Path(flags.output))
    wanted = {name: getattr(flags, name) for name in ("heldout", "each_seed", "same_inputs")}
    front = Front.find(flags.directories, **wanted)
    if flags.heldout and not front.best(heldout=True):
        raise PreqError("--heldout: none of these runs was evaluated on held-out data; leave the flag out")
    rows, first, written = front.values(), front.runs.records[0], []
    if flags.csv is not None:
        flat = [{name: value for name, value in row.items() if name != "settings"} | row["settings"] for row in rows]
        written.append(f"csv: {write_csv(flags.csv, flat)}")
    if flags.output is not None:
        written.append(f"picture: {plot_pareto(front, flags.output, heldout=flags.heldout)}")
    for note in [*front.runs.notes, *front.told]:
        tell(f"preq: note: {note}", error=True)
    facts = {"data": data_of(front.runs.records), "length": first.length, "runs": rows, "left_out": front.runs.left_out}
    facts |= {"choice_nats": front.candidates.nats}
    flags.result(lambda: facts, partial(print_fronts, front, heldout=flags.heldout))
    for line in written:
        flags.tell(line)


def print_fronts(front: Front, *, heldout: bool) -> None:
    """The tables of the fronts."""
    console = Console(file=sys.stdout)
    first = front.runs.records[0]
    each = [main_settings(record) for record in front.runs.records]
    told = [name for name in short_names().values() if len({settings.get(name) for settings in each}) > (len(each) > 1)]
    for which, what in [(False, "codelength"), (True, "held-out error")]:
        best = front.best(heldout=which)
        if not best or (which and not heldout):
            continue
        shown = shown_of(front.groups, heldout=which)
        num, num_runs = len(shown), sum(len(group.members) for group in shown)
        called = counted(num, "run") if num == num_runs else f"{counted(num, 'setting')} ({counted(num_runs, 'run')})"
        about = f"{what} against FLOPs: {len(best)} of {called}"
        say(console, f"{data_of(front.runs.records)} · {counted(first.length, 'label')} · {about}")
        print_table(console, columns_that_say(_columns(told, heldout=which), best), best)
        if not which and (chosen_from := front.candidates).number > 1:
            cost = f"ln {chosen_from.number:,} = {chosen_from.nats:.2f} nats"
            word = "run" if num == num_runs else "setting"
            say(console, f"choosing one of {chosen_from.told(word)} afterwards costs {cost} more", "dim")
    shared = [f"{short} {value}" for short, value in each[0].items() if short not in told]
    if shared and len(each) > 1:
        say(console, f"in all runs: {', '.join(shared)}", "dim")


def _columns(told: Sequence[str], *, heldout: bool) -> list[Column[SeedGroup]]:
    """The columns of a front; settings that runs differ in have one each."""

    def setting(name: str) -> Column[SeedGroup]:
        return Column(name, "", lambda group: main_settings(group.first).get(name), band=1)

    return [
        Column("run", "", lambda group: group.name, is_left=True),
        Column("seeds", "", lambda group: len(group.members) if len(group.members) > 1 else None),
        Column("FLOPs", "", lambda group: place(group, heldout=heldout)[0], "{:.3g}".format),
        Column("nats", "", lambda group: place(group, heldout=False)[1], number),
        Column("held-out\nerror", "", lambda group: place(group, heldout=True)[1], lambda share: percentage(share, 2)),
        Column("method", "", lambda group: group.first.title, is_left=True),
        Column("model", "", lambda group: group.first.model["name"], is_left=True),
        *map(setting, told),
    ]
