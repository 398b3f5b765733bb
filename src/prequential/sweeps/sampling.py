"""What a setting of a trial is drawn from, and who draws it: our random search, or a sampler of Optuna's by name. No
torch; Optuna only where a study asks."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from prequential.errors import PreqError, require_count, require_flag, require_number, unknown_name
from prequential.rng import derive, uniforms

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

Space = Mapping[str, Any]
RANDOM, BRUTE_FORCE = "random", "brute-force"
_OPTUNAS = {
    RANDOM: "RandomSampler",
    "tpe": "TPESampler",
    "gp": "GPSampler",
    "cma-es": "CmaEsSampler",
    "qmc": "QMCSampler",
    "nsga2": "NSGAIISampler",
    BRUTE_FORCE: "BruteForceSampler",
}
SAMPLERS = tuple(_OPTUNAS)
LEARNING = ("tpe", "gp", "cma-es", "nsga2")
"""Samplers whose draws depend on how earlier trials went."""


@dataclass(frozen=True)
class Between:
    """Every number between two bounds alike.

    Example:
        >>> Between(0.0, 2.0).draw(0.25), Between(1, 3, whole=True).draw(0.99)
        (0.5, 3)
    """

    name_in_files: ClassVar[str] = "uniform"
    log: ClassVar[bool] = False
    least: ClassVar[tuple[int, int]] = (-(2**53), -(2**53))
    """The smallest bound there may be, and the smallest where numbers are whole."""

    low: float
    high: float
    whole: bool = field(default=False, kw_only=True)
    """Only whole numbers, both ends included."""

    def __post_init__(self) -> None:
        require_flag("whole", self.whole)
        for name in ("low", "high"):
            require = require_count if self.whole else require_number
            require(name, getattr(self, name), at_least=self.least[self.whole])
        if not self.low < self.high:
            raise PreqError(f"low must be below high, got {self.low} and {self.high}; a fixed value is written plainly")
        if self.log:
            require_number("low", self.low, above=0)

    def draw(self, uniform: float) -> float:
        """The value at this share of the distribution, 0 ≤ uniform < 1."""
        if not self.whole:
            return min(max(self._at(uniform, self.low, self.high), self.low), self.high)
        if not self.log:
            return int(self.low) + int(uniform * (self.high - self.low + 1))
        number = math.floor(self._at(uniform, self.low - 0.5, self.high + 0.5) + 0.5)
        return int(min(max(number, self.low), self.high))

    def label(self, value: Any) -> Any:
        """What a study holds for the value."""
        return value

    def suggest(self, trial: "Trial", name: str) -> Any:
        """The value that Optuna's sampler chooses; the one it chose before, where it has."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)

    def grid(self, size: int) -> "Choice":
        """A few values in place of all of them."""
        require_count("the size of a grid", size, at_least=2)
        exact = [self._at(index / (size - 1), self.low, self.high) for index in range(size)]
        return Choice(tuple(dict.fromkeys(round(x) if self.whole else x for x in exact)))

    def _at(self, share: float, low: float, high: float) -> float:
        if not self.log:
            return low + share * (high - low)
        return float(low) if share == 0 else float(high) if share == 1 else low * (high / low) ** share


class LogUniform(Between):
    """Every order of magnitude between two positive bounds alike.

    Whole numbers are rounded from low − ½ … high + ½, as Optuna does.

    Example:
        >>> LogUniform(1e-4, 1.0).draw(0.5), LogUniform(25, 100, whole=True).draw(0.5)
        (0.01, 50)
    """

    name_in_files = "loguniform"
    log = True
    least = (0, 1)


