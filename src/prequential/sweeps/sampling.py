"""Who draws the settings of a trial: our random search, or a sampler of Optuna's by name. No torch."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from prequential.errors import PreqError, unknown_name
from prequential.rng import derive, uniforms
from prequential.sweeps.distributions import Distribution
from prequential.sweeps.spaces import Resolved, Space, drawn, resolve

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

RANDOM = "random"
_OPTUNAS = {
    RANDOM: "RandomSampler",
    "tpe": "TPESampler",
    "gp": "GPSampler",
    "cma-es": "CmaEsSampler",
    "qmc": "QMCSampler",
    "nsga2": "NSGAIISampler",
    "brute-force": "BruteForceSampler",
}
SAMPLERS = tuple(_OPTUNAS)
LEARNING = ("tpe", "gp", "cma-es", "nsga2")
"""Samplers whose draws depend on how earlier trials went."""


def draw_settings(space: Space, seed: int, number: int) -> dict[str, Any]:
    """What random search draws for a trial: a pure function of (seed, number, name of each setting).

    So it does not matter when a trial is drawn, in which order, by whom, or what else the space holds.

    Example:
        >>> from prequential.sweeps.spaces import SPACES
        >>> one, again = (draw_settings(SPACES["mnist"], 0, 7) for _ in range(2))
        >>> one == again, one["batch_size"], 25 <= one["num_streams"] <= 100
        (True, 32, True)
    """
    return {**space, **{name: _draw(each, seed, number, name) for name, each in drawn(space).items()}}


def _draw(distribution: Distribution, seed: int, number: int, name: str) -> Any:
    key = derive(seed, f"sweep setting {name}", number)
    return distribution.draw(float(uniforms(key, np.zeros(1, np.int64))[0]))


def require_draws(space: Space, seed: int, num_trials: int, base: Resolved) -> None:
    """Refuse a space of which one of so many trials would draw what method or recipe do not take.

    Example:
        >>> from prequential.learn.recipe import Recipe
        >>> from prequential.methods import ReplayStreams
        >>> from prequential.sweeps.distributions import LogUniform
        >>> base = Resolved(ReplayStreams(), Recipe(), 1.0, 0)
        >>> require_draws({"batch_size": LogUniform(8, 64, whole=True)}, 0, 50, base)
        >>> require_draws({"batch_size": LogUniform(8, 64)}, 0, 50, base)
        Traceback (most recent call last):
        prequential.errors.PreqError: the space cannot be used: batch_size must be a whole number of at least 1, got ...
    """
    for number in range(num_trials):
        try:
            resolve(draw_settings(space, seed, number), base)
        except PreqError as error:
            raise PreqError(f"the space cannot be used: {error}; so trial {number} would draw it") from None


def run_seed(seed: int, number: int) -> int:
    """The seed of a trial's run: its own, unless the space says otherwise.

    Example:
        >>> run_seed(0, 1) == run_seed(0, 1), run_seed(0, 1) == run_seed(0, 2)
        (True, False)
    """
    return derive(seed, "trial", number) >> 33


def new_attempt(
    sampler: str, space: Space, seed: int, number: int, before: "FrozenTrial | None", attributes: dict[str, Any]
) -> "FrozenTrial":
    """An attempt at a trial as it is queued in a study: with what random search draws, or with what was drawn when the
    trial was begun before. What is then missing is chosen by the study's sampler when it is taken."""
    from optuna.trial import FixedTrial, TrialState, create_trial

    known: Any = before
    if sampler == RANDOM:
        known = FixedTrial({name: each.label(_draw(each, seed, number, name)) for name, each in drawn(space).items()})
        ask_for_settings(known, space)  # from now on it knows the distributions
    params, distributions = ({}, {}) if known is None else (known.params, known.distributions)
    return create_trial(state=TrialState.WAITING, params=params, distributions=distributions, user_attrs=attributes)


def ask_for_settings(trial: "Trial", space: Space) -> dict[str, Any]:
    """What the study knows of the trial, or else what its sampler chooses."""
    return {**space, **{name: each.suggest(trial, name) for name, each in drawn(space).items()}}


def make_sampler(name: str, seed: int, num_begun: int) -> "BaseSampler":
    """The sampler of that name. Random search has drawn everything before a study could ask for it.

    Args:
        name: one of SAMPLERS.
        seed: the sweep's.
        num_begun: trials begun so far. It goes into the seed of Optuna's samplers, which keep no state:
            a sweep that is resumed does not repeat its first draws.
    """
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    import optuna

    index = 0 if name == "qmc" else num_begun  # one sequence, whose place the study holds
    kind: Any = getattr(optuna.samplers, _OPTUNAS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        try:
            sampler: BaseSampler = kind(seed=derive(seed, "sampler", index) >> 33)
        except ImportError as error:
            reason = str(error).splitlines()[0].split(". ")[0]
            raise PreqError(f"the sampler '{name}' needs a package that is not there ({reason})") from None
    return sampler
