"""What the header of a bitstream must hold: names, types and bounds, checked before any of it is used. No torch."""

import numbers
from typing import Any

from prequential.coding.range_coder import MOST_CLASSES
from prequential.errors import PreqError

_KINDS: dict[type, str] = {
    dict: "method recipe model seeds data environment",
    str: "model.name data.name data.inputs plan fingerprint labels device",
    int: "model.num_parameters seeds.seed seeds.plan_seed length num_classes num_events environment.threads",
    numbers.Real: "model.width codelength_nats",
    list: "checks",
}
_BOUNDS: dict[str, tuple[int, int]] = {
    "length": (1, 1 << 40),
    "num_classes": (2, MOST_CLASSES),
    "environment.threads": (1, 1024),
    "model.num_parameters": (1, 1 << 34),
    "num_events": (1, 1 << 40),
}


def checked(header: dict[str, Any]) -> dict[str, Any]:
    """The header, if it is complete and within bounds."""
    for kind, places in _KINDS.items():
        for place in places.split():
            _require(header, place, kind)
    for place, (low, high) in _BOUNDS.items():
        if not low <= _at(header, place) <= high:
            raise PreqError(
                f"the bitstream's header is damaged: {place} must be in {low} … {high}, got {_at(header, place)}"
            )
    if header["seeds"].get("order_seed") is not None:
        _require(header, "seeds.order_seed", int)
    return header


def _require(header: dict[str, Any], place: str, kind: type) -> None:
    value = _at(header, place)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise PreqError(f"the bitstream's header is damaged or incomplete: {place} is {str(value)[:40]}")


def _at(header: dict[str, Any], place: str) -> Any:
    value: Any = header
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
