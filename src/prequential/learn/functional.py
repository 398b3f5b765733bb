"""The formulas of learning, each as one pure function."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

INITIAL_BETA = math.log(math.e - 1)
"""β₀ = ln(e − 1), so that the temperature factor softplus(β₀) is 1."""


def temperature(beta: Tensor) -> Tensor:
    """softplus(β): what the logits are multiplied with."""
    return F.softplus(beta)


def log_probabilities(logits: Tensor, beta: Tensor) -> Tensor:
    """ln softmax(softplus(β)·h) in float64.

    Example:
        >>> log_probabilities(torch.tensor([[0.0, 0.0]]), torch.tensor(INITIAL_BETA)).exp()
        tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    return F.log_softmax(temperature(beta).double() * logits.double(), dim=-1)


def cross_entropy_gradient(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """d/dh of the mean cross-entropy with smoothed targets, written out: (softmax(h) − q) / n.

    With C classes q is 1 − ε + ε/C at the label and ε/C elsewhere. Nobody asks for the loss itself,
    so training starts its backward pass here.

    Example:
        >>> cross_entropy_gradient(torch.zeros(1, 2), torch.tensor([1]), smoothing=0.0)
        tensor([[ 0.5000, -0.5000]])
    """
    num_examples, num_classes = logits.shape
    gradient = torch.softmax(logits, dim=-1).sub_(smoothing / num_classes)
    at_label = torch.full((num_examples, 1), smoothing - 1, dtype=gradient.dtype, device=gradient.device)
    return gradient.scatter_add_(1, labels[:, None], at_label).div_(num_examples)


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


def ema_step_size(step_size: float, num_steps: int, *, warmup: bool) -> float:
    """α_n = max(α, min(1, 5/n)) in the n-th training step since the last fresh start, from 1.

    Example:
        >>> [ema_step_size(0.02, n, warmup=True) for n in (1, 10, 1000)]
        [1.0, 0.5, 0.02]
    """
    return max(step_size, min(1.0, 5 / num_steps)) if warmup else step_size


def learning_rate(rate: float, num_steps: int, *, full_steps: int) -> float:
    """The rate of the n-th training step since the last fresh start, from 1: it falls as √(n₀/n) from step n₀ on.

    Example:
        >>> [learning_rate(0.1, n, full_steps=100) for n in (1, 100, 400)]
        [0.1, 0.1, 0.05]
    """
    return rate if not full_steps else rate * min(1.0, math.sqrt(full_steps / num_steps))


def average(averaged: list[Tensor], raw: list[Tensor], step_size: Tensor) -> None:
    """θ̄ ← θ̄ + α(θ − θ̄) in place, with an α that lives on the device."""
    difference = torch._foreach_sub(raw, averaged)
    torch._foreach_mul_(difference, step_size)
    torch._foreach_add_(averaged, difference)
