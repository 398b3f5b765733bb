"""Ways to walk through events: together where they are alike, or with what each of them reads. No torch."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice

import numpy as np

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
    unknown_event,
)

NOTHING: Indices = np.empty(0, np.int64)


def blocks(events: Iterable[Event], first: int, most: int) -> Iterator[tuple[int, Event, list[Indices]]]:
    """Events with their numbers, from `first`; up to `most` steps of one kind on batches of one size come together.

    For those the event is the first of them, and the list is what each of them reads: with labels or without, and of a
    step with both first the examples with labels.

    Example:
        >>> events = [Predict(0, 2), *[Train(np.arange(2))] * 3, Train(np.arange(3))]
        >>> [(number, type(event).__name__, len(batches)) for number, event, batches in blocks(events, 0, most=2)]
        [(0, 'Predict', 0), (1, 'Train', 2), (3, 'Train', 1), (4, 'Train', 1)]
    """
    for size, group in groupby(enumerate(events, first), lambda each: _size(each[1])):
        while together := list(islice(group, 1 if size is None else most)):
            yield *together[0], [_positions(event) for _, event in together if isinstance(event, Train | Study)]


def _size(event: Event) -> tuple[type, int, int] | None:
    """What steps that come together share; None of events that come alone."""
    if not isinstance(event, Train | Study):
        return None
    return type(event), len(event.indices), len(event.beside) if isinstance(event, TrainBeside) else 0


def _positions(event: Train | Study) -> Indices:
    return np.concatenate([event.indices, event.beside]) if isinstance(event, TrainBeside) else event.indices


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
            case TrainBeside(indices, beside):
                at_hand, read = None, np.concatenate([indices, beside])
            case Train(indices) | Study(indices) | EndStudy(indices):
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
