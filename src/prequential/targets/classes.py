"""Classes: one of C, coded by the probabilities of all of them. No torch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError


@dataclass(frozen=True)
class Classes:
    """A class among `num_classes`, as a whole number from 0.

    Example:
        >>> Classes(10).output_size, Classes(10).dtype
        (10, dtype('uint8'))
    """

    num_classes: int

    @property
    def output_size(self) -> int:
        """A logit for each class."""
        return self.num_classes

    @property
    def output_words(self) -> str:
        """In words."""
        return f"one logit for each of the {self.num_classes} classes"

    @property
    def num_symbols(self) -> int:
        """A class is one symbol."""
        return self.num_classes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest that holds them."""
        return np.min_scalar_type(self.num_classes - 1)

    def facts(self) -> dict[str, Any]:
        """The number of classes."""
        return {"num_classes": int(self.num_classes)}

    def require(self, targets: NDArray[Any]) -> None:
        """Refuse labels outside the range.

        Example:
            >>> Classes(3).require(np.array([0, 3]))
            Traceback (most recent call last):
            ...
            prequential.errors.PreqError: labels must be in 0 … 2, got 3
        """
        bad = targets[(targets < 0) | (targets >= self.num_classes)]
        if len(bad):
            raise PreqError(f"labels must be in 0 … {self.num_classes - 1}, got {bad[0]}")
