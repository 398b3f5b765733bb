"""Which records are about the same labels, and how far one is behind another along them. No torch."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prequential.conditioning import NAMED, difference
from prequential.errors import PreqError, PreqWarning
from prequential.runs.record import Record

GIVEN_INPUTS = "each code is that of the same labels given its own inputs, for a receiver who holds these"
"""What a comparison means where inputs differ."""


def regret(record: Record, reference: Record, *, same_inputs: bool = False) -> NDArray[np.float64]:
    """codelength(record) − codelength(reference) after each label, in nats.

    Above zero the reference is ahead; the last entry is the difference of the description lengths. Where the two were
    given other inputs, or one was told more of them than the other (`conditioned_on`), a warning says so.

    Args:
        same_inputs: refuse records whose inputs differ.

    Raises:
        PreqError: if the two did not code the same labels in the same order.
    """
    require_comparable(record, reference)
    if same_inputs:
        require_same_inputs((record, reference))
    for told in told_of([(name_of(each), each) for each in (record, reference)]):
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
    """Refuse records whose labels, order or length differ, or that stopped at different labels."""
    require_same_sequence(record, reference)
    if len(record.nats) != len(reference.nats):
        raise PreqError(
            f"{name_of(record)} stopped at label {len(record.nats)}, {name_of(reference)} at "
            f"{len(reference.nats)}; compare finished runs"
        )


def require_same_sequence(record: Record, reference: Record) -> None:
    """Refuse records that have no code of the same labels in the same order."""
    for each in (record, reference):
        if not each.prequential:
            raise PreqError(f"{name_of(each)} has no codelength: {each.method['name']} is not prequential")
    require_same_data(record, reference)


def require_same_data(record: Record, reference: Record) -> None:
    """Refuse records, with a code or without, that are not about the same labels in the same order."""
    if sequence_of(record) == sequence_of(reference):
        return
    told = ((each.length, each.seeds["order_seed"], fingerprint_of(each.data)) for each in (record, reference))
    for what, mine, other in zip(("length", "order", "labels"), *told, strict=True):
        if mine != other:
            raise PreqError(
                f"{name_of(record)} and {name_of(reference)} differ in their {what} ({mine} and {other}); "
                "compare runs on the same labels, length and order seed"
            )


def require_same_inputs(records: Iterable[Record]) -> None:
    """Refuse records that were given other inputs than the first."""
    first, *others = records
    for each in others:
        if each.data.get("inputs") != first.data.get("inputs"):
            raise PreqError(
                f"{name_of(each)} and {name_of(first)} differ in their inputs ({each.data.get('inputs')} and "
                f"{first.data.get('inputs')}); leave out --same-inputs (in Python same_inputs) to compare codes of the "
                "same labels given other inputs"
            )


def sequence_of(record: Record) -> tuple[int, str | None]:
    """What records share that are about the same labels in the same order, whatever the inputs were."""
    return record.length, fingerprint_of(record.data)


def fingerprint_of(data: Mapping[str, Any]) -> str | None:
    """What tells labels in their order from others; where nothing is known of them, the inputs do."""
    return data.get("labels") or data.get("inputs")


def is_one_heldout(records: Iterable[Record]) -> bool:
    """Whether held-out figures are about the same labels; and, given the same inputs, about the same held-out ones."""
    held = [(each.data.get("inputs"), each.data["heldout"] or {}) for each in records if each.heldout is not None]
    inputs = {(given, each.get("inputs")) for given, each in held}
    return len({each.get("labels") for _, each in held}) <= 1 and len(inputs) == len({given for given, _ in held})


class OfData(Protocol):
    """A run, whole or as it stands."""

    @property
    def data(self) -> Mapping[str, Any]:
        """What is known of its data: name, shape, fingerprints."""


def told_of(named: Iterable[tuple[str, Record]]) -> list[str]:
    """What must be said of codes that stand beside each other: a line where their inputs differ, and one where some
    may look further ahead than others."""
    given = list(named)
    lines = [inputs_told(given), difference((name, record.conditioned_on) for name, record in given)]
    return [line for line in lines if line]


def inputs_told(named: Sequence[tuple[str, OfData]]) -> str:
    """One line about codes of the same labels given different inputs; nothing where these are the same.

    Each kind of input is called by its data, else by its shape, else by its fingerprint: by what tells all apart.
    """
    kinds: dict[str, list[tuple[str, OfData]]] = {}
    for name, run in named:
        kinds.setdefault(str(run.data.get("inputs")), []).append((name, run))
    if len(kinds) < 2:
        return ""
    firsts = [members[0][1].data for members in kinds.values()]
    shapes = [" × ".join(map(str, data.get("input_shape") or ())) for data in firsts]
    calls = ([_called(data) for data in firsts], shapes, [kind[:8] for kind in kinds])
    called = next((each for each in calls if len(set(each)) == len(each)), calls[-1])
    names = [[name for name, _ in members] for members in kinds.values()]
    shown = zip(called, (", ".join(own) if len(own) <= NAMED else f"{len(own):,}" for own in names), strict=True)
    told = "; ".join(kind if kind == own else f"{kind}: {own}" for kind, own in shown)
    return f"the inputs differ ({told}): {GIVEN_INPUTS}"


def _called(data: Mapping[str, Any]) -> str:
    """Data by its name, and how many inputs it has besides those of its labels."""
    number = (data.get("unlabelled") or {}).get("number", 0)
    return f"{data['name']} with {number:,} more without labels" if number else str(data["name"])


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
