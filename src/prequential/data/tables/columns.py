"""Columns of a table as arrays: numbers with NaN for holes, dates, texts with a number each. No torch."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

if TYPE_CHECKING:
    import pyarrow as pa

DAY = 86_400_000_000
"""Microseconds."""


def kind_of(name: str, values: "pa.ChunkedArray", where: str) -> str:
    """What a column was read as: number, boolean, date or text."""
    import pyarrow.types as is_a

    kind = values.type.value_type if is_a.is_dictionary(values.type) else values.type
    if is_a.is_boolean(kind):
        return "boolean"
    if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind) or is_a.is_duration(kind):
        return "number"
    if is_a.is_time(kind) or is_a.is_null(kind):
        return "number"
    if is_a.is_timestamp(kind) or is_a.is_date(kind):
        return "date"
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return "text"
    todo = "save the table as UTF-8" if is_a.is_binary(kind) else "spread it over columns of single values"
    raise PreqError(f"column '{name}' of {where} holds {kind}; {todo}, or leave it out with --drop {name}")


def plain(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """The values themselves, where they are kept as numbers of a list."""
    import pyarrow.types as is_a

    return values.cast(values.type.value_type) if is_a.is_dictionary(values.type) else values


def holes_of(values: "pa.ChunkedArray") -> NDArray[np.bool_]:
    """Where there is no value."""
    found: NDArray[np.bool_] = values.is_null(nan_is_null=True).to_numpy()
    return found


def numbers_of(values: "pa.ChunkedArray") -> NDArray[np.float64]:
    """Numbers, NaN where there is none; dates as days since 1970, times of the day and durations as seconds."""
    import pyarrow as pa
    import pyarrow.types as is_a

    values = plain(values)
    if is_a.is_timestamp(values.type) or is_a.is_date(values.type):
        return _floats(_microseconds(values)) / DAY
    if is_a.is_duration(values.type):
        return _floats(values.cast(pa.duration("us"), safe=False).cast(pa.int64())) / 1e6
    if is_a.is_time(values.type):
        return _floats(values.cast(pa.time64("us")).cast(pa.int64())) / 1e6
    if is_a.is_string(values.type) or is_a.is_large_string(values.type) or is_a.is_string_view(values.type):
        texts, codes = texts_of(values)
        parsed = np.array([*(_float(text) for text in texts), np.nan])
        return parsed[codes]
    return _floats(values)


def _floats(values: "pa.ChunkedArray") -> NDArray[np.float64]:
    import pyarrow as pa

    found: NDArray[np.float64] = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    return found


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _microseconds(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    import pyarrow as pa

    zone = getattr(values.type, "tz", None)
    return values.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())


def parts_of_dates(values: "pa.ChunkedArray") -> dict[str, NDArray[np.float64]]:
    """Hour, weekday (Monday is 0) and day of the year of dates, by the clock of their time zone; NaN where none is."""
    import pyarrow as pa
    import pyarrow.compute as compute

    values = plain(values)
    if getattr(values.type, "tz", None) not in (None, "UTC"):
        values = compute.local_timestamp(values)
    moments = _floats(_microseconds(values))
    days = np.floor(moments / DAY)
    of_year = values if pa.types.is_timestamp(values.type) else values.cast(pa.timestamp("us"))
    return {
        "hour": (moments - days * DAY) / (DAY / 24),
        "weekday": (days + 3) % 7,  # the first of January 1970 was a Thursday
        "day of the year": _floats(compute.day_of_year(of_year)),
    }


def texts_of(values: "pa.ChunkedArray") -> tuple[list[str], NDArray[np.int64]]:
    """The different texts of a column, and for each row the number of its text; −1 where there is none."""
    import pyarrow as pa

    encoded = plain(values).cast(pa.large_string()).dictionary_encode().combine_chunks()
    return encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
