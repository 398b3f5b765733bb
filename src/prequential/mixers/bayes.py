"""The Bayesian mixture: at most −ln w nats above any of its experts. No torch."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prequential.mixers.mixing import Floats, Mixing, first_weights, log_mean, require_prior
from prequential.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class Bayes:
    """p(y) = Σᵢ wᵢ pᵢ(y), with the posterior weights wᵢ ∝ priorᵢ · exp(−Lᵢ) of the experts' codes Lᵢ so far.

    The product of these probabilities telescopes to Σᵢ priorᵢ exp(−Lᵢ), so the code is at most

        minᵢ (Lᵢ − ln priorᵢ)    nats,

    that is ln n above the best of n where nothing is said of the prior. An expert that gave a label that came the
    probability 0 has the weight 0 from then on.

    Example:
        >>> mixing = Bayes().begin(num_experts=2, num_classes=2)
        >>> np.exp(mixing.row(np.log([[0.8, 0.2], [0.4, 0.6]])))
        array([0.6, 0.4])
        >>> mixing.tell(0)
        >>> mixing.weights
        array([0.66666667, 0.33333333])
    """

    name: ClassVar[str] = "bayes"
    about: ClassVar[str] = "the Bayesian mixture"

    prior: tuple[float, ...] | None = setting(None, check=require_prior)
    """The weights of the experts before the first label, of sum 1. Default: all alike."""

    def __post_init__(self) -> None:
        check_settings(self)

    def begin(self, num_experts: int, num_classes: int) -> "BayesMixing":
        """A code that has seen no label yet."""
        return BayesMixing(num_experts, num_classes, self.prior)


class BayesMixing(Mixing):
    """Weights in the log domain, normalised after each label."""

    keys = ("log_weights",)

    def __init__(self, num_experts: int, num_classes: int, prior: tuple[float, ...] | None = None) -> None:
        super().__init__(num_experts, num_classes)
        self.log_weights = np.log(first_weights(prior, num_experts))

    @property
    def weights(self) -> Floats:
        """The posterior of the experts."""
        return np.exp(self.log_weights)

    def mixed(self, experts: Floats) -> Floats:
        """ln Σᵢ wᵢ pᵢ."""
        return log_mean(self.log_weights, experts)

    def learn(self, experts: Floats, label: int) -> None:
        """wᵢ ∝ wᵢ pᵢ(label)."""
        self._become(self.log_weights + experts[:, label])

    def leave_out(self, expert: int) -> None:
        """The others share its weight as they share the rest."""
        super().leave_out(expert)
        self.log_weights[expert] = -np.inf
        self._become(self.log_weights)

    def _become(self, log_weights: Floats) -> None:
        total = log_mean(log_weights, np.zeros((len(log_weights), 1)))[0]
        if total > -np.inf:  # else the code is infinite, and it does not matter whom it believes
            self.log_weights = log_weights - total
