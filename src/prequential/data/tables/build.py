"""From a table to a sequence: roles of columns, decisions, order, encoding."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import ALL_INPUTS, INPUTS_SO_FAR
from prequential.data.sequence import ArraySequence
from prequential.data.tables.columns import holes_of, kind_of, plain
from prequential.data.tables.decide import classes_of, decide, in_order
from prequential.data.tables.encode import encoded, label_texts, labels_of
from prequential.data.tables.schema import LONGEST, Column, Schema, names_beyond_numbers
from prequential.errors import PreqError, unknown_name
from prequential.rng import derive, permutation

if TYPE_CHECKING:
    import pyarrow as pa

USUAL_LABELS = ("label", "class", "target", "y")


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What the user said of the columns of a table."""

    label: str
    inputs: tuple[str, ...]
    """The columns that may become inputs."""
    dropped: Mapping[str, str]
    """The others, and why."""
    time: str | None = None
    heldout: tuple[str, str] | None = None
    """The column and the value that hold rows out."""

    @property
    def needed(self) -> set[str]:
        """The columns that must be read."""
        more = [self.time, self.heldout and self.heldout[0]]
        return {self.label, *self.inputs, *(str(name) for name in more if name)}


def find_roles(where: str, names: Sequence[str], options: Mapping[str, Any], schema: Schema | None) -> Roles:
    """The roles of the columns with these names.

    Args:
        where: the table, for errors.
        names: its columns.
        options: `label`, `drop`, `columns`, `heldout` and `time`, as `DataOptions` has them.
        schema: what was decided before, if it was.
    """
    if long := [name for name in names if len(name) > LONGEST]:
        raise PreqError(f"{where} has a column whose name has {len(long[0]):,} letters, {long[0][:20]}…; rename it")
    wanted, time = options.get("label"), options.get("time")
    if schema is not None and wanted not in (None, schema.label):
        raise PreqError(f"--label is {wanted}, the schema's label {schema.label}; leave one of them out")
    label = label_column(where, names, wanted if schema is None else schema.label)
    heldout = _held_out_by(options.get("heldout"))
    asked: list[str] = [*(options.get("drop") or ()), *(options.get("columns") or ())]
    for name in [*asked, *([time] if time else []), *(heldout[:1] if heldout else ())]:
        if name not in names:
            raise unknown_name(f"column of {where}", name, names)
    chosen: Collection[str] = options.get("columns") or names
    dropped = dict.fromkeys(options.get("drop") or (), "left out by --drop")
    dropped |= {name: "not among --columns" for name in names if name not in chosen and name != label}
    dropped |= {heldout[0]: "says what is held out"} if heldout else {}
    if label in dropped or label in (options.get("columns") or ()):
        raise PreqError(f"column '{label}' of {where} is the label; leave it out of --drop, --columns and --heldout")
    inputs = tuple(name for name in names if name != label and name not in dropped)
    if not inputs:
        raise PreqError(f"{where} has no column besides the label; there is nothing to predict from")
    return Roles(label=label, inputs=inputs, dropped=dropped, time=time, heldout=heldout)


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


def _held_out_by(option: Any) -> tuple[str, str] | None:
    if option is None:
        return None
    column, equals, value = str(option).partition("=")
    if not equals or not column:
        raise PreqError(f"heldout must be COLUMN=VALUE, got '{option}'; write --heldout fold=3")
    return column, value


@dataclass(frozen=True, eq=False, repr=False)
class TableSequence(ArraySequence):
    """A sequence made from a table. Make one with `prequential.from_frame` or `load_data("table:…")`."""

    schema: Schema | None = None
    again: Callable[[NDArray[np.int64]], torch.Tensor] | None = None
    """Encodes the rows for another order, where the inputs depend on it."""

    has_all_rows: bool = True
    """Whether no row of the source was held out of it, so that its rows are numbered as there."""

    @property
    def num_rows(self) -> int | None:
        return super().num_rows if self.has_all_rows else None

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
    kept, held = _split(table, roles, where)
    what = f"column '{roles.label}' of {where}"
    chosen = schema or _decided(kept, roles, where, what, standardise)
    chosen = _without(chosen, roles, where)
    if not chosen.inputs:
        raise PreqError(f"{where} has no column that tells anything: {chosen.columns[0].becomes}; keep another one")
    labels = labels_of(kept.column(roles.label), chosen.classes, what)
    order = _order(kept, roles, order_seed, where)
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
        again=again if standardise == "causal" or (standardise == "none" and has_holes) else None,
    )
    if not len(held):
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
    )
    return replace(sequence, heldout=replace(heldout, has_all_rows=False), has_all_rows=False)


def _decided(table: "pa.Table", roles: Roles, where: str, what: str, standardise: str) -> Schema:
    """What becomes of each column, in the order of the table."""
    names = classes_of(*label_texts(table.column(roles.label), what), what)
    classes = in_order(names.values())
    if len(classes) < 2:
        raise PreqError(f"{what} holds a single class; there is nothing to predict")
    columns = [decide(name, table.column(name), where, causal=standardise != "table") for name in roles.inputs]
    dropped = [Column(name=name, kind="dropped", note=note) for name, note in roles.dropped.items()]
    return Schema(label=roles.label, classes=classes, columns=(*columns, *dropped))


def _without(schema: Schema, roles: Roles, where: str) -> Schema:
    """A schema, made before perhaps, for these columns: all must be known to it, and there."""
    told = {column.name for column in schema.columns}
    present = {*roles.inputs, *roles.dropped}
    for names, other, todo in ((roles.inputs, told, "--drop it"), (told, present, "let --schema write a new one")):
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


def _split(table: "pa.Table", roles: Roles, where: str) -> tuple["pa.Table", "pa.Table"]:
    """The rows to code, and those that are held out."""
    if roles.heldout is None:
        return table, table.slice(0, 0)
    import pyarrow as pa
    import pyarrow.compute as compute

    column, value = roles.heldout
    values = plain(table.column(column))
    try:
        wanted = pa.scalar(value).cast(values.type)
    except (pa.ArrowException, ValueError):
        raise PreqError(f"column '{column}' of {where} holds {values.type}, got --heldout {column}={value}") from None
    is_held = compute.equal(values, wanted).fill_null(False)
    number = is_held.to_numpy().sum()
    if number in (0, len(table)):
        which = "no row" if not number else "every row"
        raise PreqError(f"{which} of {where} has {value} in column '{column}'; hold out some rows and not all")
    return table.filter(compute.invert(is_held)), table.filter(is_held)


def _order(table: "pa.Table", roles: Roles, order_seed: int | None, where: str) -> NDArray[np.int64]:
    if roles.time is not None:
        import pyarrow.compute as compute

        moments = plain(table.column(roles.time))
        if kind_of(roles.time, moments, where) not in ("date", "number"):
            raise PreqError(f"column '{roles.time}' of {where} holds {moments.type}; --time takes dates or numbers")
        missing = holes_of(moments)
        if missing.any():
            row = int(missing.argmax()) + 1
            raise PreqError(f"column '{roles.time}' of {where} orders the rows, and row {row} has no time in it")
        order: NDArray[np.int64] = compute.sort_indices(moments).to_numpy().astype(np.int64)  # it is stable
        return order
    return np.arange(len(table)) if order_seed is None else permutation(derive(order_seed, "order"), len(table))
