"""Logistic mixing with a bound: inside a Bayesian mixture with its own experts. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from prequential.mixers.bayes import BayesMixing
from prequential.mixers.logistic import PureLogistic
from prequential.mixers.mixing import Floats, Mixing, State
from prequential.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """Logistic mixing as in context-mixing compressors (Mattern, 2012): p(y) ∝ Πᵢ pᵢ(y)^wᵢ, w by online gradient.

    It can be far shorter than the best expert, where experts err in different ways or are too sure or not sure enough
    of themselves. It has no bound against them by itself, so it is one of n + 1 experts of a Bayesian mixture,
    together with those it mixes: the code is at most

        minᵢ Lᵢ + ln(n + 1)    nats.

    Example:
        >>> mixing = Logistic().begin(num_experts=2, num_classes=2)
        >>> np.exp(mixing.row(np.log([[0.8, 0.2], [0.8, 0.2]])))
        array([0.8, 0.2])
    """

    name: ClassVar[str] = "logistic"
    about: ClassVar[str] = "log-probabilities weighted, by online gradient"

    learning_rate: float = setting(0.02, above=0, flag="mixing_rate")
    """The learning rate of the weights."""
    by_previous_label: bool = False
    """A set of weights for each label that the previous one may be."""
    floor: float = setting(-20.0, below=0, flag="mixing_floor")
    """Log-probabilities below are weighted as if they were this."""

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def pure(self) -> PureLogistic:
        """The mixer without its guard."""
        return PureLogistic(
            learning_rate=self.learning_rate, by_previous_label=self.by_previous_label, floor=self.floor
        )

    def begin(self, num_experts: int, num_classes: int) -> "GuardedMixing":
        """A code that has seen no label yet."""
        return GuardedMixing(num_experts, num_classes, self.pure.begin(num_experts, num_classes))


class GuardedMixing(Mixing):
    """The Bayesian mixture of a mixing and its experts, which share its weight as it trusts them."""

    def __init__(self, num_experts: int, num_classes: int, inner: Mixing) -> None:
        super().__init__(num_experts, num_classes)
        self.inner = inner
        self.guard = BayesMixing(num_experts + 1, num_classes)

    @property
    def weights(self) -> Floats:
        """What the guard gives each expert, and the expert's part of what it gives the mixing of them."""
        inner, *others = self.guard.weights
        weights: Floats = inner * self.inner.weights + np.array(others)
        return weights

    def _with_inner(self, experts: Floats) -> Floats:
        return np.concatenate([self.inner.mixed(experts)[None], experts])

    def mixed(self, experts: Floats) -> Floats:
        """ln of the guard's mean of the inner mixture and the experts."""
        return self.guard.mixed(self._with_inner(experts))

    def learn(self, experts: Floats, label: int) -> None:
        """Both learn."""
        self.guard.learn(self._with_inner(experts), label)
        self.inner.learn(experts, label)

    def leave_out(self, expert: int) -> None:
        """By both."""
        super().leave_out(expert)
        self.inner.leave_out(expert)
        self.guard.leave_out(expert + 1)

    def state(self) -> State:
        """The state of both."""
        parts = {"inner": self.inner.state(), "guard": self.guard.state()}
        return super().state() | {f"{of}.{key}": value for of, part in parts.items() for key, value in part.items()}

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Of both."""
        super().restore(state)
        for name, part in (("inner", self.inner), ("guard", self.guard)):
            start = f"{name}."
            part.restore({key[len(start) :]: value for key, value in state.items() if key.startswith(start)})
