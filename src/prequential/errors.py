"""A user's mistake, told in one line: what was wrong, what was given, what is allowed, what to do."""

import difflib
import math
import numbers
import operator
import sys
from collections.abc import Iterable
from typing import Any

from prequential.terminal import printable


class PreqError(ValueError):
    """A mistake in what the user gave us. Its text is one line, whatever names and files put into it.

    Example:
        >>> print(PreqError("unknown model 'a\\x1b[2J\\nb'"))
        unknown model 'a\\x1b[2J\\nb'
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class PreqWarning(UserWarning):
    """Something the user should know that does not stop the work; one line like `PreqError`."""

    def __str__(self) -> str:
        return printable(super().__str__())


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


def require_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is not in a list."""
    if name not in known:
        raise unknown_name(kind, name, known)


def in_one_line(error: BaseException) -> str:
    """An error of other people's code, for a sentence of ours.

    Example:
        >>> in_one_line(KeyError("width"))
        "KeyError: 'width'"
    """
    return f"{type(error).__name__}: {error}".splitlines()[0]


def as_given(value: object) -> str:
    """A value that is refused: text in quotes, so that '2' is not taken for 2.

    Example:
        >>> as_given("2"), as_given(2)
        ("'2'", '2')
    """
    return repr(value) if isinstance(value, str) else str(value)


def require_count(name: str, value: Any, *, at_least: float = 1, at_most: float = sys.maxsize) -> None:
    """Refuse anything but a whole number of at least `at_least`."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not at_least <= int(value) <= at_most:
        limits = [f"at least {at_least}"] * (at_least > -sys.maxsize) + [f"at most {at_most}"] * (at_most < sys.maxsize)
        wanted = f" of {' and '.join(limits)}" if limits else ""
        raise PreqError(f"{name} must be a whole number{wanted}, got {as_given(value)}")


def require_flag(name: str, value: Any) -> None:
    """Refuse anything but True or False."""
    if not isinstance(value, bool):
        raise PreqError(f"{name} must be True or False, got {as_given(value)}")


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
    require_count(name, value, at_least=-math.inf, at_most=math.inf)
    return int(value)


BOUNDS = {"above": operator.gt, "at_least": operator.ge, "at_most": operator.le, "below": operator.lt}
"""How a number may be bounded, and what tells whether it is inside."""


def require_number(name: str, value: Any, **bounds: float) -> None:
    """Refuse anything but a finite number inside the bounds, which are those of `BOUNDS`.

    Example:
        >>> require_number("width", -1, above=0)
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: width must be a number above 0, got -1
    """
    is_number = not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)
    if not is_number or not all(BOUNDS[word](value, bound) for word, bound in bounds.items()):
        wanted = " and ".join(f"{word.replace('_', ' ')} {bounds[word]:g}" for word in BOUNDS if word in bounds)
        raise PreqError(f"{name} must be a number{wanted and f' {wanted}'}, got {as_given(value)}")
