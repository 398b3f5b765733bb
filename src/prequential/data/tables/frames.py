"""Data frames as sequences: what `table:` does for files."""

from collections.abc import Sequence
from typing import Any

from prequential.data.options import DataOptions
from prequential.data.sequence import ArraySequence
from prequential.data.tables.build import build, find_roles
from prequential.data.tables.schema import Schema
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
    schema: Schema | None = None,
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
        schema: what was decided for another frame, to repeat it.
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
    options = DataOptions(
        label=label,
        drop=tuple(drop) or None,
        columns=tuple(columns) or None,
        heldout=heldout,
        time=time,
        standardise=standardise,
    )
    if not len(table):
        raise PreqError(f"{name} has no rows; give at least one")
    roles = find_roles(name, table.column_names, options.asked(), schema)
    return build(table, roles, schema=schema, standardise=standardise, order_seed=None, where=name, name=name)


def _table(frame: Any) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    try:
        if type(frame).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise PreqError(
            f"the frame cannot be read: {str(error).splitlines()[0]}; make each column of one kind"
        ) from None
    raise PreqError(f"from_frame takes a data frame (pandas, Polars, pyarrow.Table), got {type(frame).__name__}")
