"""The events a plan is made of. Positions are 0-based, spans half-open.

A plan says *what* happens, in order; a learner decides how. No event looks at a label
that an earlier Predict has not revealed: `Plan.check` proves it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Predict:
    """Code the labels of positions start … stop−1, then reveal them.

    With `uniform`, every class gets probability 1/C and no model is asked.
    """

    start: int
    stop: int
    uniform: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OnExamples:
    """An event that uses the examples at `indices`, which are already revealed."""

    indices: Indices

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OnExamples) and type(other) is type(self) and np.array_equal(self.indices, other.indices)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.indices.tobytes()))


class Calibrate(OnExamples):
    """One gradient step on the temperature."""

    __slots__ = ()


class Train(OnExamples):
    """One gradient step on the weights, on the whole batch."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reinit:
    """Fresh weights, optimizer, EMA and temperature."""


@dataclass(frozen=True, slots=True)
class ShrinkPerturb:
    """θ ← shrink·θ + perturb·(fresh initialisation) for every parameter."""

    shrink: float
    perturb: float


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Measure loss and error on the held-out data. Never charged, never used to choose."""


Event = Predict | Calibrate | Train | Reinit | ShrinkPerturb | Evaluate
