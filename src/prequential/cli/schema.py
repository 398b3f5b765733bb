"""What became of the columns of a table, as a person reads it."""

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from prequential.data.tables.schema import Schema

SHOWN, LETTERS = 4, 12
"""Names of classes that a table of results lists, and how much of each."""


def print_schema(schema: "Schema | None", file: IO[str] | None = None) -> None:
    """A short table, if the data was one."""
    if schema is None:
        return
    console, table = Console(file=file), Table("column", "becomes", box=None)
    table.add_column("inputs", justify="right")
    for row in schema.rows():
        table.add_row(*(Text(_plain(cell)) for cell in row))
    console.print(table)
    console.print(f"{schema.width:,} inputs in all\n", style="dim")


def listed(names: Sequence[str]) -> str:
    """The first few names of classes.

    Example:
        >>> listed(["down", "up"]), listed(["a", "b", "c", "d", "e"])
        ('down, up', 'a, b, c, d, …')
    """
    short = [name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…" for name in map(_plain, names)]
    return ", ".join([*short[:SHOWN], *["…"] * (len(short) > SHOWN)])


def _plain(text: str) -> str:
    """Names come from files: what a terminal would obey is spelled out."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
