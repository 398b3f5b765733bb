"""What records say about each other. No torch."""

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.record import Record


def regret(record: Record, reference: Record) -> NDArray[np.float64]:
    """codelength(record) − codelength(reference) after each label, in nats.

    Above zero the reference is ahead; the last entry is the difference of the description lengths.

    Raises:
        PreqError: if the two did not code the same labels of the same data in the same order.
    """
    require_comparable(record, reference)
    same = record.nats == reference.nats  # also where both are infinite
    return np.cumsum(np.where(same, 0.0, record.nats - np.where(same, 0.0, reference.nats)))


def require_comparable(record: Record, reference: Record) -> None:
    """Refuse records whose labels, inputs, order or length differ."""
    for each in (record, reference):
        if not each.prequential:
            raise PreqError(f"{_name(each)} has no codelength: {each.method['name']} is not prequential")
    for what, mine, other in [
        ("length", record.length, reference.length),
        ("order", record.seeds["order_seed"], reference.seeds["order_seed"]),
        ("labels", record.data["labels"], reference.data["labels"]),
        ("inputs", _examples(record), _examples(reference)),
    ]:
        if mine != other and not (what == "order" and _same_content(record, reference)):
            raise PreqError(
                f"{_name(record)} and {_name(reference)} differ in their {what} ({mine} and {other}); "
                "compare runs on the same data, length and order seed"
            )
    if len(record.nats) != len(reference.nats):
        raise PreqError(
            f"{_name(record)} stopped at label {len(record.nats)}, {_name(reference)} at "
            f"{len(reference.nats)}; compare finished runs"
        )


def _examples(record: Record) -> str:
    """What says whether two records are about the same examples, even if they were shown different parts of them."""
    fingerprint: str = record.data.get("examples") or record.data["inputs"]
    return fingerprint


def _same_content(record: Record, reference: Record) -> bool:
    return record.data["labels"] == reference.data["labels"] and _examples(record) == _examples(reference)


def _name(record: Record) -> str:
    return str(record.path or f"the {record.model['name']} run")
