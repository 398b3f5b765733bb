"""What learners that are no networks share: they predict, and learn from the labels as they are revealed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, in_one_line
from prequential.estimators.smoothing import Rows, Smoothing
from prequential.events import Indices
from prequential.files import digest_of
from prequential.learn.inputs import Inputs
from prequential.learn.kinds import tensors_of
from prequential.learn.prediction import Prediction, Stepwise, heldout_parts
from prequential.learn.recipe import Recipe
from prequential.libraries import Classifier
from prequential.rng import derive
from prequential.targets import Classes

READ_AT_ONCE = 4096


class WithoutNetwork(ABC):
    """A `prequential.learn.learning.Learning` that learns by `observe` alone: events of training, calibration and fresh
    weights mean nothing to it. It computes on the CPU, in float64, and is a pure function of data, seed and the spans
    it has predicted.

    Args:
        factory: the name of a classifier.
        data: where inputs come from.
        recipe: of networks; nothing here depends on it.
        seed: of whatever the classifier draws.
        others: the settings of networks, which mean nothing here.
    """

    engine, precision, compiled, deterministic = "eager", "fp32", False, False
    width = 1.0
    fallback: str | None = None
    """There is nothing that it was asked to do and could not."""
    factory: Any
    """The name of the classifier, as records write it."""
    steps_at_once = 64
    """How many training steps it likes to be given together: it does nothing with them."""

    def __init__(
        self, factory: str, data: DataSequence, recipe: Recipe | None = None, *, seed: int, **others: Any
    ) -> None:
        self.classifier = Classifier.of(factory)
        self.factory, self.data, self.seed = self.classifier.name, data, seed
        target = capabilities(data).target
        if not isinstance(target, Classes):
            raise PreqError(f"'{factory}' predicts classes, the data has {target}; take a network")
        self.device, self.num_classes = torch.device("cpu"), target.num_classes
        self.inputs = Inputs(data, Recipe(), seed=seed, device=self.device, dtype=torch.float32)
        self.model = nn.Module()  # it has none: no parameters, and nothing that can be counted
        self.libraries = self.classifier.versions
        self.smoothing = Smoothing(self.num_classes)
        self.labels = np.full(len(data), -1, np.int32)
        """Those that were observed; the others are −1."""
        self.num_observed = 0

    def rows_of(self, positions: Indices, data: DataSequence | None = None) -> Rows:
        """The inputs at these positions, as networks are given them, each a row of float64."""
        source, blocks = data or self.data, range(0, max(len(positions), 1), READ_AT_ONCE)
        read = (self.inputs.prepared(source.inputs(positions[begin : begin + READ_AT_ONCE])) for begin in blocks)
        return np.concatenate([block.flatten(1).double().numpy() for block in read])

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        """Inside, whatever the classifier raises becomes one line that says what it could not do."""
        try:
            yield
        except PreqError:
            raise
        except Exception as error:  # other people's code may fail in any way
            raise PreqError(f"'{self.factory}' {what} ({in_one_line(error)})") from None

    def derived_seed(self, number: int) -> int:
        """The seed of the classifier that is made as number so and so."""
        return derive(self.seed, "classifier", number)

    def fingerprints(self) -> list[str]:
        """Of the class and all its settings, those that were not given too; the library's version is told apart."""
        told = sorted((key, repr(value)) for key, value in self.settings().items())
        return [digest_of(f"{self.classifier.prefix}{self.classifier.path} {told}".encode())]

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Of the classifier, all but the seed."""

    @abstractmethod
    def probe(self, num_examples: int) -> None:
        """Try the classifier on a few inputs, with made-up labels, before any work is done."""

    @abstractmethod
    def said(self, rows: Rows) -> Rows | None:
        """Probabilities of each class, a row for each of these inputs; None while there is no classifier."""

    @abstractmethod
    def predict(self, start: int, stop: int) -> Prediction | Stepwise:
        """By what was observed before `start`."""

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """As one who knows nothing."""
        return tensors_of(capabilities(self.data).target).uniform(stop - start, self.device)

    @abstractmethod
    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        """Learn from the labels of the span that was just predicted."""

    def remember(self, start: int, labels: NDArray[np.int64]) -> None:
        """Keep labels that were revealed."""
        assert start == self.num_observed, "spans are observed once, in order"
        self.num_observed += len(labels)
        self.labels[start : self.num_observed] = labels

    def evaluate(self) -> list[dict[str, float]] | None:
        """Mean loss in nats and error rate on the held-out data, predicted as the next label would be."""
        heldout = self.data.heldout
        if heldout is None:
            return None
        loss, errors = 0.0, 0
        for positions in heldout_parts(len(heldout)):
            rows = self._heldout_rows(positions)
            labels = heldout.labels(positions).numpy()
            loss -= float(np.log(rows[np.arange(len(rows)), labels]).sum())
            errors += int((rows.argmax(1) != labels).sum())
        return [{"loss": loss / len(heldout), "error_rate": errors / len(heldout)}]

    def _heldout_rows(self, positions: Indices) -> Rows:
        return self.smoothing.rows(self.said(self.rows_of(positions, self.data.heldout)), len(positions))

    def predict_heldout(self, positions: Indices) -> Prediction:
        """What is said of these held-out examples."""
        rows = torch.from_numpy(np.log(self._heldout_rows(positions)))
        return Prediction(rows, rows, torch.ones((), dtype=torch.float64))

    def finite(self) -> list[bool]:
        """It has no weights."""
        return [True]

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:  # noqa: B027
        """Nothing: what it learns from it has observed."""

    def train_beside_steps(self, batches: Indices, labels: Tensor, event: int) -> None:  # noqa: B027
        """Nothing, as for other training steps."""

    def study_steps(self, batches: Indices, event: int) -> None:  # noqa: B027
        """Nothing: it has no features to learn."""

    def end_study(self, indices: Indices) -> None:  # noqa: B027
        """Nothing."""

    def calibrate(self, indices: Indices, labels: Tensor) -> None:  # noqa: B027
        """Nothing: there are no logits."""

    def reinit(self, event: int) -> None:  # noqa: B027
        """Nothing: there are no weights."""

    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None:  # noqa: B027
        """Nothing: there are no weights."""

    def tensors(self) -> dict[str, list[Tensor]]:
        """The labels it has observed, from which all it knows is made again; and the weights of the shares."""
        return {
            "labels": [torch.from_numpy(self.labels)],
            "num_observed": [torch.tensor(self.num_observed)],
            "shares": [torch.from_numpy(self.smoothing.log_weights)],
        }

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Go back to where `tensors` were taken."""
        self.labels[:] = state["labels"][0].numpy()
        self.num_observed = int(state["num_observed"][0])
        self.smoothing.log_weights[:] = state["shares"][0].numpy()
        self.smoothing.counts[:] = np.bincount(self.labels[: self.num_observed], minlength=self.num_classes)

    def close(self) -> None:  # noqa: B027
        """Nothing is held that only speed needs."""
