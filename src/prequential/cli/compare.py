"""`preq compare RUN…`: which run explains the data best, by how much, and how sure one may be."""

import sys
from dataclasses import dataclass
from functools import partial

from rich.console import Console

from prequential.cli.parse import JsonFlag, PathText, Runs, SameInputs
from prequential.errors import require_count
from prequential.report.comparison import TOP, compare
from prequential.report.runs import Needs, RunSet
from prequential.report.seeds import slim
from prequential.report.table import write_csv


@dataclass(frozen=True, kw_only=True)
class CompareFlags(JsonFlag):
    """Compare runs by the length of their codes: which explains the data best, by how much, from where on, how surely.

    `preq compare runs/lenet runs/mlp2`

    Runs must be about the same labels in the same order; inputs may differ, which is then said. Those that differ in
    nothing but `--seed` are one line, with mean and standard error. Codes that look at labels alone stand among the
    runs, in brackets: uniform, by the frequencies of earlier labels, by what followed the previous label (hard to
    beat where labels persist).

    - odds of the best, posterior: from the mean codelengths, all settings being equally probable before
    - paired test: p of a t-test against the best over shared seeds; small where other seeds would hardly turn the
      order round; not corrected for the number of settings
    - best leads from: the position from which the best is ahead for good; in its own line, ahead of the second
    - early share: the part of that lead which was earned in the first 10 % of the data
    - saved on: 1 − codelength / codelength of a code that looks at labels alone
    """

    runs: Runs
    """Runs, folders of runs, or sweeps; all on the same labels in the same order."""
    prefix: bool = False
    """Compare only the labels that every run has coded, unfinished runs too."""
    same_inputs: SameInputs = False
    top: int = TOP
    """Settings to print."""
    csv: PathText = None
    """Write every setting into this file, a row each."""


def main_compare(flags: CompareFlags) -> None:
    """Load, compare, print."""
    require_count("--top", flags.top)
    runs = RunSet.find(flags.runs, Needs(prefix=flags.prefix), slim)
    comparison = compare(runs.records, prefix=flags.prefix, same_inputs=flags.same_inputs)
    written = None if flags.csv is None else write_csv(flags.csv, comparison.values())
    runs.warn()
    console = Console(file=sys.stdout, highlight=False)
    flags.result(partial(comparison.as_json, runs.left_out), partial(comparison.print, console, flags.top))
    if written is not None:
        flags.tell(f"csv: {written}")
