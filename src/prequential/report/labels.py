"""Where the nats of a run went: its most expensive labels, its classes, and which are taken for which."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from prequential.errors import PreqError
from prequential.measure.comparable import name_of
from prequential.report.table import Column, values_of
from prequential.report.text import NOTHING, counted, number, percentage, probability
from prequential.runs.costs import ClassCost, Confusion, CostlyLabel, share_of
from prequential.runs.live import status_of
from prequential.runs.record import Record, finite_or_none
from prequential.terminal import printable

TOP = 10
MOST_CLASSES = 20
"""Of which a table of all pairs is shown."""


class Example(Protocol):
    """What a person sees of an example."""

    @property
    def name(self) -> str | None:
        """What its source calls it, such as the path of an image."""

    @property
    def picture(self) -> str | None:
        """A small one, as the address of an `img`."""


Examples = Callable[[Record, Sequence[int]], Mapping[int, Example]]
"""Gives the examples of a run at some positions, such as `prequential.data.shown.ShownExamples`."""


@dataclass(frozen=True)
class Expenses:
    """What the labels of a run cost, for tables."""

    record: Record
    worst: list[CostlyLabel]
    classes: list[ClassCost]
    """Those that occur; empty where what is coded is no class."""
    confusions: list[Confusion]
    """The most frequent first, all of them."""
    examples: Mapping[int, Example] = field(default_factory=dict)
    start: int = 0
    """The first position that the worst were looked for from."""

    @classmethod
    def of(cls, record: Record, top: int = TOP, examples: Examples | None = None, start: int = 0) -> "Expenses":
        """Of a run; the worst are those from `start` on, and are shown where somebody has the examples."""
        worst, is_class = record.worst(top, start), record.target is None
        shown = {} if examples is None else examples(record, [each.position for each in worst])
        classes, confusions = (record.by_class(), record.confusions()) if is_class else ([], [])
        return cls(record, worst, classes, confusions, shown, start)

    def called(self, label: int | None) -> str:
        """A class as tables show it."""
        return NOTHING if label is None else printable(self.record.class_name(label) or str(label))

    @property
    def sentence(self) -> str:
        """What the most expensive labels cost together."""
        length, share = len(self.record.nats), share_of(self.worst)
        which = f"The {len(self.worst)} most expensive" if len(self.worst) > 1 else "The most expensive"
        since = f" from position {self.start:,} on" if self.start else ""
        part = f"{which} of {counted(length, 'label')}{since}"
        nats = number(sum(each.nats for each in self.worst))
        cost = f"{'cost' if len(self.worst) > 1 else 'costs'} {nats} nats"
        return f"{part} {cost}" + (f": {percentage(share, 1)} of the codelength." if share is not None else ".")

    @property
    def status(self) -> str:
        """How the run stands now."""
        return status_of(self.record.path, self.record.status)

    @property
    def unfinished(self) -> str:
        """What must be said of a run that is not finished."""
        if self.status in ("finished", "diverged"):
            return ""
        return f"Not finished ({self.status}): {len(self.record.nats):,} of {counted(self.record.length, 'label')}."

    def columns(self) -> list[Column[CostlyLabel]]:
        """Of the most expensive labels."""
        columns: list[Column[Any]] = [
            Column("position", "position", lambda each: each.position, "{:,d}".format, "in the sequence, from 0"),
            Column("row", "row", lambda each: each.row, "{:,d}".format, "in the source before any shuffle, from 0"),
            Column("label", "label", lambda each: each.label, self.called, "what it was", is_left=True),
            Column("predicted", "predicted", lambda each: each.predicted, self.called, "the likeliest", is_left=True),
            Column("confidence", "confidence", lambda each: each.confidence, percent, "the probability of that class"),
            Column("p(label)", "probability", lambda each: each.probability, percent, "the probability of the label"),
            Column("nats", "nats", lambda each: each.nats, number, "−ln p(label): what is charged"),
            Column("share", "share", lambda each: each.share, lambda share: percentage(share, 1), "of the codelength"),
        ]  # fmt: skip
        if any(each.name for each in self.examples.values()):
            columns.append(Column("from", "example", self._source, str, "the file it is from", is_left=True))
        return columns

    def _source(self, each: CostlyLabel) -> str | None:
        example = self.examples.get(each.position)
        return None if example is None else example.name

    def class_columns(self) -> list[Column[ClassCost]]:
        """Of the classes."""
        return [
            Column("class", "label", lambda each: each.label, self.called, "", is_left=True),
            Column("labels", "count", lambda each: each.count, "{:,d}".format, "how often it occurs"),
            Column("nats", "nats", lambda each: each.nats, number, "what its labels cost together"),
            Column("share", "share", lambda each: each.share, lambda share: percentage(share, 1), "of the codelength"),
            Column("per label", "nats_per_label", lambda each: each.nats_per_label, three_digits, "nats"),
            Column("errors", "errors", lambda each: each.errors, "{:,d}".format, "another was more probable"),
            Column("taken for", "mistaken_for", lambda each: each.mistaken_for, self.called, "mostly", is_left=True),
        ]  # fmt: skip

    def confusion_columns(self) -> list[Column[Confusion]]:
        """Of pairs of classes."""
        return [
            Column("label", "label", lambda each: each.label, self.called, is_left=True),
            Column("taken for", "predicted", lambda each: each.predicted, self.called, is_left=True),
            Column("times", "count", lambda each: each.count, "{:,d}".format),
            Column("nats", "nats", lambda each: each.nats, number),
        ]

    def matrix(self) -> list[list[int]] | None:
        """How often each class (row) was predicted as each class (column); None where there are many."""
        size = self.record.num_classes
        if size > MOST_CLASSES or not self.classes or max(each.label for each in self.classes) >= size:
            return None
        counts = [[0] * size for _ in range(size)]
        for each in self.classes:
            counts[each.label][each.label] = each.count - each.errors
        for pair in self.confusions:
            counts[pair.label][pair.predicted] = pair.count
        return counts

    def rows(self) -> list[dict[str, Any]]:
        """The most expensive labels as plain values, with the names of their classes where they have some."""
        named = self.record.class_names is not None
        rows = _finite(values_of(self.columns(), self.worst))
        names = ({"label_name": each.label_name, "predicted_name": each.predicted_name} for each in self.worst)
        return [row | name if named else row for row, name in zip(rows, names, strict=True)]

    def as_json(self, top: int) -> dict[str, Any]:
        """The object that `--json` prints."""
        names = self.record.class_names
        return {
            "record": None if self.record.path is None else str(self.record.path),
            "status": self.status,
            "length": len(self.record.nats),
            "sequence_length": self.record.length,
            "codelength_nats": finite_or_none(self.record.codelength),
            "share_of_worst": share_of(self.worst),
            "class_names": None if names is None else list(names),
            "worst": self.rows(),
            "classes": _finite(values_of(self.class_columns(), self.classes)),
            "confusions": _finite(values_of(self.confusion_columns(), self.confusions[:top])),
        }


def _finite(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As JSON can hold them."""
    return [{k: finite_or_none(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]


def percent(value: float) -> str:
    """A probability that may be small.

    Example:
        >>> percent(0.973), percent(0.0)
        ('97.3%', '0')
    """
    return probability(float(np.log(value)) if value > 0 else -np.inf)


def three_digits(value: float) -> str:
    """A small amount of nats.

    Example:
        >>> three_digits(0.0123)
        '0.012'
    """
    return number(value, ",.3f")


def require_labels(record: Record) -> None:
    """Refuse a run that has no label to tell of."""
    if not record.prequential:
        raise PreqError(f"{name_of(record)} has no codelength: {record.method['name']} is not prequential")
    if not len(record.nats):
        raise PreqError(f"{name_of(record)} has no label to show yet; wait for its first checkpoint")
