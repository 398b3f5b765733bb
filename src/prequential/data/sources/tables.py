"""Tables: CSV files, and what all tables share."""

import csv as csv_module
import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import ALL_INPUTS
from prequential.data.arrays import from_arrays
from prequential.data.classes_of_text import names_of_values
from prequential.data.sequence import ArraySequence
from prequential.data.sources.numbering import numbered, whole_number
from prequential.data.sources.request import Request
from prequential.errors import PreqError, unknown_name
from prequential.files import reading

USUAL_LABELS = ("label", "class", "target", "y")
DELIMITERS = ",;\t"


class Rows(NamedTuple):
    """Inputs, and labels as they are given."""

    inputs: NDArray[Any]
    labels: NDArray[Any]
    labels_name: str
    """What an error calls the labels."""


def csv(request: Request) -> ArraySequence:
    """A table with a header; one column is the label, all others are inputs."""
    path = request.path()
    columns, delimiter = _header(path)
    label = label_column(str(path), columns, request.options.label)
    inputs, texts = _read_rows(path, columns, delimiter, label)
    exact = {text: whole_number(text) for text in set(texts)}
    for row, text in enumerate(texts, 1):
        if exact[text] is None:
            raise PreqError(
                f"column '{label}' of {path} must be whole numbers, row {row} holds {text[:40]}; number the classes"
            )
    classes = {value: number for number, value in enumerate(sorted({v for v in exact.values() if v is not None}))}
    labels = np.array([classes[exact[text] or 0] for text in texts])
    data = table(request, path.stem, Rows(inputs, labels, f"column '{label}' of {path}"))
    return data if list(classes) == list(range(len(classes))) else replace(data, class_names=tuple(map(str, classes)))


def table(request: Request, name: str, train: Rows, heldout: Rows | None = None) -> ArraySequence:
    """Rows of numbers as a sequence, in order and standardised as asked."""
    how = request.options.standardise or "table"
    (inputs, labels), *held = with_numbers(train, heldout)
    data = request.sequence(_numbers(inputs, name), labels, name=name, class_names=names_of_values(train.labels))
    result = standardised(data, how)
    if not held:
        return result
    # by the statistics of all training rows: held-out rows are evaluated at the end and never coded
    held_inputs, held_labels = held[0]
    rows = np.concatenate([_numbers(inputs, name), _numbers(held_inputs, name)])
    both = from_arrays(rows, np.concatenate([labels, held_labels]), num_classes=data.num_classes)
    scaled = standardised(both, "none" if how == "none" else "table", num_rows=len(data)).stored_inputs[len(data) :]
    held_data = from_arrays(scaled, held_labels, num_classes=data.num_classes, name="held-out")
    return replace(result, heldout=replace(held_data, class_names=data.class_names))


def with_numbers(train: Rows, heldout: Rows | None) -> list[tuple[NDArray[Any], NDArray[np.int64]]]:
    """Inputs and labels of one or both; the classes are those of the training labels."""
    numbers = [(train.inputs, numbered(train.labels, train.labels_name))]
    if heldout is not None:
        numbers.append((heldout.inputs, numbered(heldout.labels, heldout.labels_name, train.labels)))
    return numbers


def _numbers(inputs: NDArray[Any], name: str) -> NDArray[np.float64]:
    if inputs.dtype.kind not in "biuf":
        raise PreqError(f"the inputs of {name} must be numbers, got {inputs.dtype}; convert them first")
    return inputs.astype(np.float64)


def standardised(data: ArraySequence, how: str, num_rows: int | None = None) -> ArraySequence:
    """Columns with mean 0 and variance 1: over the whole table (or its first rows), or over the rows up to each one.

    The first looks at inputs that come later; a code for labels given all inputs may do that, and says so.
    """
    stored = data.stored_inputs.to(torch.float64).numpy()
    if how == "none":
        return replace(data, stored_inputs=data.stored_inputs.to(torch.float32))
    if how == "table":
        seen = stored[:num_rows]
        mean, variance = seen.mean(0), seen.var(0)
        moves = (seen.max(0) > seen.min(0)) & (variance > 0)  # the first against rounding, the second against underflow
    else:
        order = data.order.numpy()
        mean, variance = np.empty_like(stored), np.empty_like(stored)
        mean[order], variance[order] = _so_far(stored[order])
        moves = variance > 0
    # a column that has not moved (yet) stays at zero
    scaled = (stored - mean) * np.where(moves, 1 / np.sqrt(np.where(moves, variance, 1)), 0)
    conditioned_on = ALL_INPUTS if how == "table" else data.conditioned_on
    return replace(data, stored_inputs=torch.from_numpy(scaled.astype(np.float32)), conditioned_on=conditioned_on)


