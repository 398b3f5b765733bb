"""What a learner says about a span before it sees the labels: all at once, or label by label."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from prequential.learn import functional


@dataclass(frozen=True, slots=True)
class Prediction:
    """Probabilities of the classes; tensors on the learner's device."""

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

    @staticmethod
    def of(logits: Tensor, beta: Tensor) -> "Prediction":
        """What logits say at temperature softplus(β)."""
        return Prediction(
            functional.log_probabilities(logits, beta),
            F.log_softmax(logits.double(), dim=-1),
            functional.temperature(beta),
        )

    @staticmethod
    def uniform(num_positions: int, num_classes: int, device: torch.device) -> "Prediction":
        """Probability 1/C for every class.

        Example:
            >>> Prediction.uniform(1, 2, torch.device("cpu")).log_probabilities.exp()
            tensor([[0.5000, 0.5000]], dtype=torch.float64)
        """
        flat = torch.full((num_positions, num_classes), -math.log(num_classes), dtype=torch.float64, device=device)
        return Prediction(flat, flat, torch.ones((), dtype=torch.float64, device=device))


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

    @property
    def log_probabilities(self) -> Tensor:
        """What was charged, when all labels are told."""
        return torch.stack(self._given)

    @property
    def uncalibrated(self) -> Tensor:
        """The same: it has no temperature."""
        return self.log_probabilities

    @property
    def temperature(self) -> Tensor:
        """That of logits which are left alone."""
        return torch.ones((), dtype=torch.float64, device=self._given[0].device)
