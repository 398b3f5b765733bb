"""Which runs may stand beside each other, and how much of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from prequential.errors import PreqError
from prequential.measure import name_of, require_comparable, sequence_of
from prequential.report.runs import find_runs
from prequential.runs.record import PER_POSITION, PER_PREDICTION, Record, load

KEPT_NOTHING = "has no label to show yet (a run keeps what it coded at each checkpoint; preq watch shows it before)"


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
        if not is_over(run) and not run.prequential:
            raise PreqError(f"{name_of(run)} is not finished ({run.status}); leave it out")
        if not is_over(run):
            raise PreqError(
                f"{name_of(run)} is not finished ({run.status} at label {len(run.nats):,} of {run.length:,}); "
                "leave it out, or compare the labels that all have coded: --prefix (in Python prefix=True)"
            )


def load_runs(
    directories: Sequence[str | Path], *, prefix: bool = False, kept: Callable[[Record], Record] = lambda record: record
) -> tuple[list[Record], dict[str, list[str]]]:
    """The records in some directories, and for each reason the runs that were left out.

    Left out are only runs below a given directory that are not finished, unless `prefix` asks for them: the pruned
    trials of a sweep. A run that was itself given is wanted, so what is wrong with it is an error. `kept` says what is
    kept of a record, so that many of them need not be in memory whole.

    Raises:
        PreqError: for a directory without a run, or a run that cannot be read.
    """
    given = {Path(directory).resolve() for directory in directories}
    records: list[Record] = []
    left_out: dict[str, list[str]] = {}
    for path in find_runs(directories):
        record = load(path)
        if path.resolve() not in given and not (is_over(record) or (prefix and len(record.nats))):
            left_out.setdefault(f"not finished ({record.status})", []).append(str(path))
        else:
            records.append(kept(record))
    if not records:
        reasons = "; ".join(f"{len(paths):,} {reason}" for reason, paths in left_out.items())
        hint = "none has kept a label yet" if prefix else "--prefix compares the labels that all have coded"
        raise PreqError(f"there is no run to show: {reasons}; {hint}")
    return records, left_out


def is_over(run: Record) -> bool:
    """Whether a run went to its end, or to a label of probability 0."""
    return run.status in ("finished", "diverged")


def has_diverged(run: Record) -> bool:
    """Whether a label got probability 0, so that the code is infinite."""
    return bool(len(run.nats)) and bool(np.isinf(run.nats[-1]))


def common_length(coded: Sequence[Record], *, prefix: bool) -> int:
    """Labels that every run has coded but those that diverged, whose codes are infinite from there on."""
    going = [run for run in coded if not has_diverged(run)] or [max(coded, key=lambda run: len(run.nats))]
    shortest = min(going, key=lambda run: len(run.nats))
    if not len(shortest.nats):
        raise PreqError(f"{name_of(shortest)} {KEPT_NOTHING}; leave it out")
    if not prefix:
        for run in going:
            require_comparable(run, shortest)
    return len(shortest.nats)


def cut(run: Record, length: int) -> Record:
    """The record of the first labels; what belongs to the whole run is not known of them."""
    if len(run.nats) <= length:
        return run
    arrays = {name: getattr(run, name)[:length] for name in PER_POSITION}
    kept = int(np.searchsorted(run.temperature_positions, length))
    arrays |= {name: getattr(run, name)[:kept] for name in PER_PREDICTION}
    return replace(run, **arrays, heldout=None, flops=None)
