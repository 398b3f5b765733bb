"""The data card and the environments of a page."""

from collections.abc import Sequence

import numpy as np

from prequential.report.compare import Comparison
from prequential.report.compare_text import number
from prequential.report.page.curves import CODE_NAMES
from prequential.report.page.markup import Markup, join, tag
from prequential.report.page.settings import MOST_COLUMNS, as_text, beside, facts_table, flat
from prequential.runs.record import Record

MOST_BARS = 20
"""Classes that get a bar of their own."""


def data_card(comparison: Comparison) -> Markup:
    """What the labels and inputs are, how often each class occurs, and what codes without a model need."""
    record = max((r for entry in comparison.entries for r in entry.records), key=lambda r: len(r.nats))
    data = record.data
    order, heldout = record.seeds["order_seed"], data.get("heldout")
    facts = {
        "name": str(data["name"]),
        "labels in the sequence": f"{record.length:,}",
        "classes": f"{record.num_classes:,}",
        "shape of an input": as_text(data.get("input_shape")),
        "order": "as given" if order is None else f"shuffled, order seed {order}",
        "held-out data": "none" if heldout is None else "yes, never charged",
        "predictions look at": "; ".join(sorted({r.conditioned_on for e in comparison.entries for r in e.records})),
    }
    if comparison.length < record.length:
        facts["labels compared"] = f"the first {comparison.length:,}"
    facts |= {f"{CODE_NAMES[name]}, nats": number(nats) for name, nats in comparison.simple.items()}
    known = ("name", "input_shape", "heldout")
    facts |= flat({name: value for name, value in data.items() if name not in known})
    facts |= {f"source · {name}": text for name, text in flat(record.source or {}).items() if name != "name"}
    return tag("div", facts_table(facts), class_bars(record), class_="beside")


def class_bars(record: Record) -> Markup:
    """How often each class occurs, as bars; the most frequent where there are many."""
    counts = np.bincount(record.labels, minlength=record.num_classes)
    total = max(int(counts.sum()), 1)
    shown = np.arange(len(counts)) if len(counts) <= MOST_BARS else np.argsort(-counts, kind="stable")[:MOST_BARS]
    largest = max(int(counts.max()), 1)
    rows = []
    for label in shown:
        count = int(counts[label])
        bar = tag("span", class_="bar", style=f"width:{100 * count / largest:.1f}%")
        rows.append(
            tag("tr", tag("th", str(label), scope="row"), tag("td", bar, class_="bars"), tag("td", f"{count:,}"),
                tag("td", f"{100 * count / total:.1f}%"))
        )  # fmt: skip
    which = "Labels of each class" if len(shown) == len(counts) else f"The {MOST_BARS} most frequent classes"
    return tag("table", tag("caption", which), tag("tbody", *rows), class_="classes")


def environments(records: Sequence[Record]) -> Markup:
    """Where the runs were made: each environment once, with the number of its runs, differences marked."""
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for record in records:
        facts = tuple(flat(record.environment).items())
        found[facts] = found.get(facts, 0) + 1
    each = [dict(facts) for facts in found]
    names = list(dict.fromkeys(name for facts in each for name in facts))
    differing = [name for name in names if len({facts.get(name) for facts in each}) > 1]
    runs = [f"{times:,} run{'s' * (times > 1)}" for times in found.values()]
    if len(each) <= MOST_COLUMNS:
        return beside("environment", names, differing, runs, each)
    values = {name: sorted({facts.get(name, "–") for facts in each}) for name in names}
    told = {name: ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "") for name, texts in values.items()}
    return join([tag("p", f"{len(each):,} different environments; what occurs in them:"), facts_table(told)])
