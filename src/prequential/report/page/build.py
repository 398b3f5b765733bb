"""A comparison as the text of a page."""

import math
import sys
from collections.abc import Sequence
from importlib.resources import files

from prequential.report.compare import Comparison
from prequential.report.compare_text import number, odds
from prequential.report.names import printable
from prequential.report.page.card import data_card, environments
from prequential.report.page.comparison import comparison_table
from prequential.report.page.curves import data_of, thinned
from prequential.report.page.markup import Markup, fill, join, tag, with_powers
from prequential.report.page.settings import settings_table
from prequential.report.thin import Thinned

SCRIPTS = ("curves.js", "scale.js", "chart.js", "cursor.js", "plots.js", "page.js", "tables.js")


def page_of(comparison: Comparison, notes: Sequence[str] = ()) -> str:
    """The whole page as HTML; the notes stand behind its summary. The same comparison always gives the same text."""
    settings = [*comparison.entries, *comparison.uncoded]
    records = [record for setting in settings for record in setting.records]
    curves = thinned(comparison)
    sentences = [*comparison.sentences(), *(f"{note[:1].upper()}{note[1:]}." for note in notes)]
    heading = f"{comparison.data}: {_counted(len(settings), 'setting')}, {_counted(len(records), 'run')}"
    about = f"{_counted(comparison.length, 'label')} of {comparison.num_classes:,} classes, coded one after the other"
    parts: dict[str, str | Markup] = {
        "title": f"{comparison.data}: prequential report",
        "heading": heading if len(settings) < len(records) else f"{comparison.data}: {_counted(len(records), 'run')}",
        "about": f"{about} · best: {comparison.best.name}",
        "headline": headline(comparison),
        "summary": tag("ul", *(tag("li", with_powers(sentence)) for sentence in sentences), class_="sentences"),
        "comparison": comparison_table(comparison),
        "precision": _precision(curves),
        "settings": settings_table(settings),
        "data": data_card(comparison),
        "environment": environments(records),
        "runs": runs_table(comparison),
        "curves": data_of(comparison, curves),
        "version": sys.modules["prequential"].__version__,  # an import would be an arrow upwards
        "css": Markup(_file("page.css")),
        "script": Markup("\n".join(map(_file, SCRIPTS))),
    }
    return fill(_file("page.html"), {name: join([part]) for name, part in parts.items()})


def headline(comparison: Comparison) -> Markup:
    """The few numbers that one looks for first."""
    best, others = comparison.best, comparison.entries[1:]
    told = [("shortest code", best.name, ""), ("codelength", number(best.nats), "nats")]
    told.append(("per label", number(best.bits_per_label, ".3f"), "bits"))
    if others and math.isfinite(others[0].difference):
        told.append(("ahead of the next", number(others[0].difference), "nats"))
        told.append(("odds against it", odds(others[0].log_odds), ""))
    cells = [
        tag("div", tag("dt", name), tag("dd", with_powers(value), " ", tag("small", unit)))
        for name, value, unit in told
    ]
    return tag("dl", *cells, class_="headline")


def runs_table(comparison: Comparison) -> Markup:
    """Every run: which setting and seed it is, how it ended, where it lies."""
    rows = []
    for setting in [*comparison.entries, *comparison.uncoded]:
        for name, record in zip(setting.runs, setting.records, strict=True):
            cells = [
                setting.name,
                str(record.seeds["seed"]),
                number(record.codelength),
                number(record.errors, ",d"),
                record.status,
                "" if record.path is None else printable(str(record.path)),
            ]
            rows.append(tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells)))
    heads = ("run", "setting", "seed", "nats", "errors", "status", "directory")
    head = tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads)))
    table = tag("table", head, tag("tbody", *rows), class_="runs")
    box = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Runs")
    return tag("details", tag("summary", f"{_counted(len(rows), 'run')}, with seed, status and directory"), box)


def _precision(curves: Thinned) -> str:
    kept = len(curves.kept) - 1
    if kept == curves.kept[-1]:
        return "Every label is drawn."
    return (
        f"Codelengths are kept after {kept:,} numbers of labels, the same for all runs: there every regret is exact. "
        f"Between them no codelength is more than {curves.error:,.2g} nats off the line; "
        "bends and jumps larger than that are kept."
    )


def _counted(amount: int, what: str) -> str:
    return f"{amount:,} {what}{'s' * (amount != 1)}"


def _file(name: str) -> str:
    return files("prequential.report.page").joinpath("files", name).read_text(encoding="utf-8")
