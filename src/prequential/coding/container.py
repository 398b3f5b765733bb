"""The file around a bitstream: magic, version, header, payload, checksum, and what the header must hold.

See docs/format.md. No torch.
"""

import json
import numbers
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prequential.coding.range_coder import MOST_CLASSES
from prequential.errors import PreqError
from prequential.files import digest_of
from prequential.names_of_before import FORMATS, in_names_of_now, require_format

MAGIC = b"PREQ"
VERSION = FORMATS[-1]
MOST_HEADER_BYTES = 1 << 24
_PREFIX = struct.Struct("<4sB3xIQ16s16s")
_KINDS: dict[Any, str] = {
    dict: "method recipe model seeds data environment",
    str: "model.name data.name data.inputs plan fingerprint labels device",
    int: "model.num_parameters seeds.seed seeds.plan_seed length num_classes num_events environment.threads",
    numbers.Real: "model.width codelength_nats",
    list: "checks",
    int | None: "seeds.order_seed",
}
_BOUNDS: dict[str, Sequence[int]] = {
    "length": range(1, (1 << 40) + 1),
    "num_classes": range(2, MOST_CLASSES + 1),
    "environment.threads": range(1, 1025),
    "model.num_parameters": range(1, (1 << 34) + 1),
    "num_events": range(1, (1 << 40) + 1),
}


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
        if header_size > MOST_HEADER_BYTES or len(content) != _PREFIX.size + header_size + payload_size:
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
            header = json.loads(parts[0])
        except (ValueError, RecursionError) as error:
            raise PreqError(f"{name} is damaged: its header is not JSON ({error})") from None
        if not isinstance(header, dict):
            raise PreqError(f"{name} is damaged: its header is not an object")
        return cls(in_names_of_now(header, version), parts[1])


def checked(header: dict[str, Any]) -> dict[str, Any]:
    """The header, if it is complete and within bounds: to be asked before any of it is used."""
    for kind, places in _KINDS.items():
        for place in places.split():
            value = _at(header, place)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise PreqError(f"the bitstream's header is damaged or incomplete: {place} is {str(value)[:40]}")
            if value not in (bounds := _BOUNDS.get(place, (value,))):
                allowed = f"{bounds[0]} … {bounds[-1]}"
                raise PreqError(f"the bitstream's header is damaged: {place} must be in {allowed}, got {value}")
    return header


def _at(header: dict[str, Any], place: str) -> Any:
    value: Any = header
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
