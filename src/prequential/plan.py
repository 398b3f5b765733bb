"""A plan: the events of one method over one length, as a pure function of (length, settings, seed).

It can be listed, counted, costed and proved causal without a model, and iterated again from any event.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain, groupby, islice
from typing import Any

import numpy as np

from prequential.conditioning import INPUTS_SO_FAR, widest
from prequential.errors import PreqError, require_count
from prequential.events import (
    Calibrate,
    Evaluate,
    Event,
    Indices,
    OwnEvent,
    Predict,
    Reinit,
    ShrinkPerturb,
    Train,
    encoded,
    known,
    unknown_event,
)
from prequential.methods.joint import ForExperts
from prequential.methods.method import Method, Work

NOTHING: Indices = np.empty(0, np.int64)


@dataclass
class Counts:
    """How much work a list of events is: events by kind, and the examples they touch."""

    events: int = 0
    predicts: int = 0
    calibrates: int = 0
    trains: int = 0
    evaluates: int = 0
    others: int = 0
    """Reinit, ShrinkPerturb and events of a method's own."""
    predicted_examples: int = 0
    uniform_examples: int = 0
    calibrated_examples: int = 0
    recomputed_examples: int = 0
    """Calibrated examples whose logits are not at hand from the prediction just made."""
    trained_examples: int = 0

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(**{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)})


@dataclass(frozen=True)
class Plan:
    """The events of `method` over `length` labels.

    Args:
        method: who decides; any object with the methods of `prequential.methods.Method`.
        length: the number of labels.
        seed: the plan seed. Repeated runs that share it share every batch.
        heldout: whether the closing events (a last stage, then Evaluate) follow.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> plan = Plan(ReplayStreams(num_streams=2, batch_size=4), length=8, seed=0)
        >>> [type(event).__name__ for event in plan.events()][:5]
        ['Predict', 'Calibrate', 'Train', 'Train', 'Train']
        >>> plan.counts().trained_examples
        24
    """

    method: Method
    length: int
    seed: int = 0
    heldout: bool = False

    def __post_init__(self) -> None:
        require_count("length", self.length)

    def events(self, start: int = 0) -> Iterator[Event]:
        """The events in order, from event number `start` on. One that nobody knows is refused, here for everybody."""
        events, reached = self.method.enter(self.length, self.seed, start)
        if self.heldout:
            events = chain(events, self.method.closing(self.length, self.seed))
        return known(islice(events, start - reached, None), start)

    @property
    def conditioned_on(self) -> str:
        """What the events look at besides earlier labels, as the method declares it."""
        return widest(getattr(self.method, "conditioned_on", INPUTS_SO_FAR))

    def without_heldout(self) -> "Plan":
        """The part of the plan that the codelength needs."""
        return Plan(self.method, self.length, self.seed)

    def most_work(self) -> Work | None:
        """How much the plan is at most, without its closing; told at once, however long it is. None: not known.

        Example:
            >>> from prequential.methods import ReplayStreams
            >>> Plan(ReplayStreams(num_streams=2, batch_size=4), length=1 << 39).most_work()
            Work(events=687194767360, evaluated=549755813888, trained=1649267441664)
        """
        method: Any = self.method
        return method.most_work(self.length) if hasattr(method, "most_work") else None

    def counts(self, num_events: int | None = None) -> Counts:
        """Events and examples of the first `num_events` events (default: all)."""
        counts = Counts()
        for _, event, read in with_reads(islice(self.events(), num_events)):
            counts.events += 1
            match event:
                case Predict(start, stop):
                    counts.predicts += 1
                    counts.predicted_examples += len(read)
                    counts.uniform_examples += stop - start - len(read)
                case Calibrate(indices):
                    counts.calibrates += 1
                    counts.calibrated_examples += len(indices)
                    counts.recomputed_examples += len(read)
                case Train() | ForExperts(kind="Train"):
                    counts.trains += getattr(event, "num_events", 1)
                    counts.trained_examples += event.indices.size
                case Evaluate():
                    counts.evaluates += 1
                case ForExperts(kind="Calibrate"):
                    counts.calibrates += 1
                    counts.calibrated_examples += event.indices.size
                case _:
                    counts.others += 1
        return counts

    def check(self) -> None:
        """Prove the plan causal and complete, or say where it is not.

        Raises:
            PreqError: naming the event and the offending position.
        """
        frontier = 0 if self.method.prequential else self.length
        for number, event in enumerate(self.events()):
            where = f"event {number} ({type(event).__name__})"
            match event:
                case Predict(start, stop) if self.method.prequential:
                    frontier = require_next(start, stop, frontier, self.length, where)
                case Predict():
                    raise PreqError(f"{where}: a method that is not prequential predicts nothing")
                case Calibrate(indices) | Train(indices):
                    require_revealed(indices, frontier, where)
                case OwnEvent() if len(event.learns_from):
                    require_revealed(event.learns_from, frontier, where)
                case Evaluate() if frontier != self.length:
                    raise PreqError(f"{where} comes at label {frontier} of {self.length}; evaluate at the end")
                case Reinit() | ShrinkPerturb() | Evaluate() | OwnEvent():
                    pass
                case _:
                    raise unknown_event(event, f"event {number}")
        if frontier != self.length:
            raise PreqError(f"the plan ends at label {frontier} of {self.length}; predict every position")

    def digest(self, most_events: int | None = None) -> str:
        """A short fingerprint of every event and every index; a plan of more than `most_events` is refused.

        It is that of the events one after the other, each as `prequential.events.encoded` writes it.
        """
        state = hashlib.blake2b(digest_size=16)
        for number, event in enumerate(self.events()):
            if most_events is not None and number >= most_events:
                raise PreqError(f"the plan has more than the {most_events} events it should have")
            state.update(encoded(event))
        return state.hexdigest()


