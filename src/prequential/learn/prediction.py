"""What a learner says about a span before it sees the labels: all at once, or label by label."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from prequential.events import Indices

AT_ONCE, AT_ONCE_ON_A_CPU = 512, 64


def heldout_parts(num_examples: int, device: torch.device | None = None) -> Iterator[Indices]:
    """The positions of held-out examples that are predicted at once: on a CPU few, since what a network makes of more
    is large, and is fetched page by page (`benchmarks/memory.txt`). Without a device nobody is a network.

    Example:
        >>> [len(positions) for positions in heldout_parts(150, torch.device("cpu"))]
        [64, 64, 22]
    """
    size = AT_ONCE_ON_A_CPU if device is not None and device.type == "cpu" else AT_ONCE
    return (np.arange(start, min(start + size, num_examples)) for start in range(0, num_examples, size))


class Predicted(Protocol):
    """What is said of a span, whoever says it: see `prequential.coding.labels.Predictor` for the first three."""

    def rows(self) -> Tensor | None: ...
    def row(self) -> Tensor: ...
    def tell(self, label: int) -> None: ...
    def measured(self, labels: Tensor) -> Tensor:
        """See `Prediction`; below the rows named there may be more."""

    @property
    def temperature(self) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class Prediction:
    """Probabilities of all symbols at each position; tensors on the learner's device, members first if any."""

    log_probabilities: Tensor
    """Calibrated, float64, one row per position: what is charged."""
    uncalibrated: Tensor
    """The same at temperature 1."""
    temperature: Tensor
    """softplus(β), the factor on the logits."""

    def rows(self) -> Tensor:
        """Everything is known at once."""
        return self.log_probabilities

    def row(self) -> Tensor:
        """Nobody asks for single rows of what is known at once."""
        raise NotImplementedError

    def tell(self, label: int) -> None:
        """Nor is a label needed."""
        raise NotImplementedError

    def measured(self, labels: Tensor) -> Tensor:
        """Of each member and each position: nats, the same uncalibrated, the label, the most probable one and its
        probability; float64 (members, 5, positions)."""
        both = self.log_probabilities, self.uncalibrated
        charged, uncalibrated = (rows if rows.dim() == 3 else rows[None] for rows in both)
        column = labels[None, :, None].expand(len(charged), -1, 1)
        confidence, predicted = charged.max(dim=2)
        rows = [
            -charged.gather(2, column)[:, :, 0],
            -uncalibrated.gather(2, column)[:, :, 0],
            labels.double().expand(len(charged), -1),
            predicted.double(),
            confidence.exp(),
        ]
        return torch.stack(rows, dim=1)

    def copied(self, num_positions: int) -> "Prediction":
        """Of the first positions, in memory of its own."""
        both = self.log_probabilities, self.uncalibrated
        charged, uncalibrated = (rows[..., :num_positions, :].clone() for rows in both)
        return Prediction(charged, uncalibrated, self.temperature.clone())

    def of_members(self, number: int) -> "Prediction":
        """The same for each of so many members."""
        rows = self.log_probabilities.expand(number, -1, -1)
        return Prediction(rows, rows, self.temperature.expand(number))


class Stepwise(ABC):
    """A prediction that needs each label of a span before it can say the next. Derive from it and write `next_row`."""

    def __init__(self) -> None:
        self.told: list[int] = []
        """The labels of the span that are known."""
        self._given: list[Tensor] = []

    @abstractmethod
    def next_row(self) -> Tensor:
        """ln p of each class for the label after those that were `told`: float64, and a pure function of them."""

    def rows(self) -> Tensor | None:
        """Nothing is known at once."""
        return None

    def row(self) -> Tensor:
        """Of the next label; kept, for whoever records what was charged."""
        self._given.append(self.next_row())
        return self._given[-1]

    def tell(self, label: int) -> None:
        """The label that the last row was about."""
        self.told.append(label)

    def measured(self, labels: Tensor) -> Tensor:
        """As of a `Prediction`, when all labels are told; it has no temperature."""
        rows = torch.stack(self._given)
        return Prediction(rows, rows, self.temperature).measured(labels)

    @property
    def temperature(self) -> Tensor:
        """That of logits which are left alone."""
        return torch.ones((), dtype=torch.float64, device=self._given[0].device)
