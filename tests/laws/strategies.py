"""Any method with any settings that are allowed."""

from hypothesis import strategies as st

from prequential.methods import (
    ChunksFineTuned,
    ChunksFromScratch,
    Exponential,
    FullDataset,
    Method,
    Pareto,
    ReplayBuffer,
    ReplayStreams,
    Uniform,
)
from prequential.methods.ages import AgeLaw


def age_laws() -> st.SearchStrategy[AgeLaw]:
    scales = st.floats(0.5, 1e5)
    return st.one_of(st.just(Uniform()), scales.map(Exponential), scales.map(Pareto))


@st.composite
def minibatch_methods(draw: st.DrawFn) -> ReplayStreams | ReplayBuffer:
    batch_size = draw(st.sampled_from([1, 2, 3, 4, 8, 12, 16]))
    first_block = draw(st.sampled_from([None, *(u for u in range(1, batch_size + 1) if batch_size % u == 0)]))
    min_steps = draw(st.integers(0, 6)) if first_block not in (None, batch_size) else 0
    early_labels = draw(st.sampled_from([0, 0, 5, 40, 150]))
    replays = draw(st.integers(1, 5))
    calibrate = draw(st.booleans())
    if draw(st.booleans()):
        return ReplayStreams(
            num_streams=replays,
            age_law=draw(age_laws()),
            batch_size=batch_size,
            first_block=first_block,
            min_steps=min_steps,
            early_labels=early_labels,
            calibrate=calibrate,
        )
    capacity = draw(st.sampled_from([None, 1, 7, 40]))
    return ReplayBuffer(
        num_replays=replays,
        capacity=capacity,
        replacement=draw(st.sampled_from(["fifo", "reservoir"])) if capacity else "fifo",
        batch_size=batch_size,
        first_block=first_block,
        min_steps=min_steps,
        early_labels=early_labels,
        calibrate=calibrate,
    )


@st.composite
def chunk_methods(draw: st.DrawFn) -> Method:
    points = draw(st.none() | st.sets(st.integers(1, 300), min_size=1, max_size=5))
    split_points = None if points is None else tuple(sorted(points))
    batch_size, epochs = draw(st.integers(1, 16)), draw(st.integers(1, 3))
    calibrate = draw(st.booleans())
    if draw(st.booleans()):
        return ChunksFromScratch(split_points=split_points, batch_size=batch_size, epochs=epochs, calibrate=calibrate)
    return ChunksFineTuned(
        split_points=split_points,
        batch_size=batch_size,
        epochs=epochs,
        calibrate=calibrate,
        shrink=draw(st.sampled_from([1.0, 0.5])),
        perturb=draw(st.sampled_from([0.0, 0.1])),
    )


def prequential_methods() -> st.SearchStrategy[Method]:
    return st.one_of(minibatch_methods(), chunk_methods())


def methods() -> st.SearchStrategy[Method]:
    erm = st.builds(FullDataset, batch_size=st.integers(1, 16), epochs=st.integers(1, 3))
    return st.one_of(prequential_methods(), erm)


lengths = st.integers(16, 400)
seeds = st.integers(0, 2**32)
