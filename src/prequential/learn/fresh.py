"""A freshly initialised model, ready to learn: on its device, in its layout."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence, to_network_input
from prequential.files import digest_of
from prequential.learn.randomness import seeded
from prequential.learn.recipe import Recipe
from prequential.models import ModelFactory, build

SLOW_ENOUGH = 0.1
"""The largest step of the EMA that averages enough batches for batch-norm statistics."""


def fresh_model(
    factory: str | ModelFactory,
    data: DataSequence,
    recipe: Recipe,
    *,
    seed: int,
    event: int,
    width: float,
    device: torch.device,
    dtype: torch.dtype,
) -> nn.Module:
    """A model whose initialisation depends on the seed and the number of the event alone, in train mode."""
    with seeded(seed, "initialise", event, device):
        model = build(factory, data.input_shape, capabilities(data).target.output_size, width=width)
        if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
            model.eval()(to_network_input(data.inputs(np.zeros(1, np.int64))))
    model.to(device, dtype).train()
    for parameter in model.parameters():
        if parameter.dim() == 4:  # cloned, because `contiguous` keeps the strides of a single channel as they are
            parameter.data = parameter.data.clone(memory_format=torch.channels_last)
    if recipe.batch_statistics == "averaged" and recipe.ema_step_size <= SLOW_ENOUGH:
        for layer in model.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is not None:
                layer.momentum = 1.0
    return model


def fingerprint_of(model: nn.Module) -> str:
    """Of a model as it stands: its layers as printed, its parameters and buffers."""
    tensors = (*model.parameters(), *model.buffers())
    content = b"".join(tensor.detach().cpu().contiguous().numpy().tobytes() for tensor in tensors)
    return digest_of(repr(model).encode() + content)


@dataclass(frozen=True)
class EmaTensors:
    """The tensors of a model, sharing memory with it: those that the EMA averages, and the others, which it copies."""

    averaged: list[Tensor]
    others: list[Tensor]

    @staticmethod
    def of(model: nn.Module, recipe: Recipe) -> "EmaTensors":
        """Parameters and floating buffers are averaged; buffers that count are not, nor those that shall be raw."""
        found = EmaTensors([], [])
        for tensors, follow in ((model.parameters(), True), (model.buffers(), recipe.batch_statistics != "raw")):
            for tensor in tensors:
                (found.averaged if follow and tensor.is_floating_point() else found.others).append(tensor.detach())
        return found

    @property
    def all(self) -> list[Tensor]:
        """Both, the averaged ones first."""
        return self.averaged + self.others
