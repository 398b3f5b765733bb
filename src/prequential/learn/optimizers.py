"""AdamW, RMSProp and SGD with momentum over plain lists of tensors.

The arithmetic is that of `torch.optim`, by its fused kernels where there are any; what is left out is its per-step
bookkeeping. State is explicit: lists of tensors by name. Weight decay is decoupled in all of them.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from prequential.learn.recipe import Recipe

Rate: TypeAlias = float | Tensor
"""A learning rate, which may live on the device."""


class Optimizer(Protocol):
    """One gradient step at a time, in place. State starts at zero."""

    state: dict[str, list[Tensor]]

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        """Move the parameters against the gradients.

        Args:
            gradients: one for each parameter.
            rate: another learning rate than its own.
            in_pieces: leave out torch's fused kernels, for a compiler that fuses what it sees.
        """


def make_optimizer(
    recipe: Recipe, parameters: Sequence[Tensor], *, rate_factor: float = 1.0, decay: bool = True
) -> Optimizer:
    """The recipe's optimizer for these parameters (detached: they are written in place)."""
    kinds: dict[str, type[AdamW] | type[RMSProp] | type[SGD]] = {"adamw": AdamW, "rmsprop": RMSProp, "sgd": SGD}
    rate = recipe.learning_rate * rate_factor
    return kinds[recipe.optimizer](list(parameters), recipe, rate, recipe.weight_decay * decay)


def reset(optimizer: Optimizer) -> None:
    """Back to the state before the first step."""
    for tensors in optimizer.state.values():
        torch._foreach_zero_(tensors)


def _zeros(parameters: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(p) for p in parameters]


def _counters(parameters: list[Tensor]) -> list[Tensor]:
    return [torch.zeros((), dtype=torch.float32, device=p.device) for p in parameters]


def _laid_out(gradients: list[Tensor], parameters: list[Tensor]) -> list[Tensor]:
    """The gradients in the memory layout of their parameters, which fused kernels take for granted."""
    return [
        gradient if gradient.stride() == parameter.stride() else torch.empty_like(parameter).copy_(gradient)
        for gradient, parameter in zip(gradients, parameters, strict=True)
    ]


def _add_scaled(parameters: list[Tensor], moves: Sequence[Tensor], scale: Rate) -> None:
    """θ ← θ + scale·move, where the scale may live on the device."""
    if isinstance(scale, Tensor):
        torch._foreach_add_(parameters, torch._foreach_mul(list(moves), scale.to(moves[0].dtype)))
    else:
        torch._foreach_add_(parameters, list(moves), alpha=scale)


class AdamW:
    """Adam with decoupled weight decay."""

    def __init__(self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float) -> None:
        self._parameters, self._rate, self._decay = parameters, rate, decay
        self._betas, self._eps = (recipe.momentum, 0.999), recipe.eps
        self.state = {"mean": _zeros(parameters), "square": _zeros(parameters), "step": _counters(parameters)}

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        rate = self._rate if rate is None else rate
        if in_pieces:
            self._step_in_pieces(gradients, rate)
            return
        adamw(
            self._parameters,
            _laid_out(gradients, self._parameters),
            self.state["mean"],
            self.state["square"],
            [],
            self.state["step"],
            fused=True,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=rate.float() if isinstance(rate, Tensor) and rate.is_cuda else rate,  # the kernel takes no other type
            weight_decay=self._decay,
            eps=self._eps,
            maximize=False,
        )

    def _step_in_pieces(self, gradients: list[Tensor], rate: Rate) -> None:
        """The same, written so that a compiler can fuse it with what stands before and after."""
        mean, square, (beta1, beta2) = self.state["mean"], self.state["square"], self._betas
        torch._foreach_add_(self.state["step"], 1)
        num_steps = self.state["step"][0].to(mean[0].dtype)
        torch._foreach_mul_(self._parameters, 1 - rate * self._decay)
        torch._foreach_lerp_(mean, gradients, 1 - beta1)
        torch._foreach_mul_(square, beta2)
        torch._foreach_addcmul_(square, gradients, gradients, 1 - beta2)
        scale = torch._foreach_sqrt(square)
        torch._foreach_mul_(scale, (1 - beta2**num_steps).rsqrt())
        torch._foreach_add_(scale, self._eps)
        _add_scaled(self._parameters, torch._foreach_div(mean, scale), -rate / (1 - beta1**num_steps))


class RMSProp:
    """RMSProp with momentum."""

    def __init__(self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float) -> None:
        self._parameters, self._rate, self._decay = parameters, rate, decay
        self._momentum, self._eps = recipe.momentum, recipe.eps
        self.state = {"square": _zeros(parameters), "momentum": _zeros(parameters), "step": _counters(parameters)}

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        rate = self._rate if rate is None else rate
        square, momentum = self.state["square"], self.state["momentum"]
        torch._foreach_add_(self.state["step"], 1)
        torch._foreach_mul_(self._parameters, 1 - rate * self._decay)
        torch._foreach_mul_(square, 0.99)
        torch._foreach_addcmul_(square, gradients, gradients, 0.01)
        scale = torch._foreach_sqrt(square)
        torch._foreach_add_(scale, self._eps)
        torch._foreach_mul_(momentum, self._momentum)
        torch._foreach_addcdiv_(momentum, gradients, scale)
        _add_scaled(self._parameters, momentum, -rate)


class SGD:
    """Stochastic gradient descent with momentum."""

    def __init__(self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float) -> None:
        self._parameters, self._rate, self._decay = parameters, rate, decay
        self._momentum = recipe.momentum
        self.state = {"momentum": _zeros(parameters)} if recipe.momentum else {}

    def step(self, gradients: list[Tensor], rate: Rate | None = None, *, in_pieces: bool = False) -> None:
        rate = self._rate if rate is None else rate
        torch._foreach_mul_(self._parameters, 1 - rate * self._decay)
        if in_pieces or isinstance(rate, Tensor):
            moves = gradients
            if self._momentum:
                moves = self.state["momentum"]
                torch._foreach_mul_(moves, self._momentum)
                torch._foreach_add_(moves, gradients)
            _add_scaled(self._parameters, moves, -rate)
            return
        buffers: list[Tensor | None] = [*self.state.get("momentum", [None] * len(self._parameters))]
        sgd(
            self._parameters,
            _laid_out(gradients, self._parameters),
            buffers,
            fused=True,
            lr=rate,
            weight_decay=0.0,
            momentum=self._momentum,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
