"""The formulas of learning, each as one pure function."""

import math
from typing import TypeVar, overload

import torch
from torch import Tensor
from torch.nn import functional as F

Number = TypeVar("Number", float, Tensor)
INITIAL_BETA = math.log(math.e - 1)
"""β₀ = ln(e − 1), so that the temperature factor softplus(β₀) is 1."""
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""(a, b, c) of Jordan et al. (2024): a few times σ ↦ aσ + bσ³ + cσ⁵ takes all but the smallest σ ≤ 1 to about 1."""
NEWTON_SCHULZ_STEPS = 5


def per_member(vector: Tensor, tensor: Tensor) -> Tensor:
    """A vector with a number for each member, in the type of a tensor whose first axis counts them, and in a shape that
    broadcasts with it.

    Example:
        >>> per_member(torch.ones(2), torch.zeros(2, 3, 4)).shape
        torch.Size([2, 1, 1])
    """
    return vector.to(tensor.dtype).view(-1, *[1] * (tensor.dim() - 1))


def temperature(beta: Tensor) -> Tensor:
    """softplus(β): what the logits are multiplied with."""
    return F.softplus(beta)


def ema_step_size(step_size: Number, num_steps: Number, *, warmup: bool) -> Number:
    """α_n = max(α, min(1, 5/n)) in the n-th training step since the last fresh start, from 1.

    Example:
        >>> [ema_step_size(0.02, n, warmup=True) for n in (1, 10, 1000)]
        [1.0, 0.5, 0.02]
        >>> ema_step_size(torch.tensor([0.02, 0.7]), torch.tensor(10.0), warmup=True)
        tensor([0.5000, 0.7000])
    """
    if not warmup:
        return step_size
    if isinstance(step_size, Tensor):
        return torch.maximum((5 / num_steps).clamp(max=1.0), step_size)
    return max(step_size, min(1.0, 5 / num_steps))


@overload
def learning_rate(rate: float, num_steps: int, *, full_steps: int) -> float: ...
@overload
def learning_rate(rate: float | Tensor, num_steps: Tensor, *, full_steps: int | Tensor) -> Tensor: ...
def learning_rate(rate: float | Tensor, num_steps: int | Tensor, *, full_steps: int | Tensor) -> float | Tensor:
    """The rate of the n-th training step since the last fresh start, from 1: it falls as √(n₀/n) from step n₀ on.

    Example:
        >>> [learning_rate(0.1, n, full_steps=100) for n in (1, 100, 400)]
        [0.1, 0.1, 0.05]
        >>> learning_rate(torch.tensor([0.1, 0.1]), torch.tensor(400.0), full_steps=torch.tensor([100, 0]))
        tensor([0.0500, 0.1000])
    """
    if isinstance(num_steps, Tensor):
        falling = rate * (full_steps / num_steps).clamp(max=1.0).sqrt()
        return torch.where(full_steps > 0, falling, rate) if isinstance(full_steps, Tensor) else falling
    return rate * math.sqrt(min(1.0, full_steps / num_steps)) if full_steps else rate


def average(averaged: list[Tensor], raw: list[Tensor], step_size: Tensor) -> None:
    """θ̄ ← θ̄ + α(θ − θ̄) in place, with an α that lives on the device."""
    difference = torch._foreach_sub(raw, averaged)
    torch._foreach_mul_(difference, step_size)
    torch._foreach_add_(averaged, difference)


def orthogonalised(matrix: Tensor) -> Tensor:
    """About UVᵀ of a matrix USVᵀ: X ← aX + (bXXᵀ + c(XXᵀ)²)X, five times, from X = matrix / ‖matrix‖.

    Singular values of at least 0.0015 ‖matrix‖ come out between 0.68 and 1.21. Several matrices of one shape may lie
    along a first axis.

    Example:
        >>> orthogonalised(torch.tensor([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])).round(decimals=2)
        tensor([[0.0000, 0.6800],
                [1.1200, 0.0000],
                [0.0000, 0.0000]])
    """
    a, b, c = NEWTON_SCHULZ
    is_tall = matrix.shape[-2] > matrix.shape[-1]
    wide = matrix.mT if is_tall else matrix
    wide = wide / wide.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    added = torch.addmm if wide.dim() == 2 else torch.baddbmm
    for _ in range(NEWTON_SCHULZ_STEPS):
        products = wide @ wide.mT
        wide = added(wide, added(products, products, products, beta=b, alpha=c), wide, beta=a)
    return wide.mT if is_tall else wide
