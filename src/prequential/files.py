"""Files that survive crashes: replaced atomically, arrays written in place."""

import contextlib
import errno
import hashlib
import math
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, in_one_line

PLATFORMS = {"Linux": "Linux", "Darwin": "macOS"}
"""Where files survive crashes, by what the system calls itself."""
SPARE_FILES = 512
"""Room for everything else that a process has open."""
HEADER_SIZE = 128
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00v\x00\{'descr': '(?P<dtype>[<|][fiu][1248])', 'fortran_order': False, "
    rb"'shape': \((?P<length>\d{1,15}),(?: (?P<columns>\d{1,6}))?\), \} *\n"
)


def require_platform() -> None:
    """Refuse a system where nothing of this works."""
    if (here := platform.system()) not in PLATFORMS:
        todo = "use WSL, which is Linux" if here == "Windows" else "use one of them"
        raise PreqError(f"prequential needs {' or '.join(PLATFORMS.values())}, this is {here or 'neither'}; {todo}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Inside, what the system refuses (no room, no permission) becomes one line that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or in_one_line(error)
        raise PreqError(f"cannot write {path}: {reason}; make room or choose another place") from None


@contextmanager
def reading(path: Path, todo: str = "") -> Iterator[None]:
    """The same for a file that cannot be read; `todo` says what to do about it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or in_one_line(error)  # what libraries raise may have no words of the system
        raise PreqError(f"{path} cannot be read: {reason}{todo}") from None


def write_atomically(path: Path, content: bytes, writer: str = "") -> None:
    """Replace a file so that a crash at any moment leaves the old content or the new, both whole; also where several
    write it at once, if each says which `writer` it is."""
    require_platform()
    temporary = path.with_name(f".{path.name}{writer and f'.{writer}'}.tmp")
    with writing(path):
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_directory(path.parent)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ArrayFile:
    """An .npy file, not in memory, with room for so many rows (numbers, unless they have a shape), for pieces of it."""

    def __init__(
        self, path: Path, dtype: np.dtype[Any], length: int, row_shape: tuple[int, ...] = (), *, create: bool
    ) -> None:
        self.path, self.dtype, self.row_shape = path, dtype, row_shape
        self.row_size = dtype.itemsize * math.prod(row_shape)
        require_platform()
        with writing(path):
            self._file = path.open("w+b" if create else "r+b", buffering=0)
            try:
                if create:
                    self._file.write(npy_header(dtype, (length, *row_shape)))
                    _reserve(self._file.fileno(), HEADER_SIZE + length * self.row_size)
            except OSError:
                self._file.close()
                raise

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Put values at `start` and after."""
        content, offset = bytes_of(values.astype(self.dtype, copy=False)), HEADER_SIZE + start * self.row_size
        with writing(self.path):
            while content:
                written = os.pwrite(self._file.fileno(), content, offset)
                if not written:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                content, offset = content[written:], offset + written

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The values from `start` to `stop`."""
        values = np.empty((stop - start, *self.row_shape), self.dtype)
        content, first, done = bytes_of(values), HEADER_SIZE + start * self.row_size, 0
        with reading(self.path):
            while done < len(content):  # Linux gives less than 2 GiB at a time
                got = os.pread(self._file.fileno(), len(content) - done, first + done)
                if not got:
                    raise PreqError(f"{self.path} is truncated: {done} bytes where {len(content)} should be")
                content[done : (done := done + len(got))] = got
        return values

    def sync(self) -> None:
        """Make what was written durable."""
        with writing(self.path):
            os.fsync(self._file.fileno())

    def cut(self, length: int) -> None:
        """Shorten the file to `length` values, for good."""
        with writing(self.path):
            os.pwrite(self._file.fileno(), npy_header(self.dtype, (length, *self.row_shape)), 0)
            os.ftruncate(self._file.fileno(), HEADER_SIZE + length * self.row_size)
        self.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def allow_open_files(number: int) -> None:
    """Let this process have so many files open beside what it has, as far as the system permits."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class ArrayMemory:
    """The same, in memory."""

    def __init__(self, dtype: np.dtype[Any], length: int, row_shape: tuple[int, ...] = ()) -> None:
        self._values = np.empty((length, *row_shape), dtype)

    def write(self, start: int, values: NDArray[Any]) -> None:
        self._values[start : start + len(values)] = values

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return self._values[start:stop].copy()

    def sync(self) -> None:
        """Nothing to do."""

    def cut(self, length: int) -> None:
        """Nothing to do."""


Array = ArrayFile | ArrayMemory


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """An .npy header of version 1.0, padded to a fixed size so that the length can change in place."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    padded = text.ljust(HEADER_SIZE - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode("latin1")


def write_array(path: Path, values: NDArray[Any]) -> None:
    """Write an array of numbers, or of rows of them, as .npy; when this returns, it is durable."""
    with contextlib.closing(ArrayFile(path, values.dtype, len(values), values.shape[1:], create=True)) as file:
        file.write(0, values)
        file.sync()


def read_array(path: Path, end: int, begin: int = 0, columns: int | None = None) -> NDArray[Any]:
    """The values up to `end`, from `begin` on, of an .npy file, also while it is being written: numbers, or rows of so
    many `columns`.

    Its header is matched, never evaluated.

    Raises:
        PreqError: naming the file and what is wrong with it.
    """
    with reading(path), path.open("rb") as file:
        found = _HEADER.fullmatch(file.read(HEADER_SIZE))
        told = None if found is None or found["columns"] is None else int(found["columns"])
        if found is None or told != columns or not 0 <= begin <= end <= int(found["length"]):
            each = "" if columns is None else f" rows of {columns}"
            raise PreqError(f"{path} is damaged: it is no array of at least {end}{each} numbers")
        dtype, width = np.dtype(found["dtype"].decode()), 1 if columns is None else columns
        if os.fstat(file.fileno()).st_size < HEADER_SIZE + end * width * dtype.itemsize:
            raise PreqError(f"{path} is truncated: it has no room for {end} numbers")
        values = np.fromfile(file, dtype, (end - begin) * width, offset=begin * width * dtype.itemsize)
        return values if columns is None else values.reshape(-1, columns)


def map_array(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The array in an .npy file, mapped; header and size must be exactly those of that type and shape."""
    with reading(path), path.open("rb") as file:
        header, size = file.read(HEADER_SIZE), file.seek(0, 2)
        wanted = HEADER_SIZE + math.prod(shape) * dtype.itemsize
        if header != npy_header(dtype, shape) or size != wanted:
            raise PreqError(f"{path} is damaged: {size} bytes where {wanted} should be, or another header")
        return np.asarray(np.memmap(file, dtype, "r", HEADER_SIZE, shape))


def _reserve(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except (AttributeError, OSError) as error:  # not on every system
        if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.ftruncate(descriptor, size)


def bytes_of(values: NDArray[Any]) -> memoryview:
    """The bytes of an array, not copied where they lie in one piece.

    Example:
        >>> bytes(bytes_of(np.array([1, 258], "<u2")))
        b'\\x01\\x00\\x02\\x01'
    """
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def digest_of(content: bytes | memoryview) -> str:
    """A 128-bit fingerprint.

    Example:
        >>> digest_of(b"labels")
        'd3254becbdde430c404463982cd0f2ab'
    """
    return hashlib.blake2b(content, digest_size=16).hexdigest()
