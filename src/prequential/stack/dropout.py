"""Dropout whose draws are hashed from a key: each member of a stack has its own, whoever its neighbours are."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prequential.data.augment import DeviceDraws
from prequential.rng import derive, draw_bits

WHOLE_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class HashedDropout(nn.Dropout):
    """nn.Dropout as a pure function of its inputs and of `key`; no generator, so that it can be vmapped and recorded.

    Example:
        >>> dropout = HashedDropout(0.5, whole_channels=False)
        >>> dropout(torch.ones(8))
        tensor([2., 0., 0., 2., 0., 0., 0., 2.])
    """

    key: Tensor

    def __init__(self, rate: float, *, whole_channels: bool) -> None:
        super().__init__(rate)
        self.whole_channels, self.num_calls = whole_channels, 0
        self.register_buffer("key", torch.zeros((), dtype=torch.int64), persistent=False)
        self._draws: dict[tuple[int, int], DeviceDraws] = {}

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return inputs
        drawn = inputs.shape[:2] if self.whole_channels else inputs.shape
        shape = (drawn[0], drawn[1:].numel())
        if shape not in self._draws:
            self._draws[shape] = DeviceDraws(*shape, inputs.device)
        draws = self._draws[shape](self.key + self.num_calls)
        self.num_calls += 1  # a layer that is used twice draws twice
        kept = (draws >= self.p).to(inputs.dtype) * (1 / (1 - self.p) if self.p < 1 else 0.0)
        return inputs * kept.view(*drawn, *[1] * (inputs.dim() - len(drawn)))


def hash_dropout(model: nn.Module) -> list[str]:
    """Put hashed dropout in place of the model's own; gives the names of these layers."""
    for layer in list(model.modules()):
        for name, child in list(layer.named_children()):
            if isinstance(child, (nn.Dropout, *WHOLE_CHANNELS)):
                hashed = HashedDropout(child.p, whole_channels=isinstance(child, WHOLE_CHANNELS))
                setattr(layer, name, hashed.train(child.training))
    return [name for name, layer in model.named_modules() if isinstance(layer, HashedDropout)]


def begin_pass(model: nn.Module) -> None:
    """Say that a forward pass begins: each layer's next use is its first."""
    for layer in model.modules():
        if isinstance(layer, HashedDropout):
            layer.num_calls = 0


def dropout_keys(seeds: Sequence[int], event: int, num_steps: int, num_layers: int) -> NDArray[np.int64]:
    """The keys of training steps from `event` on: (steps, members, layers), each from its seed, event and layer.

    Example:
        >>> keys = dropout_keys([3, 4], event=7, num_steps=2, num_layers=1)
        >>> bool((keys[1, 1] == dropout_keys([4], event=8, num_steps=1, num_layers=1)[0, 0]).all())
        True
    """
    counters = event * num_layers + np.arange(num_steps * num_layers)
    keys = [draw_bits(derive(seed, "dropout"), counters).reshape(num_steps, num_layers) for seed in seeds]
    return np.stack(keys, axis=1).view(np.int64)
