"""The columns of a comparison, for terminals, notebooks, pages, CSV and JSON; and what stands in them."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prequential.conditioning import INPUTS_SO_FAR
from prequential.measure.simple import SIMPLE_CODES
from prequential.report.entries import Compared, Entry
from prequential.report.table import Column, columns_that_say
from prequential.report.text import counted, flops_text, number, odds, p_text, percentage, probability
from prequential.runs.record import finite_or_none

if TYPE_CHECKING:
    from prequential.report.comparison import Comparison


@dataclass(frozen=True)
class CodeRow:
    """A simple code among the entries."""

    name: str
    title: str
    nats: float
    bits_per_label: float
    difference: float
    """Nats that it needs more than the best entry; no number (nan) where no entry has a finite code."""
    runs: tuple[str, ...] = ()
    nothing: str = ""
    """What stands in a cell of which nothing is known."""


Row = Compared | CodeRow


def _has(attribute: str) -> Any:
    """What a row has by that name; None where it is of a kind that has no such thing."""
    return lambda row: getattr(row, attribute, None)


def _saved(code: str, means: str) -> Column[Row]:
    return Column(
        f"saved on\n{code}", f"saved_{code}", lambda row: row.savings[code] if isinstance(row, Entry) else None,
        lambda share: percentage(share, 1), means, 1,
    )  # fmt: skip


COLUMNS: list[Column[Any]] = [
    Column("run", "name", _has("name"), str, "a run, or several that differ in nothing but their seed", is_left=True),
    Column("", "model", lambda row: row.first.model["name"]),
    Column("", "method", lambda row: row.first.method["name"]),
    Column("seeds", "num_seeds", lambda row: len(row.runs) or None, "{:,}".format,
           "runs that differ in nothing but their seed; figures are their means"),
    Column("", "runs", lambda row: ", ".join(row.runs)),
    Column("given", "conditioned_on", lambda row: row.first.conditioned_on if isinstance(row, Compared) else None, str,
           "what a prediction may look at besides earlier labels", is_left=True),
    Column("nats", "codelength_nats", _has("nats"), number,
           "codelength: the sum of −ln p over all labels, mean of the seeds"),
    Column("±", "standard_error_nats", _has("standard_error"), number, "standard error of that mean"),
    Column("bits per\nlabel", "bits_per_label", _has("bits_per_label"), lambda bits: number(bits, ".3f"),
           "the same in bits, per label"),
    Column("more than\nthe best", "difference_nats", _has("difference"), number,
           "nats that it needs more than the best"),
    Column("odds of\nthe best", "log_odds", _has("log_odds"), lambda nats: odds(nats).removesuffix(" : 1"),
           "how much more probable the best makes these labels"),
    Column("posterior", "log_posterior", _has("log_posterior"), probability,
           "its probability, if all were equally probable before"),
    Column("", "posterior", lambda row: math.exp(row.log_posterior) if isinstance(row, Entry) else None),
    Column("paired\ntest: p", "p_value", _has("p_value"), p_text,
           "paired t-test against the best over shared seeds", 1),
    Column("best leads\nfrom", "leads_from", _has("leads_from"), "{:,d}".format,
           "the position from which the best leads it for good; first row: the runner-up", 1),
    Column("early\nshare", "early_share", _has("early_share"), percentage,
           "the part of that lead earned in the first 10% of the data; more than 100% where some was lost later", 1),
    _saved("uniform", "saved against equal probabilities"),
    _saved("frequencies", "saved against the label frequencies so far"),
    _saved("previous", "saved against looking at the previous label"),
    Column("errors", "errors", _has("errors"), lambda errors: f"{errors:,.1f}".removesuffix(".0"),
           "labels that were not the most probable class", 2),
    Column("held-out\nloss", "heldout_loss", _has("heldout_loss"), lambda loss: number(loss, ".4f"),
           "nats per label on held-out data", 2),
    Column("held-out\nerror", "heldout_error", _has("heldout_error"), lambda share: percentage(share, 2),
           "wrong on held-out data", 2),
    Column("FLOPs", "flops", _has("flops"), flops_text, "floating-point operations", 2),
    Column("seconds", "seconds", _has("seconds"), number, "time that the run took", 2),
]  # fmt: skip
BESIDE_OTHERS = ("log_odds", "log_posterior")
"""What only says something where there are two to choose from."""


def columns_of(comparison: "Comparison") -> list[Column[Any]]:
    """The columns to show: without those that say nothing, and without seeds where there is one each."""
    rows: list[Compared] = [*comparison.entries, *comparison.uncoded]
    hidden = {"num_seeds"} if all(len(row.runs) == 1 for row in rows) else set()
    hidden |= {"conditioned_on"} if all(row.first.conditioned_on == INPUTS_SO_FAR for row in rows) else set()
    hidden |= set(BESIDE_OTHERS) if len(comparison.entries) == 1 else set()
    return columns_that_say([column for column in COLUMNS if column.head and column.key not in hidden], rows)


def code_rows_of(comparison: "Comparison") -> list[CodeRow]:
    """The simple codes, the shortest first."""
    best, bits = comparison.best.nats, math.log(2) * comparison.length
    behind = best if math.isfinite(best) else math.nan
    return [
        CodeRow(f"({code})", SIMPLE_CODES[code].title, nats, nats / bits, nats - behind)
        for code, nats in sorted(comparison.simple.items(), key=lambda item: item[1])
    ]


def ranked_rows_of(comparison: "Comparison", top: int | None = None) -> list[Row]:
    """The best rows in the order of their codelengths, simple codes among them; those without one below."""
    coded: list[Entry | CodeRow] = [*comparison.entries[:top], *code_rows_of(comparison)]
    return [*sorted(coded, key=lambda row: row.nats), *comparison.uncoded]


def title_of(comparison: "Comparison") -> str:
    """What is compared."""
    groups = [*comparison.entries, *comparison.uncoded]
    num_runs = sum(len(group.runs) for group in groups)
    part = f"{comparison.length:,} of " if comparison.length < comparison.sequence_length else ""
    labels = f"{part}{counted(comparison.sequence_length, 'label')}, {comparison.num_classes:,} classes"
    settings = f" of {counted(len(groups), 'setting')}" if len(groups) < num_runs else ""
    return f"{comparison.data} · {labels} · {counted(num_runs, 'run')}{settings}"


def described(group: Compared, row: dict[str, Any]) -> dict[str, Any]:
    """A row of plain values as JSON can hold it, with every run; `diverged` says where infinity is null."""
    runs = [
        {
            "name": run.name,
            "seed": run.record.seeds["seed"],
            "codelength_nats": finite_or_none(run.record.codelength),
            "record": None if run.record.path is None else str(run.record.path),
        }
        for run in group.members
    ]
    plain = {name: finite_or_none(value) if isinstance(value, float) else value for name, value in row.items()}
    return plain | {"runs": runs, "diverged": isinstance(group, Entry) and math.isinf(group.nats)}
