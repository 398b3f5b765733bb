"""A line of a comparison: one setting with its seeds, and what it reached."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prequential.record import Record

Floats = NDArray[np.float64]
EARLY = 0.1
"""The part of the data that counts as its beginning."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """One or more runs that differ in nothing but their seed. Figures are means over the seeds."""

    name: str
    runs: list[str]
    """Their short names, in order of the seeds."""
    records: list[Record]
    heldout_loss: float | None
    heldout_error: float | None
    flops: float | None
    """Of the codelength; where there is none, of everything."""
    seconds: float | None

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [record.seeds["seed"] for record in self.records]


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry(Setting):
    """A setting that has a codelength, beside the best of the comparison."""

    nats: float
    """The mean codelength; infinite if any of its runs diverged."""
    standard_error: float | None
    """Of that mean; None with one seed."""
    bits_per_label: float
    savings: dict[str, float]
    """1 − nats / nats of a simple code: "uniform", "frequencies" and "previous"."""
    errors: float | None
    difference: float
    """Nats that it needs more than the best, of the means."""
    log_odds: float
    """ln of the odds of the best against it, of the means: the same number of nats, as evidence."""
    log_posterior: float
    """ln of its probability where every setting of the comparison was equally probable before."""
    leads_from: int | None
    """The position from which the best leads it for good (the best itself: the runner-up); None where it never does."""
    early_share: float | None
    """The part of that lead which was earned in the first 10 % of the data; below 0 where the best was behind there."""
    p_value: float | None
    """Of the paired test against the best over the seeds they share. None with fewer than two, and for the best."""

    @property
    def codelengths(self) -> dict[int, float]:
        """The codelength of each seed."""
        return {record.seeds["seed"]: float(record.nats.sum()) for record in self.records}


def mean_nats(records: Sequence[Record], length: int) -> Floats:
    """The nats of each position, the mean over the records; infinite from where one of them diverged."""
    total = np.zeros(length)
    for record in records:
        total[: len(record.nats)] += record.nats
        total[len(record.nats) :] = np.inf
    total /= len(records)
    return total


def lead(best: Floats, other: Floats) -> tuple[int | None, float | None]:
    """The position from which `best` is ahead for good, and the share of its lead earned in the first 10 % of them.

    To be ahead at a position is to have the shorter code once the label there is coded.

    Example:
        >>> lead(np.array([3.0, 1, 1, 1]), np.array([1.0, 2, 3, 3]))
        (2, -0.6666666666666666)
    """
    if not np.isfinite(best.sum()):
        return None, None
    ahead = np.cumsum(other - best)
    if not len(ahead) or not ahead[-1] > 0:
        return None, None
    behind = np.flatnonzero(ahead <= 0)
    early = float(ahead[-(-len(ahead) // round(1 / EARLY)) - 1])
    share = early / float(ahead[-1]) if np.isfinite(ahead[-1]) else None
    return (int(behind[-1]) + 1 if len(behind) else 0), share
