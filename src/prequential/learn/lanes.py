"""Learners that work at the same time on one GPU, each on a stream of its own."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

Worker = TypeVar("Worker")


def side_by_side(learners: Sequence[Worker]) -> Iterator[Worker]:
    """Each in its turn. What it asks a GPU for while it is its turn, it asks for in a lane of its own, beside what the
    others asked for: the steps of a network that is small, or whose batches are, leave much of a GPU idle.

    Every lane begins when all is done that was asked for before the first turn, and what comes after the last waits for
    all lanes. So memory may pass from one turn to the next, but within a turn a learner must touch nothing that another
    one does. Where one of them has no lane (see `BaseLearner.lane`), all work one after the other.

    Example:
        >>> [*side_by_side(["one", "after the other"])]
        ['one', 'after the other']
    """
    lanes = [getattr(each, "lane", None) for each in learners]
    found = [lane for lane in lanes if lane is not None]
    if len(learners) < 2 or len(found) < len(learners):
        yield from learners
        return
    outside = torch.cuda.current_stream(found[0].device)
    begun = outside.record_event()
    try:
        for each, lane in zip(learners, found, strict=True):
            lane.wait_event(begun)
            with torch.cuda.stream(lane):
                yield each
    finally:
        for lane in found:
            outside.wait_stream(lane)
