"""AdamW, RMSProp and SGD with momentum for many models at once, each with its own settings.

The parameters of all models are one tensor whose first axis counts the models, and a setting is a vector along it. The
arithmetic is that of `prequential.learn.optimizers`. Nothing is ever summed over models.
"""

from typing import Protocol

import torch
from torch import Tensor

from prequential.stack.recipe import Vectors, along


class StackedOptimizer(Protocol):
    """One gradient step at a time, in place. State starts at zero."""

    state: dict[str, Tensor]
    rate: Tensor
    """The learning rate of each model, float64."""

    def step(self, gradient: Tensor, rate: Tensor | None = None) -> None:
        """Move the parameters against the gradient; with other learning rates than its own if some are given."""


def make_stacked_optimizer(
    settings: Vectors, parameters: Tensor, *, rate_factor: float = 1.0, decay: bool = True
) -> StackedOptimizer:
    """The optimizer of these settings for parameters (models, …), which are written in place.

    Example:
        >>> from prequential.learn.recipe import Recipe
        >>> recipes = [Recipe(optimizer="sgd", weight_decay=0.0, learning_rate=rate) for rate in (0.1, 0.5)]
        >>> parameters = torch.ones(2, 3, dtype=torch.float64)
        >>> make_stacked_optimizer(Vectors(recipes, "cpu"), parameters).step(torch.ones(2, 3, dtype=torch.float64))
        >>> parameters[:, 0]
        tensor([0.9000, 0.5000], dtype=torch.float64)
    """
    kinds: dict[str, type[AdamW] | type[RMSProp] | type[SGD]] = {"adamw": AdamW, "rmsprop": RMSProp, "sgd": SGD}
    return kinds[settings.common.optimizer](parameters, settings, settings.learning_rate * rate_factor, decay)


def reset(optimizer: StackedOptimizer) -> None:
    """Back to the state before the first step."""
    for tensor in optimizer.state.values():
        tensor.zero_()


class _Optimizer:
    """What all three share: settings in the shape of the parameters, and decoupled weight decay."""

    def __init__(self, parameters: Tensor, settings: Vectors, rate: Tensor, decay: bool) -> None:
        self._parameters, self.rate, self._settings = parameters, rate, settings
        self._decay = settings.weight_decay * decay
        self._eps, self._momentum = along(settings.eps, parameters), along(settings.momentum, parameters)
        self.state: dict[str, Tensor] = {}

    def _decayed(self, rate: Tensor | None) -> Tensor:
        """Shrink the parameters; gives the learning rates that count in this step."""
        rate = self.rate if rate is None else rate
        self._parameters.mul_(along(1 - rate * self._decay, self._parameters))
        return rate


class AdamW(_Optimizer):
    """Adam with decoupled weight decay."""

    def __init__(self, parameters: Tensor, settings: Vectors, rate: Tensor, decay: bool) -> None:
        super().__init__(parameters, settings, rate, decay)
        self.state = {
            "mean": torch.zeros_like(parameters),
            "square": torch.zeros_like(parameters),
            "step": torch.zeros(1, dtype=torch.float64, device=parameters.device),
        }

    def step(self, gradient: Tensor, rate: Tensor | None = None) -> None:
        parameters, mean, square, num_steps = self._parameters, *self.state.values()
        rate = self._decayed(rate)
        num_steps.add_(1)
        mean.lerp_(gradient, 1 - self._momentum)
        square.mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
        scale = square.sqrt().mul_(along((1 - 0.999**num_steps).rsqrt(), parameters)).add_(self._eps)
        size = rate / (1 - self._settings.momentum**num_steps)
        parameters.sub_((mean / scale).mul_(along(size, parameters)))


class RMSProp(_Optimizer):
    """RMSProp with momentum."""

    def __init__(self, parameters: Tensor, settings: Vectors, rate: Tensor, decay: bool) -> None:
        super().__init__(parameters, settings, rate, decay)
        self.state = {"square": torch.zeros_like(parameters), "momentum": torch.zeros_like(parameters)}

    def step(self, gradient: Tensor, rate: Tensor | None = None) -> None:
        square, momentum = self.state.values()
        rate = self._decayed(rate)
        square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        momentum.mul_(self._momentum).addcdiv_(gradient, square.sqrt().add_(self._eps))
        self._parameters.sub_(momentum * along(rate, momentum))


class SGD(_Optimizer):
    """Stochastic gradient descent with momentum."""

    def __init__(self, parameters: Tensor, settings: Vectors, rate: Tensor, decay: bool) -> None:
        super().__init__(parameters, settings, rate, decay)
        self.state = {"momentum": torch.zeros_like(parameters)}

    def step(self, gradient: Tensor, rate: Tensor | None = None) -> None:
        momentum = self.state["momentum"]
        rate = self._decayed(rate)
        momentum.mul_(self._momentum).add_(gradient)
        self._parameters.sub_(momentum * along(rate, momentum))
