"""What became of the columns of a table, as a person reads it."""

from typing import IO, TYPE_CHECKING

from rich.table import Column

from prequential.cli.show import print_list

if TYPE_CHECKING:
    from prequential.data.tables.schema import Schema


def print_schema(schema: "Schema | None", file: IO[str] | None = None) -> None:
    """A short table, if the data was one."""
    if schema is not None:
        heads = ("column", "becomes", Column("inputs", justify="right"))
        print_list(heads, schema.rows(), f"{schema.width:,} input{'s' * (schema.width != 1)} in all", file)
