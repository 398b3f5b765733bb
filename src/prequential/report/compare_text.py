"""A comparison in words and in the cells of a table."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prequential.report.entries import Entry, Setting

if TYPE_CHECKING:
    from prequential.report.compare import Comparison

NOTHING = "–"
LARGEST_PLAIN_ODDS = math.log(9999.5)
SIGNIFICANT = 0.05
CODE_NAMES = {"uniform": "uniform code", "frequencies": "label frequencies", "previous": "previous label"}


def number(value: float | None, form: str = ",.1f") -> str:
    """A number as text.

    Example:
        >>> number(1229.68), number(None), number(math.inf)
        ('1,229.7', '–', '∞')
    """
    if value is None:
        return NOTHING
    return format(value, form) if math.isfinite(value) else "∞" if value > 0 else "−∞"


def percentage(share: float | None, digits: int = 0) -> str:
    """A share as text, in per cent."""
    if share is None or not math.isfinite(share):
        return NOTHING
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def odds(log_odds: float) -> str:
    """Odds as text, as a power of e once they are large.

    Example:
        >>> odds(0.0), odds(2.5), odds(300.0), odds(20000.4), odds(math.inf)
        ('1 : 1', '12 : 1', 'e^300 : 1', 'e^20,000 : 1', '∞ : 1')
    """
    if log_odds > LARGEST_PLAIN_ODDS:
        return f"{'e^' if math.isfinite(log_odds) else ''}{number(log_odds, ',.1f' if log_odds < 100 else ',.0f')} : 1"
    value = math.exp(log_odds)
    return f"{value:.1f} : 1".replace(".0 ", " ") if value < 10 else f"{value:,.0f} : 1"


def probability(log_probability: float) -> str:
    """A probability as text, from its logarithm; never a rounded 0 or 1.

    Example:
        >>> probability(math.log(0.5)), probability(-300.0), probability(-1e-9), probability(-math.inf)
        ('50.0 %', 'e^−300', '>99.9 %', '0')
    """
    if math.isinf(log_probability):
        return "0"
    if log_probability < math.log(0.0005):
        return f"e^−{number(-log_probability, '.1f' if log_probability > -100 else ',.0f')}"
    share = 100 * math.exp(log_probability)
    return ">99.9 %" if share >= 99.95 and log_probability else f"{share:.1f} %"


@dataclass(frozen=True)
class Column:
    """A column of the table: head, cell, and the band it belongs to; a narrow terminal shows one band at a time."""

    head: str
    band: int
    cell: Callable[[Entry], str]
    of_setting: Callable[[Setting], str] = lambda setting: NOTHING
    """The cell of a setting that has no codelength."""


def _of_both(head: str, band: int, cell: Callable[[Setting], str]) -> Column:
    return Column(head, band, cell, cell)


def _other(entry: Entry, text: str) -> str:
    """What is said of all but the best."""
    return text if entry.difference or entry.p_value is not None else NOTHING


COLUMNS = [
    _of_both("seeds", 0, lambda setting: str(len(setting.runs))),
    Column("nats", 0, lambda entry: number(entry.nats)),
    Column("±", 0, lambda entry: number(entry.standard_error)),
    Column("bits per label", 0, lambda entry: number(entry.bits_per_label, ".3f")),
    Column("more than best", 0, lambda entry: _other(entry, number(entry.difference))),
    Column("odds of best", 0, lambda entry: _other(entry, odds(entry.log_odds))),
    Column("posterior", 0, lambda entry: probability(entry.log_posterior)),
    Column("p of pairs", 1, lambda entry: NOTHING if entry.p_value is None else p_text(entry.p_value)),
    Column("best leads from", 1, lambda entry: number(entry.leads_from, ",d")),
    Column("early share", 1, lambda entry: percentage(entry.early_share)),
    Column("saved: uniform", 1, lambda entry: percentage(entry.savings["uniform"], 1)),
    Column("saved: frequencies", 1, lambda entry: percentage(entry.savings["frequencies"], 1)),
    Column("saved: previous", 1, lambda entry: percentage(entry.savings["previous"], 1)),
    Column("errors", 2, lambda entry: number(entry.errors, ",.1f" if len(entry.runs) > 1 else ",.0f")),
    _of_both("held-out loss", 2, lambda setting: number(setting.heldout_loss, ".4f")),
    _of_both("held-out error", 2, lambda setting: percentage(setting.heldout_error, 2)),
    _of_both("FLOPs", 2, lambda setting: number(setting.flops, ".3g")),
    _of_both("seconds", 2, lambda setting: number(setting.seconds)),
]


def p_text(p_value: float) -> str:
    """The result of a test as text.

    Example:
        >>> p_text(0.0314), p_text(1e-9)
        ('0.031', '1e-09')
    """
    return f"{p_value:.3f}" if p_value >= 0.001 else f"{p_value:.0e}"


def columns_of(comparison: "Comparison") -> list[Column]:
    """The columns that say something of some run."""
    return [
        column
        for column in COLUMNS
        if any(column.cell(entry) != NOTHING for entry in comparison.entries)
        or any(column.of_setting(setting) != NOTHING for setting in comparison.uncoded)
    ]


def heads_of(comparison: "Comparison") -> list[str]:
    """The heads of the table, the name of the run first."""
    return ["run", *(column.head for column in columns_of(comparison))]


def rows_of(comparison: "Comparison") -> list[list[str]]:
    """The row of each entry."""
    columns = columns_of(comparison)
    return [[entry.name, *(column.cell(entry) for column in columns)] for entry in comparison.entries]


def sentences_of(comparison: "Comparison") -> list[str]:
    """What the comparison says, the main thing first."""
    entries = comparison.entries
    said = []
    if len(entries) > 1:
        said += [_of_pair(entries[0], entries[1]), _of_seeds(entries[0], entries[1])]
    said += [f"{entry.name} gave a label probability 0: its code is infinite." for entry in _diverged(entries)]
    said.append(_of_simple_codes(comparison))
    if len(entries) > 1:
        cost = f"ln {len(entries):,} = {math.log(len(entries)):.2f} nats"
        said.append(f"Choosing the best of {len(entries):,} settings afterwards costs {cost} more.")
    if comparison.uncoded:
        names = ", ".join(setting.name for setting in comparison.uncoded)
        said.append(f"{names}: no codelength, so held-out figures only.")
    if comparison.length < comparison.sequence_length:
        said.insert(0, f"Only the first {comparison.length:,} of {comparison.sequence_length:,} labels are compared.")
    return [*said, *(f"{note[:1].upper()}{note[1:]}." for note in comparison.notes)]


def _diverged(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if math.isinf(entry.nats)]


def _of_pair(best: Entry, second: Entry) -> str:
    if not second.difference:
        return f"{best.name} and {second.name} have codes of the same length."
    if math.isinf(second.difference):
        return f"{best.name} is the only one with a finite code."
    said = f"{best.name} needs {number(second.difference)} nats less than {second.name}, odds {odds(second.log_odds)}"
    if best.leads_from is None or best.early_share is None:
        return f"{said}."
    share = f"{percentage(best.early_share)} of its advantage was earned in the first 10 % of the data"
    if best.early_share < 0:
        share = "it was behind after the first 10 % of the data"
    return f"{said}; it leads from position {best.leads_from:,} on; {share}."


def _of_seeds(best: Entry, second: Entry) -> str:
    shared = len(set(best.seeds) & set(second.seeds))
    if second.p_value is None:
        if not math.isfinite(second.difference):
            return "An infinite code: no test."
        each = len(best.runs) == len(second.runs) == 1
        return "One seed each: no test." if each else f"{shared} shared seed{'s' * (shared != 1)}: no test."
    differ = "they differ" if second.p_value < SIGNIFICANT else "not enough to tell them apart"
    return f"Paired t-test over {shared} shared seeds: p = {p_text(second.p_value)}, {differ}."


def _of_simple_codes(comparison: "Comparison") -> str:
    name = min(comparison.simple, key=lambda name: comparison.simple[name])
    nats, number_of = comparison.simple[name], len(comparison.entries)
    beaten = sum(entry.nats >= nats for entry in comparison.entries)
    code = f"{CODE_NAMES[name]} ({number(nats)} nats)"
    if not beaten:
        return f"All beat the simple codes; the best of these is {code}."
    who = "every run" if beaten == number_of else f"{beaten:,} of {number_of:,}"
    return f"A code without any model beats {who}: {code}."
