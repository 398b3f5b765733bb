"""What records say about each other. No torch."""

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prequential.conditioning import difference
from prequential.errors import PreqError, PreqWarning, require_count, require_number, whole_seed
from prequential.rng import derive, integers_below
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
    same = record.nats == reference.nats  # also where both are infinite
    return np.cumsum(np.where(same, 0.0, record.nats - np.where(same, 0.0, reference.nats)))


def bootstrap_best(
    codelengths: ArrayLike, *, seed: int = 0, num_samples: int = 1000, level: float = 0.95
) -> tuple[float, float]:
    """The bootstrap interval of the best codelength of a sweep, as in the paper's figures.

    The trials are drawn again, with replacement, as many as there were; the minimum of each such sample is what
    such a sweep might have found. The interval holds the middle `level` of these minima; both ends are codelengths that
    were measured. It does not depend on the order of the trials.

    It is one-sided: no sample can be below the best that was found, and 63 in 100 hold it, so that the lower end is
    that best. The upper end tells how far the result hangs on a few lucky trials, not how much more there is to gain.

    Args:
        codelengths: of the trials, infinity for those that diverged.

    Raises:
        PreqError: if there are none, or one is not a number.

    Example:
        >>> bootstrap_best([512.0, 431.0, 440.0, 437.0, float("inf"), 433.0])
        (431.0, 437.0)
    """
    try:
        values = np.sort(np.asarray(codelengths, np.float64))
    except (TypeError, ValueError):
        raise PreqError(f"codelengths must be numbers, got {codelengths!r}; leave out runs that have none") from None
    if values.ndim != 1 or not len(values) or np.isnan(values).any():
        raise PreqError(f"codelengths must be a list of at least one number, got {codelengths!r}")
    require_count("num_samples", num_samples)
    require_number("level", level, above=0, below=1)
    key = derive(whole_seed("seed", seed), "bootstrap of the best")
    drawn = integers_below(len(values), key, np.arange(num_samples * len(values)).reshape(num_samples, -1))
    minima = values[np.sort(drawn.min(axis=1))]
    tail = math.floor(num_samples * (1 - level) / 2)
    return float(minima[tail]), float(minima[-1 - tail])


def require_comparable(record: Record, reference: Record) -> None:
    """Refuse records whose labels, inputs, order or length differ, or that stopped at different labels."""
    require_same_sequence(record, reference)
    if len(record.nats) != len(reference.nats):
        raise PreqError(
            f"{name_of(record)} stopped at label {len(record.nats)}, {name_of(reference)} at "
            f"{len(reference.nats)}; compare finished runs"
        )


def require_same_sequence(record: Record, reference: Record) -> None:
    """Refuse records that are not about the same labels of the same data in the same order."""
    for each in (record, reference):
        if not each.prequential:
            raise PreqError(f"{name_of(each)} has no codelength: {each.method['name']} is not prequential")
    for what, mine, other in [
        ("length", record.length, reference.length),
        ("order", record.seeds["order_seed"], reference.seeds["order_seed"]),
        ("labels", record.data["labels"], reference.data["labels"]),
        ("inputs", _examples(record), _examples(reference)),
    ]:
        if mine != other and not (what == "order" and _same_content(record, reference)):
            raise PreqError(
                f"{name_of(record)} and {name_of(reference)} differ in their {what} ({mine} and {other}); "
                "compare runs on the same data, length and order seed"
            )


def sequence_of(record: Record) -> tuple[int, str, str]:
    """What records share that are about the same labels of the same examples in the same order."""
    return record.length, record.data["labels"], _examples(record)


def _examples(record: Record) -> str:
    """What says whether two records are about the same examples, even if they were shown different parts of them."""
    fingerprint: str = record.data.get("examples") or record.data["inputs"]
    return fingerprint


def _same_content(record: Record, reference: Record) -> bool:
    return record.data["labels"] == reference.data["labels"] and _examples(record) == _examples(reference)


def name_of(record: Record) -> str:
    """How a message names a record."""
    return str(record.path or f"the {record.model['name']} run")
