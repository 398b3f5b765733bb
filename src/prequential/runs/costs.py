"""Which labels of a run were expensive, what each class cost, and which classes are taken for which. No torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, require_count
from prequential.rng import order_of_rows

MOST_ROWS = 1 << 26
"""Of a source whose shuffle is made again to tell the row of a label."""


@dataclass(frozen=True, kw_only=True)
class CostlyLabel:
    """A label, what it cost, and what was predicted in its place."""

    position: int
    """In the sequence, from 0."""
    row: int | None
    """In the source, before any shuffle, from 0; None where the record does not know."""
    label: int
    predicted: int
    """The most probable class."""
    confidence: float
    """Its probability."""
    nats: float
    """−ln p of the label."""
    share: float | None
    """Of the codelength; None where that is infinite."""
    label_name: str | None = None
    predicted_name: str | None = None

    @property
    def probability(self) -> float:
        """Of the label."""
        return math.exp(-self.nats)


@dataclass(frozen=True, kw_only=True)
class ClassCost:
    """What the labels of a class cost together."""

    label: int
    name: str | None
    count: int
    nats: float
    share: float | None
    errors: int
    """Labels of the class for which another was more probable."""
    mistaken_for: int | None
    """The class that was predicted most often in its place; None where there is no error."""

    @property
    def nats_per_label(self) -> float:
        """The mean."""
        return self.nats / self.count


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """A class that was taken for another."""

    label: int
    predicted: int
    count: int
    nats: float
    """What these labels cost."""


class LabelCosts:
    """The part of a record that tells where its nats went."""

    nats: NDArray[np.float64]
    labels: NDArray[np.integer]
    predicted: NDArray[np.integer]
    confidence: NDArray[np.float32]
    data: dict[str, Any]
    seeds: dict[str, Any]
    num_classes: int
    prequential: bool
    target: dict[str, Any] | None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """What the classes are called, where the data says it."""
        names = self.data.get("class_names")
        return tuple(map(str, names)) if isinstance(names, list | tuple) and len(names) == self.num_classes else None

    def class_name(self, label: int) -> str | None:
        """What a class is called, where the data says it."""
        names = self.class_names
        return names[label] if names is not None and 0 <= label < len(names) else None

    def worst(self, k: int = 10, start: int = 0) -> list[CostlyLabel]:
        """The most expensive labels from a position on, the worst first; of equal ones the earlier.

        Early labels are expensive because little was learned yet; later ones tell more of themselves.

        Example:
            >>> import prequential as pq
            >>> data = pq.load_data("mnist").take(64).without_heldout()
            >>> record = pq.run("mlp1", data, pq.ReplayStreams(num_streams=1), seed=0)
            >>> worst = record.worst(3)
            >>> [each.nats for each in worst] == sorted(record.nats, reverse=True)[:3]
            True
            >>> int(data.source_rows[worst[0].position]) == worst[0].row
            True
        """
        require_count("k", k)
        require_count("start", start, at_least=0, at_most=max(len(self.nats) - 1, 0))
        self._require_costs()
        positions = start + most_expensive(self.nats[start:], k)
        rows, total = self.source_rows(positions), float(self.nats.sum())
        return [
            CostlyLabel(
                position=position,
                row=None if rows is None else int(rows[number]),
                label=(label := int(self.labels[position])),
                predicted=(predicted := int(self.predicted[position])),
                confidence=float(self.confidence[position]),
                nats=float(self.nats[position]),
                share=_share(float(self.nats[position]), total),
                label_name=self.class_name(label),
                predicted_name=self.class_name(predicted),
            )
            for number, position in enumerate(positions.tolist())
        ]

    def by_class(self) -> list[ClassCost]:
        """What each class that occurs cost, in the order of their numbers."""
        self._require_classes()
        total, mistaken = float(self.nats.sum()), dict[int, int]()
        for each in self.confusions():
            mistaken.setdefault(each.label, each.predicted)
        classes, places = np.unique(self.labels, return_inverse=True)
        counts, nats = np.bincount(places), np.bincount(places, self.nats)
        errors = np.bincount(places, self.labels != self.predicted)
        return [
            ClassCost(
                label=label,
                name=self.class_name(label),
                count=int(counts[n]),
                nats=float(nats[n]),
                share=_share(float(nats[n]), total),
                errors=int(errors[n]),
                mistaken_for=mistaken.get(label),
            )
            for n, label in enumerate(classes.tolist())
        ]

    def confusions(self, k: int | None = None) -> list[Confusion]:
        """Which classes were taken for which, the most frequent first (None: all that occur)."""
        self._require_classes()
        wrong = np.flatnonzero(self.labels != self.predicted)
        labels, predicted = (each[wrong].astype(np.int64) for each in (self.labels, self.predicted))
        base = int(predicted.max()) + 1 if len(wrong) else 1
        pairs, places, counts = np.unique(labels * base + predicted, return_inverse=True, return_counts=True)
        nats = np.bincount(places, self.nats[wrong], len(pairs))
        found = ((n, *divmod(int(pairs[n]), base)) for n in np.argsort(-counts, kind="stable")[:k].tolist())
        return [
            Confusion(label=label, predicted=predicted, count=int(counts[n]), nats=float(nats[n]))
            for n, label, predicted in found
        ]

    def source_rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The rows of the source at these positions, from 0; None where the record does not say how many it has."""
        rows, seed = self.data.get("rows"), self.seeds["order_seed"]
        if not isinstance(rows, int) or not len(self.nats) <= rows <= MOST_ROWS:
            return None
        return order_of_rows(seed, rows)[positions]

    def _require_costs(self) -> None:
        if not self.prequential:
            raise PreqError("a run without a codelength has no expensive labels; choose one by a prequential method")

    def _require_classes(self) -> None:
        self._require_costs()
        if self.target is not None:
            raise PreqError(f"what is coded is no class but {self.target.get('kind')}; worst(k) tells of single labels")


def most_expensive(nats: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The positions of the k largest, the largest first; of equal ones the earlier.

    Example:
        >>> most_expensive(np.array([1.0, 3.0, 0.5, 3.0]), 3)
        array([1, 3, 0])
    """
    if k < len(nats):
        least = np.partition(nats, len(nats) - k)[len(nats) - k]
        candidates = np.flatnonzero(nats >= least)
    else:
        candidates = np.arange(len(nats))
    return candidates[np.argsort(-nats[candidates], kind="stable")[:k]]


def _share(nats: float, total: float) -> float | None:
    return nats / total if math.isfinite(total) and total > 0 else None


def share_of(labels: Sequence[CostlyLabel]) -> float | None:
    """Of the codelength, what these labels cost together."""
    shares = [each.share for each in labels]
    return None if None in shares or not shares else math.fsum(share for share in shares if share is not None)
