"""Columns of a Hugging Face data set as inputs: numbers, vectors, arrays; and its labels, which may be text."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.classes_of_text import names_of, names_of_values, numbered_texts, texts_of
from prequential.data.sequence import ArraySequence
from prequential.data.sources.archives import as_images
from prequential.data.sources.request import Request
from prequential.data.sources.tables import Rows, table, with_numbers
from prequential.data.tables.roles import OF_INDEX
from prequential.errors import PreqError

Names = tuple[str, ...] | None


def vectors(request: Request, name: str, label: str, train: Any, heldout: Any | None) -> ArraySequence:
    """A table: numbers, and vectors beside them, in the order of the columns, standardised as asked.

    A single column of arrays keeps its shape: bytes and whatever has two dimensions or more are pictures, and whole
    numbers that are not to be standardised (`--standardise none`) stay whole numbers: tokens.
    """
    inputs, what = inputs_of(train, label, name), f"column '{label}' of {name}"
    known = column_of(train, label)
    labels, names = class_numbers(known, what)
    names = _names_of_feature(train.features[label], labels, what) or names
    rows, held = Rows(inputs, labels, what), None
    if heldout is not None:
        held_labels = class_numbers(column_of(heldout, label), f"held-out {what}", known)[0]
        held = Rows(inputs_of(heldout, label, name), held_labels, f"held-out {what}")
    is_picture = _are_pictures(inputs)
    if request.options.scale is not None and inputs.dtype != np.uint8:
        raise PreqError(f"--scale is about uint8, and the inputs of {name} are {inputs.dtype}; leave it out")
    if is_picture and request.options.standardise not in (None, "none"):
        raise PreqError(f"{name} holds pictures, not a table; leave --standardise out")
    make = table if is_table(inputs, request.options.standardise) else _as_they_are
    data = make(request, name, rows, held)
    names = names or names_of_values(labels)
    held_data = data.heldout if data.heldout is None else replace(data.heldout, class_names=names)
    return replace(data, class_names=names, heldout=held_data)


def is_table(inputs: NDArray[Any], standardise: str | None) -> bool:
    """Whether inputs are rows of numbers to be standardised, or left as numbers: no pictures and no tokens."""
    return not (_are_pictures(inputs) or (inputs.dtype.kind in "iu" and standardise == "none"))


def _are_pictures(inputs: NDArray[Any]) -> bool:
    return inputs.ndim > 2 or inputs.dtype == np.uint8


def _as_they_are(request: Request, name: str, train: Rows, heldout: Rows | None) -> ArraySequence:
    (inputs, labels), *held = [(as_images(inputs), labels) for inputs, labels in with_numbers(train, heldout)]
    more = {"heldout": held[0] if held else None, "scale": request.options.scale}
    return request.sequence(inputs, labels, name=name, **more)


def index_of(rows: Any, label: str) -> list[str]:
    """Columns that number the rows of a data frame, which data sets made from one have; unless nothing else is left."""
    named = [column for column in rows.column_names if OF_INDEX.fullmatch(column) and column != label]
    found = [column for column in named if column_of(rows, column).dtype.kind in "iu"]
    return found if len(found) < len(rows.column_names) - 1 else []


def inputs_of(rows: Any, label: str, name: str) -> NDArray[Any]:
    """What stands beside the label: one column of arrays as it is, else all as one table."""
    columns = [(column, column_of(rows, column)) for column in rows.column_names if column != label]
    if not columns:
        raise PreqError(f"{name} has no column besides the label; there is nothing to predict from")
    for column, values in columns:
        if values.dtype.kind not in "biuf":
            is_text = values.dtype.kind in "US" or any(isinstance(value, str) for value in values[:64])
            told = "text; give numbers" if is_text else "rows of different lengths, or holes; pad or fill them"
            raise PreqError(f"{name}: column '{column}' holds {told}, or remove the column")
    if len(columns) == 1 and columns[0][1].ndim > 1:
        return columns[0][1]
    return np.concatenate([values.reshape(len(values), -1).astype(np.float64) for _, values in columns], 1)


def column_of(rows: Any, name: str) -> NDArray[Any]:
    """The values of a column; bytes, which the library gives as wider numbers, as bytes."""
    values, feature = np.asarray(rows.with_format("numpy")[name][:]), rows.features[name]
    while hasattr(feature, "feature"):  # a list of something
        feature = feature.feature
    is_bytes = values.ndim > 1 and values.dtype.kind in "iu" and getattr(feature, "dtype", "") == "uint8"
    return values.astype(np.uint8) if is_bytes else values


def class_numbers(values: NDArray[Any], what: str, known: NDArray[Any] | None = None) -> tuple[NDArray[Any], Names]:
    """Labels as numbers, and the names of their classes where they are text; the classes are those known elsewhere.

    Example:
        >>> class_numbers(np.array(["b", "a"]), "labels"), class_numbers(np.array([7, 5]), "labels")
        ((array([1, 0]), ('a', 'b')), (array([7, 5]), None))
    """
    texts, told = texts_of(values, what), None if known is None else texts_of(known, what)
    if known is not None and (texts is None) != (told is None):
        raise PreqError(f"{what} and those of the training rows must both be text or both be numbers; make them alike")
    if texts is None:
        if values.dtype.kind not in "biuf":
            raise PreqError(f"{what} must hold text or whole numbers, got {values.dtype}; fill it, or remove the rows")
        return values, None
    names = names_of(told or texts, what)
    return numbered_texts(texts, names, what), names


def _names_of_feature(feature: Any, labels: NDArray[Any], what: str) -> Names:
    """The names of the classes that occur, where the column has names."""
    if type(feature).__name__ != "ClassLabel":
        return None
    if labels.min() < 0:
        raise PreqError(f"{what}: row {int(labels.argmin()) + 1} has no label; this split cannot be coded")
    return tuple(feature.names[number] for number in np.unique(labels))
