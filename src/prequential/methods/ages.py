"""Age laws: how much a replayed example of age a counts. λ (`scale`) is in examples.

Streams move by blocks of u examples: the sum of p over a block of ages decides how often it is read, and inside a block
all ages are read equally often.

To add a law, write a frozen dataclass with `weights` and list it in AGE_LAWS.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, require_number, unknown_name

PARETO_SHAPE = math.log(5) / math.log(4)


class AgeLaw(Protocol):
    """p(a) for whole ages a ≥ 1, up to a constant; positive at 1, never increasing. Pure."""

    def weights(self, ages: NDArray[np.int64]) -> NDArray[np.float64]:
        """p(a) for every age."""


@dataclass(frozen=True)
class Uniform:
    """p(a) ∝ 1: every revealed example alike. The best for i.i.d. data."""

    def weights(self, ages: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.ones(len(ages))


@dataclass(frozen=True)
class _Scaled:
    scale: float
    """λ, in examples."""

    def __post_init__(self) -> None:
        require_number("the scale of the age law", self.scale, above=0)


@dataclass(frozen=True)
class Exponential(_Scaled):
    """p(a) ∝ exp(−a/λ): forgets at a fixed rate."""

    def weights(self, ages: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.exp(-(ages - 1) / self.scale)


@dataclass(frozen=True)
class Pareto(_Scaled):
    """p(a) ∝ (1 + a/λ)^−(α+1), α = log₄5: recent first, with a long tail. λ → ∞ is uniform."""

    def weights(self, ages: NDArray[np.int64]) -> NDArray[np.float64]:
        relative: NDArray[np.float64] = (1 + ages / self.scale) / (1 + 1 / self.scale)
        return relative ** -(PARETO_SHAPE + 1)


UNIFORM = Uniform()
AGE_LAWS: dict[str, type[Any]] = {"uniform": Uniform, "exponential": Exponential, "pareto": Pareto}


def age_law(name: str = "uniform", scale: float | None = None) -> AgeLaw:
    """The law of that name; `scale` belongs to every law but the uniform one.

    Example:
        >>> age_law("pareto", 180.0)
        Pareto(scale=180.0)
    """
    if name not in list(AGE_LAWS):
        raise unknown_name("age law", name, AGE_LAWS)
    if name == "uniform" and scale is not None:
        raise PreqError(f"the uniform age law has no scale, got {scale}; leave it out or choose another law")
    if name != "uniform" and scale is None:
        raise PreqError(f"the {name} age law needs a scale in examples, such as 2000")
    law: AgeLaw = AGE_LAWS[name]() if scale is None else AGE_LAWS[name](scale)
    return law


def require_age_law(law: Any) -> None:
    """Refuse what is no law of ages."""
    if not callable(getattr(law, "weights", None)):
        raise PreqError(f"age_law must be a law such as Pareto(scale=2000.0), got {law}")
