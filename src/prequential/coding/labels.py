"""The one border that labels cross.

The loop asks for a prediction first and for the labels afterwards. Who answers decides what the run
is: a scorer knows the labels. Learners only ever see labels that were revealed.
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from prequential.data.sequence import DataSequence
from prequential.events import Indices

HIDDEN = -1
"""Stands where a label has not been revealed; no loss accepts it."""


class Labels(Protocol):
    """Labels that appear as the run goes. Spans are revealed once, in order."""

    def reveal(self, start: int, stop: int, log_probabilities: Tensor) -> Tensor:
        """The labels of a span, given what was predicted for it."""

    def of(self, indices: Indices) -> Tensor:
        """Revealed labels at these positions."""


class Scorer:
    """Knows the labels from the start and reveals them without making the device wait."""

    def __init__(self, data: DataSequence, device: torch.device) -> None:
        self._true = data.labels(np.arange(len(data))).to(device)
        self._revealed = torch.full_like(self._true, HIDDEN)

    def reveal(self, start: int, stop: int, log_probabilities: Tensor) -> Tensor:
        self._revealed[start:stop] = self._true[start:stop]
        return self._revealed[start:stop]

    def reveal_all(self) -> None:
        """For methods that are not prequential."""
        self._revealed.copy_(self._true)

    def of(self, indices: Indices) -> Tensor:
        return self._revealed.index_select(0, torch.from_numpy(indices).to(self._revealed.device))
