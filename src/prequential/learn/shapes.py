"""Which shapes a plan's work has, and how often: what is worth recording. No torch."""

from collections import Counter
from dataclasses import dataclass
from itertools import islice

from prequential.events import Predict, Train
from prequential.plan import Plan

SURVEYED = 1 << 16
"""Events looked at; later ones are of the same kinds."""
RARE = 4
"""Work of a shape that comes up no more often than this is done eagerly."""
COMMON = 64
"""Spans that come up this often are not filled up to a longer one."""


@dataclass(frozen=True)
class Shapes:
    """A pure function of the plan, so that a run which is resumed does the same as one that is not."""

    batches: frozenset[int]
    """Sizes of training batches that are recorded."""
    spans: dict[int, int]
    """Lengths of predicted spans, and the length each is filled up to."""
    num_train_steps: int
    """Among the events looked at."""

    @staticmethod
    def of(plan: Plan) -> "Shapes":
        """Look at the beginning of a plan.

        Example:
            >>> from prequential.methods import ReplayStreams
            >>> method = ReplayStreams(num_streams=2, batch_size=32, first_block=8)
            >>> shapes = Shapes.of(Plan(method, length=4000))
            >>> shapes.batches, sorted(shapes.spans.items())
            (frozenset({32}), [(8, 8), (24, 32), (32, 32)])
        """
        batches: Counter[int] = Counter()
        spans: Counter[int] = Counter()
        for event in islice(plan.events(), SURVEYED):
            if isinstance(event, Train):
                batches[len(event.indices)] += 1
            elif isinstance(event, Predict) and not event.uniform:
                spans[event.stop - event.start] += 1
        filled = {n: n if times >= COMMON else 1 << (n - 1).bit_length() for n, times in spans.items()}
        times = Counter[int]()
        for length, size in filled.items():
            times[size] += spans[length]
        return Shapes(
            frozenset(size for size, number in batches.items() if number > RARE),
            {length: size for length, size in filled.items() if times[size] > RARE},
            batches.total(),
        )
