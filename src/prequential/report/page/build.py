"""A comparison as the text of a page. The markup is in the templates beside the page's scripts and its style."""

import base64
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape
from numpy.typing import ArrayLike

from prequential.measure.simple import SIMPLE_CODES
from prequential.report.columns import CodeRow, Row, code_rows_of, columns_of, title_of
from prequential.report.comparison import Comparison
from prequential.report.labels import Examples, Expenses
from prequential.report.page.cost import cost_of
from prequential.report.page.experts import mixed_runs
from prequential.report.page.facts import (
    class_bars,
    data_card,
    environments_beside,
    mattered,
    setting_columns,
    settings_beside,
    swept,
)
from prequential.report.picture import COLOURS, DASHES
from prequential.report.reduction import Reduced, reduced, totals_after
from prequential.report.table import Column
from prequential.report.text import NOTHING, counted, listed, number, odds, sentence
from prequential.runs.record import Record
from prequential.terminal import printable
from prequential.version import VERSION

SCRIPTS = ("curves.js", "scale.js", "chart.js", "cursor.js", "plots.js", "page.js", "tables.js")
MOST_COLUMNS = 8
"""Settings or environments that fit beside each other; more become rows."""
MOST_RUNS = 8
"""Names of runs that pointing at a row tells."""
MOST_EXPENSIVE = 20
"""Labels that are shown one by one."""
MOST_POSITIONS, FEWEST_POSITIONS = 4000, 800
NUMBERS_IN_PAGE = 600_000
"""Codelengths that a page holds, as far as each run keeps enough: eleven bytes each."""
LINE_WIDTH = 2
"""Pixels of a line; dashes are told in line widths."""
RUN_COLUMNS: list[Column[Any]] = [
    Column("run", "", lambda each: each[1].name),
    Column("setting", "", lambda each: each[0].name),
    Column("seed", "", lambda each: each[1].record.seeds["seed"]),
    Column("nats", "", lambda each: each[1].record.codelength, number),
    Column("errors", "", lambda each: each[1].record.errors, "{:,d}".format),
    Column("status", "", lambda each: each[1].record.status),
    Column("directory", "", lambda each: each[1].record.path or ""),
]
"""Every run: which setting and seed it is, how it ended, where it lies."""


def page_of(
    comparison: Comparison,
    notes: Sequence[str] = (),
    examples: Examples | None = None,
    whole: Callable[[str], Record] | None = None,
) -> str:
    """The whole page as HTML. The same comparison always gives the same text.

    Args:
        notes: stand behind the summary.
        examples: shows what the labels are about.
        whole: gives the whole record of a run by its name. Default: what the comparison has of it.
    """
    runs = {run.name: run for entry in comparison.entries for run in entry.members}
    load = whole or (lambda name: runs[name].load())
    templates = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_shown,
    )  # fmt: skip
    templates.filters["powers"] = with_powers
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    groups = [*comparison.entries, *comparison.uncoded]
    records = [record for group in groups for record in group.records]
    longest = max((r for entry in comparison.entries for r in entry.records), key=lambda r: len(r.nats))
    name_column, *figures = columns_of(comparison)
    columns, curves = [name_column, *setting_columns(comparison), *figures], curves_of(comparison)
    rows: list[Row] = [*comparison.entries, *code_rows_of(comparison), *comparison.uncoded]
    return templates.get_template("page.html").render(
        comparison=comparison,
        version=VERSION,
        heading=title_of(comparison),
        about=f"labels coded one after the other · best: {comparison.best.name}",
        headline=headline(comparison),
        sentences=[*comparison.sentences(), *map(sentence, notes)],
        columns=columns,
        rows=[_row(row, columns) for row in rows],
        precision=_precision(curves),
        settings=settings_beside(groups),
        environments=environments_beside(records),
        most_columns=MOST_COLUMNS,
        missing=NOTHING,
        cost=cost_of(comparison),
        mattered=mattered(comparison),
        mixed=mixed_runs(comparison, load),
        sentence=sentence,
        card=data_card(comparison, longest),
        classes=class_bars(longest),
        expenses=Expenses.of(load(comparison.best.runs[0]), MOST_EXPENSIVE, examples),
        expensive_run=comparison.best.runs[0],
        sort_key=_sort_key,
        num_runs=counted(len(records), "run"),
        run_columns=RUN_COLUMNS,
        runs=[(group, run) for group in groups for run in group.members],
        curves=data_of(comparison, curves),
        scripts=SCRIPTS,
        file=lambda name: Markup(_file(name)),
    )


