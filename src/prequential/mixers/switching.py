"""Fixed share: the best expert may be another one after a while. No torch."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, require_number
from prequential.mixers.mixing import Floats, Mixing, first_weights, log_mean, require_prior
from prequential.settings import check_settings, setting

FALLING = "1/t"
GRID = "grid"
RATES = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""The constant rates of "grid": with a best one of 1e-5 to 0.3 that is not among them little is lost."""
SMALLEST_RATE = 1e-200
"""Shares of more than that keep every weight far from underflow."""
WORDS = f"a rate between 0 and 1, '{FALLING}' or '{GRID}'"


def switching_rate(rate: str = FALLING) -> float | str:
    """A rate as it is written.

    Example:
        >>> switching_rate("0.01"), switching_rate("1/t")
        (0.01, '1/t')
    """
    try:
        return float(rate)
    except (TypeError, ValueError):
        return rate


def require_rate(rate: Any, name: str = "rate", words: str = WORDS) -> None:
    """Refuse what is no rate of switching."""
    if not isinstance(rate, str):
        require_number(name, rate, at_least=SMALLEST_RATE, below=1)
    elif rate not in (FALLING, GRID):
        raise PreqError(f"{name} must be {words}, got '{rate}'")


def rates_before(rate: float | str, label: int) -> Floats:
    """How probable a change of experts is before the label of that number (from 1): one rate, or those of the grid.

    Example:
        >>> rates_before("1/t", 4), rates_before(0.01, 4)
        (array([0.25]), array([0.01]))
    """
    if isinstance(rate, str):
        return np.array(RATES) if rate == GRID else np.array([1.0 / label])
    return np.array([rate])


@dataclass(frozen=True, kw_only=True)
class Switching:
    """Fixed share (Herbster and Warmuth, 1998): the Bayesian mixture of all *sequences* of experts.

    Before each label but the first the expert in charge is left with probability α, for any of the other n − 1 alike.
    With v ∝ w·p the posterior after a label, the weights for the next are wᵢ = (1 − α)·vᵢ + α·(1 − vᵢ)/(n − 1). Against
    the best sequence of experts that changes k times in T labels it loses at most

        ln n + k·ln((n − 1)/α) − (T − 1 − k)·ln(1 − α)    nats, for a constant α,
        ln n + k·ln(n − 1) + (k + 1)·ln T                 nats, for "1/t": α = 1/t before the t-th label (from 1),

    the latter at most (k + 1)·(ln n + ln T). "grid" is the Bayesian mixture of ten constant rates from 1e-5 to 0.3: at
    most ln 10 nats above the best of them. An expert that gave a label the probability 0 can return.

    Example:
        >>> mixing = Switching(rate=0.1).begin(num_experts=2, num_classes=2)
        >>> np.exp(mixing.row(np.log([[0.8, 0.2], [0.4, 0.6]])))
        array([0.6, 0.4])
        >>> mixing.tell(0)
        >>> np.exp(mixing.row(np.log([[0.8, 0.2], [0.4, 0.6]])))[0].round(6)
        np.float64(0.653333)
    """

    name: ClassVar[str] = "switching"
    about: ClassVar[str] = "fixed share: the best expert may change"

    rate: float | str = setting(
        FALLING,
        check=require_rate,
        make=switching_rate,
        parts={"switching_rate": ("rate", f"How probable a change of experts is before a label: {WORDS}.")},
    )
    """How probable a change of experts is before a label: a number in (0, 1), "1/t", or "grid"."""
    prior: tuple[float, ...] | None = setting(None, check=require_prior)
    """The weights of the experts before the first label, of sum 1. Default: all alike."""

    def __post_init__(self) -> None:
        check_settings(self)

    def begin(self, num_experts: int, num_classes: int) -> "SwitchingMixing":
        """A code that has seen no label yet."""
        return SwitchingMixing(num_experts, num_classes, self.rate, self.prior)


class SwitchingMixing(Mixing):
    """A posterior of the experts for each rate, and one of the rates."""

    keys = ("posterior", "log_rate_weights")

    def __init__(
        self, num_experts: int, num_classes: int, rate: float | str, prior: tuple[float, ...] | None = None
    ) -> None:
        super().__init__(num_experts, num_classes)
        self.rate = rate
        num_rates = len(rates_before(rate, 1))
        self.posterior = np.tile(first_weights(prior, num_experts), (num_rates, 1))
        """Of the experts after the last label, a row for each rate."""
        self.log_rate_weights = np.full(num_rates, -np.log(num_rates))

    @property
    def weights(self) -> Floats:
        """The posterior of the expert that was in charge of the last label."""
        weights: Floats = (np.exp(self.log_rate_weights)[:, None] * self.posterior).sum(axis=0)
        return weights

    def shared(self) -> Floats:
        """The weights of the experts for the next label, a row for each rate."""
        if not self.position:
            return self.posterior
        return share(self.posterior, rates_before(self.rate, self.position + 1)[:, None], self.alive)

    def mixed(self, experts: Floats) -> Floats:
        """ln Σᵢ wᵢ pᵢ, with w the mean of the rates' weights."""
        with np.errstate(divide="ignore"):
            return log_mean(np.log((np.exp(self.log_rate_weights)[:, None] * self.shared()).sum(axis=0)), experts)

    def learn(self, experts: Floats, label: int) -> None:
        """vᵢ ∝ wᵢ pᵢ(label) for each rate, and each rate by what it gave the label."""
        said = np.where(self.alive, experts[:, label], -np.inf)
        best = said.max()
        if best == -np.inf:
            return  # the code is infinite, and it does not matter whom it believes
        products = self.shared() * np.exp(said - best)
        sums = products.sum(axis=1, keepdims=True)
        if not sums.all():
            return
        self.posterior = products / sums
        log_weights = self.log_rate_weights + np.log(sums[:, 0])
        self.log_rate_weights = log_weights - log_mean(log_weights, np.zeros((len(log_weights), 1)))[0]

    def leave_out(self, expert: int) -> None:
        """The others share its weight as they share the rest, and from then on among themselves."""
        super().leave_out(expert)
        self.posterior[:, expert] = 0.0
        sums = self.posterior.sum(axis=1, keepdims=True)
        alike = self.alive / max(1, self.alive.sum())
        self.posterior = np.where(sums > 0, self.posterior / np.where(sums > 0, sums, 1.0), alike)


def share(posterior: Floats, rate: Floats, alive: NDArray[np.bool_]) -> Floats:
    """(1 − α)·v + α·(1 − v)/(n − 1) over those alive; what one expert alone has stays with it.

    Example:
        >>> share(np.array([1.0, 0.0, 0.0]), np.array(0.1), np.array([True, True, False]))
        array([0.9, 0.1, 0. ])
    """
    num_alive = alive.sum()
    if num_alive == 1:
        return posterior
    each = rate / (num_alive - 1)
    shared: Floats = np.where(alive, posterior * (1.0 - rate - each) + each, 0.0)
    return shared
