"""One definition of a column: what it is called, what it holds, how that is shown; for terminals, pages and files."""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from prequential.files import writing
from prequential.report.text import NOTHING
from prequential.terminal import printable

Row = TypeVar("Row")
Style = Callable[[Any], str] | None
"""How rich shows a row."""
SMALLEST_NAME = 20
"""Columns of a terminal that the name of a row gets in any case; a longer one goes on in the next line."""
FORMULA = ("=", "+", "-", "@")
"""What the cells begin with that spreadsheets compute; a tab or a line break before it is escaped."""
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table; what is called nothing is shown nowhere, and what has no key is in no file."""

    head: str
    """Its heading; a line break stays one where there is little room."""
    key: str
    """Its name in CSV and JSON."""
    value: Callable[[Row], Any]
    """What it holds for a row, as a file has it; None where that is not known."""
    text: Callable[[Any], str] = str
    """How a value is shown."""
    means: str = ""
    """What the heading means, for those who ask."""
    band: int = 0
    """A narrow terminal shows one band of columns after the other."""
    is_left: bool = False
    """Words begin at the left, numbers end at the right."""

    @property
    def title(self) -> str:
        """The heading on one line."""
        return self.head.replace("\n", " ")

    def cell(self, row: Row) -> str:
        """What is shown for a row."""
        value = self.value(row)
        return printable(getattr(row, "nothing", NOTHING) if value is None else self.text(value))

    def says(self, row: Row) -> bool:
        """Whether anything is shown for a row."""
        return self.cell(row) not in (NOTHING, "")


def columns_that_say(columns: Iterable[Column[Row]], rows: Sequence[Row]) -> list[Column[Row]]:
    """The columns in which something is shown for some row.

    Example:
        >>> known = [Column("a", "a", lambda row: row), Column("b", "b", lambda row: None)]
        >>> [column.head for column in columns_that_say(known, [1, 2])]
        ['a']
    """
    return [column for column in columns if any(column.says(row) for row in rows)]


def values_of(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as plain values by key: what CSV, JSON and data frames hold."""
    return [{column.key: column.value(row) for column in columns if column.key} for row in rows]


def write_csv(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows of plain values; what some row does not have, and what is not known, is empty there."""
    path, text = Path(path), io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.writer(text, lineterminator="\n")
    table.writerow(map(in_csv, names))
    table.writerows([in_csv(row.get(name)) for name in names] for row in rows)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.getvalue(), encoding="utf-8", errors="backslashreplace")
    return path


def in_csv(value: object) -> object:
    """A value as a cell that no spreadsheet computes: what would begin a formula there gets an apostrophe before it.

    Example:
        >>> in_csv("=HYPERLINK(…)"), in_csv("@a\\tb"), in_csv("-0.5"), in_csv(-0.5), in_csv({"lr": 1})
        ("'=HYPERLINK(…)", "'@a\\\\tb", '-0.5', -0.5, '{"lr": 1}')
    """
    if isinstance(value, dict | list | bool):
        value = json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, int | float):
        return value
    text = printable(str(value))
    begin = unicodedata.normalize("NFKC", text[:1])  # also the wide forms, which some spreadsheets take for the same
    return f"'{text}" if begin in FORMULA and not NUMBER.fullmatch(text) else text


def print_table(console: Console, columns: Sequence[Column[Row]], rows: Sequence[Row], style: Style = None) -> None:
    """Print rows, in as many pieces as the terminal needs, the first column in each; nothing is cut off."""
    for piece in _pieces(console, columns, rows):
        console.print(_table(console.width, piece, rows, style))
        console.print()


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence in lines that fit the terminal."""
    console.print(Text("\n".join(lines_of(text, console.width)), style), no_wrap=True, overflow="ignore", crop=False)


def lines_of(text: str, width: int) -> list[str]:
    """Text in lines of a width, broken between words; names that are longer than a line go on in the next.

    Example:
        >>> lines_of("the best is a-name-of-many-parts here", 12)
        ['the best is', 'a-name-of-ma', 'ny-parts', 'here']
    """
    return [line.plain.rstrip() for line in Text(printable(text)).wrap(Console(), width)]


def _pieces(console: Console, columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[list[Column[Row]]]:
    """The columns side by side: bands stay whole, unless one alone is too wide."""

    def fits(part: Sequence[Column[Row]]) -> bool:
        wide = console.options.update(max_width=10_000)
        return Measurement.get(console, wide, _table(console.width, part, rows)).maximum <= console.width

    first, *others = columns
    pieces: list[list[Column[Row]]] = [[first]]
    for band in sorted({column.band for column in others}):
        together = [column for column in others if column.band == band]
        for part in [together] if fits([first, *together]) else [[column] for column in together]:
            if len(pieces[-1]) == 1 or fits([*pieces[-1], *part]):
                pieces[-1] += part
            else:
                pieces.append([first, *part])
    return pieces


def _table(width: int, columns: Sequence[Column[Row]], rows: Sequence[Row], style: Style = None) -> Table:
    first, *others = columns
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        room: Any = {"max_width": max(SMALLEST_NAME, width // 4)} if column is first else {"no_wrap": True}
        head = Text("\n".join(map(printable, column.head.split("\n"))))
        table.add_column(head, justify="left" if column.is_left else "right", overflow="fold", **room)
    for row in rows:
        if any(column.says(row) for column in others if column.key != "num_seeds"):
            table.add_row(*(Text(column.cell(row)) for column in columns), style=style(row) if style else "")
    return table
