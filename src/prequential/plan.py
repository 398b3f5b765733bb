"""A plan: the events of one method over one length, as a pure function of (length, settings, seed).

It can be listed, counted, costed and proved causal without a model, and iterated again from any event.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from prequential.conditioning import INPUTS_SO_FAR, widest
from prequential.counts import Counts, count
from prequential.errors import PreqError, require_count
from prequential.events import (
    Calibrate,
    EndStudy,
    Evaluate,
    Event,
    Indices,
    OwnEvent,
    Predict,
    Reinit,
    ShrinkPerturb,
    Study,
    Train,
    TrainBeside,
    encoded,
    known,
    unknown_event,
)
from prequential.methods.method import Method, Work


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
        if reached > start:
            raise PreqError(
                f"enter() of the method '{self.method.name}' gave the events from {reached} on, asked for {start}; "
                "begin at that event or before"
            )
        if self.heldout:
            events = chain(events, self.method.closing(self.length, self.seed))
        return known(islice(events, start - reached, None), start)

    @property
    def num_inputs(self) -> int:
        """Inputs that the events may look at: those of the labels, and more where a method is given all inputs."""
        return max(self.length, getattr(self.method, "num_inputs", 0))

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
        return count(islice(self.events(), num_events))

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
                    if isinstance(event, TrainBeside):
                        require_inputs(event.beside, self.num_inputs, where)
                case OwnEvent() if len(event.learns_from):
                    require_revealed(event.learns_from, frontier, where)
                case Study(indices) | EndStudy(indices):
                    require_inputs(indices, self.num_inputs, where)
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


def require_inputs(indices: Indices, num_inputs: int, where: str) -> None:
    """Refuse to look at inputs that are not there, or at none."""
    if not len(indices):
        raise PreqError(f"{where} has no inputs; leave the event out")
    if indices.min() < 0 or indices.max() >= num_inputs:
        bad = indices[(indices < 0) | (indices >= num_inputs)][0]
        raise PreqError(f"{where} looks at input {bad}, but there are only [0, {num_inputs})")


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
