"""`preq compare RUN…`: which run explains the data best, by how much, and how sure one may be."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from prequential.cli.parse import UNSET, PathText, Whole, parse
from prequential.errors import PreqError, require_count
from prequential.report.comparable import load_runs
from prequential.report.compare import Comparison, compare
from prequential.report.compare_text import code_rows_of, columns_of, rows_of, title_of, uncoded_rows_of
from prequential.report.compare_values import object_of, write_csv
from prequential.report.sentences import listed

SMALLEST_NAME = 20
"""Columns that the name of a run gets in any case."""


@dataclass(frozen=True, kw_only=True)
class CompareFlags:
    """Compare runs by the length of their codes: which explains the data best, by how much, from where on, how surely.

    `preq compare runs/lenet runs/mlp2`

    Runs must be about the same labels in the same order. Those that differ in nothing but `--seed` are one line, with
    mean and standard error, and a paired t-test over the seeds that two settings share tells whether they differ. Odds
    and posterior (all settings equally probable before) are those of the mean codelengths; `best leads from` is the
    position from which the best is ahead for good, `early share` the part of its advantage earned in the first 10 % of
    the data. Codes that look at labels alone stand among the runs, in brackets: uniform, by the frequencies of earlier
    labels, by what followed the previous label. Where labels persist, the last one is hard to beat.
    """

    runs: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="")]
    """Runs, folders of runs, or sweeps; all on the same data in the same order."""
    prefix: Annotated[bool, UNSET] = False
    """Compare only the labels that every run has coded, unfinished runs too."""
    top: Whole = 20
    """Settings to print."""
    csv: Annotated[PathText, UNSET] = None
    """Write every setting into this file, a row each."""
    json: Annotated[bool, UNSET] = False
    """Print one JSON object and nothing else."""


def main_compare(arguments: list[str]) -> int:
    """Parse, load, compare, print."""
    flags = parse(CompareFlags, "compare", arguments)
    if not flags.runs:
        raise PreqError("preq compare needs at least one run; name its directory, see preq compare --help")
    require_count("--top", flags.top)
    records, left_out = load_runs(flags.runs, prefix=flags.prefix)
    comparison = compare(records, prefix=flags.prefix)
    written = None if flags.csv is None else write_csv(comparison, flags.csv)
    for reason, paths in left_out.items():
        runs = f"{len(paths):,} run{'s' * (len(paths) != 1)}"
        print(f"preq: note: left out {runs} {reason}: {listed(paths)}", file=sys.stderr)
    if flags.json:
        print(json.dumps(object_of(comparison, left_out), ensure_ascii=False, allow_nan=False))
    else:
        print_comparison(comparison, flags.top)
    if written is not None:
        print(f"csv: {written}", file=sys.stderr if flags.json else sys.stdout)
    return 0


def print_comparison(comparison: Comparison, top: int) -> None:
    """The table, in as many pieces as the terminal needs, and what it says."""
    console = Console(file=sys.stdout, highlight=False)
    console.print(Text(title_of(comparison), style="bold"), soft_wrap=True)
    for piece in _pieces(comparison, top, console):
        console.print(_table(comparison, piece, top, console.width))
        console.print()
    hidden = len(comparison.entries) - top
    if hidden > 0:
        console.print(f"… and {hidden:,} more; --top {len(comparison.entries)} shows them", style="dim")
    for sentence in comparison.sentences():
        console.print(Text(sentence))


def _pieces(comparison: Comparison, top: int, console: Console) -> list[list[int]]:
    """The numbers of the columns side by side: bands stay whole, unless one alone is too wide."""

    def fits(numbers: Sequence[int]) -> bool:
        table = _table(comparison, numbers, top, console.width)
        return Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width

    columns = columns_of(comparison)
    pieces: list[list[int]] = [[]]
    for band in sorted({column.band for column in columns}):
        numbers = [number for number, column in enumerate(columns, start=1) if column.band == band]
        for part in [numbers] if fits(numbers) else [[number] for number in numbers]:
            if not pieces[-1] or fits([*pieces[-1], *part]):
                pieces[-1] += part
            else:
                pieces.append(part)
    return pieces


def _table(comparison: Comparison, shown: Sequence[int], top: int, width: int) -> Table:
    """A piece of the table: the name, and the columns of these numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("run", overflow="fold", max_width=max(SMALLEST_NAME, width // 4))
    columns = columns_of(comparison)
    for number in shown:
        table.add_column(columns[number - 1].head, justify="right", no_wrap=True)
    for kind, cells in _lines(comparison, top):
        if not any(cells[number] for number in shown if columns[number - 1].head != "seeds"):
            continue
        style = {"best": "bold", "code": "dim"}.get(kind)
        table.add_row(*(Text(cells[number]) for number in (0, *shown)), style=style)
    return table


def _lines(comparison: Comparison, top: int) -> list[tuple[str, list[str]]]:
    """The rows in the order of their codelengths, simple codes among them; those without one below."""
    entries = list(zip(comparison.entries, rows_of(comparison), strict=True))[:top]
    ranked = [(entry.nats, "best" if entry is comparison.best else "entry", cells) for entry, cells in entries]
    ranked += [(nats, "code", cells) for nats, cells in code_rows_of(comparison)]
    ranked.sort(key=lambda line: line[0])
    return [
        *((kind, cells) for _, kind, cells in ranked),
        *(("uncoded", cells) for cells in uncoded_rows_of(comparison)),
    ]
