"""Logistic mixing: experts pooled by their log-probabilities, with weights that follow the gradient. No torch."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prequential.mixers.mixing import Floats, Mixing
from prequential.settings import check_settings, setting

RAW, SOFTPLUS = "raw", "softplus"
GRADIENT, ADAMW = "gradient", "adamw"
SQUARE_DECAY = 0.999
"""Of adamw, as in the recipe."""


@dataclass(frozen=True, kw_only=True)
class PureLogistic:
    """p(y) ∝ Πᵢ pᵢ(y)^wᵢ, with weights that take a step against the gradient of −ln p(label) after each label.

    With xᵢ(y) = max(ln pᵢ(y), floor), ∂(−ln p(y))/∂wᵢ = Σ_c p(c)·xᵢ(c) − xᵢ(y). The loss is convex in w, but the code
    has no bound against its experts; `Logistic` is this one with a guard. Weights begin at 1/n: the geometric mean.

    Example:
        >>> mixing = PureLogistic(learning_rate=0.1).begin(num_experts=2, num_classes=2)
        >>> np.exp(mixing.row(np.log([[0.8, 0.2], [0.8, 0.2]])))
        array([0.8, 0.2])
        >>> mixing.tell(0)
        >>> mixing.coefficients[0].round(6)
        array([0.527726, 0.527726])
    """

    name: ClassVar[str] = "pure-logistic"

    learning_rate: float = setting(0.02, above=0)
    """Of the weights."""
    full_rate_labels: int = setting(0, at_least=0)
    """After so many labels the rate of a weight set falls as 1/√(labels it has seen); 0 is a constant rate."""
    by_previous_label: bool = False
    """A set of weights for each label that the previous one may be, and one for the first label."""
    floor: float = setting(-20.0, below=0)
    """Log-probabilities below are weighted as if they were this."""
    parametrisation: str = setting(RAW, choices=(RAW, SOFTPLUS))
    """The weights themselves take the steps, or w = softplus(β) and β does, so that no weight is negative."""
    optimizer: str = setting(GRADIENT, choices=(GRADIENT, ADAMW))
    """Plain gradient steps, or those of AdamW as the recipe has it."""
    momentum: float = setting(0.9, at_least=0, below=1)
    """The beta1 of adamw."""
    eps: float = setting(1e-8, above=0)
    """Of adamw."""

    def __post_init__(self) -> None:
        check_settings(self)

    def begin(self, num_experts: int, num_classes: int) -> "LogisticMixing":
        """A code that has seen no label yet."""
        return LogisticMixing(num_experts, num_classes, self)


class LogisticMixing(Mixing):
    """A set of weights, or one for each previous label, each with the state of its optimizer."""

    keys = ("parameters", "means", "squares", "steps", "previous")

    def __init__(self, num_experts: int, num_classes: int, settings: PureLogistic) -> None:
        super().__init__(num_experts, num_classes)
        self.settings = settings
        num_sets = num_classes + 1 if settings.by_previous_label else 1
        first = 1.0 / num_experts
        first = float(np.log(np.expm1(first))) if settings.parametrisation == SOFTPLUS else first
        self.parameters = np.full((num_sets, num_experts), first)
        """w, or β where w = softplus(β)."""
        self.means, self.squares = np.zeros_like(self.parameters), np.zeros_like(self.parameters)
        """Of the gradients, as adamw keeps them."""
        self.steps = np.zeros(num_sets)
        self.previous = np.array([num_sets - 1])
        """The set for the next label."""

    @property
    def coefficients(self) -> Floats:
        """The exponents w of each set."""
        return np.logaddexp(0.0, self.parameters) if self.settings.parametrisation == SOFTPLUS else self.parameters

    @property
    def weights(self) -> Floats:
        """The positive exponents of the present set, divided by their sum."""
        positive = np.where(self.alive, self.coefficients[int(self.previous[0])], 0.0).clip(min=0.0)
        total = positive.sum()
        trust: Floats = positive / total if total > 0 else self.alive / self.alive.sum()
        return trust

    def mixed(self, experts: Floats) -> Floats:
        """ln softmax(Σᵢ wᵢ xᵢ)."""
        said = np.maximum(experts, self.settings.floor)
        pooled = (self.coefficients[int(self.previous[0])][:, None] * said).sum(axis=0)
        pooled -= pooled.max()
        found: Floats = pooled - np.log(np.exp(pooled).sum())
        return found

    def learn(self, experts: Floats, label: int) -> None:
        """One step of the present set."""
        said = np.maximum(experts, self.settings.floor)
        gradient = (np.exp(self.mixed(experts)) * said).sum(axis=1) - said[:, label]
        self._step(int(self.previous[0]), gradient)
        if self.settings.by_previous_label:
            self.previous[0] = label

    def _step(self, which: int, gradient: Floats) -> None:
        own, parameters = self.settings, self.parameters[which]
        if own.parametrisation == SOFTPLUS:
            gradient = gradient / (1.0 + np.exp(-parameters))
        self.steps[which] += 1
        count = self.steps[which]
        rate = own.learning_rate
        if own.full_rate_labels:
            rate *= np.sqrt(min(1.0, own.full_rate_labels / count))
        if own.optimizer == GRADIENT:
            parameters -= rate * gradient
            return
        mean, square = self.means[which], self.squares[which]
        mean += (1.0 - own.momentum) * (gradient - mean)
        square *= SQUARE_DECAY
        square += (1.0 - SQUARE_DECAY) * gradient * gradient
        scale = np.sqrt(square) / np.sqrt(1.0 - SQUARE_DECAY**count) + own.eps
        parameters -= rate / (1.0 - own.momentum**count) * mean / scale
