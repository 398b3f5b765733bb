"""What models ask of their input, and the sizes of their layers."""

import torch
from torch import nn

from prequential.errors import PreqError

Shape = tuple[int, ...]
"""Of one input."""


def require_image(model: str, input_shape: Shape, *, at_least: int) -> None:
    """Refuse an input that is not (channels, height, width) of a minimum size."""
    if len(input_shape) != 3 or min(input_shape[1:]) < at_least:
        raise PreqError(
            f"{model} takes images (channels, height, width) of at least {at_least}×{at_least}, "
            f"got inputs of shape {input_shape}; use an mlp, or reshape"
        )


def flat_size(features: nn.Module, input_shape: Shape) -> int:
    """The number of values `features` makes of one input. Draws no random numbers, moves no statistics."""
    training = features.training
    with torch.no_grad():
        size = features.eval()(torch.zeros(1, *input_shape)).shape[1]
    features.train(training)
    return int(size)


def scaled(size: int, width: float) -> int:
    """A layer's size under a width factor: rounded, at least one."""
    return max(1, round(size * width))
