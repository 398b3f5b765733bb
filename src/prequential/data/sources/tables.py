"""Tables: files of them, and what other sources that hold numbers share with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prequential.data.classes_of_text import names_of_values
from prequential.data.sequence import ArraySequence
from prequential.data.sources.numbering import numbered
from prequential.data.sources.request import Request
from prequential.data.tables.build import build
from prequential.data.tables.reading import open_table
from prequential.data.tables.roles import find_roles
from prequential.data.tables.schema import given_schema, write_schema
from prequential.errors import PreqError


class Rows(NamedTuple):
    """Inputs, and labels as they are given."""

    inputs: NDArray[Any]
    labels: NDArray[Any]
    labels_name: str
    """What an error calls the labels."""


def file(request: Request) -> ArraySequence:
    """A file of a table; one column is the label, the others are inputs."""
    path, options = request.path(), request.options
    if options.time is not None and request.order_asked and request.order_seed is not None:
        raise PreqError(f"the rows are ordered by --time {options.time}; leave --order and --order-seed out")
    found = open_table(path, request.max_unpacked)
    given = given_schema(options.schema)
    roles = find_roles(str(path), found.columns, options.asked(), given)
    data = build(
        found.read(roles.needed, as_text=[roles.label]),
        roles,
        schema=given,
        standardise=options.standardise or "table",
        order_seed=None if options.time is not None else request.order_seed,
        where=str(path),
        name=Path(path.stem).stem if path.suffix in (".gz", ".zip") else path.stem,
    )
    assert data.schema is not None
    if isinstance(options.schema, str) and given is None:
        write_schema(Path(options.schema), data.schema)
    _give_memory_back()
    return replace(data, source=request.source | {"schema": data.schema.to_plain()})


def _give_memory_back() -> None:
    """What reading a table took; the pool of the library would keep it."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def table(request: Request, name: str, train: Rows, heldout: Rows | None = None) -> ArraySequence:
    """Rows of numbers as a sequence, in order and standardised as asked."""
    (inputs, labels), *held = with_numbers(train, heldout)
    return request.sequence(
        _numbers(inputs, name),
        labels,
        heldout=(_numbers(held[0][0], name), held[0][1]) if held else None,
        num_classes=int(labels.max()) + 1,
        standardise=request.options.standardise or "table",
        class_names=names_of_values(train.labels),
        name=name,
    )


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
