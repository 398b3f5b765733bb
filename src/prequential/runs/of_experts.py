"""What the record of a mixed run has besides: the nats of each expert, and whom the mixture believed. No torch."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXPERT_NATS = "expert_nats"
WEIGHTS = ("expert_weights_after", "expert_weights")
EXPERT_ARRAYS = (EXPERT_NATS, *WEIGHTS)
MOST_KEPT = 1000
"""About so many times the weights are kept."""


def kept_after(length: int) -> NDArray[np.int64]:
    """The numbers of labels after which weights are kept: evenly, and at the end. They depend on the length alone.

    Example:
        >>> kept_after(3), kept_after(4000)[[0, 1, -1]], len(kept_after(1_000_001))
        (array([1, 2, 3]), array([   4,    8, 4000]), 1000)
    """
    step = -(-length // MOST_KEPT)
    kept = np.arange(step, length + 1, step)
    return kept if kept[-1] == length else np.append(kept, length)


def num_kept(length: int, position: int) -> int:
    """How many of those are behind so many labels."""
    return int(np.searchsorted(kept_after(length), position, side="right"))


def expert_names(model: Mapping[str, Any]) -> tuple[str, ...]:
    """The experts of the run whose record tells this of its model; none of a run that has one model."""
    return tuple(model.get("expert_names") or ())


def columns_of(model: Mapping[str, Any]) -> dict[str, int | None]:
    """The arrays of experts that the record of such a model has, and how many columns each has (None: numbers)."""
    number = len(expert_names(model))
    return {EXPERT_NATS: number, WEIGHTS[0]: None, WEIGHTS[1]: number} if number else {}


def expert_columns(model: Mapping[str, Any], nats: NDArray[np.float64] | None) -> dict[str, NDArray[np.float64]]:
    """The nats of each expert as columns of a table, named after it.

    Example:
        >>> list(expert_columns({"expert_names": ["lenet", "mlp2"]}, np.zeros((4, 2))))
        ['nats of lenet', 'nats of mlp2']
    """
    return {} if nats is None else {f"nats of {name}": nats[:, at] for at, name in enumerate(expert_names(model))}


def summary_of_experts(model: Mapping[str, Any], nats: NDArray[np.float64] | None) -> dict[str, Any]:
    """What `--json` says of experts: what each alone would have cost, and who mixed them."""
    each = expert_columns(model, nats)
    if not each:
        return {}
    totals = [float(column.sum()) for column in each.values()]
    told = [
        {"name": name, "nats": total if math.isfinite(total) else None}
        for name, total in zip(expert_names(model), totals, strict=True)
    ]
    return {"experts": told, "mixer": (model.get("mixer") or {}).get("name")}
