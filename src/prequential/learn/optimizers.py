"""AdamW, RMSProp, SGD with momentum and Muon over plain lists of tensors.

The arithmetic is that of `torch.optim`, by its fused kernels where there are any; what is left out is its per-step
bookkeeping. State is explicit: lists of tensors by name. Weight decay is decoupled in all of them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from prequential.learn.functional import orthogonalised
from prequential.learn.recipe import Recipe

Rate: TypeAlias = float | Tensor
"""A learning rate, which may live on the device."""
BETA2 = 0.999
"""Of adamw; its beta1 is the recipe's momentum."""
AS_LARGE_AS_ADAMW = 0.2
"""Root mean square of the orthogonal moves of muon, in units of the rate: about that of adamw's (Liu et al. 2025)."""
_FUSED_ADAMW = partial(adamw, beta2=BETA2, amsgrad=False, maximize=False, fused=True)
_FUSED_SGD = partial(sgd, weight_decay=0.0, dampening=0.0, nesterov=False, maximize=False, fused=True)


class Optimizer(ABC):
    """One gradient step at a time, in place. State starts at zero: lists with a tensor for each parameter that has
    it, of its shape except for the number of steps."""

    state_names: tuple[str, ...]

    def __init__(self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float) -> None:
        self._parameters, self._rate, self._decay = parameters, rate, decay
        self._momentum, self._eps = recipe.momentum, recipe.eps
        self.state = {name: [self._zeros(name, parameter) for parameter in parameters] for name in self.state_names}

    @property
    def num_parameters(self) -> int:
        """Tensors that it moves."""
        return len(self._parameters)

    @staticmethod
    def _zeros(name: str, parameter: Tensor) -> Tensor:
        return parameter.new_zeros((), dtype=torch.float32) if name == "step" else torch.zeros_like(parameter)

    @abstractmethod
    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        """Move the parameters against the gradients.

        Args:
            gradients: one for each parameter.
            rate: another learning rate than its own.
            in_pieces: leave out torch's fused kernels, for a compiler that fuses what it sees.
        """

    def reset(self) -> None:
        """Back to the state before the first step."""
        for tensors in self.state.values():
            torch._foreach_zero_(tensors)

    def _shrink(self, rate: Rate) -> None:
        torch._foreach_mul_(self._parameters, 1 - rate * self._decay)

    def _add_scaled(self, moves: list[Tensor], scale: Rate) -> None:
        """θ ← θ + scale·move, where the scale may live on the device."""
        if isinstance(scale, Tensor):
            torch._foreach_add_(self._parameters, torch._foreach_mul(moves, scale.to(moves[0].dtype)))
        else:
            torch._foreach_add_(self._parameters, moves, alpha=scale)


def _laid_out(gradients: list[Tensor], parameters: list[Tensor]) -> list[Tensor]:
    """The gradients in the memory layout of their parameters, which fused kernels take for granted."""
    return [
        gradient if gradient.stride() == parameter.stride() else torch.empty_like(parameter).copy_(gradient)
        for gradient, parameter in zip(gradients, parameters, strict=True)
    ]


class AdamW(Optimizer):
    """Adam with decoupled weight decay."""

    state_names = ("mean", "square", "step")

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        rate = self._rate if rate is None else rate
        if in_pieces:
            self._step_in_pieces(gradients, rate)
            return
        mean, square, step = self.state.values()
        gradients = _laid_out(gradients, self._parameters)
        rate = rate.float() if isinstance(rate, Tensor) and rate.is_cuda else rate  # the kernel takes no other type
        fused = partial(_FUSED_ADAMW, lr=rate, beta1=self._momentum, eps=self._eps, weight_decay=self._decay)
        fused(self._parameters, gradients, mean, square, [], step)

    def _step_in_pieces(self, gradients: list[Tensor], rate: Rate) -> None:
        """The same, written so that a compiler can fuse it with what stands before and after."""
        mean, square, step = self.state.values()
        torch._foreach_add_(step, 1)
        num_steps = step[0].to(mean[0].dtype)
        self._shrink(rate)
        torch._foreach_lerp_(mean, gradients, 1 - self._momentum)
        torch._foreach_mul_(square, BETA2)
        torch._foreach_addcmul_(square, gradients, gradients, 1 - BETA2)
        scale = torch._foreach_sqrt(square)
        torch._foreach_mul_(scale, (1 - BETA2**num_steps).rsqrt())
        torch._foreach_add_(scale, self._eps)
        self._add_scaled(list(torch._foreach_div(mean, scale)), -rate / (1 - self._momentum**num_steps))