def _so_far(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of the rows up to and including each one; sums are taken around the first row."""
    counts = np.arange(1, len(values) + 1)[:, None]
    centred = values - values[0]
    mean = np.cumsum(centred, 0) / counts
    variance = np.cumsum(np.square(centred), 0) / counts - np.square(mean)
    return mean + values[0], np.where(variance > 1e-12 * np.square(mean), variance, 0)  # below lies rounding


def _header(path: Path) -> tuple[list[str], str]:
    try:
        with reading(path), path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
    except UnicodeDecodeError:
        raise PreqError(f"{path} is not a text file; csv: takes comma-separated text") from None
    delimiter = max(DELIMITERS, key=first.count)
    columns = [name.strip() for name in next(csv_module.reader([first], delimiter=delimiter), [])]
    if len(columns) < 2:
        raise PreqError(f"{path} has {len(columns)} column{'s' * (len(columns) != 1)}; give a header and at least two")
    if all(_is_number(name) for name in columns):
        raise PreqError(f"{path} has no header: its first line is {first.strip()[:40]}; put the column names there")
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise PreqError(f"{path} has two columns named '{twice}'; rename one")
    return columns, delimiter


def label_column(name: str, columns: Collection[str], wanted: str | None, classes: Sequence[str] = ()) -> str:
    """The column of labels: the one that is asked for, else the only one known for classes, else the usual one."""
    if wanted is not None:
        if wanted not in columns:
            raise unknown_name(f"column of {name}", wanted, columns)
        return wanted
    usual = classes or [column for column in columns if column.lower() in USUAL_LABELS]
    if len(usual) != 1:
        raise PreqError(f"which column of {name} is the label? give --label; it has: {', '.join(list(columns)[:60])}")
    return usual[0]


def _read_rows(path: Path, columns: list[str], delimiter: str, label: str) -> tuple[NDArray[np.float64], list[str]]:
    """The inputs as numbers; the labels as they are written, since float64 makes neighbours of 2⁵³ one."""
    at = columns.index(label)
    sizes = {"before": at, "after": len(columns) - at - 1}
    before, after = (([(name, np.float64, (size,))] if size else []) for name, size in sizes.items())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file is told below
            rows: NDArray[Any] = np.loadtxt(
                path, [*before, ("label", object), *after], comments=None, delimiter=delimiter, skiprows=1, ndmin=1,
                converters={at: str.strip}, quotechar='"', encoding="utf-8-sig",
            )  # fmt: skip
        inputs = np.concatenate([rows[name] for name, size in sizes.items() if size], axis=1)
        texts = rows["label"].tolist()
        if texts and np.isfinite(inputs).all() and all(map(_is_finite, set(texts))):
            return inputs, texts
    except (ValueError, UnicodeDecodeError):
        pass
    raise _complaint(path, columns, delimiter, label)


def _complaint(path: Path, columns: list[str], delimiter: str, label: str) -> PreqError:
    """What is wrong with a table that could not be read: the first bad line, told exactly."""
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        lines = csv_module.reader(file, delimiter=delimiter)
        next(lines)
        number = 0
        for number, values in enumerate((row for row in lines if row), 1):
            if len(values) != len(columns):
                return PreqError(
                    f"{path} is ragged: row {number} has {len(values)} values, the header {len(columns)}; mend the row"
                )
            for name, value in zip(columns, values, strict=True):
                if not value.strip() or (_is_number(value) and not _is_finite(value)):
                    return PreqError(
                        f"{path}: row {number} has no value in column '{name}' ({value.strip() or 'empty'}); "
                        "fill it or remove the row"
                    )
                if not _is_number(value):
                    todo = "number the classes 0, 1, 2, …" if name == label else "give numbers, or remove the column"
                    return PreqError(
                        f"{path}: row {number} has text in column '{name}': '{value.strip()[:40]}'; {todo}"
                    )
    return PreqError(f"{path} has no rows" if not number else f"{path} cannot be read as a table of numbers")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _is_finite(text: str) -> bool:
    return _is_number(text) and math.isfinite(float(text))
