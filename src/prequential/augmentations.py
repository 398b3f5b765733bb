"""The names of the augmentations and what may follow them. No torch."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from prequential.errors import PreqError, unknown_name


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """What may stand after a name: so many numbers within bounds."""

    wanted: str = "no number"
    """In words, for errors."""
    example: str = ""
    bounds: tuple[tuple[float, float], ...] = ()
    """The smallest and the largest value of each number."""
    defaults: tuple[float, ...] | None = None
    """Used where the name stands alone; None where the numbers must be given."""
    whole: bool = True
    """Whether the numbers must be whole."""


_PIXELS = ((1, math.inf),)
_KINDS = {
    "flip": _Kind(defaults=()),
    "shift": _Kind(wanted="a whole number of pixels", example="shift:2", bounds=_PIXELS),
    "cutout": _Kind(wanted="a whole number of pixels", example="cutout:8", bounds=_PIXELS),
    "affine": _Kind(
        wanted="a strength from 0.01 to 5", example="affine:0.5", bounds=((0.01, 5),), defaults=(1.0,), whole=False
    ),
    "resized-crop": _Kind(
        wanted="a smallest area from 0.01 to 1",
        example="resized-crop:0.25",
        bounds=((0.01, 1),),
        defaults=(0.25,),
        whole=False,
    ),
    "randaugment": _Kind(
        wanted="a number of layers from 1 to 10 and a magnitude from 0 to 30",
        example="randaugment:2,9",
        bounds=((1, 10), (0, 30)),
        defaults=(2, 9),
    ),
}
AUGMENTATIONS = tuple(_KINDS)
MOVEMENTS = ("shift", "affine")
"""Those that move an image and leave all of it to be seen, which predictions can be averaged over."""


def movements(specs: Iterable[str]) -> tuple[str, ...]:
    """Those of the augmentations that predictions can be averaged over.

    Example:
        >>> movements(["flip", "shift:2", "cutout:8"])
        ('shift:2',)
    """
    return tuple(spec for spec in specs if parse_augmentation(spec)[0] in MOVEMENTS)


def parse_augmentation(spec: Any) -> tuple[str, tuple[float, ...]]:
    """The name and the numbers of one augmentation, defaults filled in.

    Example:
        >>> parse_augmentation("shift:2"), parse_augmentation("randaugment")
        (('shift', (2,)), ('randaugment', (2, 9)))
    """
    if not isinstance(spec, str):
        raise PreqError(f"an augmentation must be a name such as 'flip' or 'shift:2', got {spec!r}")
    name, colon, text = spec.partition(":")
    if name not in _KINDS:
        raise unknown_name("augmentation", name, AUGMENTATIONS)
    kind = _KINDS[name]
    numbers = _numbers(text, kind) if colon else kind.defaults
    if numbers is None:
        verb = "takes" if kind.defaults is not None else "needs"
        example = f", such as {kind.example}" if kind.example else ""
        raise PreqError(f"{name} {verb} {kind.wanted}{example}, got {spec!r}")
    return name, numbers


def require_augmentations(specs: Iterable[Any]) -> None:
    """Refuse anything but a list or tuple of augmentations.

    Example:
        >>> require_augmentations(("flip", "shift:2"))
        >>> require_augmentations(["flop"])
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: unknown augmentation 'flop'; did you mean 'flip'? known: ...
    """
    if not isinstance(specs, tuple | list):
        raise PreqError(f"augmentations must be a list such as ['flip', 'shift:2'], got {specs!r}")
    for spec in specs:
        parse_augmentation(spec)


def _numbers(text: str, kind: _Kind) -> tuple[float, ...] | None:
    """The numbers in a text; None where they are not what the kind takes."""
    parts = text.split(",")
    if len(parts) != len(kind.bounds):
        return None
    numbers: list[float] = []
    for part, (lowest, highest) in zip(parts, kind.bounds, strict=True):
        if not re.fullmatch(r"\d{1,9}" if kind.whole else r"\d{1,9}(\.\d{1,9})?", part, re.ASCII):
            return None
        number = int(part) if kind.whole else float(part)
        if not lowest <= number <= highest:
            return None
        numbers.append(number)
    return tuple(numbers)
