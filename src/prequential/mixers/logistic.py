"""Logistic mixing: experts pooled by their log-probabilities, with weights that follow the gradient. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prequential.mixers.mixing import Floats, Mixing
from prequential.settings import check_settings, setting

RAW, SOFTPLUS = "raw", "softplus"
GRADIENT, ADAMW = "gradient", "adamw"
FLOOR = -20.0
LEAST_FLOOR, MOST_RATE = -1000.0, 1000.0
"""Within which no weight and no sum of weights overflows."""
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

    learning_rate: float = setting(0.005, above=0, at_most=MOST_RATE)
    """Of the weights."""
    full_rate_labels: int = setting(0, at_least=0)
    """After so many labels the rate of a weight set falls as 1/√(labels it has seen); 0 is a constant rate."""
    by_previous_label: bool = False
    """A set of weights for each label that the previous one may be, and one for the first label."""
    floor: float = setting(FLOOR, at_least=LEAST_FLOOR, below=0)
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
    """A set of weights, or one for each previous label, each with the state of its optimizer; and all of that for each
    of several learning rates, of which the first one is the code.

    Args:
        num_experts: how many predictions there are of each label.
        num_classes: how many probabilities each of them has.
        settings: of the mixing.
        rates: other learning rates than the one in the settings.
    """

    keys: ClassVar[tuple[str, ...]] = ("parameters", "means", "squares", "steps", "present")

    def __init__(
        self, num_experts: int, num_classes: int, settings: PureLogistic, rates: Sequence[float] | None = None
    ) -> None:
        super().__init__(num_experts, num_classes)
        self.settings, self.rates = settings, np.array(rates or [settings.learning_rate])[:, None]
        num_sets = num_classes + 1 if settings.by_previous_label else 1
        first = 1.0 / num_experts
        first = float(np.log(np.expm1(first))) if settings.parametrisation == SOFTPLUS else first
        self.parameters = np.full((num_sets, len(self.rates), num_experts), first)
        """w, or β where w = softplus(β): for each set and rate one of each expert."""
        self.means, self.squares = np.zeros_like(self.parameters), np.zeros_like(self.parameters)
        """Of the gradients, as adamw keeps them."""
        self.steps = np.zeros(num_sets)
        self.present = np.array([num_sets - 1])
        """The set for the next label."""
        self._at_hand: tuple[Floats, Floats] | None = None

    @property
    def coefficients(self) -> Floats:
        """The exponents w of the present set, a row for each rate."""
        present: Floats = self.parameters[self.present[0]]
        return np.logaddexp(0.0, present) if self.settings.parametrisation == SOFTPLUS else present

    @property
    def trusts(self) -> Floats:
        """The positive exponents of the present set, divided by their sum, a row for each rate."""
        positive = np.where(self.alive, self.coefficients, 0.0).clip(min=0.0)
        sums = positive.sum(axis=1, keepdims=True)
        found: Floats = np.where(sums > 0, positive / np.where(sums > 0, sums, 1.0), self.alive / self.alive.sum())
        return found

    @property
    def weights(self) -> Floats:
        """The positive exponents of the present set, divided by their sum."""
        first: Floats = self.trusts[0]
        return first

    def rows(self, experts: Floats) -> Floats:
        """ln softmax(Σᵢ wᵢ xᵢ) for each rate."""
        if self._at_hand is None or self._at_hand[0] is not experts:
            said = np.maximum(experts, self.settings.floor)
            pooled = (self.coefficients[:, :, None] * said).sum(axis=1)
            pooled -= pooled.max(axis=1, keepdims=True)
            pooled -= np.log(np.exp(pooled).sum(axis=1, keepdims=True))
            self._at_hand = experts, pooled
        return self._at_hand[1]

    def mixed(self, experts: Floats) -> Floats:
        """ln softmax(Σᵢ wᵢ xᵢ)."""
        first: Floats = self.rows(experts)[0].copy()
        return first

    def learn(self, experts: Floats, label: int) -> None:
        """One step of the present set."""
        said = np.maximum(experts, self.settings.floor)
        expected = (np.exp(self.rows(experts))[:, None, :] * said).sum(axis=2)
        self._at_hand = None
        self._step(int(self.present[0]), expected - said[:, label])
        if self.settings.by_previous_label:
            self.present[0] = label

    def _step(self, which: int, gradient: Floats) -> None:
        own, parameters = self.settings, self.parameters[which]
        if own.parametrisation == SOFTPLUS:
            with np.errstate(over="ignore"):  # far below 0 the slope is 0
                gradient = gradient / (1.0 + np.exp(-parameters))
        self.steps[which] += 1
        count = self.steps[which]
        rates = self.rates
        if own.full_rate_labels:
            rates = rates * np.sqrt(min(1.0, own.full_rate_labels / count))
        if own.optimizer == GRADIENT:
            parameters -= rates * gradient
            return
        mean, square = self.means[which], self.squares[which]
        mean += (1.0 - own.momentum) * (gradient - mean)
        square *= SQUARE_DECAY
        square += (1.0 - SQUARE_DECAY) * gradient * gradient
        scale = np.sqrt(square) / np.sqrt(1.0 - SQUARE_DECAY**count) + own.eps
        parameters -= rates / (1.0 - own.momentum**count) * mean / scale
