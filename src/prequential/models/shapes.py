"""What models ask of their input, and the sizes of their layers."""

from collections.abc import Callable

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


def flat_size(layers: list[nn.Module], input_shape: Shape) -> int:
    """The number of values fresh layers make of one input. Draws no random numbers, moves no statistics."""
    features = nn.Sequential(*layers).eval()
    with torch.no_grad():
        size = features(torch.zeros(1, *input_shape)).shape[1]
    features.train()
    return int(size)


def group(
    block: Callable[..., nn.Module], inputs: int, channels: int, outputs: int, num_blocks: int, *, stride: int
) -> nn.Sequential:
    """Residual blocks one after the other; the first has the stride, and takes other inputs than it puts out."""
    rest = (block(outputs, channels, stride=1) for _ in range(num_blocks - 1))
    return nn.Sequential(block(inputs, channels, stride=stride), *rest)


def scaled(size: int, width: float) -> int:
    """A layer's size under a width factor: rounded, at least one."""
    return max(1, round(size * width))
