"""A comparison in words and in the cells of a table."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prequential.report.entries import Entry, Setting

if TYPE_CHECKING:
    from prequential.report.compare import Comparison

NOTHING = "–"
LARGEST_PLAIN_ODDS = math.log(9999.5)


def number(value: float | None, form: str = ",.1f") -> str:
    """A number as text.

    Example:
        >>> number(1229.68), number(None), number(math.inf), number(-0.04)
        ('1,229.7', '–', '∞', '0.0')
    """
    if value is None or math.isnan(value):
        return NOTHING
    return _signed(format(value, form)) if math.isfinite(value) else "∞" if value > 0 else "−∞"


def percentage(share: float | None, digits: int = 0) -> str:
    """A share as text, in per cent.

    Example:
        >>> percentage(-0.21), percentage(-0.001), percentage(0.805, 1)
        ('−21%', '0%', '80.5%')
    """
    if share is None or not math.isfinite(share):
        return NOTHING
    return f"{_signed(f'{100 * share:.{digits}f}')}%"


def _signed(text: str) -> str:
    """A number that is written already, with a true minus; nothing that was rounded to 0 keeps a sign."""
    is_nothing = text.startswith("-") and not text.strip("-0.,")
    return text[1:] if is_nothing else text.replace("-", "−")


def odds(log_odds: float) -> str:
    """Odds as text, as a power of e once they are large.

    Example:
        >>> odds(0.0), odds(2.5), odds(300.0), odds(20000.4), odds(math.inf)
        ('1 : 1', '12 : 1', 'e^300 : 1', 'e^20,000 : 1', '∞ : 1')
    """
    if math.isnan(log_odds):
        return NOTHING
    if log_odds > LARGEST_PLAIN_ODDS:
        return f"{'e^' if math.isfinite(log_odds) else ''}{number(log_odds, ',.1f' if log_odds < 100 else ',.0f')} : 1"
    value = math.exp(log_odds)
    return f"{value:.1f} : 1".replace(".0 ", " ") if value < 10 else f"{value:,.0f} : 1"


def probability(log_probability: float) -> str:
    """A probability as text, from its logarithm; never a rounded 0 or 1.

    Example:
        >>> probability(math.log(0.5)), probability(-300.0), probability(-1e-9), probability(-math.inf)
        ('50.0%', 'e^−300', '>99.9%', '0')
    """
    if math.isnan(log_probability):
        return NOTHING
    if math.isinf(log_probability):
        return "0"
    if log_probability < math.log(0.0005):
        return f"e^−{number(-log_probability, '.1f' if log_probability > -100 else ',.0f')}"
    share = 100 * math.exp(log_probability)
    return ">99.9%" if share >= 99.95 and log_probability else f"{share:.1f}%"


def more_than_best(nats: float, comparison: "Comparison") -> float | None:
    """Nats that a simple code needs more than the best entry; None where no entry has a finite code."""
    return nats - comparison.best.nats if math.isfinite(comparison.best.nats) else None


@dataclass(frozen=True)
class Column:
    """A column of the table. A narrow terminal shows one band of columns at a time."""

    head: str
    band: int
    of_entry: Callable[[Entry], str]
    of_uncoded: Callable[[Setting], str] = lambda setting: ""
    """The cell of a setting that has no codelength."""
    of_code: Callable[[float, "Comparison"], str] = lambda nats, comparison: ""
    """The cell of a simple code of so many nats."""


def _of_any(head: str, band: int, cell: Callable[[Setting], str]) -> Column:
    return Column(head, band, cell, cell)


def _saved(code: str) -> Column:
    return Column(f"saved on\n{code}", 1, lambda entry: percentage(entry.savings[code], 1))


COLUMNS = [
    _of_any("seeds", 0, lambda setting: str(len(setting.runs))),
    Column("nats", 0, lambda entry: number(entry.nats), of_code=lambda nats, comparison: number(nats)),
    Column("±", 0, lambda entry: number(entry.standard_error)),
    Column(
        "bits per\nlabel",
        0,
        lambda entry: number(entry.bits_per_label, ".3f"),
        of_code=lambda nats, comparison: number(nats / math.log(2) / comparison.length, ".3f"),
    ),
    Column(
        "more than\nthe best",
        0,
        lambda entry: number(entry.difference),
        of_code=lambda nats, comparison: number(more_than_best(nats, comparison)),
    ),
    Column("odds of\nthe best", 0, lambda entry: odds(entry.log_odds).removesuffix(" : 1")),
    Column("posterior", 0, lambda entry: probability(entry.log_posterior)),
    Column("paired\ntest: p", 1, lambda entry: NOTHING if entry.p_value is None else p_text(entry.p_value)),
    Column("best leads\nfrom", 1, lambda entry: number(entry.leads_from, ",d")),
    Column("early\nshare", 1, lambda entry: percentage(entry.early_share)),
    _saved("uniform"),
    _saved("frequencies"),
    _saved("previous"),
    Column("errors", 2, lambda entry: number(entry.errors, ",.1f" if len(entry.runs) > 1 else ",.0f")),
    _of_any("held-out\nloss", 2, lambda setting: number(setting.heldout_loss, ".4f")),
    _of_any("held-out\nerror", 2, lambda setting: percentage(setting.heldout_error, 2)),
    _of_any("FLOPs", 2, lambda setting: number(setting.flops, ".3g")),
    _of_any("seconds", 2, lambda setting: number(setting.seconds)),
]

BESIDE_OTHERS = ("odds of\nthe best", "posterior")


def p_text(p_value: float) -> str:
    """The result of a test as text.

    Example:
        >>> p_text(0.0314), p_text(1e-9), p_text(0.0)
        ('0.031', '1e-09', '0')
    """
    return f"{p_value:.3f}" if p_value >= 0.001 else f"{p_value:.0e}" if p_value else "0"


def columns_of(comparison: "Comparison") -> list[Column]:
    """The columns that say something: seeds where they are repeated, odds where there are two to choose from."""

    def says(column: Column) -> bool:
        if column.head in BESIDE_OTHERS and len(comparison.entries) == 1:
            return False
        cells = {column.of_entry(entry) for entry in comparison.entries}
        cells |= {column.of_uncoded(setting) for setting in comparison.uncoded}
        return bool(cells - {NOTHING, ""}) and not (column.head == "seeds" and cells == {"1"})

    return [column for column in COLUMNS if says(column)]


def heads_of(comparison: "Comparison") -> list[str]:
    """The heads of the table, the name of the run first."""
    return ["run", *(column.head.replace("\n", " ") for column in columns_of(comparison))]


def rows_of(comparison: "Comparison") -> list[list[str]]:
    """The row of each entry."""
    columns = columns_of(comparison)
    return [[entry.name, *(column.of_entry(entry) for column in columns)] for entry in comparison.entries]


def code_rows_of(comparison: "Comparison") -> list[tuple[float, list[str]]]:
    """The nats and the row of each simple code, the shortest first."""
    columns = columns_of(comparison)
    return [
        (nats, [f"({code})", *(column.of_code(nats, comparison) for column in columns)])
        for code, nats in sorted(comparison.simple.items(), key=lambda item: item[1])
    ]


def uncoded_rows_of(comparison: "Comparison") -> list[list[str]]:
    """The row of each setting without a codelength."""
    columns = columns_of(comparison)
    return [[setting.name, *(column.of_uncoded(setting) for column in columns)] for setting in comparison.uncoded]


def html_rows_of(comparison: "Comparison") -> list[list[str]]:
    """All rows: entries, simple codes, settings without a codelength."""
    return [*rows_of(comparison), *(row for _, row in code_rows_of(comparison)), *uncoded_rows_of(comparison)]


def title_of(comparison: "Comparison") -> str:
    """What is compared."""
    settings = [*comparison.entries, *comparison.uncoded]
    num_runs = sum(len(setting.runs) for setting in settings)
    part = f"{comparison.length:,} of " if comparison.length < comparison.sequence_length else ""
    plural = "s" * (comparison.sequence_length != 1)
    labels = f"{part}{comparison.sequence_length:,} label{plural}, {comparison.num_classes:,} classes"
    runs = f"{num_runs:,} run{'s' * (num_runs != 1)}"
    several = f" of {len(settings):,} settings" if num_runs != len(settings) else ""
    return f"{comparison.data} · {labels} · {runs}{several}"
