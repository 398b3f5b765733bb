"""The names of the augmentations and what may follow them. No torch."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from prequential.errors import PreqError, require_known


@dataclass(frozen=True)
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


_PIXELS, _LAYERS = "a whole number of pixels", "a number of layers from 1 to 10 and a magnitude from 0 to 30"
_KINDS = {
    "flip": _Kind(defaults=()),
    "shift": _Kind(_PIXELS, "shift:2", ((1, math.inf),)),
    "cutout": _Kind(_PIXELS, "cutout:8", ((1, math.inf),)),
    "affine": _Kind("a strength from 0.01 to 5", "affine:0.5", ((0.01, 5),), (1.0,), whole=False),
    "elastic": _Kind("a strength from 0.01 to 5", "elastic:0.5", ((0.01, 5),), (1.0,), whole=False),
    "resized-crop": _Kind("a smallest area from 0.01 to 1", "resized-crop:0.25", ((0.01, 1),), (0.25,), whole=False),
    "jitter": _Kind("a strength from 0.01 to 1", "jitter:0.4", ((0.01, 1),), (0.4,), whole=False),
    "grey": _Kind("a share from 0.01 to 1", "grey:0.2", ((0.01, 1),), (0.2,), whole=False),
    "randaugment": _Kind(_LAYERS, "randaugment:2,9", ((1, 10), (0, 30)), (2, 9)),
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
    require_known("augmentation", name, AUGMENTATIONS)
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
    parts, form = text.split(","), r"\d{1,9}" if kind.whole else r"\d{1,9}(\.\d{1,9})?"
    if len(parts) != len(kind.bounds) or not all(re.fullmatch(form, part, re.ASCII) for part in parts):
        return None
    numbers = tuple(int(part) if kind.whole else float(part) for part in parts)
    inside = all(low <= number <= high for number, (low, high) in zip(numbers, kind.bounds, strict=True))
    return numbers if inside else None
