"""AdamW, RMSProp, SGD with momentum and Muon for many models at once, each with its own settings.

The parameters of all models are one tensor whose first axis counts the models, and a setting is a vector along it. The
arithmetic is that of `prequential.learn.optimizers`. Nothing is ever summed over models.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from prequential.learn.functional import per_member
from prequential.learn.optimizers import orthogonal_move
from prequential.stack.recipe import Vectors

Matrices: TypeAlias = Callable[[Tensor], Sequence[Tensor]]
"""Finds the matrices of hidden layers, (models, …) each, in a tensor like the parameters."""


class StackedOptimizer(ABC):
    """One gradient step at a time, in place. State starts at zero; settings are in the shape of the parameters, and
    weight decay is decoupled."""

    state_names: tuple[str, ...]

    def __init__(self, parameters: Tensor, settings: Vectors, rate: Tensor, decay: bool) -> None:
        self._parameters, self._rate, self._settings = parameters, rate, settings
        self._decay = settings.weight_decay * decay
        self._eps, self._momentum = (per_member(vector, parameters) for vector in (settings.eps, settings.momentum))
        self._size, self._kept, self._unbiased = (torch.ones_like(rate) for _ in range(3))
        count = torch.zeros(1, dtype=torch.float64, device=parameters.device)
        self.state = {name: torch.zeros_like(count if name == "step" else parameters) for name in self.state_names}

    def begin(self, rate: Tensor | None = None) -> None:
        """What a step needs besides the gradient, a few numbers for each model; with other learning rates than its own
        if some are given. Apart from the step, so that it is not computed again for every parameter."""
        rate = self._rate if rate is None else rate
        self._size.copy_(rate)
        self._kept.copy_(1 - rate * self._decay)

    @abstractmethod
    def step(self, gradient: Tensor) -> None:
        """Move the parameters against the gradient."""

    def reset(self) -> None:
        """Back to the state before the first step."""
        for tensor in self.state.values():
            tensor.zero_()

    def _per_member(self, vector: Tensor) -> Tensor:
        return per_member(vector, self._parameters)


class AdamW(StackedOptimizer):
    """Adam with decoupled weight decay."""

    state_names = ("mean", "square", "step")

    def begin(self, rate: Tensor | None = None) -> None:
        super().begin(rate)
        num_steps = self.state["step"].add_(1)
        self._unbiased.copy_((1 - 0.999**num_steps).rsqrt())
        self._size.div_(1 - self._settings.momentum**num_steps)

    def step(self, gradient: Tensor) -> None:
        self._parameters.mul_(self._per_member(self._kept))
        self._parameters.sub_(self._move(gradient))

    def _move(self, gradient: Tensor) -> Tensor:
        mean, square, _ = self.state.values()
        mean.lerp_(gradient, 1 - self._momentum)
        square.mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
        scale = square.sqrt().mul_(self._per_member(self._unbiased)).add_(self._eps)
        return (mean / scale).mul_(self._per_member(self._size))


class Muon(AdamW):
    """Orthogonal moves for the matrices of hidden layers, whose momentum is AdamW's mean; AdamW for the rest."""

    def __init__(self, *arguments: Any, matrices: Matrices) -> None:
        super().__init__(*arguments)
        self._matrices, self._own_rate = matrices, torch.ones_like(self._rate)

    def begin(self, rate: Tensor | None = None) -> None:
        super().begin(rate)
        self._own_rate.copy_(self._rate if rate is None else rate)

    def _move(self, gradient: Tensor) -> Tensor:
        move = super()._move(gradient)
        ahead = gradient.lerp(self.state["mean"], self._momentum)
        for place, matrices in zip(self._matrices(move), self._matrices(ahead), strict=True):
            found = orthogonal_move(matrices.flatten(2)).view(place.shape)
            place.copy_(found * per_member(self._own_rate, place))
        return move


class RMSProp(StackedOptimizer):
    """RMSProp with momentum."""

    state_names = ("square", "momentum")

    def step(self, gradient: Tensor) -> None:
        square, momentum = self.state.values()
        self._parameters.mul_(self._per_member(self._kept))
        square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        momentum.mul_(self._momentum).addcdiv_(gradient, square.sqrt().add_(self._eps))
        self._parameters.sub_(momentum * self._per_member(self._size))


class SGD(StackedOptimizer):
    """Stochastic gradient descent with momentum."""

    state_names = ("momentum",)

    def step(self, gradient: Tensor) -> None:
        momentum = self.state["momentum"]
        self._parameters.mul_(self._per_member(self._kept))
        momentum.mul_(self._momentum).add_(gradient)
        self._parameters.sub_(momentum * self._per_member(self._size))


KINDS: dict[str, type[StackedOptimizer]] = {"adamw": AdamW, "rmsprop": RMSProp, "sgd": SGD, "muon": Muon}


def make_stacked_optimizer(
    settings: Vectors,
    parameters: Tensor,
    rate_factor: float = 1.0,
    *,
    decay: bool = True,
    matrices: Matrices = lambda parameters: (),
) -> StackedOptimizer:
    """The optimizer of these settings for parameters (models, …), which are written in place.

    Args:
        settings: of all models.
        parameters: what it moves.
        rate_factor: of the learning rate.
        decay: whether weights decay.
        matrices: what muon makes orthogonal moves of.

    Example:
        >>> from prequential.learn.recipe import Recipe
        >>> recipes = [Recipe(optimizer="sgd", weight_decay=0.0, learning_rate=rate) for rate in (0.1, 0.5)]
        >>> parameters = torch.ones(2, 3, dtype=torch.float64)
        >>> optimizer = make_stacked_optimizer(Vectors(recipes, "cpu"), parameters)
        >>> optimizer.begin()
        >>> optimizer.step(torch.ones(2, 3, dtype=torch.float64))
        >>> parameters[:, 0]
        tensor([0.9000, 0.5000], dtype=torch.float64)
    """
    name = settings.common.optimizer
    kind: Callable[..., StackedOptimizer] = partial(Muon, matrices=matrices) if name == "muon" else KINDS[name]
    return kind(parameters, settings, settings.learning_rate * rate_factor, decay)
