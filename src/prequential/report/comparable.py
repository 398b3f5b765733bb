"""Which runs may stand beside each other, and how much of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from prequential.errors import PreqError
from prequential.measure import name_of, require_comparable, sequence_of
from prequential.record import PER_POSITION, Record


def require_records(records: Iterable[Record]) -> list[Record]:
    """The records as a list; refuse what is none."""
    if isinstance(records, Record):
        raise PreqError("a comparison is of several records, got one; give a list of them")
    runs = list(records)
    if not runs:
        raise PreqError("a comparison needs at least one record, got none")
    for run in runs:
        if not isinstance(run, Record):
            raise PreqError(f"a comparison is of records, got {type(run).__name__}; load a directory with pq.load")
    return runs


def require_same_data(run: Record, reference: Record) -> None:
    """Refuse a run without a codelength that is not about the same labels in the same order."""
    if sequence_of(run) != sequence_of(reference):
        raise PreqError(
            f"{name_of(run)} was trained on other labels, inputs or another order than {name_of(reference)}; "
            "compare runs on the same data, length and order seed"
        )


def require_finished(runs: Sequence[Record]) -> None:
    """Refuse runs that were stopped or still go on."""
    for run in runs:
        if run.status not in ("finished", "diverged"):
            raise PreqError(
                f"{name_of(run)} is not finished ({run.status} at label {len(run.nats):,} of {run.length:,}); "
                "leave it out, or compare the labels that all have coded: --prefix (in Python prefix=True)"
            )


def has_diverged(run: Record) -> bool:
    """Whether a label got probability 0, so that the code is infinite."""
    return bool(len(run.nats)) and bool(np.isinf(run.nats[-1]))


def common_length(coded: Sequence[Record], *, prefix: bool) -> int:
    """Labels that every run has coded but those that diverged, whose codes are infinite from there on."""
    going = [run for run in coded if not has_diverged(run)] or [max(coded, key=lambda run: len(run.nats))]
    shortest = min(going, key=lambda run: len(run.nats))
    if not len(shortest.nats):
        raise PreqError(f"{name_of(shortest)} has coded no label yet; leave it out")
    if not prefix:
        for run in going:
            require_comparable(run, shortest)
    return len(shortest.nats)


def cut(run: Record, length: int) -> Record:
    """The record of the first labels; what belongs to the whole run is not known of them."""
    if len(run.nats) <= length:
        return run
    arrays = {name: getattr(run, name)[:length] for name in PER_POSITION}
    return replace(run, **arrays, heldout=None, flops=None)
