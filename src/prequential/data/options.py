"""How a source is read: the options of `load_data`, which are flags of every command that reads data. No torch."""

import math
from dataclasses import dataclass, fields
from typing import Any

from prequential.errors import PreqError
from prequential.scaling import parsed_scale
from prequential.settings import check_settings, setting


def require_schema(value: Any) -> None:
    """Refuse what is neither a path nor the content of a schema, which a record has."""
    if not isinstance(value, str | dict) or not value:
        raise PreqError(f"schema must be a file, got {value!r}; write --schema flights.json")


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """How a source is read. Each option belongs to some sources; elsewhere it is a mistake."""

    label: str | None = None
    """table:, npz:, hf: the column (or array) of labels."""
    drop: tuple[str, ...] | None = None
    """table: columns that are no inputs."""
    columns: tuple[str, ...] | None = None
    """table: the columns that are inputs; all others are not."""
    heldout: str | None = None
    """table: COLUMN=VALUE: hold out the rows that have this value in this column, such as a fold."""
    time: str | None = None
    """table: the column to order the rows by, dates or numbers; equal ones stay in the order of the file."""
    schema: str | None = setting(None, check=require_schema)
    """table: a file that says what becomes of each column: read if it is there, else written."""
    array: str | None = None
    """npz: the array of inputs."""
    max_unpacked: float | None = setting(None, above=0, hint="100 times the file, at most 32")
    """table:, npz: GiB that a packed file may unpack to."""
    standardise: str | None = setting(
        None, choices=("table", "causal", "none"), called="way to standardise", hint="table"
    )
    """table:, npz:, hf: mean 0 and variance 1 over the whole table, causal (rows up to each one), or none."""
    scale: str | None = setting(None, check=parsed_scale, hint="255 where it is clear")
    """npz:, hf:, prepared: what uint8 inputs are out of (255: images; it is brought to 1, 0 to -1), or none: as they
    are."""
    size: int | None = setting(None, at_least=1, at_most=4096, hint="the first image's, at most 224")
    """Image files: the side in pixels that they are brought to."""
    crop: str | None = setting(None, choices=("random", "centre"), hint="random")
    """Image files: train on a random part of each image, or on its centre."""
    workers: int | None = setting(None, at_least=0, at_most=1024, hint="the cores, at most 8")
    """Image files: processes that decode."""
    skip_broken: bool = False
    """Image files: leave out those that cannot be decoded, and say how many."""
    examples: int | None = setting(None, at_least=2, hint="100000")
    """rgb-mnist: how many examples to make."""
    data_seed: int | None = setting(None, at_least=-math.inf, at_most=math.inf, hint="0")
    """rgb-mnist: which digits are put together."""

    def __post_init__(self) -> None:
        check_settings(self)

    def asked(self) -> dict[str, Any]:
        """The options that were set."""
        return {f.name: value for f in fields(DataOptions) if (value := getattr(self, f.name)) != f.default}
