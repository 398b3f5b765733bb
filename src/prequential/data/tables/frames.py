"""Data frames as sequences: what `table:` does for files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prequential.data.options import DataOptions
from prequential.data.sequence import ArraySequence
from prequential.data.tables.build import build
from prequential.data.tables.roles import find_roles
from prequential.data.tables.schema import Schema, given_schema, write_schema
from prequential.errors import PreqError


def from_frame(
    frame: Any,
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
    heldout: str | None = None,
    time: str | None = None,
    standardise: str = "table",
    schema: Schema | str | Path | None = None,
    name: str = "frame",
) -> ArraySequence:
    """A sequence from a data frame, in the order of its rows: numbers, text, dates, booleans and holes.

    What becomes of each column is the sequence's `schema`; `shuffled(seed)` gives another order.

    Args:
        frame: a frame of pandas, Polars or another library that speaks Arrow, or a `pyarrow.Table`. Its index is no
            column.
        label: the column of labels. Default: the one called label, class, target or y.
        drop: columns that are no inputs.
        columns: the columns that are inputs. Default: all others than the label.
        heldout: "COLUMN=VALUE": hold out the rows that have this value there.
        time: the column to order the rows by.
        standardise: numbers with mean 0 and variance 1 over the whole "table", "causal" (over the rows up to each
            one), or "none".
        schema: what was decided for another frame, to repeat it; or a file of it, which is written if it is not there.
        name: what tables call it.

    Example:
        >>> import pyarrow as pa
        >>> sky = pa.table({"sky": ["clear", "grey", "grey", "clear"], "wind": [1.0, None, 3.0, 2.0],
        ...                 "rain": ["no", "yes", "yes", "no"]})
        >>> data = from_frame(sky, label="rain")
        >>> data.input_shape, data.class_names
        ((4,), ('no', 'yes'))
    """
    table = _table(frame)
    for option, names in (("drop", drop), ("columns", columns)):
        if isinstance(names, str):
            raise PreqError(f"{option} must be a list of columns, got '{names}'; write {option}=['{names}']")
    options = DataOptions(
        label=None if label is None else str(label),
        drop=tuple(map(str, drop)) or None,
        columns=tuple(map(str, columns)) or None,
        heldout=heldout,
        time=time,
        standardise=standardise,
    )
    if not len(table):
        raise PreqError(f"{name} has no rows; give at least one")
    given = given_schema(schema)
    roles = find_roles(name, table.column_names, options.asked(), given)
    data = build(table, roles, schema=given, standardise=standardise, order_seed=None, where=name, name=name)
    if schema is not None and given is None and data.schema is not None:
        write_schema(Path(str(schema)), data.schema)
    return data


def _table(frame: Any) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    try:
        if type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns"):
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise PreqError(f"the frame cannot be read: {reason}; give each column one name and one kind") from None
    raise PreqError(f"from_frame takes a data frame (pandas, Polars, pyarrow.Table), got {type(frame).__name__}")
