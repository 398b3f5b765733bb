"""Classifiers of scikit-learn: fitted again from scratch at growing points of the past, or span by span."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prequential.errors import PreqWarning, in_one_line, require_count, require_number
from prequential.estimators.smoothing import Rows
from prequential.estimators.without_network import WithoutNetwork
from prequential.learn.prediction import Prediction
from prequential.mixers.mixing import SUM_TOLERANCE

FIRST_FIT = 64
"""Labels before the first fit."""
GROWTH = 1.05
"""How much the past grows from one fit to the next."""


def next_fit(labels: int, growth: float, window: int | None) -> int:
    """The number of labels at which the fit after that on so many labels is due: when those that are fitted on have
    grown by the factor `growth`, or in a window when as large a share of it is new.

    Example:
        >>> next_fit(1000, growth=1.1, window=None), next_fit(9000, growth=1.1, window=500)
        (1100, 9050)
    """
    return labels + max(1, round((growth - 1) * min(labels, window or labels)))


class Refitted(WithoutNetwork):
    """A classifier is fitted from scratch to the whole past, or to its last `window` labels, as soon as 64 labels of
    two classes are there, and again whenever what it is fitted to has grown by the factor `refit` (see `next_fit`; both
    are given in the name, beside the classifier's own settings). The fit is made by whoever predicts next, with a
    random_state from (seed, number of labels) and on one thread, so that the bits repeat. Until the next it stands
    still. One that has `partial_fit` learns each span as it is revealed instead, unless `refit` or `window` is given.

    Classes that a fit has not seen have probability 0 in it, and more by `Smoothing`; probabilities that do not sum to
    1 are divided by their sum, and are equal where that is 0. Resuming makes the last fit again, or replays the spans
    where they were learned one by one. A fit that fails leaves the one before in charge, and that is told.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        own = self.classifier.own
        self.growth, self.window = own.get("refit", GROWTH), own.get("window")
        require_number("refit", self.growth, at_least=1)
        require_count("window", self.window if self.window is not None else FIRST_FIT, at_least=2)
        self.is_incremental = hasattr(self.classifier.kind, "partial_fit") and not own
        self.ends = np.zeros(len(self.data), np.uint8)
        """1 at the last label of each span that was observed."""
        self._fitted = self._tried = self._due = 0
        self._estimator = self._fresh(0) if self.is_incremental else None
        self._said: tuple[int, Rows | None] = (-1, None)

    def _fresh(self, number: int) -> Any:
        return self.classifier.make(self.derived_seed(number), n_jobs=1)

    def settings(self) -> dict[str, Any]:
        told = {"refit": self.growth, "window": self.window, **self._fresh(0).get_params(deep=False)}
        return {key: value for key, value in told.items() if key != self.classifier.library.seed}

    def probe(self, num_examples: int) -> None:
        few = self.rows_of(np.arange(FIRST_FIT) % len(self.data))
        with self.telling("does not work with this data"):
            fitted = self._fit(self._fresh(0), few, np.arange(FIRST_FIT) % min(2, self.num_classes))
            self._probabilities(fitted, few)

    def _fit(self, estimator: Any, rows: Rows, labels: NDArray[np.integer[Any]]) -> Any:
        """Let it learn, all at once or one span more."""
        with _quietly():
            if self.is_incremental:
                return estimator.partial_fit(rows, labels, classes=np.arange(self.num_classes))
            return estimator.fit(rows, labels)

    def _probabilities(self, estimator: Any, rows: Rows) -> Rows:
        found = np.zeros((len(rows), self.num_classes))
        with _quietly():
            found[:, estimator.classes_] = estimator.predict_proba(rows)
        sums = found.sum(axis=1)
        for row in np.flatnonzero(abs(sums - 1) > SUM_TOLERANCE):  # rounding is left alone
            found[row] = found[row] / sums[row] if sums[row] else 1 / self.num_classes
        return found

    def said(self, rows: Rows) -> Rows | None:
        self._catch_up()
        is_ready = self.num_observed if self.is_incremental else self._fitted
        if not is_ready:
            return None
        with self.telling(f"cannot predict after {self.num_observed} labels"):
            return self._probabilities(self._estimator, rows)

    def _catch_up(self) -> None:
        """Make the fit that is due; after going back, also what was there."""
        if self.is_incremental:
            if self._estimator is None:
                self._replay()
            return
        if self._due > self._tried:
            self._tried = self._due
            if (made := self._fit_to(self._due)) is not None:
                self._estimator, self._fitted = made, self._due
        if self._estimator is None and self._fitted:
            self._estimator = self._fit_to(self._fitted)

    def _fit_to(self, stop: int) -> Any:
        """A classifier that knows the labels before `stop`; None where it cannot be fitted."""
        start = max(0, stop - (self.window or stop))
        labels = self.labels[start:stop]
        if (labels == labels[0]).all():
            return None  # of one class there is nothing to learn
        try:
            return self._fit(self._fresh(stop), self.rows_of(np.arange(start, stop)), labels)
        except Exception as error:  # such as too few labels of a class to hold some out
            left = f"goes on with its fit to {self._fitted}" if self._fitted else "goes on without"
            note = f"'{self.factory}' could not be fitted to {stop} labels ({in_one_line(error)}) and {left}"
            warnings.warn(note, PreqWarning, stacklevel=2)
            return None

    def _replay(self) -> None:
        self._estimator, start = self._fresh(0), 0
        for stop in (np.flatnonzero(self.ends[: self.num_observed]) + 1).tolist():
            self._fit(self._estimator, self.rows_of(np.arange(start, stop)), self.labels[start:stop])
            start = stop

    def predict(self, start: int, stop: int) -> Prediction:
        said = self.said(self.rows_of(np.arange(start, stop)))
        self._said = start, said
        rows = torch.from_numpy(self.smoothing.rows(said, stop - start)).log()
        return Prediction(rows, rows, torch.ones((), dtype=torch.float64))

    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        found, (predicted, said) = labels.cpu().numpy(), self._said
        self.smoothing.learn(found, said if predicted == start else None)
        self._said = -1, None
        if self.is_incremental:
            self._catch_up()  # before the span, which is learned now
            with self.telling(f"cannot learn labels {start} to {stop - 1}"):
                self._fit(self._estimator, self.rows_of(np.arange(start, stop)), found)
        self.remember(start, found)
        self.ends[stop - 1] = 1
        after = next_fit(self._due, self.growth, self.window) if self._due else FIRST_FIT
        if stop >= after and np.count_nonzero(self.smoothing.counts) > 1:
            self._due = stop

    def tensors(self) -> dict[str, list[Tensor]]:
        fits = torch.tensor([self._fitted, self._tried, self._due])
        return super().tensors() | {"ends": [torch.from_numpy(self.ends)], "fits": [fits]}

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        super().restore(state)
        self.ends[:] = state["ends"][0].numpy()
        self._fitted, self._tried, self._due = state["fits"][0].tolist()
        self._estimator, self._said = None, (-1, None)


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn, which is loaded by then

    return ThreadpoolController()


@contextmanager
def _quietly() -> Iterator[None]:
    """Inside there is one thread, so that sums have one order, and no word of fits that have not converged, of classes
    that are rare or of the logarithm of 0."""
    with _threads().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