def require_next(start: int, stop: int, frontier: int, length: int, where: str) -> int:
    """The frontier after a prediction; refuse one that is not about the next labels."""
    if start != frontier or not start < stop <= length:
        raise PreqError(
            f"{where} predicts [{start}, {stop}), but the next label to predict is {frontier} of {length}; "
            "predict every position once, in order"
        )
    return stop


def require_revealed(indices: Indices, frontier: int, where: str) -> None:
    """Refuse to learn from a label that was not predicted before, or from none."""
    if not len(indices):
        raise PreqError(f"{where} has no examples; leave the event out")
    if indices.min() < 0 or indices.max() >= frontier:
        bad = indices[(indices < 0) | (indices >= frontier)][0]
        raise PreqError(
            f"{where} uses position {bad}, but only [0, {frontier}) is revealed; "
            "a plan may learn only from labels it has already predicted"
        )


def blocks(events: Iterable[Event], first: int, most: int) -> Iterator[tuple[int, Event, list[Indices]]]:
    """Events with their numbers, from `first`; up to `most` training steps on batches of one size come together.

    For those the event is the first of them, and the batches of all of them are the list.

    Example:
        >>> events = [Predict(0, 2), *[Train(np.arange(2))] * 3, Train(np.arange(3))]
        >>> [(number, type(event).__name__, len(batches)) for number, event, batches in blocks(events, 0, most=2)]
        [(0, 'Predict', 0), (1, 'Train', 2), (3, 'Train', 1), (4, 'Train', 1)]
    """
    sized = groupby(enumerate(events, first), lambda each: len(each[1].indices) if isinstance(each[1], Train) else None)
    for size, group in sized:
        while together := list(islice(group, 1 if size is None else most)):
            yield *together[0], [event.indices for _, event in together if isinstance(event, Train)]


def with_reads(events: Iterable[Event], first: int = 0) -> Iterator[tuple[int, Event, Indices]]:
    """Events with their numbers, from `first`, and the positions whose inputs the network is shown for each.

    A uniform prediction needs none, nor does a calibration on what was just predicted: its logits are at hand until
    something is learned. What events of a method's own read is not known.

    Example:
        >>> events = [Predict(0, 2), Calibrate(np.arange(2)), Train(np.arange(2)), Calibrate(np.arange(2))]
        >>> [len(read) for _, _, read in with_reads(events)]
        [2, 0, 2, 2]
    """
    at_hand: tuple[int, int] | None = None
    for number, event in enumerate(events, first):
        read = NOTHING
        match event:
            case Predict(start, stop) if not event.uniform:
                at_hand, read = (start, stop), np.arange(start, stop)
            case Calibrate(indices) if not is_span(indices, at_hand):
                read = indices
            case Train(indices):
                at_hand, read = None, indices
            case Reinit() | ShrinkPerturb() | OwnEvent():
                at_hand = None
            case Predict() | Calibrate() | Evaluate():
                pass
            case _:
                raise unknown_event(event, f"event {number}")
        yield number, event, read


def is_span(indices: np.ndarray, span: tuple[int, int] | None) -> bool:
    """Whether `indices` is exactly start, start+1, … stop−1."""
    return span is not None and np.array_equal(indices, np.arange(*span))
