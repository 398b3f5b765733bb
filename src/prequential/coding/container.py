"""The file around a bitstream: magic, version, header, payload, checksum, and what the header must hold.

See docs/format.md. No torch.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any

from prequential.errors import PreqError
from prequential.files import digest_of
from prequential.formats import BITSTREAM
from prequential.names_of_before import FORMATS, in_names_of_now, require_format
from prequential.plain import MOST_BYTES, MisfitError, parsed, require_shape

MAGIC = b"PREQ"
VERSION = FORMATS[-1]
_PREFIX = struct.Struct("<4sB3xIQ16s16s")


@dataclass(frozen=True)
class Container:
    """A header of plain values and a payload of coded labels."""

    header: dict[str, Any]
    payload: bytes

    def to_bytes(self) -> bytes:
        """The file.

        Example:
            >>> Container.from_bytes(Container({"length": 3}, b"1234").to_bytes())
            Container(header={'length': 3}, payload=b'1234')
        """
        header = json.dumps(self.header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        digests = [bytes.fromhex(digest_of(part)) for part in (header, self.payload)]
        return _PREFIX.pack(MAGIC, VERSION, len(header), len(self.payload), *digests) + header + self.payload

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the bitstream") -> "Container":
        """Read a file back, its checksum verified before anything in it is believed; the header in the names of now."""
        if len(content) < _PREFIX.size or content[:4] != MAGIC:
            raise PreqError(f"{name} is not a bitstream of preq: it begins with {content[:4].hex() or 'nothing'}")
        _, version, header_size, payload_size, *digests = _PREFIX.unpack_from(content)
        require_format(version, name)
        if header_size > MOST_BYTES or len(content) != _PREFIX.size + header_size + payload_size:
            raise PreqError(
                f"{name} is damaged: {len(content)} bytes, its prefix says {_PREFIX.size + header_size + payload_size}"
            )
        body = content[_PREFIX.size :]
        parts = body[:header_size], body[header_size:]
        for part, what, digest in zip(parts, ("header", "payload"), digests, strict=True):
            if content[5:8] != b"\0\0\0" or bytes.fromhex(digest_of(part)) != digest:
                raise PreqError(f"{name} is damaged: the checksum of its {what} does not fit")
        if payload_size % 4:
            raise PreqError(f"{name} is damaged: its payload is not made of 32-bit words")
        try:
            header = parsed(parts[0])
        except MisfitError as error:
            raise PreqError(f"{name} is damaged: its header is not plain JSON ({error})") from None
        if not isinstance(header, dict):
            raise PreqError(f"{name} is damaged: its header is not an object")
        return cls(in_names_of_now(header, version), parts[1])


def checked(header: dict[str, Any]) -> dict[str, Any]:
    """The header, if it is complete and within bounds: to be asked before any of it is used."""
    try:
        require_shape(header, BITSTREAM)
    except MisfitError as error:
        raise PreqError(f"the bitstream's header is damaged or incomplete: {error}") from None
    return header
