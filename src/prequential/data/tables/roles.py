"""What the columns of a table are for: the label, inputs, the order of rows, what is held out. No torch."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prequential.data.tables.schema import LONGEST, Schema
from prequential.errors import PreqError, unknown_name

USUAL_LABELS = ("label", "class", "target", "y")
OF_INDEX = re.compile(r"Unnamed: 0(\.\d+)*|__index_level_\d+__")
"""What pandas calls an index that had no name, when it reads or writes one among the columns."""


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
    nameless: frozenset[str] = frozenset()
    """Columns called as an index is that nobody named, where the user did not ask for them."""

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
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise PreqError(f"{where} has two columns named '{twice}'; rename one")
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
        left = " left" if dropped else ""
        raise PreqError(f"{where} has no column{left} besides the label; there is nothing to predict from")
    nameless = frozenset(n for at, n in enumerate(names) if OF_INDEX.fullmatch(n) or not (at or n)) - {*asked, time}
    return Roles(label=label, inputs=inputs, dropped=dropped, time=time, heldout=heldout, nameless=nameless)


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
