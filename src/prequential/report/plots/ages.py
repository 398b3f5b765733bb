"""Which ages a plan replays. No model and no drawing: the plan alone decides.

The age of position i is t − i where t labels are revealed: the newest example has age 1. What is trained on for the
first time is new; every later time is a replay.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.events import Indices, Predict, Train
from prequential.methods import Method
from prequential.methods.minibatch import MiniBatches
from prequential.plan import Plan

MOST_STEPS = 250_000
"""Training steps up to which a plan is read whole."""
NUM_PIECES = 32
"""Pieces of a longer one, equally far apart."""
PIECE_STEPS = 256
TOGETHER = 4096
"""Training steps that are counted at once."""
MOST_LABELS, MOST_AT_ONCE, MOST_EXAMPLES = 1 << 26, 1 << 24, 1 << 30
"""Of plans that are counted: labels, replays of one time step, and examples that epochs train on."""
BINS_PER_DECADE = 8
MOST_DOTS = 6_000

Trained = tuple[int, Indices]
"""How many labels were revealed, and what was trained on then."""


@dataclass(frozen=True)
class Ages:
    """How often ages were replayed, and some of the replays."""

    edges: NDArray[np.int64]
    """Bin i holds the ages from edges[i] to edges[i + 1] − 1."""
    counts: NDArray[Any]
    """Replays in each bin, of those that were read; or as many as a law expects."""
    share: float
    """The part of the sequence over which replays were read; 1 for all of it."""
    dots: NDArray[np.int64]
    """Rows of (labels revealed, position replayed): every so many-th of the replays that were read."""

    @property
    def density(self) -> NDArray[np.float64]:
        """The share of the replays for each single age."""
        return np.asarray(self.counts / np.diff(self.edges) / max(self.counts.sum(), 1))


def age_edges(length: int) -> NDArray[np.int64]:
    """Bins for the ages 1 … length that look equally wide on a logarithmic axis.

    Example:
        >>> age_edges(12).tolist()
        [1, 2, 3, 4, 6, 7, 10, 13]
    """
    num = max(round(BINS_PER_DECADE * np.log10(length)), 1)
    return np.unique(np.rint(np.geomspace(1, length + 1, num + 1)).astype(np.int64))


def count_ages(method: Method, length: int, seed: int) -> Ages:
    """The ages of all replays of a plan; of a sample of them where a plan of mini-batches is long.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> ages = count_ages(ReplayStreams(num_streams=2, batch_size=4), length=64, seed=0)
        >>> int(ages.counts.sum()), ages.share
        (128, 1.0)
    """
    plan = Plan(method, length, seed)
    work, at_once = plan.most_work(), 1
    if isinstance(method, MiniBatches):
        at_once = method.batch_size * method.replays_per_label
    if length > MOST_LABELS or at_once > MOST_AT_ONCE or (at_once == 1 and work and work.trained > MOST_EXAMPLES):
        raise PreqError(f"a plan of {plan.method.name} over {length:,} labels replays more than can be counted here")
    edges = age_edges(length)
    if isinstance(method, MiniBatches):
        num_steps = length * (method.replays_per_label + 1) // method.batch_size
        if num_steps > MOST_STEPS:
            return _count_pieces(method, length, seed, edges)
    return _tally(edges, first_left_out(trained_at(plan), length))


def trained_at(plan: Plan) -> Iterator[Trained]:
    """What each training step of a plan trains on, with the number of labels that are revealed then."""
    frontier = 0
    for event in plan.events():
        if isinstance(event, Predict):
            frontier = event.stop
        elif isinstance(event, Train):
            yield frontier, event.indices


def first_left_out(trained: Iterator[Trained], length: int) -> Iterator[tuple[Indices, Indices]]:
    """The replays: labels revealed and position of each, without the first time of every position."""
    seen = np.zeros(length, bool)
    for revealed, positions in _together(trained):
        new = np.flatnonzero(~seen[positions])
        _, firsts = np.unique(positions[new], return_index=True)
        again = np.ones(len(positions), bool)
        again[new[firsts]] = False
        seen[positions] = True
        yield revealed[again], positions[again]


def _together(trained: Iterator[Trained]) -> Iterator[tuple[Indices, Indices]]:
    while steps := list(islice(trained, TOGETHER)):
        frontiers, batches = zip(*steps, strict=True)
        yield np.repeat(frontiers, [len(batch) for batch in batches]), np.concatenate(batches)


def _tally(edges: NDArray[np.int64], replays: Iterator[tuple[Indices, Indices]], share: float = 1.0) -> Ages:
    """Count all replays, and keep every so many-th as a dot: an odd number, so that examples of a batch take turns."""
    counts = np.zeros(len(edges) - 1, np.int64)
    dots, passed, step = np.empty((0, 2), np.int64), 0, 1
    for revealed, positions in replays:
        bins = np.searchsorted(edges, revealed - positions, side="right") - 1
        counts += np.bincount(bins, minlength=len(counts))
        chosen = np.arange(-passed % step, len(positions), step)
        dots = np.concatenate([dots, np.stack([revealed[chosen], positions[chosen]], axis=1)])
        passed += len(positions)
        while len(dots) > 3 * MOST_DOTS:
            dots, step = dots[::3], 3 * step
    return Ages(edges, counts, share, dots[:: len(dots) // MOST_DOTS | 1])


def _count_pieces(method: MiniBatches, length: int, seed: int, edges: NDArray[np.int64]) -> Ages:
    """Equally long pieces of the sequence, equally far apart, the last one at its end."""
    size = min(PIECE_STEPS * method.batch_size, length)
    starts = np.linspace(0, length - size, NUM_PIECES).astype(np.int64) // method.batch_size * method.batch_size

    def replays() -> Iterator[tuple[Indices, Indices]]:
        for start in starts.tolist():
            replay = method.replay(seed, start)
            for begin, end in method.time_steps(min(start + size, length), start):
                positions = replay(begin, end)
                yield np.full(len(positions), end), positions

    return _tally(edges, replays(), NUM_PIECES * size / length)


def expected_ages(method: Method, length: int, edges: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """How many replays the method's own law puts into each bin, where it has one that says it for every age.

    At each step the law is cut off at the oldest example there is. Streams follow it block by block, so bins inside a
    block of ages are only right in their sum. Extra steps while blocks grow are not counted.
    None for methods without such a law.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> law = expected_ages(ReplayStreams(num_streams=2, batch_size=4), 64, age_edges(64))
        >>> round(float(law.sum()), 6)
        128.0
    """
    ages = np.arange(1, length + 1)
    if not isinstance(method, MiniBatches) or (weights := method.age_weights(ages)) is None:
        return None
    frontiers = method.replay_frontiers(length)
    reads = np.diff(frontiers, prepend=0) * method.replays_per_label / np.cumsum(weights)[frontiers - 1]
    later = np.cumsum(reads[::-1])[::-1]  # for each step, what it and all later ones give to a unit of weight
    expected = weights * later[np.searchsorted(frontiers, ages)]
    return np.add.reduceat(expected, edges[:-1] - 1)
