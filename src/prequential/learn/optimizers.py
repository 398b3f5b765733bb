"""AdamW, RMSProp and SGD with momentum over plain lists of tensors.

The arithmetic is torch's own (`torch.optim`'s functional forms, fused where there is a fused one);
what is left out is its per-step bookkeeping. State is explicit: lists of tensors by name.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

from prequential.learn.recipe import Recipe


class Optimizer(Protocol):
    """One gradient step at a time, in place. State starts at zero."""

    state: dict[str, list[Tensor]]

    def step(self, gradients: list[Tensor]) -> None:
        """Move the parameters against the gradients."""


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


def _decay(parameters: list[Tensor], share: float) -> None:
    """Decoupled weight decay: θ ← θ − share·θ, as AdamW does inside its step."""
    if share:
        torch._foreach_mul_(parameters, 1 - share)


class AdamW:
    """Adam with decoupled weight decay."""

    def __init__(self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float) -> None:
        self._parameters, self._rate, self._decay = parameters, rate, decay
        self._betas, self._eps = (recipe.momentum, 0.999), recipe.eps
        self.state = {"mean": _zeros(parameters), "square": _zeros(parameters), "step": _counters(parameters)}

    def step(self, gradients: list[Tensor]) -> None:
        adamw(
            self._parameters,
            gradients,
            self.state["mean"],
            self.state["square"],
            [],
            self.state["step"],
            fused=True,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=self._rate,
            weight_decay=self._decay,
            eps=self._eps,
            maximize=False,
        )


class RMSProp:
    """RMSProp with momentum."""

    def __init__(self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float) -> None:
        self._parameters, self._rate, self._decay = parameters, rate, decay
        self._momentum, self._eps = recipe.momentum, recipe.eps
        self.state = {"square": _zeros(parameters), "momentum": _zeros(parameters), "step": _counters(parameters)}

    def step(self, gradients: list[Tensor]) -> None:
        _decay(self._parameters, self._rate * self._decay)
        rmsprop(
            self._parameters,
            gradients,
            self.state["square"],
            [],
            self.state["momentum"] if self._momentum else [],
            self.state["step"],
            foreach=True,
            lr=self._rate,
            alpha=0.99,
            eps=self._eps,
            weight_decay=0.0,
            momentum=self._momentum,
            centered=False,
        )


class SGD:
    """Stochastic gradient descent with momentum."""

    def __init__(self, parameters: list[Tensor], recipe: Recipe, rate: float, decay: float) -> None:
        self._parameters, self._rate, self._decay = parameters, rate, decay
        self._momentum = recipe.momentum
        self.state = {"momentum": _zeros(parameters)} if recipe.momentum else {}

    def step(self, gradients: list[Tensor]) -> None:
        _decay(self._parameters, self._rate * self._decay)
        buffers: list[Tensor | None] = [*self.state.get("momentum", [None] * len(self._parameters))]
        sgd(
            self._parameters,
            gradients,
            buffers,
            fused=True,
            lr=self._rate,
            weight_decay=0.0,
            momentum=self._momentum,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
