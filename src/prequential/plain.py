"""Plain values from JSON that a stranger may have written: read within bounds, and held against a shape. No torch.

What is read is plain: text that can be written, finite numbers, a few levels. A shape is `str`, `bool`, `dict`, `list`,
a `range` of whole numbers, a `Real`, a frozenset of words, `None`, a list of one shape (any number of those), a tuple
of shapes (one of them), or a dictionary of them by key, where a key that ends in "?" may be missing and "*" stands for
all others. What a shape does not name may be there too. The shapes of our files are in `prequential.formats`.
"""

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prequential.errors import PreqError
from prequential.files import digest_of, reading

MOST_BYTES = 1 << 24
MOST_DEPTH = 24
MOST_LETTERS = 1 << 14
MOST_WHOLE = 1 << 128
"""No whole number is larger."""


class Real(NamedTuple):
    """A finite number of at least so much."""

    least: float = -math.inf


WORDS: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
"""What people call the types."""


class MisfitError(ValueError):
    """A value that is not what it should be, in words."""


class ForeignError(MisfitError):
    """A file that is of another kind altogether."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """A file that is to be small.

    Raises:
        PreqError: for one that is not, or cannot be read.
    """
    with reading(path), path.open("rb") as file:
        content = file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
    if len(content) > most:
        raise PreqError(f"{path} is damaged: it has more than {most:,} bytes")
    return content


def parsed(content: bytes | str) -> Any:
    """The plain values of a text in JSON.

    Raises:
        MisfitError: for what is not JSON, or not plain.

    Example:
        >>> parsed('{"a": [1, 2.5]}')
        {'a': [1, 2.5]}
        >>> parsed('{"a": [1e999]}')
        Traceback (most recent call last):
        ...
        prequential.plain.MisfitError: a.0 must be a finite number of at most 128 bits, got inf
    """
    try:
        value = json.loads(content.decode() if isinstance(content, bytes) else content)
    except RecursionError:
        raise MisfitError(f"it has more than {MOST_DEPTH} levels") from None
    except ValueError as error:
        raise MisfitError(str(error)) from None
    _require_plain(value, ())
    return value


def unsealed(content: bytes, name: str, check: Callable[[dict[str, Any]], object] | None = None) -> dict[str, Any]:
    """What `sealed` has put under that name, if its checksum fits; `check` sees it before that, to refuse its format.

    Example:
        >>> unsealed(sealed({"length": 3}, "record"), "record")
        {'length': 3}
    """
    whole = parsed(content)
    inside = whole.get(name) if isinstance(whole, dict) else None
    if not isinstance(inside, dict) or "checksum" not in whole:
        raise ForeignError(f"it holds no {name} with a checksum")
    if check is not None:
        check(inside)
    if whole["checksum"] != digest_of(_text_of(inside)):
        raise MisfitError("its checksum does not fit its content")
    return inside


def sealed(content: Mapping[str, Any], name: str) -> bytes:
    """JSON with a checksum of what it says under that name."""
    whole = {"checksum": digest_of(_text_of(content)), name: content}
    return json.dumps(whole, indent=1, ensure_ascii=False).encode() + b"\n"


def checksum_of(content: Mapping[str, Any]) -> str:
    """Of what a file says beside its checksum.

    Example:
        >>> checksum_of({"position": 3})[:8]
        '372d8d08'
    """
    return digest_of(json.dumps({k: v for k, v in content.items() if k != "checksum"}, sort_keys=True).encode())


def require_checksum(content: Mapping[str, Any]) -> None:
    """Refuse what does not fit its checksum, if it has one: files of before do not."""
    if "checksum" in content and content["checksum"] != checksum_of(content):
        raise MisfitError("its checksum does not fit; remove that if you changed the rest yourself")


def _text_of(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode()


def _require_plain(value: Any, place: tuple[object, ...]) -> None:
    if len(place) > MOST_DEPTH:
        raise MisfitError(f"it has more than {MOST_DEPTH} levels")
    match value:
        case str():
            if len(value) > MOST_LETTERS or not _is_text(value):
                raise _misfit(place, f"text of at most {MOST_LETTERS:,} letters", value)
        case int() | float():
            if not -MOST_WHOLE < value < MOST_WHOLE and not (isinstance(value, float) and math.isfinite(value)):
                raise _misfit(place, "a finite number of at most 128 bits", value)
        case dict():
            for key, part in value.items():
                _require_plain(key, (*place, "a key"))
                _require_plain(part, (*place, key))
        case list():
            for number, part in enumerate(value):
                _require_plain(part, (*place, number))


def _is_text(value: str) -> bool:
    """Whether text can be written, which half a surrogate pair cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_shape(value: Any, shape: Any, place: tuple[object, ...] = ()) -> None:
    """Refuse a plain value that is not of a shape.

    Raises:
        MisfitError: naming the place.

    Example:
        >>> require_shape({"length": -1}, {"length": range(8), "name?": str})
        Traceback (most recent call last):
        ...
        prequential.plain.MisfitError: length must be a whole number in 0 … 7, got -1
    """
    if isinstance(shape, tuple) and not isinstance(shape, Real):
        _require_one_of(value, shape, place)
    elif isinstance(shape, dict) and isinstance(value, dict):
        _require_parts(value, shape, place)
    elif isinstance(shape, list) and isinstance(value, list):
        for number, part in enumerate(value):
            require_shape(part, shape[0], (*place, number))
    elif not _is(value, shape):
        raise _misfit(place, _words(shape), value)


def _require_parts(value: dict[str, Any], shape: Mapping[str, Any], place: tuple[object, ...]) -> None:
    for name, part in shape.items():
        key = name.removesuffix("?")
        if key in value:
            require_shape(value[key], part, (*place, key))
        elif name == key != "*":
            raise MisfitError(f"{_spelled((*place, key))} is missing")
    for key in value.keys() - {name.removesuffix("?") for name in shape} if "*" in shape else ():
        require_shape(value[key], shape["*"], (*place, key))


def _require_one_of(value: Any, shapes: tuple[Any, ...], place: tuple[object, ...]) -> None:
    fitting = [shape for shape in shapes if type(shape) is type(value) or _is(value, shape)]
    if not fitting:
        raise _misfit(place, " or ".join(map(_words, shapes)), value)
    require_shape(value, fitting[0], place)


def _is(value: Any, shape: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match shape:
        case range():
            return is_number and isinstance(value, int) and value in shape
        case Real():
            return is_number and value >= shape.least
        case frozenset():
            return isinstance(value, str) and value in shape
        case type():
            return isinstance(value, shape)
        case _:
            return shape is None and value is None


def _words(shape: Any) -> str:
    match shape:
        case range():
            return f"a whole number in {shape[0]} … {shape[-1]}"
        case Real():
            return "a number" if shape.least == -math.inf else f"a number of at least {shape.least:g}"
        case frozenset():
            return f"one of {', '.join(sorted(shape))}"
    return WORDS[shape if isinstance(shape, type) else type(shape)]


def _misfit(place: tuple[object, ...], wanted: str, value: object) -> MisfitError:
    got = WORDS[type(value)] if isinstance(value, dict | list) else ascii(value)[:40]
    return MisfitError(f"{_spelled(place) or 'it'} must be {wanted}, got {got}")


def _spelled(place: tuple[object, ...]) -> str:
    return ascii(".".join(map(str, place)))[1:-1][:80]
