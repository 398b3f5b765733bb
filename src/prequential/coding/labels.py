"""The one border that labels cross.

The loop asks for a prediction first and for the labels afterwards. Who answers decides what the run
is: a scorer knows the labels. Learners only ever see labels that were revealed.
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.events import Indices

HIDDEN = -1
"""Stands where a label has not been revealed; no loss accepts it."""


class Labels(Protocol):
    """Labels that appear as the run goes. Spans are revealed once, in order."""

    def reveal(self, start: int, stop: int, log_probabilities: Tensor) -> Tensor:
        """The labels of a span, given what was predicted for it."""

    def of(self, indices: Indices) -> Tensor:
        """Revealed labels at these positions; any other position is a mistake of the plan."""

    def reveal_all(self) -> None:
        """For methods that are not prequential."""


class Scorer:
    """Knows the labels from the start and reveals them without making the device wait."""

    def __init__(self, data: DataSequence, device: torch.device) -> None:
        self._true = data.labels(np.arange(len(data))).to(device)
        self._revealed = torch.full_like(self._true, HIDDEN)
        self._frontier = 0

    def reveal(self, start: int, stop: int, log_probabilities: Tensor) -> Tensor:
        if start != self._frontier or not start < stop <= len(self._true):
            raise PreqError(
                f"the plan predicts [{start}, {stop}), but the next label is {self._frontier} of {len(self._true)}; "
                "predict every position once, in order"
            )
        self._frontier = stop
        self._revealed[start:stop] = self._true[start:stop]
        return self._revealed[start:stop]

    def reveal_all(self) -> None:
        """For methods that are not prequential."""
        self.catch_up(len(self._true))

    def catch_up(self, frontier: int) -> None:
        """Reveal every label before `frontier`: they were coded before the run was interrupted."""
        self._frontier = frontier
        self._revealed[:frontier] = self._true[:frontier]

    def of(self, indices: Indices) -> Tensor:
        if not len(indices) or indices.min() < 0 or indices.max() >= self._frontier:
            raise PreqError(
                f"the plan learns from positions {indices[:3]}…, but only [0, {self._frontier}) is revealed; "
                "learn only from labels that were predicted"
            )
        return self._revealed.index_select(0, torch.from_numpy(indices).to(self._revealed.device))
