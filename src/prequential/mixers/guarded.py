"""Logistic mixing with a bound: inside a Bayesian mixture with its own experts. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prequential.mixers.bayes import BayesMixing
from prequential.mixers.logistic import FLOOR, LEAST_FLOOR, MOST_RATE, LogisticMixing, PureLogistic
from prequential.mixers.mixing import Floats, Mixing, State
from prequential.mixers.switching import GRID, SwitchingMixing
from prequential.settings import check_settings, setting

LEARNING_RATES = (0.005, 0.05, 0.5)
"""Where labels come shuffled the first is nearly the best, where they come as a stream the others are."""


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """Logistic mixing as in context-mixing compressors (Mattern, 2012): p(y) ∝ Πᵢ pᵢ(y)^wᵢ, w by online gradient.

    It can be far shorter than the best expert, where experts err in different ways or are too sure or not sure enough
    of themselves. It has no bound against them by itself, so it is one of n + 1 experts of a Bayesian mixture,
    together with those it mixes: the code is at most

        minᵢ Lᵢ + ln(n + 1)    nats.

    Which learning rate is good depends on the data. So there are three, 0.005, 0.05 and 0.5, with weights of their own,
    and `Switching(rate="grid")` among what they give stands for logistic mixing in that mixture.

    Example:
        >>> mixing = Logistic().begin(num_experts=2, num_classes=2)
        >>> np.exp(mixing.row(np.log([[0.8, 0.2], [0.8, 0.2]])))
        array([0.8, 0.2])
    """

    name: ClassVar[str] = "logistic"
    about: ClassVar[str] = "log-probabilities weighted, by online gradient"

    learning_rate: float | None = setting(None, above=0, at_most=MOST_RATE, flag="mixing_rate", hint="0.005, 0.05, 0.5")
    """The learning rate of the weights. Default: three, with switching among them."""
    by_previous_label: bool = False
    """Beside the one set of weights have a set for each label that the previous one may be, and switch among both."""
    floor: float = setting(FLOOR, at_least=LEAST_FLOOR, below=0, flag="mixing_floor")
    """Log-probabilities below are weighted as if they were this."""

    def __post_init__(self) -> None:
        check_settings(self)

    def begin(self, num_experts: int, num_classes: int) -> "GuardedMixing":
        """A code that has seen no label yet."""
        rates = LEARNING_RATES if self.learning_rate is None else (self.learning_rate,)
        kinds = [
            PureLogistic(floor=self.floor, by_previous_label=by_previous_label)
            for by_previous_label in (False, True)[: 1 + self.by_previous_label]
        ]
        pools = [LogisticMixing(num_experts, num_classes, kind, rates) for kind in kinds]
        return GuardedMixing(num_experts, num_classes, pools)


class GuardedMixing(Mixing):
    """The Bayesian mixture of the experts and of what switching makes of pools of them."""

    def __init__(self, num_experts: int, num_classes: int, pools: Sequence[LogisticMixing]) -> None:
        super().__init__(num_experts, num_classes)
        self.pools = pools
        self.choice = SwitchingMixing(sum(len(pool.rates) for pool in pools), num_classes, GRID)
        self.guard = BayesMixing(num_experts + 1, num_classes)
        self._parts: dict[str, Mixing] = {f"pool{number}": pool for number, pool in enumerate(pools)}
        self._parts |= {"choice": self.choice, "guard": self.guard}
        self._at_hand: tuple[Floats, Floats, Floats] | None = None

    @property
    def weights(self) -> Floats:
        """What the guard gives each expert, and the expert's part of what it gives the pools."""
        pooled, *others = self.guard.weights
        trusts = np.concatenate([pool.trusts for pool in self.pools])
        weights: Floats = pooled * (self.choice.weights[:, None] * trusts).sum(axis=0) + np.array(others)
        return weights

    def _pooled(self, experts: Floats) -> tuple[Floats, Floats]:
        """What each pool says at each rate, and for the guard: what is chosen among these, then the experts."""
        if self._at_hand is None or self._at_hand[0] is not experts:
            pooled = np.concatenate([pool.rows(experts) for pool in self.pools])
            self._at_hand = experts, pooled, np.concatenate([self.choice.mixed(pooled)[None], experts])
        return self._at_hand[1:]

    def mixed(self, experts: Floats) -> Floats:
        """ln of the guard's mean of what is pooled and of the experts."""
        return self.guard.mixed(self._pooled(experts)[1])

    def learn(self, experts: Floats, label: int) -> None:
        """All learn."""
        pooled, guarded = self._pooled(experts)
        self._at_hand = None
        self.guard.learn(guarded, label)
        self.choice.learn(pooled, label)
        for pool in self.pools:
            pool.learn(experts, label)
        for part in self._parts.values():
            part.position += 1

    def leave_out(self, expert: int) -> None:
        """By the guard and by the pools."""
        super().leave_out(expert)
        self.guard.leave_out(expert + 1)
        for pool in self.pools:
            pool.leave_out(expert)

    def state(self) -> State:
        """The state of all parts."""
        parts = {of: part.state() for of, part in self._parts.items()}
        return super().state() | {f"{of}.{key}": value for of, part in parts.items() for key, value in part.items()}

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Of all parts."""
        super().restore(state)
        for of, part in self._parts.items():
            part.restore(
                {key.removeprefix(f"{of}."): value for key, value in state.items() if key.startswith(f"{of}.")}
            )
            part.alive = part.alive if part is self.choice else self._alive_of(part)

    def _alive_of(self, part: Mixing) -> NDArray[np.bool_]:
        """Parts do not look at what is finite; who is left out is told to them."""
        return np.append(True, self.alive) if part is self.guard else self.alive.copy()
