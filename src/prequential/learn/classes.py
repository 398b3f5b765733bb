"""The half of classes that computes: softmax, cross-entropy, and the temperature on the logits."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from prequential.learn.functional import per_member, temperature
from prequential.learn.kinds import TargetTensors, tensors_of
from prequential.learn.prediction import Prediction
from prequential.targets import Classes


def log_probabilities(logits: Tensor, beta: Tensor) -> Tensor:
    """ln softmax(softplus(β)·h) in float64.

    Example:
        >>> log_probabilities(torch.tensor([[0.0, 0.0]]), torch.tensor(math.log(math.e - 1))).exp()
        tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    return F.log_softmax(temperature(beta).double() * logits.double(), dim=-1)


def cross_entropy_gradient(logits: Tensor, labels: Tensor, smoothing: float | Tensor) -> Tensor:
    """d/dh of the mean cross-entropy with smoothed targets, written out: (softmax(h) − q) / n.

    With C classes q is 1 − ε + ε/C at the label and ε/C elsewhere. Nobody asks for the loss itself,
    so training starts its backward pass here. With a vector of ε, one for each member, the members come first in
    `logits`, and all have the same labels.

    Example:
        >>> cross_entropy_gradient(torch.zeros(1, 2), torch.tensor([1]), smoothing=0.0)
        tensor([[ 0.5000, -0.5000]])
        >>> cross_entropy_gradient(torch.zeros(2, 1, 2), torch.tensor([1]), torch.tensor([0.0, 0.5]))[:, 0]
        tensor([[ 0.5000, -0.5000],
                [ 0.2500, -0.2500]])
    """
    num_examples, num_classes = logits.shape[-2:]
    if isinstance(smoothing, Tensor):
        smoothing = per_member(smoothing, logits)
        at_label = (smoothing - 1).expand(*logits.shape[:-1], 1)
    else:
        at_label = torch.full((num_examples, 1), smoothing - 1, dtype=logits.dtype, device=logits.device)
    gradient = torch.softmax(logits, dim=-1).sub_(smoothing / num_classes)
    return gradient.scatter_add_(-1, labels[:, None].expand_as(at_label), at_label).div_(num_examples)


def calibration_gradient(logits: Tensor, labels: Tensor, beta: Tensor, count: Tensor | None = None) -> Tensor:
    """d/dβ of the mean of −ln softmax(softplus(β)·h)_y, written out.

    With s = softplus(β): d/ds = E_p[h] − h_y, and ds/dβ = sigmoid(β). Only the first `count` rows count.
    """
    logits = logits.double()
    probabilities = log_probabilities(logits, beta).exp()
    expected = (probabilities * logits).sum(-1)
    observed = logits.gather(-1, labels[:, None])[:, 0]
    if count is None:
        return torch.sigmoid(beta) * (expected - observed).mean()
    counts = torch.arange(len(logits), device=logits.device) < count
    return torch.sigmoid(beta) * torch.where(counts, expected - observed, 0.0).sum() / count


@dataclass(frozen=True)
class ClassTensors:
    """Outputs are logits, one for each class."""

    num_classes: int

    loss_gradient = staticmethod(cross_entropy_gradient)
    calibration_gradient = staticmethod(calibration_gradient)

    def prediction(self, outputs: Tensor, beta: Tensor) -> Prediction:
        """softmax(softplus(β)·h); where there are members, each has its β."""
        scale = beta if outputs.dim() == 2 else beta[:, None, None]
        return Prediction(log_probabilities(outputs, scale), F.log_softmax(outputs.double(), dim=-1), temperature(beta))

    def uniform(self, num_positions: int, device: torch.device) -> Prediction:
        """Probability 1/C for every class.

        Example:
            >>> ClassTensors(2).uniform(1, torch.device("cpu")).log_probabilities.exp()
            tensor([[0.5000, 0.5000]], dtype=torch.float64)
        """
        level = -math.log(self.num_classes)
        flat = torch.full((num_positions, self.num_classes), level, dtype=torch.float64, device=device)
        return Prediction(flat, flat, torch.ones((), dtype=torch.float64, device=device))


@tensors_of.register
def _(target: Classes) -> TargetTensors:
    return ClassTensors(target.num_classes)
