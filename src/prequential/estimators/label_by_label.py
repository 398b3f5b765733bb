"""Classifiers of river: they learn label by label."""

import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prequential.errors import PreqError
from prequential.estimators.smoothing import Rows
from prequential.estimators.without_network import WithoutNetwork
from prequential.learn.prediction import Stepwise

FEW = 8


class LabelByLabel(WithoutNetwork):
    """A classifier is asked for each label and told it before it is asked for the next, also inside a span; inputs are
    the numbers of a row by their places. It is seeded from the run's seed where it takes one, and told the number of
    classes where it wants it. Before the first label, and for classes it has not seen, `Smoothing` speaks.

    Resuming replays the past: each label is asked for, if it was, and told again, which takes as long as it took.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._estimator = self._fresh()
        self.asked = np.zeros(len(self.data), np.uint8)
        """1 at the labels that it was asked for before it was told them."""
        if self.num_classes > 2 and not getattr(self._estimator, "_multiclass", True):
            raise PreqError(f"'{self.factory}' knows two classes, the data has {self.num_classes}; take another")

    def _fresh(self) -> Any:
        return self.classifier.make(self.derived_seed(0), n_classes=self.num_classes)

    def settings(self) -> dict[str, Any]:
        defaults = inspect.signature(self.classifier.kind).parameters
        told = {key: each.default for key, each in defaults.items()} | dict(self.classifier.settings)
        return {key: value for key, value in told.items() if key != self.classifier.library.seed}

    def probe(self, num_examples: int) -> None:
        scratch = self._fresh()
        with self.telling("does not work with this data"):
            for number, row in enumerate(self.rows_of(np.arange(FEW) % len(self.data))):
                self._ask(scratch, row)
                scratch.learn_one(_named(row), number % 2)

    def _ask(self, estimator: Any, row: Rows) -> Rows:
        """Its probabilities of all classes; what it leaves out is 0, and where it says nothing, all are equal."""
        found = np.zeros(self.num_classes)
        for label, probability in estimator.predict_proba_one(_named(row)).items():
            found[int(label)] = probability
        total = found.sum()
        return found / total if total else np.full(self.num_classes, 1 / self.num_classes)

    def said(self, rows: Rows) -> Rows | None:
        if not self.num_observed:
            return None
        with self.telling(f"cannot predict after {self.num_observed} labels"):
            return np.stack([self._ask(self._estimator, row) for row in rows])

    def predict(self, start: int, stop: int) -> Stepwise:
        return _Span(self, start, self.rows_of(np.arange(start, stop)))

    def learn(self, row: Rows, label: int, said: Rows | None) -> None:
        """One label more, and what was said of it."""
        self.smoothing.learn(np.array([label]), said)
        with self.telling(f"cannot learn label {self.num_observed}"):
            self._estimator.learn_one(_named(row), label)
        self.asked[self.num_observed] = said is not None
        self.remember(self.num_observed, np.array([label]))

    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        """What it was not told on the way: the labels of a span that somebody else predicted."""
        known = self.num_observed
        for row, label in zip(self.rows_of(np.arange(known, stop)), labels[known - start :].tolist(), strict=True):
            self.learn(row, label, None)

    def tensors(self) -> dict[str, list[Tensor]]:
        return super().tensors() | {"asked": [torch.from_numpy(self.asked)]}

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        super().restore(state)
        self.asked[:] = state["asked"][0].numpy()
        self._estimator = self._fresh()
        rows = self.rows_of(np.arange(self.num_observed))
        for number, (row, label) in enumerate(zip(rows, self.labels[: self.num_observed].tolist(), strict=True)):
            if self.asked[number]:
                self._ask(self._estimator, row)  # it may change by being asked
            self._estimator.learn_one(_named(row), label)


class _Span(Stepwise):
    """A span, label by label."""

    def __init__(self, learner: LabelByLabel, start: int, rows: Rows) -> None:
        super().__init__()
        self._learner, self._rows = learner, rows
        self._said: Rows | None = None

    def next_row(self) -> Tensor:
        learner, place = self._learner, len(self.told)
        self._said = learner.said(self._rows[place : place + 1])
        return torch.from_numpy(learner.smoothing.rows(self._said, 1)[0]).log()

    def tell(self, label: int) -> None:
        row = self._rows[len(self.told)]
        super().tell(label)
        self._learner.learn(row, label, self._said)


def _named(row: Rows) -> dict[int, float]:
    """As river takes inputs. The names are numbers, whose order in sets is the same in every process."""
    return dict(enumerate(row.tolist()))
