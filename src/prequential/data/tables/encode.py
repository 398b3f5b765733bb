"""Columns as rows of float32, the way a schema says."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.tables.columns import holes_of, kind_of, numbers_of, parts_of_dates, texts_of
from prequential.data.tables.decide import classes_of, whole_number
from prequential.data.tables.schema import PARTS, Column, Schema
from prequential.data.tables.standardise import require_finite, standardised_column
from prequential.errors import PreqError

if TYPE_CHECKING:
    import pyarrow as pa

Rows = NDArray[np.float32]
FITTING = {"number": ("number", "text"), "boolean": ("boolean",), "date": ("date",)}
"""What a column must be read as to become that; text may hold numbers."""


def encoded(
    tables: Sequence["pa.Table"], schema: Schema, how: str, order: NDArray[np.int64], where: str
) -> tuple[Rows, Rows]:
    """The rows of a sequence, as they are stored, and the held-out rows, as inputs.

    Numbers and days passed are standardised; what is 0 or 1, and sines and cosines, stay.

    Args:
        tables: the rows of the sequence, and the held-out ones.
        how, order: see `standardised_column`.
        where: the table, for errors.
    """
    at, width = 0, schema.width
    made = (np.zeros((len(tables[0]), width), np.float32), np.zeros((len(tables[1]), width), np.float32))
    for column in schema.inputs:
        values = [table.column(column.name) for table in tables]
        found = kind_of(column.name, values[0], where)
        if found not in FITTING.get(column.kind, ("text", "number", "boolean", "date")):
            raise PreqError(
                f"column '{column.name}' of {where} holds {values[0].type}, and the schema has a {column.kind} for it; "
                "let --schema write a new one"
            )
        for rows, part in zip(made, values, strict=True):
            if column.holes:
                rows[:, at + column.width - 1] = holes_of(part)
            elif rows is made[0] and holes_of(part).any():
                raise PreqError(
                    f"column '{column.name}' of {where} has holes, and the schema none; give it 'holes': 1 there"
                )
        if column.kind in ("number", "date"):
            _put_numbers(column, values, made, at, how, order, width == 1, where)
        else:
            for rows, part in zip(made, values, strict=True):
                _put_places(column, part, rows, at)
        at += column.width
    return made


def _put_numbers(
    column: Column,
    values: Sequence["pa.ChunkedArray"],
    made: tuple[Rows, Rows],
    at: int,
    how: str,
    order: NDArray[np.int64],
    alone: bool,
    where: str,
) -> None:
    kept, held = (numbers_of(part) for part in values)
    for numbers in (kept, held):
        require_finite(numbers, f"column '{column.name}' of {where}")
    for rows, scaled in zip(made, standardised_column(kept, held, how, order, alone), strict=True):
        rows[:, at] = scaled
    for rows, part in zip(made, values, strict=True):
        turns = parts_of_dates(part) if column.parts else {}
        for number, name in enumerate(column.parts):
            angles = turns[name] * (2 * np.pi / PARTS[name])
            holes = np.isnan(angles)
            rows[:, at + 1 + 2 * number] = np.where(holes, 0, np.sin(angles))
            rows[:, at + 2 + 2 * number] = np.where(holes, 0, np.cos(angles))


def _put_places(column: Column, values: "pa.ChunkedArray", rows: Rows, at: int) -> None:
    """Booleans and texts: each row has at most one place, and what stands there."""
    if column.kind == "boolean":
        rows[:, at] = values.fill_null(False).to_numpy()
        return
    texts, codes = texts_of(values)
    if column.kind == "category":
        known = {value: place for place, value in enumerate(column.values)}
        places = np.array([*(known.get(text, -1) for text in texts), -1])[codes]
        present = np.flatnonzero(places >= 0)
        rows[present, at + places[present]] = 1
        return
    hashed = np.array([*(hashed_place(text, column.size) for text in texts), (0, 0)])[codes]
    rows[np.arange(len(rows)), at + hashed[:, 0]] = hashed[:, 1]


def hashed_place(text: str, size: int) -> tuple[int, int]:
    """Which of the columns a text is hashed into, and what stands there: 1 or −1.

    Example:
        >>> hashed_place("N14228", 32)
        (11, -1)
    """
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    return (number >> 1) % size, 1 if number & 1 else -1


def labels_of(values: "pa.ChunkedArray", classes: Sequence[str], what: str) -> NDArray[np.int64]:
    """Labels as the numbers of their classes."""
    texts, codes = label_texts(values, what)
    known = {name: number for number, name in enumerate(classes)}
    by_value = all(whole_number(name) is not None for name in classes)
    names = classes_of(texts, codes, what) if by_value else {text: text for text in texts}
    for text, name in names.items():
        if name not in known:
            row = int((codes == texts.index(text)).argmax()) + 1
            raise PreqError(f"{what} holds {text[:40]} in row {row}, a class that is not in the training labels")
    numbers: NDArray[np.int64] = np.array([known[names[text]] for text in texts], np.int64)[codes]
    return numbers


def label_texts(values: Any, what: str) -> tuple[list[str], NDArray[np.int64]]:
    """The different labels as text, and for each row which it has; a row without one is refused."""
    import pyarrow as pa

    try:
        texts, codes = texts_of(values)
    except pa.ArrowException:
        raise PreqError(f"{what} holds {values.type}; labels are text, true and false, or whole numbers") from None
    missing = codes < 0
    for number, text in enumerate(texts):
        if text == "nan":
            missing |= codes == number
    if missing.any():
        raise PreqError(
            f"{what} has no value in row {int(missing.argmax()) + 1} ({int(missing.sum()):,} such rows); remove them: "
            "a label that is not there cannot be coded"
        )
    return texts, codes
