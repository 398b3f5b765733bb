"""The contract of a kind of target. No torch."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Target(Protocol):
    """What is coded at a position, whatever the network: a pure value that can be compared and sent elsewhere.

    A kind of your own has these members, and a half that computes: register it with
    `prequential.learn.kinds.tensors_of.register`. A sequence says what its targets are by a member `target`.
    """

    @property
    def output_size(self) -> int:
        """How many numbers the network must give for an input."""

    @property
    def output_words(self) -> str:
        """What these are, for whoever built a network that gives others."""

    @property
    def num_symbols(self) -> int:
        """The size of the alphabet that a target is written in."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of targets in a record."""

    def facts(self) -> dict[str, Any]:
        """The terms of the message: what both ends must know. `num_classes` is always there; another kind than
        classes also has `target`, an object with its `kind`."""

    def require(self, targets: NDArray[Any]) -> None:
        """Refuse targets that are none of this kind."""
