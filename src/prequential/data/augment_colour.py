"""Augmentations that change values, and RandAugment, which chooses among all kinds.

Images have values in [−1, 1]. Where an operation is defined on whole numbers 0 … 255 it goes through these *levels*.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from prequential.data.augment_geometry import sampled, source_of

OPERATIONS = (
    *("identity", "autocontrast", "equalise", "posterise", "solarise"),
    *("colour", "contrast", "brightness", "sharpness"),
    *("rotate", "shear-x", "shear-y", "translate-x", "translate-y"),
)

_MOST = 30
_ROUNDING = 0.503
_LUMA = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class RandAugment:
    """`num_layers` times one of fourteen operations at a fixed magnitude of 0 … 30 (Cubuk et al. 2020).

    The greatest strengths are the usual ones: ±30°, shear ±0.3, translation by ±0.45 of a side, ±0.9 on colour,
    contrast, brightness and sharpness, 4 bits, and every value inverted. Directions are random. What a geometric
    operation leaves empty is mid-grey, as its authors fill it. All fourteen are computed in every layer and one is kept
    per example, so the work never depends on the draws.
    """

    num_layers: int = 2
    magnitude: int = 9

    @property
    def num_draws(self) -> int:
        return 2 * self.num_layers

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        for layer in range(self.num_layers):
            choice = (draws[:, 2 * layer] * len(OPERATIONS)).long()
            sign = 2 * (draws[:, 2 * layer + 1] >= 0.5).to(images.dtype) - 1
            images = _one_operation(images, choice, sign, self.magnitude / _MOST)
        return images


def _one_operation(images: Tensor, choice: Tensor, sign: Tensor, fraction: float) -> Tensor:
    """Each example under the operation of its choice, at a fraction of the greatest strength."""
    indices = torch.arange(len(OPERATIONS), device=choice.device)
    masks: dict[str, Tensor] = dict(zip(OPERATIONS, (choice == indices[:, None]).unbind(), strict=True))

    def signed(name: str, greatest: float) -> Tensor:
        return masks[name] * sign * (fraction * greatest)

    height, width = images.shape[-2:]
    x, y = source_of(
        images,
        angle=signed("rotate", math.radians(30)),
        slant_x=signed("shear-x", 0.3),
        slant_y=signed("shear-y", 0.3),
        right=signed("translate-x", width * 150 / 331),
        down=signed("translate-y", height * 150 / 331),
    )
    colourless = grey(images)
    mean = colourless.mean((1, 2, 3), keepdim=True)
    bases = [(masks["contrast"], mean), (masks["colour"], colourless), (masks["sharpness"], smooth(images))]
    blended = (choice >= OPERATIONS.index("colour")) & (choice < OPERATIONS.index("rotate"))
    black = torch.full_like(mean, -1.0)
    alternatives = [
        (blended, moved_from(_selected(bases, otherwise=black), images, sign * (0.9 * fraction))),
        (masks["autocontrast"], autocontrast(images)),
        (masks["equalise"], equalise(images)),
        (masks["posterise"], posterise(images, 8 - round(4 * fraction))),
        (masks["solarise"], solarise(images, 255 * (1 - fraction))),
        (choice >= OPERATIONS.index("rotate"), sampled(images, x, y, padding="zeros")),
    ]
    return _selected(alternatives, otherwise=images)


def _selected(alternatives: list[tuple[Tensor, Tensor]], otherwise: Tensor) -> Tensor:
    for mask, values in alternatives:
        otherwise = torch.where(mask[:, None, None, None], values, otherwise)
    return otherwise


def moved_from(base: Tensor, images: Tensor, amount: Tensor) -> Tensor:
    """The images moved away from a base, clipped: by 0 they stay, by −1 they become the base.

    With the base black, mean grey, grey or smooth this is brightness, contrast, colour or sharpness.
    """
    return (images + amount[:, None, None, None] * (images - base)).clamp(-1, 1)


def grey(images: Tensor) -> Tensor:
    """One channel: the luma of three, the mean of any other number."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    return _LUMA[0] * images[:, :1] + _LUMA[1] * images[:, 1:2] + _LUMA[2] * images[:, 2:]


def smooth(images: Tensor) -> Tensor:
    """Each pixel averaged with its eight neighbours, itself counted five times; the outermost pixels stay."""
    rows = images[:, :, :-2] + images[:, :, 1:-1] + images[:, :, 2:]
    neighbourhood = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    inner = images[:, :, 1:-1, 1:-1]
    return images + F.pad((neighbourhood + 4 * inner) / 13 - inner, (1, 1, 1, 1))


def autocontrast(images: Tensor) -> Tensor:
    """Each channel stretched to the full range; one without contrast stays."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    # Half a level: what is flat but for rounding must not be blown up.
    flat = high - low < 1 / 255
    stretched = (images - low) * (2 / (high - low).masked_fill(flat, 1.0)) - 1
    return torch.where(flat, images, stretched.clamp(-1, 1))


def equalise(images: Tensor) -> Tensor:
    """Each channel with its 256 levels spread so that all are about equally common.

    Counting is by sorting, which has one result on every device; nothing is added up in an order of its choice.
    """
    levels = _levels(images).flatten(2).contiguous()
    ordered = levels.to(torch.uint8).sort(dim=-1).values
    # Made from `ordered` so that it has its shape under vmap too.
    every_level = torch.arange(256, device=images.device, dtype=torch.uint8) + 0 * ordered[..., :1]
    num_below = torch.searchsorted(ordered, every_level)
    step = num_below.gather(-1, ordered[..., -1:].long()) // 255
    table = ((step // 2 + num_below) // step.clamp(min=1)).clamp(max=255)
    spread = _from_levels(table.gather(-1, levels.long()).to(images.dtype)).view(images.shape)
    return torch.where((step > 0)[..., None], spread, images)


def posterise(images: Tensor, num_bits: int) -> Tensor:
    """Only the first bits of each level are kept."""
    unit = 2 ** (8 - num_bits)
    return _from_levels(torch.floor(_levels(images) / unit) * unit)


def solarise(images: Tensor, threshold: float) -> Tensor:
    """Levels at or above the threshold are inverted."""
    return torch.where(_levels(images) >= threshold, -images, images)


def _levels(images: Tensor) -> Tensor:
    """0 … 255. Halves are rounded up with room to spare: they are common, and no device may round them its own way."""
    return torch.floor(images * 127.5 + (127.5 + _ROUNDING)).clamp(0, 255)


def _from_levels(levels: Tensor) -> Tensor:
    return levels * (2 / 255) - 1
