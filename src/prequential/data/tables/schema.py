"""What became of each column of a table: decided once, printed, kept with a run and repeated by it. No torch."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from prequential.errors import PreqError
from prequential.files import write_atomically
from prequential.plain import MisfitError, parsed, read_bytes

FORMAT = 1
ONE_HOT, HASHED = 32, 32
"""A text column of at most so many values becomes a column for each of them; one of more is hashed into so many."""
KINDS = ("number", "boolean", "date", "category", "hashed", "dropped")
PARTS = {"hour": 24.0, "weekday": 7.0, "day of the year": 365.25}
"""What of a date comes round again, and after how much of it."""
LONGEST = 1000
"""Letters of a class, a value or the name of a column: what is longer is no such thing, and no record would hold it."""
SHOWN = 6
"""Values that a description lists."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """What became of one column."""

    name: str
    kind: str
    """One of KINDS."""
    holes: int = 0
    """How many values were missing; where some were, a column of its own tells where."""
    values: tuple[str, ...] = ()
    """category: the values, each a column of 0 and 1; any other value is 0 in all of them."""
    size: int = 0
    """hashed: into how many columns."""
    parts: tuple[str, ...] = ()
    """date: what besides the time passed varies, each as the sine and the cosine of its share of a turn."""
    note: str = ""
    """Why it was dropped, or what else a reader should know of it."""

    @property
    def width(self) -> int:
        """How many inputs it became.

        Example:
            >>> Column(name="sky", kind="category", values=("clear", "grey"), holes=3).width
            3
        """
        sizes = {"category": len(self.values), "hashed": self.size, "date": 1 + 2 * len(self.parts), "dropped": 0}
        return sizes.get(self.kind, 1) + (self.holes > 0 and self.kind != "dropped")

    @property
    def becomes(self) -> str:
        """In words.

        Example:
            >>> Column(name="sky", kind="category", values=("clear", "grey"), holes=3).becomes
            '0 or 1 for each of: clear, grey; 3 holes: zeros and an indicator'
        """
        words = {
            "number": "a number",
            "boolean": "0 or 1",
            "date": ", ".join(["days passed", *self.parts]),
            "category": f"0 or 1 for each of: {some(self.values)}",
            "hashed": f"text, hashed into {self.size} columns",
            "dropped": "dropped",
        }[self.kind]
        held = "the mean" if self.kind in ("number", "date") else "zeros"
        holes = f"{self.holes:,} {'hole' if self.holes == 1 else 'holes'}: {held} and an indicator"
        told = [holes] * (self.holes > 0 and self.kind != "dropped") + [self.note] * bool(self.note)
        return "; ".join([words, *told])


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What became of a table: its label, and each other column in order."""

    label: str
    classes: tuple[str, ...]
    """The labels in the order of their numbers: whole numbers by value, anything else as text, letter by letter."""
    columns: tuple[Column, ...]

    @property
    def width(self) -> int:
        """How many inputs there are."""
        return sum(column.width for column in self.columns)

    @property
    def inputs(self) -> tuple[Column, ...]:
        """The columns that are used."""
        return tuple(column for column in self.columns if column.kind != "dropped")

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """For a short table: the column, what it became, and how many inputs; alike neighbours stand together."""
        yield self.label, f"the label: {len(self.classes):,} classes, {some(self.classes)}", ""
        alike: list[Column] = []
        for column, following in zip(self.columns, (*self.columns[1:], None), strict=True):
            alike.append(column)
            if following is None or following.becomes != column.becomes:
                names = ", ".join(each.name or "(no name)" for each in alike)
                if len(alike) > SHOWN:
                    names = f"{alike[0].name} … {alike[-1].name} ({len(alike):,} columns)"
                yield names, column.becomes, f"{sum(each.width for each in alike):,}"
                alike = []

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it: of a column only what is not the default."""
        columns = []
        for column in self.columns:
            told = asdict(column)
            plain = {f.name: told[f.name] for f in fields(Column) if told[f.name] != f.default}
            columns.append({name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()})
        return {"format": FORMAT, "label": self.label, "classes": list(self.classes), "columns": columns}

    @classmethod
    def from_plain(cls, told: object, where: str) -> "Schema":
        """The schema that a file or a record holds.

        Raises:
            PreqError: saying what is wrong with it.
        """
        if not isinstance(told, Mapping) or told.get("format") != FORMAT:
            got = told.get("format") if isinstance(told, Mapping) else type(told).__name__
            raise PreqError(f"{where} is not a schema of format {FORMAT}, got {got}; let --schema write a new one")
        label, classes, columns = told.get("label"), _texts(told.get("classes")), told.get("columns")
        if not isinstance(label, str) or classes is None or len(classes) < 2 or not isinstance(columns, list):
            raise PreqError(f"{where} lacks a label, its classes (two at least) or the columns; mend it")
        schema = cls(label=label, classes=classes, columns=tuple(_column(each, where) for each in columns))
        names = [label, *(column.name for column in schema.columns)]
        if twice := sorted({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()):
            raise PreqError(f"{where} tells of column '{twice[0]}' twice; remove one")
        return schema


def _column(told: Any, where: str) -> Column:
    """One column, its fields checked."""
    kinds = {"name": str, "kind": str, "holes": int, "size": int, "note": str}
    made: dict[str, Any] = {}
    for name, value in told.items() if isinstance(told, dict) else ():
        made[name] = _texts(value) if name in ("values", "parts") else value
        if name not in (*kinds, "values", "parts") or not isinstance(made[name], kinds.get(name, tuple)):
            raise PreqError(f"{where}: {name!r} of a column cannot be {value!r}; let --schema write a new one")
    if missing := [f.name for f in fields(Column) if f.default is MISSING and f.name not in made]:
        raise PreqError(f"{where}: a column lacks its {missing[0]}; let --schema write a new one")
    column = Column(**made)
    known = column.kind in KINDS and set(column.parts) <= set(PARTS) and len(set(column.values)) == len(column.values)
    if not known or not 0 <= column.size <= 1 << 20 or (column.kind == "hashed" and not column.size):
        raise PreqError(f"{where}: column '{column.name}' cannot become that; kinds are {', '.join(KINDS)}")
    return column


def _texts(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return None


def names_beyond_numbers(classes: Sequence[str]) -> tuple[str, ...] | None:
    """The names of classes, where they say more than their numbers do.

    Example:
        >>> names_beyond_numbers(["no", "yes"]), names_beyond_numbers(["0", "1"])
        (('no', 'yes'), None)
    """
    return None if list(classes) == [str(number) for number in range(len(classes))] else tuple(classes)


def some(names: tuple[str, ...]) -> str:
    """The first few of names.

    Example:
        >>> some(tuple("abcdefgh"))
        'a, b, c, d, e, f, …'
    """
    return ", ".join([*names[:SHOWN], *["…"] * (len(names) > SHOWN)])


def given_schema(option: Any) -> Schema | None:
    """What was decided before: a schema, the content of a record, or a file; None where that is yet to be written."""
    if option is None or isinstance(option, Schema):
        return option
    if isinstance(option, Mapping):
        return Schema.from_plain(option, "the schema of the record")
    if not isinstance(option, str | Path):
        raise PreqError(f"schema must be a schema or its file, got {option!r}")
    return read_schema(Path(option)) if Path(option).exists() else None


def read_schema(path: Path) -> Schema:
    """The schema in a file."""
    try:
        told = parsed(read_bytes(path))
    except MisfitError as error:
        raise PreqError(f"{path} is no schema: {str(error).splitlines()[0]}; let --schema write a new one") from None
    return Schema.from_plain(told, str(path))


def write_schema(path: Path, schema: Schema) -> None:
    """Write a schema for people to read and change."""
    write_atomically(path, (json.dumps(schema.to_plain(), indent=1, ensure_ascii=False) + "\n").encode())
