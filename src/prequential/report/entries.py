"""A line of a comparison: one setting with its seeds, and what it reached beside the best."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prequential.measure.chance import PairedTest, paired_test
from prequential.report.seeds import SeedGroup
from prequential.runs.record import Record

Floats = NDArray[np.float64]
EARLY = 0.1
"""The part of the data that counts as its beginning."""

ROUNDING = 1e-11
"""The part of a codelength that adding up may have moved: no lead."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared(SeedGroup):
    """Runs that differ in nothing but their seed, with what whole runs tell. Figures are means over the seeds."""

    heldout_loss: float | None
    heldout_error: float | None
    flops: float | None
    """Of the codelength; where there is none, of everything."""
    seconds: float | None

    @classmethod
    def of(cls, group: SeedGroup, *, is_part: bool) -> "Compared":
        """A group with its figures; of a part of the labels nothing is known."""
        known = [] if is_part and group.first.prequential else group.records
        held = [record.heldout or {} for record in known]
        return cls(
            name=group.name,
            members=group.members,
            heldout_loss=mean_of([each.get("loss") for each in held]),
            heldout_error=mean_of([each.get("error_rate") for each in held]),
            flops=mean_of([(record.flops or {}).get("code") for record in known]),
            seconds=mean_of([record.seconds for record in known]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry(Compared):
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
    """Nats that it needs more than the best, of the means; no number (nan) where even the best is infinite."""
    log_odds: float
    """ln of the odds of the best against it, of the means: the same number of nats, as evidence."""
    log_posterior: float
    """ln of its probability where every setting of the comparison was equally probable before."""
    leads_from: int | None
    """The position from which the best leads it for good (the best itself: the runner-up); None where it never does."""
    early_share: float | None
    """The part of that lead which was earned in the first 10 % of the data; below 0 where the best was behind there."""
    p_value: float | None
    """Of the paired test against the best over the seeds they share, None with fewer than two and for the best itself.
    Not corrected for having chosen the best afterwards, nor for the number of settings."""


def mean_nats(records: Iterable[Record], length: int) -> Floats:
    """The nats of each position, the mean over the records; infinite from where one of them diverged."""
    total, num_records = np.zeros(length), 0
    for record in records:
        total[: len(record.nats)] += record.nats
        total[len(record.nats) :] = np.inf
        num_records += 1
    total /= num_records
    return total


def lead(best: Floats, other: Floats) -> tuple[int | None, float | None]:
    """The position from which `best` is ahead for good, and the share of its lead earned in the first 10 % of them.

    To be ahead at a position is to have the shorter code once the label there is coded.

    Example:
        >>> lead(np.array([3.0, 1, 1, 1]), np.array([1.0, 2, 3, 3]))
        (2, -0.6666666666666666)
    """
    total = float(best.sum())
    if not np.isfinite(total):
        return None, None
    ahead = np.cumsum(other - best)
    if not len(ahead) or not ahead[-1] > ROUNDING * total:
        return None, None
    behind = np.flatnonzero(ahead <= ROUNDING * total)
    early = float(ahead[-(-len(ahead) // round(1 / EARLY)) - 1])
    share = early / float(ahead[-1]) if np.isfinite(ahead[-1]) else None
    return (int(behind[-1]) + 1 if len(behind) else 0), share


def standard_error(values: Floats) -> Floats:
    """Of the mean over the first axis; no number where a value is infinite.

    Example:
        >>> standard_error(np.array([[1.0], [3.0]])).tolist()
        [1.0]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean; None where one of them is not known."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def entries_of(groups: Sequence[Compared], simple: dict[str, float], length: int) -> list[Entry]:
    """The groups as entries, best first."""
    ranked = sorted(groups, key=lambda group: (group.codelength, group.name))
    best = ranked[0].codelength  # where even that is infinite, there are no odds between any two
    differences = [group.codelength - best for group in ranked] if math.isfinite(best) else [math.nan] * len(ranked)
    log_sum = float(np.logaddexp.reduce(np.negative(differences))) if math.isfinite(best) else math.nan
    entries = []
    for group, difference, (leads_from, early_share) in zip(ranked, differences, _leads(ranked, length), strict=True):
        nats, each = group.codelength, np.array(list(group.codelengths.values()))
        test = None if group is ranked[0] else paired_test_of(ranked[0], group)
        entries.append(
            Entry(
                **vars(group),
                nats=nats,
                standard_error=float(standard_error(each)) if len(each) > 1 and math.isfinite(nats) else None,
                bits_per_label=nats / math.log(2) / length,
                savings={name: _saving(nats, code) for name, code in simple.items()},
                errors=mean_of([record.errors for record in group.records]) if math.isfinite(nats) else None,
                difference=difference,
                log_odds=difference,
                log_posterior=0.0 - difference - log_sum,
                leads_from=leads_from,
                early_share=early_share,
                p_value=None if test is None else test.p_value,
            )
        )
    return entries


def _leads(ranked: Sequence[Compared], length: int) -> list[tuple[int | None, float | None]]:
    """From where on the best leads each of the others, and itself the second; one curve in memory beside the best's."""
    if len(ranked) == 1:
        return [(None, None)]
    best = mean_nats(ranked[0].records, length)
    leads = [lead(best, mean_nats(group.records, length)) for group in ranked[1:]]
    return [leads[0], *leads]


def _saving(nats: float, code: float) -> float:
    return 1.0 - nats / code if code else 0.0 if not nats else -math.inf


def paired_test_of(first: SeedGroup, second: SeedGroup) -> PairedTest | None:
    """The paired test of two settings over the seeds they share."""
    one, other = first.codelengths, second.codelengths
    shared = sorted(one.keys() & other.keys())
    return paired_test([one[seed] for seed in shared], [other[seed] for seed in shared])
