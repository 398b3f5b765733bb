"""What a learner says about a span before it sees the labels."""

import math
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
