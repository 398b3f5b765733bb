"""`preq report RUN… -o report.html`: one page about runs."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from prequential.cli.parse import PathText, Runs, SameInputs
from prequential.report.page import write_report


@dataclass(frozen=True, kw_only=True)
class ReportFlags:
    """Write one self-contained page about runs, for any browser, without a server and without the internet.

    It holds the comparison, what it says in plain words, interactive plots (point, zoom, hide runs, choose the
    reference of the regret), settings side by side, data and environment. It prints well.

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
    output = flags.output or "report.html"
    written = write_report(flags.directories, output, prefix=flags.prefix, same_inputs=flags.same_inputs)
    print(f"report: {written} ({written.stat().st_size / 1e6:,.1f} MB)")
