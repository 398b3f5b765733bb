"""Which records are about the same labels, and how far one is behind another along them. No torch."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.conditioning import difference
from prequential.errors import PreqError, PreqWarning
from prequential.runs.record import Record


def regret(record: Record, reference: Record) -> NDArray[np.float64]:
    """codelength(record) − codelength(reference) after each label, in nats.

    Above zero the reference is ahead; the last entry is the difference of the description lengths. Where one was told
    more inputs than the other (`conditioned_on`), a warning says so.

    Raises:
        PreqError: if the two did not code the same labels of the same data in the same order.
    """
    require_comparable(record, reference)
    if told := difference((name_of(each), each.conditioned_on) for each in (record, reference)):
        warnings.warn(told, PreqWarning, stacklevel=2)
    return total_difference(record.nats, reference.nats)


def total_difference(nats: NDArray[np.floating], base: NDArray[np.floating] | float) -> NDArray[np.float64]:
    """Σ nats − Σ base after each label; a label that is infinite in both makes no difference.

    Example:
        >>> total_difference(np.array([1.0, np.inf, 3.0]), np.array([0.5, np.inf, 1.0]))
        array([0.5, 0.5, 2.5])
    """
    same = nats == base
    return np.cumsum(np.where(same, 0.0, nats - np.where(same, 0.0, base)))


def require_comparable(record: Record, reference: Record) -> None:
    """Refuse records whose labels, inputs, order or length differ, or that stopped at different labels."""
    require_same_sequence(record, reference)
    if len(record.nats) != len(reference.nats):
        raise PreqError(
            f"{name_of(record)} stopped at label {len(record.nats)}, {name_of(reference)} at "
            f"{len(reference.nats)}; compare finished runs"
        )


def require_same_sequence(record: Record, reference: Record) -> None:
    """Refuse records that have no code of the same labels of the same data in the same order."""
    for each in (record, reference):
        if not each.prequential:
            raise PreqError(f"{name_of(each)} has no codelength: {each.method['name']} is not prequential")
    require_same_data(record, reference)


def require_same_data(record: Record, reference: Record) -> None:
    """Refuse records, with a code or without, that are not about the same labels of the same data in the same order."""
    if sequence_of(record) == sequence_of(reference):
        return
    told = ((each.length, each.seeds["order_seed"], *fingerprints_of(each.data)) for each in (record, reference))
    for what, mine, other in zip(("length", "order", "labels", "inputs"), *told, strict=True):
        if mine != other:
            raise PreqError(
                f"{name_of(record)} and {name_of(reference)} differ in their {what} ({mine} and {other}); "
                "compare runs on the same data, length and order seed"
            )


def sequence_of(record: Record) -> tuple[int, str | None, str | None]:
    """What records share that are about the same labels of the same examples in the same order."""
    return record.length, *fingerprints_of(record.data)


def fingerprints_of(data: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """What tells labels and examples from others; of the latter even if only parts of them were shown to a model."""
    return data.get("labels"), data.get("examples") or data.get("inputs")


def require_records(records: Iterable[Record], what: str) -> list[Record]:
    """The records as a list; refuse what is none, in the name of what is made of them."""
    if isinstance(records, Record):
        raise PreqError(f"a {what} is of several records, got one; give a list of them")
    runs = list(records)
    if not runs:
        raise PreqError(f"a {what} needs at least one record, got none")
    for run in runs:
        if not isinstance(run, Record):
            raise PreqError(f"a {what} is of records, got {type(run).__name__}; load a directory with pq.load")
    return runs


def name_of(record: Record) -> str:
    """How a message names a record."""
    return str(record.path or f"the {record.model['name']} run")
