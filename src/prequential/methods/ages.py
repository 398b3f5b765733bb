"""Age laws: how much a replayed example of age a counts. λ (`scale`) is in examples.

Streams move by blocks of u examples: the sum of p over a block of ages decides how often it is read, and inside a block
all ages are read equally often.

To add a law, write a frozen dataclass with `weights` and list it in AGE_LAWS.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, require_number

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
class Exponential:
    """p(a) ∝ exp(−a/λ): forgets at a fixed rate."""

    scale: float

    def __post_init__(self) -> None:
        require_number("the scale of the age law", self.scale, above=0)

    def weights(self, ages: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.exp(-(ages - 1) / self.scale)


@dataclass(frozen=True)
class Pareto:
    """p(a) ∝ (1 + a/λ)^−(α+1), α = log₄5: recent first, with a long tail. λ → ∞ is uniform."""

    scale: float

    def __post_init__(self) -> None:
        require_number("the scale of the age law", self.scale, above=0)

    def weights(self, ages: NDArray[np.int64]) -> NDArray[np.float64]:
        relative: NDArray[np.float64] = (1 + ages / self.scale) / (1 + 1 / self.scale)
        return relative ** -(PARETO_SHAPE + 1)


UNIFORM = Uniform()
AGE_LAWS = {"uniform": Uniform, "exponential": Exponential, "pareto": Pareto}


def age_law(name: str, scale: float | None) -> AgeLaw:
    """The law of that name; `scale` belongs to every law but the uniform one.

    Example:
        >>> age_law("pareto", 180.0)
        Pareto(scale=180.0)
    """
    if name == "uniform":
        if scale is not None:
            raise PreqError(f"the uniform age law has no scale, got {scale:g}; leave it out or choose another law")
        return Uniform()
    if scale is None:
        raise PreqError(f"the {name} age law needs a scale in examples, such as 2000")
    return Exponential(scale) if name == "exponential" else Pareto(scale)
