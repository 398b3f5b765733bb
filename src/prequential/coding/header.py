"""What the header of a bitstream must hold: names, types and bounds, checked before any of it is used. No torch."""

import numbers
from typing import Any

from prequential.coding.range_coder import MOST_CLASSES
from prequential.errors import PreqError

_KINDS: dict[str, type] = {
    "method": dict,
    "recipe": dict,
    "model": dict,
    "model.name": str,
    "model.width": numbers.Real,
    "model.num_parameters": int,
    "seeds": dict,
    "seeds.seed": int,
    "seeds.plan_seed": int,
    "length": int,
    "num_classes": int,
    "data": dict,
    "data.name": str,
    "data.inputs": str,
    "plan": str,
    "num_events": int,
    "fingerprint": str,
    "labels": str,
    "checks": list,
    "device": str,
    "environment": dict,
    "environment.threads": int,
    "codelength_nats": numbers.Real,
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
    for place, kind in _KINDS.items():
        value = _at(header, place)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise PreqError(f"the bitstream's header is damaged or incomplete: {place} is {str(value)[:40]}")
    for place, (low, high) in _BOUNDS.items():
        if not low <= _at(header, place) <= high:
            raise PreqError(
                f"the bitstream's header is damaged: {place} must be in {low} … {high}, got {_at(header, place)}"
            )
    order_seed = header["seeds"].get("order_seed")
    if order_seed is not None and (not isinstance(order_seed, int) or isinstance(order_seed, bool)):
        raise PreqError(f"the bitstream's header is damaged or incomplete: seeds.order_seed is {str(order_seed)[:40]}")
    return header


def _at(header: dict[str, Any], place: str) -> Any:
    value: Any = header
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
