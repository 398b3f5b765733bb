"""`preq report RUN… -o report.html`: one page about runs."""

from typing import Annotated

import tyro

from prequential.cli.labels import ExampleFlags
from prequential.cli.parse import PathText, Runs, SameInputs, flag_group
from prequential.report.page import write_report
from prequential.terminal import tell


@flag_group()
class ReportFlags(ExampleFlags):
    """Write one self-contained page about runs, for any browser, without a server and without the internet.

    It holds the comparison, what it says in plain words, interactive plots (point, zoom, hide runs, choose the
    reference of the regret), the labels that were expensive (with pictures, where --data names images), settings side
    by side, data and environment. It prints well.

    `preq report runs/lenet runs/mlp2 sweeps/a -o report.html`
    """

    directories: Runs
    """Runs, folders of runs, or sweeps, on the same labels in one order. In folders, unfinished runs are left out."""
    output: Annotated[PathText, tyro.conf.arg(aliases=("-o",), help_behavior_hint="(default: report.html)")] = None
    """The page to write; a file of that name is replaced."""
    prefix: bool = False
    """Compare only the labels that every run has coded, and take unfinished runs too."""
    same_inputs: SameInputs = False


def main_report(flags: ReportFlags) -> None:
    """Write, say where."""
    place, how = flags.output or "report.html", {"prefix": flags.prefix, "same_inputs": flags.same_inputs}
    written = write_report(flags.directories, place, examples=flags.examples(), **how)
    tell(f"report: {written} ({written.stat().st_size / 1e6:,.1f} MB)")
