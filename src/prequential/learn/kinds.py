"""The half of a kind of target that computes: found by the target's class, so that nobody else knows the kinds."""

from functools import singledispatch
from typing import Protocol

import torch
from torch import Tensor

from prequential.errors import PreqError
from prequential.learn.prediction import Prediction


class TargetTensors(Protocol):
    """What learners do with the outputs of a network. Pure functions; members come first where there are several."""

    def loss_gradient(self, outputs: Tensor, labels: Tensor, smoothing: float | Tensor) -> Tensor:
        """d/d outputs of the mean training loss, where the backward pass begins."""

    def calibration_gradient(self, outputs: Tensor, labels: Tensor, beta: Tensor, count: Tensor | None) -> Tensor:
        """d/dβ of the mean codelength of the first `count` (None: all) at temperature softplus(β)."""

    def prediction(self, outputs: Tensor, beta: Tensor) -> Prediction:
        """What the outputs say at temperature softplus(β)."""

    def uniform(self, num_positions: int, device: torch.device) -> Prediction:
        """What one says who knows nothing."""


@singledispatch
def tensors_of(target: object) -> TargetTensors:
    """The half that computes, for a target. Another kind registers its own."""
    raise PreqError(
        f"nobody computes with targets of the kind {type(target).__name__}; register what does with tensors_of.register"
    )