class RMSProp(Optimizer):
    """RMSProp with momentum."""

    state_names = ("square", "momentum")

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        rate = self._rate if rate is None else rate
        square, momentum = self.state.values()
        self._shrink(rate)
        torch._foreach_mul_(square, 0.99)
        torch._foreach_addcmul_(square, gradients, gradients, 0.01)
        scale = torch._foreach_sqrt(square)
        torch._foreach_add_(scale, self._eps)
        torch._foreach_mul_(momentum, self._momentum)
        torch._foreach_addcdiv_(momentum, gradients, scale)
        self._add_scaled(momentum, -rate)


class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    state_names = ("momentum",)

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        rate = self._rate if rate is None else rate
        self._shrink(rate)
        momentum = self.state["momentum"] if self._momentum else []
        if in_pieces or isinstance(rate, Tensor):
            if momentum:
                torch._foreach_mul_(momentum, self._momentum)
                torch._foreach_add_(momentum, gradients)
            self._add_scaled(momentum or gradients, -rate)
            return
        buffers: list[Tensor | None] = [*momentum] if momentum else [None] * len(self._parameters)
        gradients = _laid_out(gradients, self._parameters)
        _FUSED_SGD(self._parameters, gradients, buffers, lr=rate, momentum=self._momentum)


class Orthogonal(Optimizer):
    """Muon's moves of matrices: Nesterov momentum, made orthogonal. Filters of a convolution are rows of a matrix."""

    state_names = ("momentum",)

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        rate = self._rate if rate is None else rate
        momentum = self.state["momentum"]
        self._shrink(rate)
        torch._foreach_lerp_(momentum, gradients, 1 - self._momentum)
        ahead = torch._foreach_lerp(gradients, momentum, self._momentum)
        self._add_scaled([orthogonal_move(each.flatten(1)).view(each.shape) for each in ahead], -rate)


def orthogonal_move(ahead: Tensor) -> Tensor:
    """Where muon moves a matrix, or each of several along a first axis, at a rate of 1."""
    # as at the source: nothing is lost by it, and products of matrices are most of the work
    on_gpu = ahead.is_cuda and ahead.dtype == torch.float32
    orthogonal = orthogonalised(ahead.bfloat16() if on_gpu else ahead).to(ahead.dtype)
    return AS_LARGE_AS_ADAMW * math.sqrt(max(ahead.shape[-2:])) * orthogonal


class Muon(Optimizer):
    """Orthogonal moves for the matrices of hidden layers; AdamW for the last layer, and for what is no matrix.

    Args:
        with_last: whether the last matrix is that of the last layer.
        others: those of an `Optimizer`.
    """

    state_names = ()

    def __init__(
        self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float, *, with_last: bool = True
    ) -> None:
        super().__init__(parameters, recipe, rate, decay)
        matrices = [number for number, parameter in enumerate(parameters) if parameter.dim() > 1]
        hidden = matrices[: len(matrices) - with_last]
        rest = [number for number in range(len(parameters)) if number not in hidden]
        self._parts = [
            (numbers, kind([parameters[number] for number in numbers], recipe, rate, decay))
            for numbers, kind in ((hidden, Orthogonal), (rest, AdamW))
            if numbers
        ]
        self.state = {name: tensors for _, part in self._parts for name, tensors in part.state.items()}

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        for numbers, part in self._parts:
            part.step([gradients[number] for number in numbers], rate, in_pieces=in_pieces)


class InGroups:
    """Optimizers of several groups of parameters, each with its own learning rate, as one over all of them in order."""

    def __init__(self, optimizers: Sequence[Optimizer], rate_factors: Sequence[float]) -> None:
        self._optimizers, self._factors = optimizers, rate_factors

    @property
    def state(self) -> dict[str, list[Tensor]]:
        """Of all groups."""
        names = dict.fromkeys(name for each in self._optimizers for name in each.state)
        return {name: [tensor for each in self._optimizers for tensor in each.state.get(name, ())] for name in names}

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        """Each group by its own; a `rate` is that of the whole, of which each has its factor."""
        begin = 0
        for optimizer, factor in zip(self._optimizers, self._factors, strict=True):
            end = begin + optimizer.num_parameters
            optimizer.step(gradients[begin:end], None if rate is None else rate * factor, in_pieces=in_pieces)
            begin = end

    def reset(self) -> None:
        """Back to the state before the first step."""
        for optimizer in self._optimizers:
            optimizer.reset()


KINDS: dict[str, type[Optimizer]] = {"adamw": AdamW, "rmsprop": RMSProp, "sgd": SGD, "muon": Muon}


def make_optimizer(
    recipe: Recipe,
    parameters: Sequence[Tensor],
    *,
    rate_factor: float = 1.0,
    decay: bool = True,
    with_last: bool = True,
) -> Optimizer:
    """The recipe's optimizer for these parameters (detached: they are written in place), the last layer's among them or
    not."""
    kind = partial(Muon, with_last=with_last) if recipe.optimizer == "muon" else KINDS[recipe.optimizer]
    return kind(list(parameters), recipe, recipe.learning_rate * rate_factor, recipe.weight_decay * decay)
