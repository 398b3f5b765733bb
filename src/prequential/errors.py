"""A user's mistake, told in one line: what was wrong, what was given, what is allowed, what to do."""

import difflib
import math
from collections.abc import Iterable


class PreqError(ValueError):
    """A mistake in what the user gave us. Its text is one line and is shown as it is."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> PreqError:
    """The error for a name that is not in a list, with the nearest known one suggested.

    Example:
        >>> print(unknown_name("model", "lennet", ["lenet", "mlp1"]))
        unknown model 'lennet'; did you mean 'lenet'? known: lenet, mlp1
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return PreqError(f"unknown {kind} '{name}'; {hint}known: {', '.join(names)}")


def require_count(name: str, value: object, *, at_least: int = 1) -> None:
    """Refuse anything but a whole number of at least `at_least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise PreqError(f"{name} must be a whole number of at least {at_least}, got {value!r}")


def require_number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Refuse anything but a finite number inside the bounds."""
    bounds = [
        f"{text} {bound:g}"
        for text, bound in [("above", above), ("at least", at_least), ("at most", at_most), ("below", below)]
        if math.isfinite(bound)
    ]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = float(value) if isinstance(value, int | float) else math.nan
    inside = above < number < below and at_least <= number <= at_most
    if not (is_number and math.isfinite(number) and inside):
        wanted = " and ".join(bounds)
        raise PreqError(f"{name} must be a number {wanted}, got {value!r}".replace("number ,", "number,"))
