"""From a table to a sequence: decisions, order, encoding."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import ALL_INPUTS, INPUTS_SO_FAR
from prequential.data.sequence import ArraySequence
from prequential.data.tables.columns import holes_of, kind_of, numbers_of, plain
from prequential.data.tables.decide import classes_of, decide, in_order
from prequential.data.tables.encode import encoded, label_texts, labels_of
from prequential.data.tables.roles import Roles
from prequential.data.tables.schema import Column, Schema, names_beyond_numbers
from prequential.data.tables.standardise import require_finite
from prequential.errors import PreqError
from prequential.rng import derive, permutation

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class TableSequence(ArraySequence):
    """A sequence made from a table. Make one with `prequential.from_frame` or `load_data("table:…")`."""

    schema: Schema | None = None
    again: Callable[[NDArray[np.int64]], torch.Tensor] | None = None
    """Encodes the rows for another order, where the inputs depend on it."""

    kept_rows: torch.Tensor | None = None
    """Which rows of the source these are, where others are held out."""

    by_time: bool = False
    """Whether they are ordered by a column."""

    @property
    def num_rows(self) -> int | None:
        return super().num_rows if self.kept_rows is None else None

    @property
    def source_rows(self) -> torch.Tensor:
        return self.order if self.kept_rows is None else self.kept_rows[self.order]

    def describe(self, row: int) -> str | None:
        """Its number, where the order seed alone does not tell it."""
        return f"row {row:,}" if self.by_time or self.kept_rows is not None else None

    def _reordered(self, order: torch.Tensor, **changes: Any) -> Self:
        if self.again is not None and "order_seed" in changes:
            changes["stored_inputs"] = self.again(order.numpy())
        return super()._reordered(order, **changes)


def build(
    table: "pa.Table",
    roles: Roles,
    *,
    schema: Schema | None,
    standardise: str,
    order_seed: int | None,
    where: str,
    name: str,
) -> TableSequence:
    """A table as a sequence.

    Args:
        table: its columns; those that are needed at least.
        roles: what they are for.
        schema: what was decided before; None: it is decided now.
        standardise: see `DataOptions`.
        order_seed: of the shuffle; None: as given, or by time.
        where: the table, for errors.
        name: what tables of results call it.
    """
    what = f"column '{roles.label}' of {where}"
    if roles.time is not None:
        _require_times(table.column(roles.time), roles.time, where)
    is_held = _held_out(table, roles, where)
    if is_held is not None:
        _require_good_rows(table, roles, where, what)
    kept, held = (table, table.slice(0, 0)) if is_held is None else (table.filter(~is_held), table.filter(is_held))
    chosen = schema or _decided(kept, roles, where, what, standardise)
    chosen = _without(chosen, roles, where)
    if not chosen.inputs:
        raise PreqError(f"{where} has no column that tells anything: {chosen.columns[0].becomes}; keep another one")
    labels = labels_of(kept.column(roles.label), chosen.classes, what)
    order = _order(kept, roles, order_seed)
    inputs, held_inputs = encoded([kept, held], chosen, standardise, order, where)

    def again(order: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(encoded([kept, held], chosen, standardise, order, where)[0])

    has_holes = any(column.holes for column in chosen.inputs)
    sequence = TableSequence(
        torch.from_numpy(inputs),
        torch.from_numpy(labels),
        len(chosen.classes),
        torch.from_numpy(order),
        name=name,
        order_seed=order_seed,
        conditioned_on=ALL_INPUTS if standardise == "table" else INPUTS_SO_FAR,
        class_names=names_beyond_numbers(chosen.classes),
        schema=chosen,
        by_time=roles.time is not None,
        again=again if standardise == "causal" or (standardise == "none" and has_holes) else None,
    )
    if is_held is None:
        return sequence
    held_labels = labels_of(held.column(roles.label), chosen.classes, f"{what} (held-out)")
    heldout = replace(
        sequence,
        stored_inputs=torch.from_numpy(held_inputs),
        stored_labels=torch.from_numpy(held_labels),
        order=torch.arange(len(held)),
        name="held-out",
        order_seed=None,
        again=None,
        kept_rows=torch.from_numpy(np.flatnonzero(is_held)),
        by_time=False,
    )
    return replace(sequence, heldout=heldout, kept_rows=torch.from_numpy(np.flatnonzero(~is_held)))


def _decided(table: "pa.Table", roles: Roles, where: str, what: str, standardise: str) -> Schema:
    """What becomes of each column, in the order of the table."""
    names = classes_of(*label_texts(table.column(roles.label), what), what)
    classes = in_order(names.values())
    if len(classes) < 2:
        raise PreqError(f"{what} holds a single class; there is nothing to predict")
    causal = standardise != "table"
    columns = [
        decide(name, table.column(name), where, causal, is_nameless=name in roles.nameless) for name in roles.inputs
    ]
    dropped = [Column(name=name, kind="dropped", note=note) for name, note in roles.dropped.items()]
    return Schema(label=roles.label, classes=classes, columns=(*columns, *dropped))


def _without(schema: Schema, roles: Roles, where: str) -> Schema:
    """A schema, made before perhaps, for these columns: all must be known to it, and those that it uses there."""
    told = {column.name for column in schema.columns}
    used, present = [column.name for column in schema.inputs], {*roles.inputs, *roles.dropped}
    for names, other, todo in ((roles.inputs, told, "--drop it"), (used, present, "let --schema write a new one")):
        if strange := [name for name in names if name not in other]:
            which = "the schema tells nothing of" if names is roles.inputs else f"the schema needs, and {where} lacks,"
            raise PreqError(f"{which} column '{strange[0]}'; {todo}")
    columns = tuple(
        Column(name=column.name, kind="dropped", note=roles.dropped[column.name])
        if column.name in roles.dropped
        else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)


def _held_out(table: "pa.Table", roles: Roles, where: str) -> NDArray[np.bool_] | None:
    """Which rows are held out; None where that was not asked for."""
    if roles.heldout is None:
        return None
    import pyarrow as pa
    import pyarrow.compute as compute

    column, value = roles.heldout
    values = plain(table.column(column))
    try:
        wanted = pa.scalar(value).cast(values.type)
    except (pa.ArrowException, ValueError):
        told = f"column '{column}' of {where} holds {values.type}, got --heldout {column}={value}"
        raise PreqError(f"{told}; give a value that is there") from None
    is_held: NDArray[np.bool_] = compute.equal(values, wanted).fill_null(False).to_numpy()
    if is_held.all() or not is_held.any():
        which = "every row" if is_held.all() else "no row"
        raise PreqError(f"{which} of {where} has {value} in column '{column}'; hold out some rows and not all")
    return is_held


def _require_good_rows(table: "pa.Table", roles: Roles, where: str, what: str) -> None:
    """Refuse what cannot be coded while rows still have the numbers that the user knows."""
    label_texts(table.column(roles.label), what)
    for name in roles.inputs:
        if kind_of(name, table.column(name), where) == "number":
            require_finite(numbers_of(table.column(name)), f"column '{name}' of {where}")


def _require_times(values: "pa.ChunkedArray", name: str, where: str) -> None:
    """Refuse what orders no rows."""
    if kind_of(name, values, where) not in ("date", "number"):
        raise PreqError(f"column '{name}' of {where} holds {values.type}; --time takes dates or numbers")
    missing = holes_of(values)
    if missing.any():
        row = int(missing.argmax()) + 1
        raise PreqError(f"column '{name}' of {where} orders the rows, and row {row} has no time in it")


def _order(table: "pa.Table", roles: Roles, order_seed: int | None) -> NDArray[np.int64]:
    if roles.time is not None:
        import pyarrow.compute as compute

        order: NDArray[np.int64] = compute.sort_indices(plain(table.column(roles.time))).to_numpy().astype(np.int64)
        return order  # equal ones stay as they are: the sort is stable
    return np.arange(len(table)) if order_seed is None else permutation(derive(order_seed, "order"), len(table))
