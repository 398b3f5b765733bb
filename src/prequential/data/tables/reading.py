"""Files of tables: delimited text (also gzipped, or alone in a zip archive) and Parquet. No torch."""

import csv
import gzip
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from prequential.data.packed import Counted, most_unpacked, too_large
from prequential.errors import PreqError
from prequential.files import reading

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = ",;\t"
HOLES = ["", "NA", "N/A", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "<NA>", "?"]
"""What stands for a hole in a text file."""
BLOCK = 16 << 20
"""Bytes that are parsed at a time; a row must fit."""


@dataclass(frozen=True)
class TableFile:
    """A file of which the names of the columns are known."""

    path: Path
    columns: tuple[str, ...]
    delimiter: str | None
    """None: a Parquet file."""
    max_unpacked: float | None = None
    """GiB that it may unpack to; see `prequential.data.packed`."""

    def read(self, names: Collection[str], as_text: Collection[str] = ()) -> "pa.Table":
        """The columns of these names, in the order of the file; some as the text that stands there."""
        kept = [name for name in self.columns if name in names]
        table = self._parquet(kept) if self.delimiter is None else self._text(kept, as_text)
        if not len(table):
            raise PreqError(f"{self.path} has no rows")
        return table

    def _parquet(self, kept: Sequence[str]) -> "pa.Table":
        from pyarrow import ArrowException, parquet

        try:
            with reading(self.path):
                self._require_little(parquet.read_metadata(self.path).num_rows * len(kept))
                return parquet.read_table(self.path, columns=kept, partitioning=None)
        except PreqError:
            raise
        except (ArrowException, ValueError) as error:
            raise PreqError(f"{self.path} cannot be read: {str(error).splitlines()[0]}") from None

    def _require_little(self, num_values: int) -> None:
        """Refuse a Parquet file that says much with little: a value takes 8 bytes at least once it is an input."""
        size = self.path.stat().st_size
        if 8 * num_values > (most := most_unpacked(size, self.max_unpacked)):
            raise too_large(str(self.path), size, most, 8 * num_values)

    def _text(self, kept: Sequence[str], as_text: Collection[str]) -> "pa.Table":
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        convert = arrow_csv.ConvertOptions(
            include_columns=kept,
            column_types={name: pa.string() for name in as_text},
            null_values=HOLES,
            strings_can_be_null=True,
        )
        bad: list[Any] = []

        def note(row: Any) -> str:
            bad.append(row)
            return "error"

        def parsed(threads: bool) -> "pa.Table":
            read = arrow_csv.ReadOptions(column_names=self.columns, skip_rows=1, use_threads=threads, block_size=BLOCK)
            parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=note)
            with _opened(self.path, self.max_unpacked) as file:
                return arrow_csv.read_csv(file, read, parse, convert)

        try:
            return parsed(threads=True)
        except pa.ArrowException as error:
            if not bad:
                raise PreqError(f"{self.path} cannot be read: {str(error).splitlines()[0]}") from None
        bad.clear()
        with suppress(pa.ArrowException):
            parsed(threads=False)  # only so are rows counted
        row = bad[0]
        raise PreqError(
            f"{self.path} is ragged: row {row.number - 1} has {row.actual_columns} values, "
            f"the header {row.expected_columns}; mend the row"
        )


def open_table(path: Path, max_unpacked: float | None = None) -> TableFile:
    """A file of a table, its header read."""
    with reading(path), path.open("rb") as file:
        first = file.read(4)
    if first == b"PAR1":
        return TableFile(path, _parquet_names(path), None, max_unpacked)
    try:
        with _opened(path, max_unpacked) as file:
            line = file.readline(BLOCK).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PreqError(f"{path} is not a text file; tables are comma-separated text (UTF-8) or Parquet") from None
    delimiter = max(DELIMITERS, key=line.count)
    try:
        columns = tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error as error:
        reason = "its lines end as on old Macs (CR); save it with LF" if "\r" in line.rstrip("\r\n") else error
        raise PreqError(f"{path}: the first line is no header of a table: {reason}") from None
    if len(columns) < 2:
        found = f"{len(columns)} column{'s' * (len(columns) != 1)}"
        raise PreqError(f"{path} has {found}; give a header and at least two, with a comma, semicolon or tab between")
    if all(_is_number(name) for name in columns):
        raise PreqError(f"{path} has no header: its first line is {line.strip()[:40]}; put the column names there")
    return TableFile(path, columns, delimiter, max_unpacked)


def _parquet_names(path: Path) -> tuple[str, ...]:
    from pyarrow import ArrowException, parquet

    try:
        return tuple(str(name) for name in parquet.read_schema(path).names)
    except (ArrowException, OSError, ValueError) as error:
        raise PreqError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


@contextmanager
def _opened(path: Path, max_unpacked: float | None) -> Iterator[IO[bytes]]:
    """The text of a file, whatever it is packed into."""
    with reading(path):
        file = path.open("rb")
    try:
        with file:
            first = file.read(4)
            file.seek(0)
            yield _unpacked(path, file, first, max_unpacked)
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise PreqError(f"{path} cannot be unpacked: {error}; is it damaged?") from None
    except OSError as error:
        raise PreqError(f"{path} cannot be read: {error.strerror or error}") from None


def _unpacked(path: Path, file: IO[bytes], first: bytes, max_unpacked: float | None) -> IO[bytes]:
    size = path.stat().st_size
    most = most_unpacked(size, max_unpacked)
    if first[:2] == b"\x1f\x8b":
        return cast(IO[bytes], Counted(cast(IO[bytes], gzip.open(file)), str(path), size, most))
    if first != b"PK\x03\x04":
        return file
    archive = zipfile.ZipFile(file)
    names = [each for each in archive.namelist() if not each.startswith("__MACOSX") and each[-1] != "/"]
    if len(names) != 1:
        raise PreqError(f"{path} holds {len(names)} files; unpack it and name one")
    return cast(IO[bytes], Counted(archive.open(names[0]), str(path), size, most))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
