"""What a setting of a trial is drawn from. No torch; Optuna only where a study asks."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from prequential.errors import PreqError, require_count, require_flag, require_number

if TYPE_CHECKING:
    from optuna.trial import Trial


@runtime_checkable
class Distribution(Protocol):
    """The contract of a distribution: `draw` is a pure function, and what Optuna holds can be turned back."""

    def draw(self, uniform: float) -> Any:
        """The value at this share of the distribution, 0 ≤ uniform < 1."""

    def label(self, value: Any) -> Any:
        """What a study holds for the value."""

    def suggest(self, trial: "Trial", name: str) -> Any:
        """The value that Optuna's sampler chooses; the one it chose before, where it has."""

    def grid(self, size: int) -> "Choice":
        """A few values in place of all of them."""


@dataclass(frozen=True)
class Between:
    """Every number between two bounds alike.

    Example:
        >>> Between(0.0, 2.0).draw(0.25), Between(1, 3, whole=True).draw(0.99)
        (0.5, 3)
    """

    name_in_files: ClassVar[str] = "uniform"
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

    def label(self, value: Any) -> Any:
        return value

    def suggest(self, trial: "Trial", name: str) -> Any:
        log = isinstance(self, LogUniform)
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=log)
        return trial.suggest_float(name, self.low, self.high, log=log)

    def draw(self, uniform: float) -> float:
        if self.whole:
            return int(self.low) + int(uniform * (self.high - self.low + 1))
        return min(self._at(uniform, self.low, self.high), self.high)

    def grid(self, size: int) -> "Choice":
        require_count("the size of a grid", size, at_least=2)
        exact = [self._at(index / (size - 1), self.low, self.high) for index in range(size)]
        return Choice(tuple(dict.fromkeys(round(x) if self.whole else x for x in exact)))

    def _at(self, share: float, low: float, high: float) -> float:
        return low + share * (high - low)


class LogUniform(Between):
    """Every order of magnitude between two positive bounds alike.

    Whole numbers are rounded from low − ½ … high + ½, as Optuna does.

    Example:
        >>> LogUniform(1e-4, 1.0).draw(0.5), LogUniform(25, 100, whole=True).draw(0.5)
        (0.01, 50)
    """

    name_in_files = "loguniform"
    least = (0, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("low", self.low, above=0)

    def draw(self, uniform: float) -> float:
        if self.whole:
            number = math.floor(self._at(uniform, self.low - 0.5, self.high + 0.5) + 0.5)
            return int(min(max(number, self.low), self.high))
        return min(max(self._at(uniform, self.low, self.high), self.low), self.high)

    def _at(self, share: float, low: float, high: float) -> float:
        return float(low) if share == 0 else float(high) if share == 1 else low * (high / low) ** share


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

    def grid(self, size: int) -> "Choice":
        return self
