"""Which shapes a plan's work has, and how often: what is worth recording. No torch."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from prequential.events import Study, Train, TrainBeside
from prequential.methods.all_inputs import given_all_inputs
from prequential.plan import Plan
from prequential.walks import with_reads

SURVEYED = 1 << 16
"""Events looked at; later ones are of the same kinds."""
RARE = 4
"""Work of a shape that comes up no more often than this is done eagerly."""
COMMON = 64
"""Numbers of labels that come up this often are not filled up to a larger one."""


@dataclass(frozen=True)
class Shapes:
    """A pure function of the plan, so that a run which is resumed does the same as one that is not."""

    batches: dict[int, int]
    """Sizes of training batches that are recorded, and how often each comes up among the events looked at."""
    predictions: dict[int, int]
    """Numbers of labels predicted at once (or looked at for a calibration), and the number each is filled up to."""
    beside: dict[tuple[int, int], int] = field(default_factory=dict)
    """Of batches with inputs beside labelled ones, how many of both, and how often that comes up."""
    studied: dict[int, int] = field(default_factory=dict)
    """Sizes of the batches of a study, and how many there are."""

    @property
    def main_batch(self) -> tuple[int, int]:
        """The most common size of a training batch, with what stands beside it, and how often it comes up."""
        together = [(sum(sizes), times) for sizes, times in self.beside.items()]
        return max([*self.batches.items(), *together], key=lambda item: item[1], default=(0, 0))

    @property
    def most_steps(self) -> int:
        """How often the most common of all steps comes up."""
        return max(self.main_batch[1], *self.studied.values(), 0)

    @staticmethod
    def of(plan: Plan) -> "Shapes":
        """Look at the beginning of a plan, without its closing stage: proofs of a run do without that.

        Example:
            >>> from prequential.methods import ReplayStreams
            >>> method = ReplayStreams(num_streams=2, batch_size=32, first_block=8)
            >>> shapes = Shapes.of(Plan(method, length=4000))
            >>> shapes.batches, sorted(shapes.predictions.items())
            ({32: 375}, [(8, 8), (24, 32), (32, 32)])
        """
        batches, predictions = Counter[int](), Counter[int]()
        beside = Counter[tuple[int, int]]()
        studied, begin = _study_of(plan)
        for _, event, read in with_reads(islice(plan.without_heldout().events(begin), SURVEYED)):
            if isinstance(event, TrainBeside):
                beside[len(event.indices), len(event.beside)] += 1
            elif len(read):
                (batches if isinstance(event, Train) else predictions)[len(read)] += 1
        filled = {n: n if times >= COMMON else 1 << (n - 1).bit_length() for n, times in predictions.items()}
        times = Counter(filled[number] for number in predictions.elements())
        return Shapes(
            {size: number for size, number in batches.items() if number > RARE},
            {number: size for number, size in filled.items() if times[size] > RARE},
            {sizes: number for sizes, number in beside.items() if number > RARE},
            {size: number for size, number in studied.items() if number > RARE},
        )


def _study_of(plan: Plan) -> tuple[dict[int, int], int]:
    """The size of a study's batches and how many there are, and how many events come before the first label: all of
    its steps are alike, so only the first is looked at."""
    given, first = given_all_inputs(plan.method), next(plan.events(), None)
    if given is None or not isinstance(first, Study):
        return {}, 0
    return {len(first.indices): given.study_steps}, given.study_steps + 1
