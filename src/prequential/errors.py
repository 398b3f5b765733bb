"""A user's mistake, told in one line: what was wrong, what was given, what is allowed, what to do."""

import difflib
import math
import numbers
import sys
from collections.abc import Iterable
from typing import Any


class PreqError(ValueError):
    """A mistake in what the user gave us. Its text is one line and is shown as it is."""


class PreqWarning(UserWarning):
    """Something the user should know that does not stop the work."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> PreqError:
    """The error for a name that is not in a list, with the nearest known one suggested.

    Example:
        >>> print(unknown_name("model", "lennet", ["lenet", "mlp1"]))
        unknown model 'lennet'; did you mean 'lenet'? known: lenet, mlp1
    """
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return PreqError(f"unknown {kind} '{name}'; {hint}known: {', '.join(names)}")


def in_one_line(error: BaseException) -> str:
    """An error of other people's code, for a sentence of ours.

    Example:
        >>> in_one_line(KeyError("width"))
        "KeyError: 'width'"
    """
    return f"{type(error).__name__}: {error}".splitlines()[0]


def require_count(name: str, value: Any, *, at_least: int = 1, at_most: int = sys.maxsize) -> None:
    """Refuse anything but a whole number of at least `at_least`."""
    is_whole = isinstance(value, numbers.Integral) and value is not True and value is not False
    if not is_whole or not at_least <= int(value) <= at_most:
        limits = [f"at least {at_least}"] * (at_least > -sys.maxsize) + [f"at most {at_most}"] * (at_most < sys.maxsize)
        wanted = f" of {' and '.join(limits)}" if limits else ""
        raise PreqError(f"{name} must be a whole number{wanted}, got {value}")


def require_flag(name: str, value: Any) -> None:
    """Refuse anything but True or False."""
    if not isinstance(value, bool):
        raise PreqError(f"{name} must be True or False, got {value}")


def require_name(value: Any) -> str:
    """A name as people give one: some text on one line. Anything else is refused."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise PreqError(f"a name must be some text on one line, got {value!r}")
    return value


def whole_seed(name: str, value: Any) -> int:
    """A seed as a plain whole number; anything else is refused.

    Example:
        >>> whole_seed("seed", 3)
        3
    """
    if type(value) is bool or not isinstance(value, numbers.Integral):
        raise PreqError(f"{name} must be a whole number, got {value}")
    return int(value)


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
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    number = float(value) if isinstance(value, numbers.Real) else math.nan
    inside = above < number < below and at_least <= number <= at_most
    if not (is_number and math.isfinite(number) and inside):
        wanted = " and ".join(bounds)
        raise PreqError(f"{name} must be a number {wanted}, got {value}".replace("number ,", "number,"))
