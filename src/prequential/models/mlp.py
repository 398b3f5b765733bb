"""Multilayer perceptrons."""

import math
from itertools import pairwise

from torch import nn

from prequential.models.shapes import Shape, scaled


def mlp(
    input_shape: Shape, output_size: int, *, num_hidden: int = 2, width: float = 1.0, dropout: float = 0.5
) -> nn.Sequential:
    """Hidden layers of 512 ReLU units, each followed by dropout.

    Example:
        >>> sum(p.numel() for p in mlp((1, 28, 28), 10, num_hidden=1).parameters())
        407050
    """
    sizes = [math.prod(input_shape), *[scaled(512, width)] * num_hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for size, next_size in pairwise(sizes):
        layers += [nn.Linear(size, next_size), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], output_size))
