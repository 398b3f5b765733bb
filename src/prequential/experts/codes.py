"""Simple codes as experts: they look at labels alone, and learn from each before the next is predicted. No torch."""

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

MOST_CLASSES = 4096
"""The code by the previous label counts pairs of labels, which take room."""
Floats = NDArray[np.float64]


class SimpleCodes:
    """The codes of `prequential.targets.simple_codes`, a row of log-probabilities each, one label at a time.

    Example:
        >>> codes = SimpleCodes(2)
        >>> for label in (1, 1, 1):
        ...     codes.tell(label)
        >>> np.exp(codes.rows()).round(3)
        array([[0.5  , 0.5  ],
               [0.125, 0.875],
               [0.167, 0.833]])
    """

    names = ("uniform", "frequencies", "previous label")

    def __init__(self, num_classes: int) -> None:
        if num_classes > MOST_CLASSES:
            raise PreqError(f"simple codes are for at most {MOST_CLASSES} classes, the data has {num_classes}")
        self._num_classes = num_classes
        self._rows = np.full((3, num_classes), -np.log(num_classes))
        self._counts = np.zeros(num_classes, np.int64)
        self._pairs = np.zeros((num_classes + 1, num_classes), np.int64)
        self._previous = num_classes  # the first label follows none

    def rows(self) -> Floats:
        """ln p of each class by each code, for the next label."""
        for number, counts in ((1, self._counts), (2, self._pairs[self._previous])):
            self._rows[number] = np.log((counts + 0.5) / (counts.sum() + self._num_classes / 2))
        return self._rows

    def tell(self, label: int) -> None:
        """The label that `rows` were about."""
        self._counts[label] += 1
        self._pairs[self._previous, label] += 1
        self._previous = label

    def state(self) -> dict[str, NDArray[np.int64]]:
        """Everything that later rows depend on."""
        return {"counts": self._counts, "pairs": self._pairs, "previous": np.array([self._previous])}

    def restore(self, state: dict[str, NDArray[np.int64]]) -> None:
        """Go back to a `state`."""
        for name, mine in self.state().items():
            if state[name].shape != mine.shape or (state[name] < 0).any():
                raise PreqError(f"the state of the simple codes is damaged: {name} are no counts of this data")
        if (previous := int(state["previous"][0])) > self._num_classes:
            raise PreqError(f"the state of the simple codes is damaged: there is no label {previous}")
        self._counts[:], self._pairs[:], self._previous = state["counts"], state["pairs"], previous
