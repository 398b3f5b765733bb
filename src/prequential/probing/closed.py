"""Readouts without gradients: label frequencies, nearest means, nearest neighbours, Bayesian regression.

Each is a few experts that differ in one number, where no number suits all features. What they predict is normalised
and gives every class some probability. All are float64 and know the labels before the span they predict.
"""

from typing import Protocol

import torch
from torch import Tensor

HALF = 0.5
"""Krichevsky and Trofimov's: what every class has before the first label."""


class Readout(Protocol):
    """Predicts labels from features, a few experts at once. A pure function of what it was told, in that order."""

    experts: tuple[str, ...]

    def predict(self, features: Tensor) -> Tensor:
        """ln p, float64: experts × rows × classes."""

    def observe(self, features: Tensor, labels: Tensor) -> None:
        """Examples that were just revealed."""


def log_frequencies(counts: Tensor) -> Tensor:
    """ln of the probability that each class comes next, by how often each came (Krichevsky and Trofimov).

    Example:
        >>> log_frequencies(torch.tensor([3.0, 0.0])).exp()
        tensor([0.8750, 0.1250])
    """
    return ((counts + HALF) / (counts.sum() + HALF * len(counts))).log()


class Frequencies:
    """How often each class came: it looks at no features, so that no representation costs much more than none."""

    experts: tuple[str, ...] = ("frequencies",)

    def __init__(self, num_features: int, num_classes: int) -> None:
        self.counts = torch.zeros(num_classes, dtype=torch.float64)

    def predict(self, features: Tensor) -> Tensor:
        return log_frequencies(self.counts).expand(1, len(features), -1)

    def observe(self, features: Tensor, labels: Tensor) -> None:
        self.counts += torch.bincount(labels, minlength=len(self.counts))


class NearestMean:
    """p(c|x) ∝ π(c)·exp(−s·‖x − m(c)‖² / 2v), at three s: sharper or flatter.

    m(c) is the mean of the class, drawn to 0 as by one example that lies there; v the mean of ‖x − m(y)‖² over what was
    seen, as it was when each came (and the number of features before that); π the frequencies.
    """

    sharpness = (6.0, 15.0, 36.0)
    experts = tuple(f"nearest-mean s={s:g}" for s in sharpness)

    def __init__(self, num_features: int, num_classes: int) -> None:
        self.counts = torch.zeros(num_classes, dtype=torch.float64)
        self._sums = torch.zeros(num_classes, num_features, dtype=torch.float64)
        self._distances, self._num = float(num_features), 1

    def _squared(self, features: Tensor) -> Tensor:
        means = self._sums / (self.counts + 1)[:, None]
        return torch.cdist(features.double(), means).square()

    def predict(self, features: Tensor) -> Tensor:
        scale = torch.tensor(self.sharpness, dtype=torch.float64)[:, None, None] / (2 * self._distances / self._num)
        return (log_frequencies(self.counts) - scale * self._squared(features)).log_softmax(-1)

    def observe(self, features: Tensor, labels: Tensor) -> None:
        self._distances += float(self._squared(features).gather(1, labels[:, None]).sum())
        self._num += len(labels)
        self.counts += torch.bincount(labels, minlength=len(self.counts))
        self._sums.index_add_(0, labels, features.double())


class NearestNeighbours:
    """p(c|x) = (n(c) + π(c)) / (k + 1), where n counts the classes of the k nearest seen, at three k.

    Where fewer than k were seen, k is their number. π are the frequencies, worth one neighbour.
    """

    neighbours = (1, 5, 20)
    experts = tuple(f"knn k={k}" for k in neighbours)

    def __init__(self, num_features: int, num_classes: int) -> None:
        self.counts = torch.zeros(num_classes, dtype=torch.float64)
        self._seen, self._labels = torch.empty(0, num_features), torch.empty(0, dtype=torch.int64)
        self._num = 0

    def predict(self, features: Tensor) -> Tensor:
        prior, most = log_frequencies(self.counts).exp(), min(max(self.neighbours), self._num)
        if not most:
            return prior.log().expand(len(self.neighbours), len(features), -1)
        distances = torch.cdist(features, self._seen[: self._num])
        nearest = self._labels[distances.topk(most, largest=False).indices]
        is_class = torch.nn.functional.one_hot(nearest, len(prior)).double().cumsum(1)
        found = [(is_class[:, min(k, most) - 1] + prior) / (min(k, most) + 1) for k in self.neighbours]
        return torch.stack(found).log()

    def observe(self, features: Tensor, labels: Tensor) -> None:
        end = self._num + len(labels)
        if end > len(self._seen):  # room for twice as many, so that it is seldom copied
            seen, known = self._seen.new_empty(2 * end, self._seen.shape[1]), self._labels.new_empty(2 * end)
            seen[: self._num], known[: self._num] = self._seen[: self._num], self._labels[: self._num]
            self._seen, self._labels = seen, known
        self._seen[self._num : end], self._labels[self._num : end], self._num = features, labels, end
        self.counts += torch.bincount(labels, minlength=len(self.counts))


class BayesianRegression:
    """Bayesian linear regression of "is it class c" on the features and a constant: closed form, nothing is fitted.

    With w(c) ~ N(0, I/λ) before the first label, λ the number of features, and noise of variance 1, the answer for an
    input x is N(m(c), 1 + v), where A = λ·I + Σ x xᵀ, m(c) = xᵀ A⁻¹ Σ_{y = c} x and v = xᵀ A⁻¹ x. What is made of it,

        p(c|x) ∝ exp(s·m(c) / √(1 + v)),

    is flat where the features are unlike those that were seen, at three s, since a label is no number with noise. A⁻¹
    is kept by Woodbury's identity.
    """

    sharpness = (4.0, 12.0, 36.0)
    experts = tuple(f"bayes-linear s={s:g}" for s in sharpness)

    def __init__(self, num_features: int, num_classes: int) -> None:
        self._inverse = torch.eye(num_features + 1, dtype=torch.float64) / num_features
        self._sums = torch.zeros(num_classes, num_features + 1, dtype=torch.float64)

    def predict(self, features: Tensor) -> Tensor:
        rows = _with_constant(features)
        at_rows = rows @ self._inverse
        deviation = (1 + (at_rows * rows).sum(1, keepdim=True)).sqrt()
        sharpness = torch.tensor(self.sharpness, dtype=torch.float64)[:, None, None]
        return (sharpness * (at_rows @ self._sums.T) / deviation).log_softmax(-1)

    def observe(self, features: Tensor, labels: Tensor) -> None:
        rows = _with_constant(features)
        at_rows = rows @ self._inverse
        inside = torch.eye(len(rows), dtype=torch.float64) + at_rows @ rows.T
        self._inverse -= at_rows.T @ torch.linalg.solve(inside, at_rows)
        self._sums.index_add_(0, labels, rows)


def _with_constant(features: Tensor) -> Tensor:
    return torch.cat([features.double(), torch.ones(len(features), 1, dtype=torch.float64)], 1)


CLOSED: dict[str, type[NearestMean] | type[NearestNeighbours] | type[BayesianRegression]] = {
    "nearest-mean": NearestMean,
    "knn": NearestNeighbours,
    "bayes-linear": BayesianRegression,
}
"""By the names that people give them."""
