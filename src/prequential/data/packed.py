"""How much a packed file may unpack to: a few bytes can stand for more than any memory holds. No torch."""

import io
from typing import IO

from prequential.errors import PreqError

MIB, GIB = 1 << 20, 1 << 30
ALWAYS = 1 << 28
"""Bytes up to which a file may be packed as tightly as it likes."""
MOST_FOLD = 100
"""How many times its packed size a larger one may be. Tables that people have are packed 3 to 30 times."""
MOST = 32 * GIB


def most_unpacked(packed_size: int, asked: float | None) -> int:
    """Bytes that a file of so many may unpack to: what was asked for, in GiB, else by the rule.

    Example:
        >>> [most_unpacked(size, None) / GIB for size in (10, 1 << 24, 1 << 40)], most_unpacked(10, 0.5) / GIB
        ([0.25, 1.5625, 32.0], 0.5)
    """
    return int(min(asked, GIB) * GIB) if asked is not None else min(max(ALWAYS, MOST_FOLD * packed_size), MOST)


def too_large(what: str, packed_size: int, most: int, size: int | None = None) -> PreqError:
    """The word for what unpacks to more than it may."""
    unpacked = f"more than {most / MIB:,.0f} MiB" if size is None else f"{size / MIB:,.0f} MiB"
    enough = max(2 * (size or most) / GIB, 1)
    return PreqError(
        f"{what}: {packed_size / MIB:,.1f} MiB unpack to {unpacked}, where {most / MIB:,.0f} are allowed; "
        f"if you trust it, unpack it first or give --max-unpacked {enough:.0f} (GiB)"
    )


class Counted(io.RawIOBase):
    """A file that is unpacked while it is read, up to a number of bytes."""

    def __init__(self, file: IO[bytes], what: str, packed_size: int, most: int) -> None:
        self._file, self._what, self._packed_size, self._most, self._left = file, what, packed_size, most, most

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """At most one byte more than is allowed is ever unpacked, and then it is refused."""
        at_most = self._left + 1
        return self._counted(self._file.read(at_most if size is None or size < 0 else min(size, at_most)))

    def readline(self, size: int | None = -1, /) -> bytes:
        at_most = self._left + 1
        return self._counted(self._file.readline(at_most if size is None or size < 0 else min(size, at_most)))

    def _counted(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._what, self._packed_size, self._most)
        return piece
