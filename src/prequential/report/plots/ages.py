"""Which ages a plan replays. No model and no drawing: the plan alone decides.

The age of position i is t − i where t labels are revealed: the newest example has age 1. What is trained on for the
first time is new; every later time is a replay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.events import Indices, Predict, Train
from prequential.methods import Method, ReplayBuffer, ReplayStreams
from prequential.methods.chunks import Chunks
from prequential.methods.minibatch import MiniBatches
from prequential.plan import Plan

MOST_STEPS = 250_000
"""Training steps up to which a plan is read whole."""
NUM_PIECES = 32
"""Pieces of a longer one, equally far apart."""
PIECE_STEPS = 256
TOGETHER = 1 << 18
"""Examples that are counted at once."""
BINS_PER_DECADE = 8
MOST_DOTS = 6_000

Trained = tuple[int, Indices]
"""How many labels were revealed, and what was trained on then."""


@dataclass(frozen=True)
class Ages:
    """How often ages were replayed, and some of the replays."""

    edges: NDArray[np.int64]
    """Bin i holds the ages from edges[i] to edges[i + 1] − 1."""
    counts: NDArray[np.int64]
    """Replays in each bin, of those that were read."""
    share: float
    """The part of the sequence over which replays were read; 1 for all of it."""
    dots: NDArray[np.int64]
    """Rows of (labels revealed, position replayed): every `dot_step`-th of the replays that were read."""
    dot_step: int

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
        >>> ages = count_ages(ReplayStreams(num_streams=2, batch_size=4), length=64, seed=0)
        >>> int(ages.counts.sum()), ages.share
        (128, 1.0)
    """
    edges = age_edges(length)
    if isinstance(method, Chunks):
        return _count_epochs(method, length, seed, edges)
    if isinstance(method, MiniBatches) and _num_steps(method, length) > MOST_STEPS:
        return _count_pieces(method, length, seed, edges)
    trained = trained_at(Plan(method, length, seed))
    return _tally(edges, first_left_out(trained, length), _dot_step(length * _times_read(method)))


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
    waiting: list[Trained] = []

    def joined() -> tuple[Indices, Indices]:
        revealed = np.repeat([frontier for frontier, _ in waiting], [len(indices) for _, indices in waiting])
        return revealed, np.concatenate([indices for _, indices in waiting])

    num_waiting = 0
    for frontier, indices in trained:
        waiting.append((frontier, indices))
        num_waiting += len(indices)
        if num_waiting >= TOGETHER:
            yield joined()
            waiting, num_waiting = [], 0
    if waiting:
        yield joined()


def _tally(edges: NDArray[np.int64], replays: Iterator[tuple[Indices, Indices]], step: int, share: float = 1.0) -> Ages:
    counts = np.zeros(len(edges) - 1, np.int64)
    dots, passed = [], 0
    for revealed, positions in replays:
        counts += _in_bins(edges, revealed - positions)
        chosen = np.arange(-passed % step, len(positions), step)
        dots.append(np.stack([revealed[chosen], positions[chosen]], axis=1))
        passed += len(positions)
    return Ages(edges, counts, share, np.concatenate([np.empty((0, 2), np.int64), *dots]), step)


def _in_bins(edges: NDArray[np.int64], ages: Indices) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(edges, ages, side="right") - 1, minlength=len(edges) - 1)


def _count_epochs(method: Chunks, length: int, seed: int, edges: NDArray[np.int64]) -> Ages:
    """Every epoch of a stage trains on the same positions: one is read and counted as often as there are epochs."""
    large = max(method.batch_size, min(length, 1 << 12)) if method.batch_size > 1 else 1
    shorter: Any = replace(method, epochs=1, batch_size=large)
    once = Plan(shorter, length, seed)
    every = _tally(edges, _together(trained_at(once)), _dot_step(2 * length))
    again = _tally(edges, first_left_out(trained_at(once), length), 1)
    return replace(every, counts=every.counts * (method.epochs - 1) + again.counts)


def _count_pieces(method: MiniBatches, length: int, seed: int, edges: NDArray[np.int64]) -> Ages:
    """Equally long pieces of the sequence, equally far apart, the last one at its end."""
    size = PIECE_STEPS * method.batch_size
    starts = np.linspace(0, length - size, NUM_PIECES).astype(np.int64) // method.batch_size * method.batch_size

    def replays() -> Iterator[tuple[Indices, Indices]]:
        for start in starts.tolist():
            replay = method.replay(seed, start)
            for begin, end in method.time_steps(min(start + size, length), start):
                positions = replay(begin, end)
                yield np.full(len(positions), end), positions

    total = NUM_PIECES * size * method.replays_per_label
    return _tally(edges, replays(), _dot_step(total), NUM_PIECES * size / length)


def _num_steps(method: MiniBatches, length: int) -> int:
    return length * (method.replays_per_label + 1) // method.batch_size


def _times_read(method: Method) -> int:
    return method.replays_per_label if isinstance(method, MiniBatches) else 1


def _dot_step(number: int) -> int:
    """Every so many-th replay becomes a dot; odd, so that not always the same example of a batch does."""
    return number // MOST_DOTS | 1


def expected_ages(method: Method, length: int, edges: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """How many replays the method's own law puts into each bin: for MI/RS the age law, for MI/RB its buffer.

    At each step the law is cut off at the oldest example there is. Streams follow it block by block, so bins inside a
    block of ages are only right in their sum. Extra steps while blocks grow are not counted.
    None for methods without such a law.

    Example:
        >>> law = expected_ages(ReplayStreams(num_streams=2, batch_size=4), 64, age_edges(64))
        >>> round(float(law.sum()), 6)
        128.0
    """
    ages = np.arange(1, length + 1)
    if isinstance(method, ReplayStreams):
        weights = method.age_law.weights(ages)
        frontiers = np.append(np.arange(method.unit, length, method.unit), length)
    elif isinstance(method, ReplayBuffer):
        weights = np.ones(length)
        if method.capacity is not None and method.replacement == "fifo":
            weights[method.capacity :] = 0
        frontiers = np.array([end for _, end in method.time_steps(length)])
    else:
        return None
    reads = np.diff(frontiers, prepend=0) * method.replays_per_label / np.cumsum(weights)[frontiers - 1]
    later = np.cumsum(reads[::-1])[::-1]  # for each step, what it and all later ones give to a unit of weight
    expected = weights * later[np.searchsorted(frontiers, ages)]
    return np.add.reduceat(expected, edges[:-1] - 1)
