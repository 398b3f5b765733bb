"""Members taken out of a publisher's .tar.gz or .zip. No torch."""

import contextlib
import gzip
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO

from prequential.data.remote import is_plain
from prequential.data.transfer import alone, write_all
from prequential.errors import PreqError
from prequential.files import sync_directory, writing

MOST_BYTES = 1 << 31
_BLOCK_SIZE = 1 << 20
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)

Entry = tuple[str, int, IO[bytes] | None]
"""A member's path, its size when unpacked, and its content; None for what is no plain file."""


def extract(archive: Path, members: Mapping[str, str], to: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Take the named members, and nothing else, out of a .tar.gz or .zip file.

    Each appears whole or not at all, and none before all were read without a fault.

    Args:
        members: path inside the archive -> file name in `to`.
        most_bytes: a member that unpacks to more is refused.

    Raises:
        PreqError: for a damaged archive, a missing member, or one that is a link or no plain file.

    Example:
        >>> import tempfile
        >>> directory = Path(tempfile.mkdtemp())
        >>> with zipfile.ZipFile(directory / "data.zip", "w") as packed:
        ...     packed.writestr("set/train.bin", b"123")
        >>> extract(directory / "data.zip", {"set/train.bin": "train.bin"}, directory)
        >>> (directory / "train.bin").read_bytes()
        b'123'
    """
    for member, name in members.items():
        if not is_plain(member) or not is_plain(name) or "/" in name:
            raise PreqError(f"a member must be a plain relative path and go to a plain name, got '{member}': '{name}'")
    if len(set(members.values())) != len(members):
        raise PreqError(f"members must go to different names, got {sorted(members.values())}")
    parts = {member: to / f".{name}.part" for member, name in members.items()}
    with alone(to / archive.name):
        try:
            _unpack(archive, parts, most_bytes)
            for member, name in members.items():
                with writing(to / name):
                    parts[member].replace(to / name)
            with writing(to):
                sync_directory(to)
        finally:
            for part in parts.values():
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)


def _unpack(archive: Path, parts: Mapping[str, Path], most_bytes: int) -> None:
    """Write each wanted member to its part."""
    missing = set(parts)
    try:
        with archive.open("rb") as file:
            packed = file.read(2)
            file.seek(0)
            if packed not in (b"\x1f\x8b", b"PK"):
                raise PreqError(f"{archive} is neither a .tar.gz nor a .zip file; get it again")
            for member, size, content in (_in_tar if packed == b"\x1f\x8b" else _in_zip)(file, parts):
                if content is None:
                    raise PreqError(f"{member} in {archive} is a link or no plain file; get the publisher's archive")
                if size > most_bytes:
                    raise PreqError(f"{member} in {archive} has {size:,} bytes, at most {most_bytes:,} are allowed")
                _copy(content, size, parts[member])
                missing.discard(member)
    except PreqError:
        raise
    except _DAMAGE as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
        raise PreqError(f"{archive} cannot be unpacked: {reason or type(error).__name__}; get it again") from None
    if missing:
        raise PreqError(f"{archive} holds no {min(missing)}; get the publisher's archive")


def _in_tar(file: IO[bytes], wanted: Collection[str]) -> Iterator[Entry]:
    with gzip.GzipFile(fileobj=file) as plain:
        with tarfile.open(fileobj=plain, mode="r|") as tar:
            for entry in tar:
                if entry.name in wanted:
                    yield entry.name, entry.size, tar.extractfile(entry) if entry.isreg() else None
        while plain.read(_BLOCK_SIZE):  # the checksum stands at the very end
            pass


def _in_zip(file: IO[bytes], wanted: Collection[str]) -> Iterator[Entry]:
    with zipfile.ZipFile(file) as packed:
        for entry in packed.infolist():
            if entry.filename not in wanted:
                continue
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                yield entry.filename, 0, None
                continue
            with packed.open(entry) as content:
                yield entry.filename, entry.file_size, content


def _copy(content: IO[bytes], size: int, part: Path) -> None:
    """Exactly `size` bytes, streamed: memory does not hold them."""
    with writing(part):
        file = part.open("wb", buffering=0)
    left = size
    with file:
        while left and (block := content.read(min(left, _BLOCK_SIZE))):
            write_all(file, block, part)
            left -= len(block)
        if left or content.read(1):
            raise EOFError(f"{part.stem[1:]} is not of the length its header says")
        with writing(part):
            os.fsync(file.fileno())
