"""Augmentations that move pixels: flip, shift, cutout, affine, elastic, resized crop.

Everything is arithmetic on tensors of fixed shapes; the only branches are on shapes and strides. Nothing goes
through a matrix product, which autocast would round to bfloat16.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F


def flipped(images: Tensor) -> Tensor:
    """Every image, left and right exchanged."""
    return images.flip(-1)


@dataclass(frozen=True)
class Flip:
    """Left and right exchanged, for every other example on average."""

    num_draws: ClassVar[int] = 1

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        return torch.where(draws[:, :, None, None] < 0.5, flipped(images), images)


@dataclass(frozen=True)
class Shift:
    """Moved by up to `num_pixels` each way; what enters at a border is the image mirrored there."""

    num_pixels: int
    num_draws: ClassVar[int] = 2

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        moves = (draws * (2 * self.num_pixels + 1)).long() - self.num_pixels
        down, right = moves[:, :1], moves[:, 1:]
        height, width = images.shape[-2:]
        return _taken(images, _mirrored(height, down), _mirrored(width, right))


@dataclass(frozen=True)
class Cutout:
    """A square of `side` pixels around a random pixel, clipped at the border, becomes 0 (DeVries & Taylor 2017).

    0 is mid-grey. The usual fill is the mean of the data set, but the code of a prefix must not depend on inputs
    that come later, and mid-grey depends on none.
    """

    side: int
    num_draws: ClassVar[int] = 2

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        rows, columns = self._covered(height, draws[:, :1]), self._covered(width, draws[:, 1:])
        # A product keeps the layout of the images and takes a fifth of the time of masked_fill.
        return images * ~(rows[:, :, None] & columns[:, None, :])[:, None]

    def _covered(self, length: int, draws: Tensor) -> Tensor:
        """Which places along one axis lie in the square."""
        distance = torch.arange(length, device=draws.device) - (draws * length).long() + self.side // 2
        return (distance >= 0) & (distance < self.side)


@dataclass(frozen=True)
class Affine:
    """A small rotation, translation, scaling and shear about the centre, bilinear, the border replicated.

    At strength 1: ±15°, ±10 % of each side, 0.9 … 1.1 and ±10°, which leaves a handwritten digit legible.
    Draws of 0.5 are the identity.
    """

    strength: float = 1.0
    num_draws: ClassVar[int] = 5

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        turn, zoom, slant, right, down = (self.strength * (2 * draws.to(images.dtype) - 1)).unbind(1)
        height, width = images.shape[-2:]
        x, y = source_of(
            images,
            angle=math.radians(15) * turn,
            scale=1 + 0.1 * zoom,
            slant_x=torch.tan(math.radians(10) * slant),
            right=0.1 * width * right,
            down=0.1 * height * down,
        )
        return sampled(images, x, y, padding="border")


@dataclass(frozen=True)
class Elastic:
    """A smooth random field of moves, as handwriting varies (the idea of Simard, Steinkraus & Platt 2003).

    At strength 1 each node of a lattice of 5×5 over the image moves by up to ±5 % of either side, and the pixels
    between follow by cubic interpolation; bilinear reading, the border replicated. Their fields are noise smoothed by
    a Gaussian; a lattice is as smooth and needs 50 numbers an image, not two a pixel. Draws of 0.5 are the identity.
    """

    strength: float = 1.0
    nodes: ClassVar[int] = 5
    num_draws: ClassVar[int] = 2 * nodes**2

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        moves = 0.05 * self.strength * (2 * draws.to(images.dtype) - 1)
        lattice = moves.view(len(images), 2, self.nodes, self.nodes)
        field = F.interpolate(lattice, (height, width), mode="bicubic", align_corners=True)
        x = _from_centre(width, images)[None, None, :] - width * field[:, 0]
        y = _from_centre(height, images)[None, :, None] - height * field[:, 1]
        return sampled(images, x, y, padding="border")


@dataclass(frozen=True)
class ResizedCrop:
    """A random box of `smallest_area` … 1 of the image, its sides stretched by 3/4 … 4/3, back at full size.

    The box is made of whole pixels and nothing outside it is seen. A side that would leave the image is cut to it.
    """

    smallest_area: float = 0.25
    num_draws: ClassVar[int] = 4

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        size, shape, left, top = draws.to(images.dtype).unbind(1)
        area = self.smallest_area + (1 - self.smallest_area) * size
        aspect = torch.exp(math.log(4 / 3) * (2 * shape - 1))
        x = _stretched(width, torch.sqrt(area * aspect), left)
        y = _stretched(height, torch.sqrt(area / aspect), top)
        return sampled(images, x[:, None, :], y[:, :, None], padding="border")


def source_of(
    images: Tensor,
    *,
    angle: Tensor,
    scale: Tensor | float = 1.0,
    slant_x: Tensor,
    slant_y: Tensor | float = 0.0,
    right: Tensor,
    down: Tensor,
) -> tuple[Tensor, Tensor]:
    """Where each pixel of a transformed image comes from: x and y in pixels from the centre, (batch, height, width).

    An image is scaled, sheared, turned anticlockwise by `angle` radians and moved; each is one number per example.
    Rotations are made in pixels and stay rotations where an image is not square.
    """
    cos, sin = torch.cos(angle), torch.sin(angle)
    height, width = images.shape[-2:]
    x = (_from_centre(width, images) - right[:, None])[:, None, :]
    y = (_from_centre(height, images) - down[:, None])[:, :, None]

    def times(factor: Tensor, places: Tensor) -> Tensor:
        return (factor / scale)[:, None, None] * places

    return (
        times(cos - slant_x * sin, x) + times(-sin - slant_x * cos, y),
        times(sin - slant_y * cos, x) + times(cos + slant_y * sin, y),
    )


def sampled(images: Tensor, x: Tensor, y: Tensor, *, padding: str) -> Tensor:
    """The images read at places in pixels from the centre, bilinear; `padding` as in grid_sample."""
    batch_size, _, height, width = images.shape
    shape = (batch_size, height, width)
    grid = torch.stack([(x * (2 / width)).expand(shape), (y * (2 / height)).expand(shape)], dim=-1)
    result = F.grid_sample(images, grid, mode="bilinear", padding_mode=padding, align_corners=False)
    if _is_channels_last(images):
        return result.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    return result


def _stretched(length: int, fraction: Tensor, place: Tensor) -> Tensor:
    """Where a box along one axis is read to fill the whole axis, in pixels from the centre."""
    side = torch.round(length * fraction).clamp(1, length)[:, None]
    start = torch.floor(place[:, None] * (length - side + 1))
    inside = (torch.arange(length, device=side.device) + 0.5) * side / length - 0.5
    return start + torch.minimum(inside.clamp(min=0), side - 1) - (length - 1) / 2


def _from_centre(length: int, images: Tensor) -> Tensor:
    return torch.arange(length, device=images.device, dtype=images.dtype) - (length - 1) / 2


def _mirrored(length: int, moves: Tensor) -> Tensor:
    """The places along one axis after moving it, mirrored at both ends: (batch, length)."""
    places = (torch.arange(length, device=moves.device) - moves).abs()
    return length - 1 - (length - 1 - places).abs()


def _taken(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The pixels at rows (batch, height) and columns (batch, width) of each example."""
    batch_size, num_channels, height, width = images.shape
    places = (rows[:, :, None] * width + columns[:, None, :]).flatten(1)
    if _is_channels_last(images):
        first = torch.arange(batch_size, device=images.device)[:, None] * (height * width)
        pixels = images.permute(0, 2, 3, 1).reshape(-1, num_channels).index_select(0, (first + places).flatten())
        return pixels.view(batch_size, height, width, num_channels).permute(0, 3, 1, 2)
    places = places[:, None].expand(batch_size, num_channels, height * width)
    return images.flatten(2).gather(2, places).view(images.shape)


def _is_channels_last(images: Tensor) -> bool:
    """Read from the strides: a vmapped tensor cannot be asked for its memory format."""
    return images.shape[1] > 1 and images.stride(1) == 1
