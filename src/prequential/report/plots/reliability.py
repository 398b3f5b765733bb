"""How far confidence can be trusted: predictions in bins of confidence, and how many of each were right. No drawing."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prequential.runs.record import Record

NUM_BINS = 15


@dataclass(frozen=True)
class Reliability:
    """Predictions in bins of equal width over [0, 1]; a bin holds its upper edge."""

    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    """The mean in each bin; no number where a bin is empty."""
    accuracy: NDArray[np.float64]
    """The share that was right."""

    @property
    def error(self) -> float:
        """The expected calibration error: |accuracy − confidence| in the mean over all predictions."""
        filled = self.counts > 0
        gaps = np.abs(self.accuracy[filled] - self.confidence[filled])
        return float((gaps * self.counts[filled]).sum() / max(self.counts.sum(), 1))


def reliability(records: Iterable[Record], num_bins: int = NUM_BINS) -> Reliability:
    """All predictions of the records together, by the probability of the most probable class.

    Example:
        >>> from types import SimpleNamespace
        >>> record = SimpleNamespace(confidence=np.array([0.9, 0.8, 0.3]), labels=np.array([1, 1, 0]),
        ...                          predicted=np.array([1, 0, 0]))
        >>> found = reliability([record], num_bins=2)
        >>> found.counts.tolist(), found.accuracy.tolist(), round(found.error, 3)
        ([1, 2], [1.0, 0.5], 0.467)
    """
    counts, sums, hits = np.zeros(num_bins, np.int64), np.zeros(num_bins), np.zeros(num_bins)
    for record in records:
        bins = np.clip(np.ceil(record.confidence * num_bins).astype(np.int64) - 1, 0, num_bins - 1)
        counts += np.bincount(bins, minlength=num_bins)
        sums += np.bincount(bins, record.confidence, num_bins)
        hits += np.bincount(bins, record.labels == record.predicted, num_bins)
    with np.errstate(invalid="ignore"):
        return Reliability(counts, sums / counts, hits / counts)


def nats_saved(record: Record) -> NDArray[np.float64]:
    """What the temperature saved up to each label: uncalibrated − calibrated, in nats.

    A label that neither could code saves nothing.
    """
    before, after = record.uncalibrated_nats.astype(np.float64), record.nats
    same = before == after
    return np.cumsum(np.where(same, 0.0, before - np.where(same, 0.0, after)))
