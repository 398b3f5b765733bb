"""The table of a comparison, with values to sort by behind the text of its cells."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from prequential.report.compare import Comparison
from prequential.report.compare_text import NOTHING, more_than_best, number, odds, p_text, percentage, probability
from prequential.report.entries import Entry, Setting
from prequential.report.page.curves import CODE_NAMES
from prequential.report.page.markup import Markup, join, tag, with_powers


@dataclass(frozen=True)
class Column:
    """A column: its head, what the head means, the value to sort by, and the text of the value."""

    head: str
    means: str
    value: Callable[[Entry], float | None]
    text: Callable[[float], str]
    of_setting: Callable[[Setting], float | None] = lambda setting: None
    """The value of a setting without a codelength."""
    of_code: Callable[[float, Comparison], float | None] = lambda nats, comparison: None
    """The value of a simple code of so many nats."""


def _of_both(head: str, means: str, value: Callable[[Setting], float | None], text: Callable[[float], str]) -> Column:
    return Column(head, means, value, text, value)


def _saving(code: str) -> Callable[[Entry], float | None]:
    return lambda entry: entry.savings[code] if math.isfinite(entry.savings[code]) else None


def _flops(value: float) -> str:
    """FLOPs as people read them.

    Example:
        >>> _flops(24888606720.0), _flops(999_700.0), _flops(12.0)
        ('24.9 G', '1 M', '12')
    """
    for power, unit in ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 0.9995 * 10**power:
            return f"{value / 10**power:,.3g} {unit}"
    return f"{value:,.0f}"


COLUMNS = [
    _of_both("seeds", "runs that differ in nothing but their seed; figures are their means",
             lambda setting: len(setting.runs), "{:,.0f}".format),
    Column("nats", "codelength: the sum of −ln p over all labels, mean of the seeds", lambda e: e.nats, number,
           of_code=lambda nats, comparison: nats),
    Column("±", "standard error of that mean", lambda e: e.standard_error, number),
    Column("bits per label", "the same in bits, per label", lambda e: e.bits_per_label, lambda v: number(v, ".3f"),
           of_code=lambda nats, comparison: nats / math.log(2) / comparison.length),
    Column("more than the best", "nats that it needs more than the best", lambda e: e.difference or None, number,
           of_code=more_than_best),
    Column("odds of the best", "how much more probable the best makes these labels", lambda e: e.log_odds or None,
           odds),
    Column("posterior", "its probability, if all were equally probable before", lambda e: e.log_posterior or None,
           probability),
    Column("paired test: p", "paired t-test against the best over shared seeds", lambda e: e.p_value, p_text),
    Column("best leads from", "the position from which the best leads it for good; first row: the runner-up",
           lambda e: e.leads_from, "{:,.0f}".format),
    Column("early share", "the part of that lead earned in the first 10% of the data",
           lambda e: e.early_share, percentage),
    Column("saved on uniform", "saved against equal probabilities", _saving("uniform"), lambda v: percentage(v, 1)),
    Column("saved on frequencies", "saved against the label frequencies so far", _saving("frequencies"),
           lambda v: percentage(v, 1)),
    Column("saved on previous", "saved against looking at the previous label", _saving("previous"),
           lambda v: percentage(v, 1)),
    Column("errors", "labels that were not the most probable class", lambda e: e.errors,
           lambda v: f"{v:,.1f}".removesuffix(".0")),
    _of_both("held-out loss", "nats per label on held-out data", lambda s: s.heldout_loss, lambda v: number(v, ".4f")),
    _of_both("held-out error", "wrong on held-out data", lambda s: s.heldout_error, lambda v: percentage(v, 2)),
    _of_both("FLOPs", "floating-point operations", lambda s: s.flops, _flops),
    _of_both("seconds", "time that the run took", lambda s: s.seconds, number),
]  # fmt: skip


def comparison_table(comparison: Comparison) -> Markup:
    """All settings, best first; columns that would be empty are left out."""
    entries, uncoded = comparison.entries, comparison.uncoded
    is_repeated = any(len(setting.runs) > 1 for setting in [*entries, *uncoded])
    columns = [
        column
        for column in COLUMNS[0 if is_repeated else 1 :]
        if any(_is_known(column.value(entry)) for entry in entries)
        or any(_is_known(column.of_setting(setting)) for setting in uncoded)
    ]
    heads = [
        ("run", "a run, or several that differ in nothing but their seed"),
        *((column.head, column.means) for column in columns),
    ]
    rows = [_row(entry.name, entry.runs, [(c, c.value(entry)) for c in columns]) for entry in entries]
    rows += [
        _row(CODE_NAMES[name], [], [(c, c.of_code(nats, comparison)) for c in columns], is_code=True)
        for name, nats in sorted(comparison.simple.items(), key=lambda code: code[1])
    ]
    rows += [_row(setting.name, setting.runs, [(c, c.of_setting(setting)) for c in columns]) for setting in uncoded]
    caption = tag("caption", "Shortest code first; a click on a head sorts.")
    head = tag("thead", tag("tr", *(sort_head(head, means) for head, means in heads)))
    table = tag("table", caption, head, tag("tbody", *rows), class_="sortable wide", id="comparison-table")
    box = tag("div", table, class_="scroll tall", tabindex="0", role="region", aria_label="Comparison")
    told = tag("dl", *(join([tag("dt", head), tag("dd", means)]) for head, means in heads), class_="meanings")
    return join([box, tag("details", tag("summary", "What the columns mean"), told, class_="screen")])


def sort_head(head: str, means: str | None = None) -> Markup:
    """A head that sorts its table."""
    return tag("th", tag("button", head, type="button", title=means), scope="col")


def _row(name: str, runs: list[str], cells: list[tuple[Column, float | None]], *, is_code: bool = False) -> Markup:
    told = ", ".join(runs[:8]) + (f" and {len(runs) - 8} more" if len(runs) > 8 else "")
    head = tag("th", name, scope="row", title=told or None)
    nothing = "" if is_code else NOTHING
    row = [_cell(column, value, nothing) for column, value in cells]
    return tag("tr", head, *row, class_="code" if is_code else None)


def _is_known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _cell(column: Column, value: float | None, nothing: str) -> Markup:
    if value is None or not _is_known(value):
        return tag("td", nothing, data_value="")
    text = column.text(value)
    key = ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else f"{value:.17g}"
    return tag("td", with_powers(text), data_value=key)
