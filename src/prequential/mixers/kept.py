"""What the record of a mixed run has besides: the nats of each expert, and whom the mixture believed. No torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OfExperts:
    """What the record of a mixed run has besides; None in others."""

    expert_nats: NDArray[np.float64] | None = None
    """What each expert alone would have been charged, a column for each of `expert_names`."""
    expert_weights_after: NDArray[np.int64] | None = None
    """The numbers of labels after which weights were kept …"""
    expert_weights: NDArray[np.float32] | None = None
    """… and how much each expert was trusted then, a row for each."""
    left_out: dict[str, int] | None = None
    """Experts whose prediction was not finite, and the label from which on they were left out."""

    @property
    def expert_names(self) -> tuple[str, ...]:
        """Whose predictions were mixed; nobody's where there was one model."""
        return expert_names(getattr(self, "model", {}))

    def experts_until(self, length: int) -> dict[str, NDArray[Any]]:
        """The arrays of the experts up to so many labels."""
        if self.expert_nats is None or self.expert_weights_after is None or self.expert_weights is None:
            return {}
        kept = int(np.searchsorted(self.expert_weights_after, length, side="right"))
        found = self.expert_nats[:length], self.expert_weights_after[:kept], self.expert_weights[:kept]
        return dict(zip(EXPERT_ARRAYS, found, strict=True))

    def expert_columns(self) -> dict[str, NDArray[np.float64]]:
        """The nats of each expert as columns of a table, named after it."""
        nats = self.expert_nats
        return {} if nats is None else {f"nats of {name}": nats[:, at] for at, name in enumerate(self.expert_names)}

    def summary_of_experts(self) -> dict[str, Any]:
        """What `--json` says of experts: what each alone would have cost, and who mixed them."""
        if self.expert_nats is None:
            return {}
        totals = zip(self.expert_names, self.expert_nats.sum(axis=0).tolist(), strict=True)
        told = [{"name": name, "nats": total if math.isfinite(total) else None} for name, total in totals]
        return {"experts": told, "mixer": getattr(self, "model", {}).get("mixer", {}).get("name")}