def headline(comparison: Comparison) -> list[tuple[str, str, str]]:
    """The few numbers that one looks for first: what they are, the number, its unit."""
    best, others = comparison.best, comparison.entries[1:]
    told = [("shortest code", best.name, ""), ("codelength", number(best.nats), "nats")]
    told.append(("per label", number(best.bits_per_label, ".3f"), "bits"))
    if swept(comparison) and math.isfinite(best.nats):
        told.append(("with the price of choosing", number(best.nats + comparison.candidates.nats), "nats"))
    if others and math.isfinite(others[0].difference):
        told.append(("ahead of the next", number(others[0].difference), "nats"))
        told.append(("odds against it", odds(others[0].log_odds), ""))
    return told


def with_powers(text: str) -> Markup:
    """Text whose powers of e are written as such.

    Example:
        >>> print(with_powers("a < b, odds e^1,204 : 1, e^−3.5"))
        a &lt; b, odds e<sup>1,204</sup> : 1, e<sup>−3.5</sup>
    """
    return Markup(re.sub(r"\be\^(−?\d[\d,.]*\d|−?\d)", r"e<sup>\1</sup>", str(escape(printable(text)))))


def _shown(value: Any) -> Any:
    """What a template is given, as it stands on the page, where jinja then escapes it; markup is our own."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def curves_of(comparison: Comparison) -> Reduced:
    """The codelengths of all runs, entry by entry, and behind them those of the simple codes."""
    records = [record for entry in comparison.entries for record in entry.records]
    most = min(max(NUMBERS_IN_PAGE // len(records), FEWEST_POSITIONS), MOST_POSITIONS)
    curves = reduced([record.nats for record in records], most)
    longest = max(records, key=lambda record: len(record.nats))
    simple = [
        totals_after(code.nats(longest.labels, longest.num_classes), curves.kept) for code in SIMPLE_CODES.values()
    ]
    return replace(curves, totals=curves.totals + simple)


def data_of(comparison: Comparison, curves: Reduced) -> dict[str, Any]:
    """The data of the charts, as JSON can hold it."""
    stops = np.cumsum([len(entry.runs) for entry in comparison.entries]).tolist()
    entries = [
        {"name": entry.name, "runs": list(range(stop - len(entry.runs), stop)), "names": entry.runs}
        | {"finite": math.isfinite(entry.nats)}
        for entry, stop in zip(comparison.entries, stops, strict=True)
    ]
    return {
        "kept": packed(curves.kept),
        "curves": [packed(totals) for totals in curves.totals],
        "entries": entries,
        "codes": [
            {"name": SIMPLE_CODES[name].title, "curve": number}
            for number, name in enumerate(comparison.simple, start=stops[-1])
        ],
        "linear": comparison.best.records[0].seeds["order_seed"] is None,  # a stream: late labels count as much
        "colours": COLOURS,
        "dashes": [[LINE_WIDTH * size for size in each] for each in DASHES],
    }


def packed(values: ArrayLike) -> str:
    """Numbers as base64 of 64-bit floats, lowest byte first.

    Example:
        >>> packed([0.0, 1.0])
        'AAAAAAAAAAAAAAAAAADwPw=='
    """
    return base64.b64encode(np.asarray(values, "<f8").tobytes()).decode()


def _row(row: Row, columns: Sequence[Column[Any]]) -> dict[str, Any]:
    """A row of the comparison: its name, its runs, and for each cell the value to sort by and the text."""
    return {
        "name": row.title if isinstance(row, CodeRow) else row.name,
        "is_code": isinstance(row, CodeRow),
        "runs": listed(row.runs, MOST_RUNS),
        "cells": [(_sort_key(column.value(row)), column.cell(row)) for column in columns[1:]],
    }


def _sort_key(value: Any) -> str:
    if not isinstance(value, int | float):
        return "" if value is None else str(value)
    return "" if math.isnan(value) else json.dumps(value)


def _precision(curves: Reduced) -> str:
    kept = len(curves.kept) - 1
    if kept == curves.kept[-1]:
        return "Every label is drawn."
    return (
        f"Codelengths are kept after {kept:,} numbers of labels, the same for all runs: there every regret is exact. "
        f"Between them no codelength is more than {curves.error:,.2g} nats off the line; "
        "bends and jumps larger than that are kept."
    )


def _file(name: str) -> str:
    return files("prequential.report.page").joinpath("files", name).read_text(encoding="utf-8")