@dataclass(frozen=True)
class Choice:
    """One of a few values, each alike.

    Example:
        >>> Choice((32, 64, 128)).draw(0.5)
        64
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        given: object = self.values
        if not isinstance(given, tuple | list) or not given:
            raise PreqError(f"a choice needs a tuple of at least one value, got {given!r}")
        object.__setattr__(self, "values", tuple(self.values))
        if len(set(self.labels)) < len(self.values):
            raise PreqError(f"a choice needs values that differ, got {self.values}; remove the repeated one")

    @property
    def labels(self) -> tuple[Any, ...]:
        """The values as Optuna can hold them: numbers and texts as they are, anything else as text."""
        plain = all(value is None or isinstance(value, bool | int | float | str) for value in self.values)
        return self.values if plain else tuple(map(str, self.values))

    def draw(self, uniform: float) -> Any:
        return self.values[int(uniform * len(self.values))]

    def label(self, value: Any) -> Any:
        return self.labels[self.values.index(value)]

    def suggest(self, trial: "Trial", name: str) -> Any:
        return self.values[self.labels.index(trial.suggest_categorical(name, self.labels))]


Distribution = Between | Choice
"""Each has `draw`, a pure function, and what Optuna holds by its `label` and `suggest` can be turned back."""


def drawn(space: Space) -> dict[str, Distribution]:
    """The settings that differ between trials.

    Example:
        >>> drawn({"eps": LogUniform(1e-4, 1.0), "batch_size": 32})
        {'eps': LogUniform(low=0.0001, high=1.0, whole=False)}
    """
    return {name: value for name, value in space.items() if isinstance(value, Distribution)}


def draw_settings(space: Space, seed: int, number: int) -> dict[str, Any]:
    """What random search draws for a trial: a pure function of (seed, number, name of each setting).

    So it does not matter when a trial is drawn, in which order, by whom, or what else the space holds.

    Example:
        >>> from prequential.sweeps.spaces import SPACES
        >>> one, again = (draw_settings(SPACES["mnist"], 0, 7) for _ in range(2))
        >>> one == again, one["batch_size"], 25 <= one["num_streams"] <= 100
        (True, 32, True)
    """
    settings = dict(space)
    for name, each in drawn(space).items():
        key = derive(seed, f"sweep setting {name}", number)
        settings[name] = each.draw(float(uniforms(key, np.zeros(1, np.int64))[0]))
    return settings


def draw_labels(space: Space, seed: int, number: int) -> dict[str, Any]:
    """The same, as a study holds what is drawn."""
    settings = draw_settings(space, seed, number)
    return {name: each.label(settings[name]) for name, each in drawn(space).items()}


def run_seed(seed: int, number: int) -> int:
    """The seed of a trial's run: its own, unless the space says otherwise.

    Example:
        >>> run_seed(0, 1) == run_seed(0, 1), run_seed(0, 1) == run_seed(0, 2)
        (True, False)
    """
    return derive(seed, "trial", number) >> 33


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
    if name == BRUTE_FORCE:  # whose space is used up stops Optuna's own loop, and there is none here
        sampler.after_trial = lambda *_: None  # type: ignore[method-assign]
    return sampler


def require_countable(sampler: str, space: Space, num_trials: int) -> None:
    """Refuse to try every setting of a space that has no end of them, or fewer than there are trials.

    Example:
        >>> require_countable("brute-force", {"batch_size": Choice((16, 32)), "seed": Between(1, 3, whole=True)}, 7)
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: brute-force tries each of the 6 settings of the space once, got 7 trials; ask \
for 6
    """
    if sampler != BRUTE_FORCE:
        return
    whole = 1
    for name, each in drawn(space).items():
        if isinstance(each, Between) and not each.whole:
            raise PreqError(
                f"{sampler} tries every value, and {name} has no end of them; give it a Choice, or whole=True"
            )
        whole *= int(each.high - each.low) + 1 if isinstance(each, Between) else len(each.values)
    if num_trials > whole:
        settings = "the one setting" if whole == 1 else f"each of the {whole:,} settings"
        raise PreqError(f"{sampler} tries {settings} of the space once, got {num_trials:,} trials; ask for {whole}")
