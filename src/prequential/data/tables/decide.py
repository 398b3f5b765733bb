"""What becomes of each column of a table: a pure function of what it holds, in whatever order. No torch."""

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.tables.columns import kind_of, numbers_of, parts_of_dates, texts_of
from prequential.data.tables.schema import HASHED, LONGEST, ONE_HOT, Column
from prequential.data.tables.standardise import require_finite
from prequential.errors import PreqError

if TYPE_CHECKING:
    import pyarrow as pa


def decide(name: str, values: "pa.ChunkedArray", where: str, causal: bool, *, is_nameless: bool = False) -> Column:
    """What becomes of one column.

    Args:
        values: what it holds.
        where: the table, for errors.
        causal: whether the values of later rows may not decide: then text is hashed however few values it has.
        is_nameless: whether it is called as an index is that nobody named: then numbers of rows are no input, since
            they tell where a row stood in the file.
    """
    kind, holes = kind_of(name, values, where), values.null_count
    if holes == len(values):
        return Column(name=name, kind="dropped", holes=holes, note="it is empty")
    if kind == "text":
        return _text(name, values, causal)
    if kind == "boolean":
        return Column(name=name, kind=kind, holes=holes, note=_constant(len(values.unique()) == 1))
    numbers = numbers_of(values)
    require_finite(numbers, f"column '{name}' of {where}")
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return Column(name=name, kind="dropped", holes=len(numbers), note="it is empty")
    is_constant, missing = bool(present.min() == present.max()), len(numbers) - len(present)
    if is_nameless and kind == "number" and not missing and _number_rows(present):
        return Column(name=name, kind="dropped", note="without a name, it numbers the rows; --columns takes it")
    if kind == "number":
        return Column(name=name, kind=kind, holes=missing, note=_constant(is_constant))
    parts = tuple(part for part, value in parts_of_dates(values).items() if np.ptp(value[~np.isnan(value)]) > 0)
    return Column(name=name, kind="date", holes=missing, parts=parts, note=_constant(is_constant))


def _number_rows(numbers: NDArray[np.float64]) -> bool:
    """Whether they could be the numbers of rows, some of which were left out or moved."""
    return bool((numbers == np.floor(numbers)).all() and numbers.min() >= 0 and len(np.unique(numbers)) == len(numbers))


def _constant(is_constant: bool) -> str:
    return "the same in every row" if is_constant else ""


def _text(name: str, values: "pa.ChunkedArray", causal: bool) -> Column:
    texts, _ = texts_of(values)
    holes = values.null_count
    if all(is_number(text) for text in texts):
        return Column(name=name, kind="number", holes=holes, note=_constant(len(texts) == 1))
    if len(texts) == 1 and not holes:
        return Column(name=name, kind="dropped", note="it is the same in every row")
    if len(texts) == len(values) - holes and len(values) > 1:
        return Column(name=name, kind="dropped", holes=holes, note="a value per row tells nothing of other rows")
    if len(texts) <= ONE_HOT and not causal and max(map(len, texts)) <= LONGEST:
        return Column(name=name, kind="category", holes=holes, values=tuple(sorted(texts)))
    return Column(name=name, kind="hashed", holes=holes, size=HASHED, note=f"{len(texts):,} values")


def is_number(text: str) -> bool:
    """Whether a text is a number as programs write one.

    Example:
        >>> is_number("+1e5"), is_number("1_000"), is_number("N14228")
        (True, False, False)
    """
    try:
        return "_" not in text and not np.isnan(float(text))
    except ValueError:
        return False


def classes_of(texts: Sequence[str], codes: Sequence[int] | NDArray[np.int64], what: str) -> dict[str, str]:
    """For each text of a label the name of its class: whole numbers are one class however they are written.

    Args:
        texts: the different ones.
        codes: for each row which it has.
        what: the labels, for errors.

    Raises:
        PreqError: for numbers that are not whole, which are no classes.

    Example:
        >>> classes_of(["2.0", "10", "2"], [0, 1, 2], "labels"), classes_of(["b", "10"], [0, 1], "labels")
        ({'2.0': '2', '10': '10', '2': '2'}, {'b': 'b', '10': '10'})
    """
    if long := [text for text in texts if len(text) > LONGEST]:
        raise PreqError(f"{what} holds a text of {len(long[0]):,} letters, {long[0][:9]}…; name the classes")
    if not all(is_number(text) for text in texts):
        return {text: text for text in texts}
    whole = {text: whole_number(text) for text in texts}
    if bad := [number for number, text in enumerate(texts) if whole[text] is None]:
        row = int(np.isin(codes, bad).argmax())
        found = f"row {row + 1} holds {texts[codes[row]].strip()[:40]}"
        raise PreqError(f"{what}: numbers must be whole numbers, {found}; number the classes, or cut it into ranges")
    return {text: str(number) for text, number in whole.items()}


def whole_number(text: str) -> int | None:
    """The exact whole number that a text is, however large; None if it is none.

    Example:
        >>> whole_number("9007199254740993"), whole_number("1e3"), whole_number("5.5")
        (9007199254740993, 1000, None)
    """
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > 400 or number != number.to_integral_value():
        return None
    return int(number)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Classes in the order of their numbers: whole numbers by value, anything else letter by letter.

    Example:
        >>> in_order(["10", "9"]), in_order(["late", "early", "10"])
        (('9', '10'), ('10', 'early', 'late'))
    """
    distinct: Any = set(names)
    numbers = all(whole_number(name) is not None for name in distinct)
    return tuple(sorted(distinct, key=(lambda name: int(name)) if numbers else None))
