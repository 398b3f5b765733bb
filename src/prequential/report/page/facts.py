"""What was decided about runs, about their data and their environments: names and texts, for tables to stand in."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from prequential.measure.importance import FEWEST_TRIALS, importance
from prequential.measure.simple import SIMPLE_CODES
from prequential.report.comparison import Comparison
from prequential.report.names import setting_text, sweep_of, value_of, varying
from prequential.report.seeds import SeedGroup, decided
from prequential.report.table import Column
from prequential.report.text import NOTHING, counted, listed, number, percentage
from prequential.runs.record import Record
from prequential.runs.studied import in_words
from prequential.terminal import printable

MOST_BARS = 20
"""Classes that get a bar of their own."""
MOST_VALUES = 6
"""Of a fact that differs between many environments: what is listed."""


@dataclass(frozen=True)
class Beside:
    """Facts of several things beside each other."""

    heads: list[str]
    facts: list[dict[str, str]]
    """For each head what is known, by name."""

    @cached_property
    def names(self) -> list[str]:
        """Every name, by part (model, method, …) as the first thing that has it tells them."""
        found = dict.fromkeys(name for facts in self.facts for name in facts)
        parts = list(dict.fromkeys(name.split(" · ")[0] for name in found))
        return sorted(found, key=lambda name: parts.index(name.split(" · ")[0]))

    @cached_property
    def differing(self) -> list[str]:
        """The names whose values differ."""
        return [name for name in self.names if len({facts.get(name) for facts in self.facts}) > 1]

    def same(self) -> dict[str, str]:
        """What is the same everywhere."""
        return {name: self.facts[0][name] for name in self.names if name not in self.differing}

    def occurring(self) -> dict[str, str]:
        """For each name the values that occur, a few of them."""
        values = {name: sorted({facts.get(name, NOTHING) for facts in self.facts}) for name in self.names}
        return {name: listed(texts, MOST_VALUES) for name, texts in values.items()}


def flat(facts: dict[str, Any], above: str = "") -> dict[str, str]:
    """Nested facts as one list of texts.

    Example:
        >>> flat({"age_law": {"name": "pareto", "scale": 180}, "augment": ["flip"], "calibrate": True})
        {'age law · name': 'pareto', 'age law · scale': '180', 'augment': 'flip', 'calibrate': 'yes'}
    """
    found: dict[str, str] = {}
    for key, value in facts.items():
        name = above + str(key).replace("_", " ")
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            value = {str(place): item for place, item in enumerate(value, 1)}
        found |= flat(value, f"{name} · ") if isinstance(value, dict) and value else {name: as_text(value)}
    return found


def as_text(value: Any) -> str:
    """A value of a setting as people write it.

    Example:
        >>> as_text(None), as_text(False), as_text([]), as_text(60000), as_text(0.003), as_text([1, 28, 28])
        ('–', 'no', 'none', '60,000', '0.003', '1 × 28 × 28')
    """
    if value is None or value == {}:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return (" × " if all(isinstance(item, int) for item in value) else ", ").join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def settings_beside(groups: Sequence[SeedGroup]) -> Beside:
    """Everything that was decided about each group but its seeds; also what its inputs are, where these differ."""
    told = [flat(decided(group.first)) for group in groups]
    if len({group.first.data.get("inputs") for group in groups}) > 1:
        names = ("name", "input_shape", "inputs")
        given = [{name: group.first.data.get(name) for name in names} for group in groups]
        told = [flat({"inputs": facts}) | each for facts, each in zip(given, told, strict=True)]
    return Beside([group.name for group in groups], told)


def swept(comparison: Comparison) -> dict[str, str]:
    """The settings that vary, and their short names, where all that is compared are trials of sweeps; else none."""
    records = [group.first for group in (*comparison.entries, *comparison.uncoded)]
    told = varying(records) if all(map(sweep_of, records)) else {}
    return {name: short for name, short in told.items() if name != "seed"}


def mattered(comparison: Comparison) -> tuple[str, list[tuple[str, str, str]]] | None:
    """What each setting that varies in a sweep explains of the order of its trials: short name, width of a bar, share;
    behind a sentence on it. None where it is no sweep."""
    told = swept(comparison)
    trials = [entry for entry in comparison.entries if math.isfinite(entry.nats)]
    if not told:
        return None
    settings = [{short: value_of(entry.first, name) for name, short in told.items()} for entry in trials]
    shares = importance(settings, [entry.nats for entry in trials])
    if shares is None:
        return f"Which settings mattered is told from {FEWEST_TRIALS} trials on; {len(trials)} ran to their end.", []
    about = "The share of the order of the trials that each setting explains by itself; they need not add up to 100%."
    return about, [(name, f"{share:.1%}", percentage(share)) for name, share in shares.items()]


def setting_columns(comparison: Comparison) -> list[Column[Any]]:
    """A column for each setting that varies, where all that is compared are trials of sweeps."""

    def column(name: str, short: str) -> Column[Any]:
        def value(row: Any) -> Any:
            return value_of(row.first, name) if isinstance(row, SeedGroup) else None

        return Column(short, "", value, setting_text, "a setting that varies among the trials")

    return [column(name, short) for name, short in swept(comparison).items()]


def environments_beside(records: Sequence[Record]) -> Beside:
    """Where the runs were made: each environment once, with the number of its runs."""
    found = Counter(tuple(flat(record.environment).items()) for record in records)
    return Beside([counted(times, "run") for times in found.values()], [dict(facts) for facts in found])


def data_card(comparison: Comparison, record: Record) -> dict[str, str]:
    """What the labels and inputs are, and what codes without a model need."""
    data = record.data
    order, heldout = record.seeds["order_seed"], data.get("heldout")
    facts = {
        "name": comparison.data,
        "labels in the sequence": f"{record.length:,}",
        "classes": f"{record.num_classes:,}",
        "shape of an input": listed(
            sorted({as_text(r.data.get("input_shape")) for r in _coded(comparison)}), MOST_VALUES
        ),
        "order": "as given" if order is None else f"shuffled, order seed {order}",
        "held-out data": "none" if heldout is None else "yes, never charged",
        "predictions look at": "; ".join(sorted({r.conditioned_on for r in _coded(comparison)})),
    }
    if record.scale is not None:
        facts["scale of uint8 inputs"] = str(record.scale)
    if studied := [
        f"{entry.name}: {in_words(each.study)}"
        for entry in comparison.entries
        if (each := entry.first).study is not None
    ]:
        facts["studied before the first label"] = "; ".join(studied)
    if comparison.length < record.length:
        facts["labels compared"] = f"the first {comparison.length:,}"
    facts |= {f"{SIMPLE_CODES[name].title}, nats": number(nats) for name, nats in comparison.simple.items()}
    has_many = len({r.data.get("inputs") for r in _coded(comparison)}) > 1
    known = ("name", "input_shape", "heldout", "class_names", *(["inputs"] if has_many else []))
    facts |= flat({name: value for name, value in data.items() if name not in known})
    if has_many:
        return facts | {"inputs": "differ between the runs, see the settings"}
    asked = {name: value for name, value in (record.source or {}).items() if name not in ("name", "schema")}
    return facts | {f"source · {name}": text for name, text in flat(asked).items()}


def _coded(comparison: Comparison) -> list[Record]:
    return [record for entry in comparison.entries for record in entry.records]


def class_bars(record: Record) -> tuple[str, list[tuple[str, str, str, str]]]:
    """How often each class occurs, the most frequent where there are many: label, count, width of a bar, share."""
    counts = np.bincount(record.labels, minlength=record.num_classes)
    shown = np.arange(len(counts)) if len(counts) <= MOST_BARS else np.argsort(-counts, kind="stable")[:MOST_BARS]
    total, largest = max(int(counts.sum()), 1), max(int(counts.max()), 1)
    title = "Labels of each class" if len(shown) == len(counts) else f"The {MOST_BARS} most frequent classes"
    return title, [
        (
            printable(record.class_name(int(label)) or str(label)),
            f"{counts[label]:,}",
            f"{counts[label] / largest:.1%}",
            f"{counts[label] / total:.1%}",
        )
        for label in shown
    ]
