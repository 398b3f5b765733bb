"""Random colours: what the views of a study differ in besides their place."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from prequential.data.augment_colour import grey, moved_from

_AXES = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
"""Luma and the two axes of colour (YIQ), as rows over red, green and blue."""
_BACK = np.linalg.inv(_AXES)
_STRETCH = (_BACK[:, 1:] @ _AXES[1:]).tolist()
"""Red, green and blue without their luma; and, below, turned by a right angle."""
_TURN = (_BACK[:, 2:] @ _AXES[1:2] - _BACK[:, 1:2] @ _AXES[2:]).tolist()
_SHARE = 0.8
"""Of the images whose colours are changed."""


@dataclass(frozen=True)
class Jitter:
    """Brightness, contrast, saturation and hue of four images in five, each by its own draw.

    At strength s: brightness, contrast and saturation times 1 − s … 1 + s, and colours turned by up to s/4 of a full
    circle about the grey axis. Images that do not have three channels have no colours to turn.

    Example:
        >>> images = torch.zeros(1, 3, 2, 2)
        >>> bool((Jitter(0.4)(images, torch.tensor([[0.9, 0.0, 0.0, 0.0, 0.0]])) == images).all())  # one in five stays
        True
    """

    strength: float = 0.4
    num_draws: ClassVar[int] = 5

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        is_changed = (draws[:, 0] < _SHARE).to(images.dtype)
        bright, contrast, colour, turn = (
            self.strength * is_changed[:, None] * (2 * draws[:, 1:].to(images.dtype) - 1)
        ).unbind(1)
        black = torch.full_like(images[:, :1, :1, :1], -1.0)
        images = moved_from(black, images, bright)
        images = moved_from(grey(images).mean((1, 2, 3), keepdim=True), images, contrast)
        if images.shape[1] != 3:
            return images
        images = moved_from(grey(images), images, colour)
        return _turned(images, turn * (math.pi / 2))


@dataclass(frozen=True)
class Grey:
    """A share of the images without colours.

    Example:
        >>> red = torch.tensor([1.0, -1.0, -1.0]).view(1, 3, 1, 1)
        >>> Grey(0.2)(red, torch.tensor([[0.1]])).flatten()
        tensor([-0.4020, -0.4020, -0.4020])
    """

    share: float = 0.2
    num_draws: ClassVar[int] = 1

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        return torch.where((draws[:, 0] < self.share)[:, None, None, None], grey(images), images)


def _turned(images: Tensor, angle: Tensor) -> Tensor:
    """Colours turned about the grey axis; what leaves the range is clipped."""
    cosine, sine = (part[:, None, None, None] for part in (torch.cos(angle) - 1, torch.sin(angle)))
    channels = [images[:, each : each + 1] for each in range(3)]
    moves = [
        cosine * _weighted(channels, stretch) + sine * _weighted(channels, turn)
        for stretch, turn in zip(_STRETCH, _TURN, strict=True)
    ]
    return (images + torch.cat(moves, 1)).clamp(-1, 1)


def _weighted(channels: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    return weights[0] * channels[0] + weights[1] * channels[1] + weights[2] * channels[2]
