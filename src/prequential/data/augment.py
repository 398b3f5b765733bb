"""Augmentation of training images, as tensor operations on a whole batch.

An operation is a pure function of images and of uniform numbers drawn beforehand: no generator, no branch on a value,
no wait for the device. So a step that augments can be captured, replayed, vmapped and decoded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from prequential.augmentations import parse_augmentation, require_augmentations
from prequential.data.augment_colour import RandAugment
from prequential.data.augment_geometry import Affine, Cutout, Elastic, Flip, ResizedCrop, Shift
from prequential.data.augment_jitter import Grey, Jitter
from prequential.errors import PreqError
from prequential.rng import GOLDEN, MIX_1, MIX_2, derive, draw_bits

_MIX_1, _MIX_2 = (int(bits.astype(np.int64)) for bits in (MIX_1, MIX_2))
"""The constants of SplitMix64 as whole numbers with a sign: torch has arithmetic for no others."""
_BUILDERS: dict[str, Callable[..., "Augmentation"]] = {
    "flip": Flip,
    "shift": Shift,
    "cutout": Cutout,
    "affine": Affine,
    "elastic": Elastic,
    "resized-crop": ResizedCrop,
    "jitter": Jitter,
    "grey": Grey,
    "randaugment": RandAugment,
}


class Augmentation(Protocol):
    """A random change of images that keeps their shape, dtype and layout.

    Pure: the result is a function of both arguments, the same on every device up to rounding, and an example's
    depends on its own image and draws only. Nothing is changed in place.
    """

    @property
    def num_draws(self) -> int:
        """How many uniform numbers an example needs."""

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Change each of the images.

        Args:
            images: (batch, channels, height, width), values in [−1, 1].
            draws: (batch, num_draws), float32 in [0, 1).
        """


@dataclass(frozen=True)
class Pipeline:
    """Several augmentations, one after the other; each has its own columns of the draws.

    Example:
        >>> pipeline = Pipeline((Flip(), Cutout(2)))
        >>> draws = torch.tensor([[0.4, 0.0, 0.9]])
        >>> pipeline(torch.tensor([[[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]]]), draws)
        tensor([[[[0.3000, 0.0000, 0.0000],
                  [0.6000, 0.5000, 0.4000]]]])
    """

    operations: tuple[Augmentation, ...]

    @property
    def num_draws(self) -> int:
        return sum(operation.num_draws for operation in self.operations)

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        parts = torch.split_with_sizes(draws, [operation.num_draws for operation in self.operations], dim=1)
        for operation, part in zip(self.operations, parts, strict=True):
            images = operation(images, part)
        return images


def parse(specs: Sequence[str]) -> Pipeline | None:
    """The augmentations named by `specs`, in that order; None where there are none.

    Example:
        >>> parse(["flip", "shift:2"])
        Pipeline(operations=(Flip(), Shift(num_pixels=2)))
    """
    require_augmentations(specs)
    parsed = [parse_augmentation(spec) for spec in specs]
    return Pipeline(tuple(_BUILDERS[name](*numbers) for name, numbers in parsed)) if parsed else None


def require_fits(specs: Sequence[str], input_shape: tuple[int, ...]) -> None:
    """Refuse augmentations that make no sense for inputs of this shape.

    Example:
        >>> require_fits(["shift:40"], (3, 32, 32))
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: shift:40 is more than half of a 32x32 image; the most is shift:16
    """
    require_augmentations(specs)
    for spec in specs:
        if len(input_shape) != 3:
            raise PreqError(
                f"{spec} takes images (channels, height, width), got inputs of shape {input_shape}; leave it out"
            )
        height, width = input_shape[1:]
        name, numbers = parse_augmentation(spec)
        side, image = min(height, width), f"a {height}x{width} image"
        if name == "shift" and 2 * numbers[0] > side:
            raise PreqError(f"{spec} is more than half of {image}; the most is shift:{side // 2}")
        if name == "cutout" and numbers[0] > side:
            raise PreqError(f"{spec} is larger than {image}; the most is cutout:{side}")
        if name == "randaugment" and side < 3:
            raise PreqError(f"{spec} takes images of at least 3x3, got {image}; leave it out")


def augmentation_key(seed: int, event: int) -> int:
    """What decides the draws of a training step."""
    return derive(seed, "augment", event)


def draws_for(seed: int, event: int, batch_size: int, num_draws: int, device: torch.device | str) -> Tensor:
    """The uniform numbers of a training step: a pure function of seed, event, row and column.

    Multiples of 2⁻²⁴ below 1, so that float32 holds each of them as it is.

    Example:
        >>> draws_for(0, 7, 2, 3, "cpu")
        tensor([[0.3107, 0.5048, 0.8352],
                [0.0984, 0.9347, 0.5668]])
    """
    bits = draw_bits(augmentation_key(seed, event), np.arange(batch_size * num_draws))
    draws = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return torch.from_numpy(draws.reshape(batch_size, num_draws)).to(device, non_blocking=True)


class DeviceDraws:
    """The numbers of `draws_for`, bit for bit, made on a device from a key that is there.

    Example:
        >>> key = torch.tensor(np.uint64(augmentation_key(0, 7)).astype(np.int64))
        >>> bool((DeviceDraws(2, 3, "cpu")(key) == draws_for(0, 7, 2, 3, "cpu")).all())
        True
    """

    def __init__(self, batch_size: int, num_draws: int, device: torch.device | str) -> None:
        with np.errstate(over="ignore"):
            counters = np.arange(1, batch_size * num_draws + 1, dtype=np.uint64) * GOLDEN
        self._counters = torch.from_numpy(counters.view(np.int64).reshape(batch_size, num_draws)).to(device)

    def __call__(self, key: Tensor) -> Tensor:
        bits = self._counters + key
        bits = (bits ^ _shifted(bits, 30)) * _MIX_1
        bits = (bits ^ _shifted(bits, 27)) * _MIX_2
        bits = bits ^ _shifted(bits, 31)
        return _shifted(bits, 40).to(torch.float32) * 2.0**-24


def _shifted(bits: Tensor, places: int) -> Tensor:
    """Bits moved right as if they had no sign."""
    return (bits >> places) & ((1 << (64 - places)) - 1)
