"""Laws 4 and 8: which ages are replayed how often. One draw per stream and seed: reads in a row depend."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from prequential.methods import Exponential, Pareto, ReplayBuffer, ReplayStreams, Uniform
from prequential.methods.ages import AgeLaw

UNIT, NUM_STREAMS, NUM_SEEDS = 4, 400, 12


def chi_square_z(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """How many standard deviations χ² lies above its mean (Wilson and Hilferty), small cells joined."""
    order = np.argsort(expected)[::-1]
    observed, expected = observed[order], expected[order]
    large = expected >= 8
    o = np.append(observed[large], observed[~large].sum())
    e = np.append(expected[large], expected[~large].sum())
    if e[-1] < 8:
        assert o[-1] < e[-1] + 8 * math.sqrt(e[-1] + 1)
        o, e = o[:-1], e[:-1]
    if len(e) < 2:
        return 0.0
    freedom = len(e) - 1
    statistic = float(((o - e) ** 2 / e).sum())
    return ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def age_blocks(law: AgeLaw, num_blocks: int, first_block: int | None = None) -> NDArray[np.int64]:
    """How often each age block is read when the frontier has passed `num_blocks` units."""
    counts = np.zeros(num_blocks, np.int64)
    for seed in range(NUM_SEEDS):
        method = ReplayStreams(
            num_streams=NUM_STREAMS, batch_size=UNIT * (4 if first_block else 1), age_law=law, first_block=first_block
        )
        read = method.replay(seed)
        reads = np.empty(0, np.int64)
        for start, stop in method.time_steps(num_blocks * UNIT):
            reads = read(start, stop).reshape(NUM_STREAMS, -1)[:, -UNIT:]
        assert np.array_equal(np.diff(reads, axis=1), np.ones((NUM_STREAMS, UNIT - 1)))
        assert (reads[:, 0] % UNIT == 0).all()
        counts += np.bincount(num_blocks - 1 - reads[:, 0] // UNIT, minlength=num_blocks)
    return counts


@pytest.mark.parametrize("num_blocks", [1, 2, 3, 10, 47])
@pytest.mark.parametrize(
    "law", [Uniform(), Exponential(30.0), Exponential(3.0), Pareto(180.0), Pareto(2.0), Pareto(1e9)], ids=str
)
def test_the_block_of_ages_a_stream_reads_follows_the_law(law: AgeLaw, num_blocks: int) -> None:
    weights = law.weights(np.arange(1, num_blocks * UNIT + 1)).reshape(num_blocks, UNIT).sum(1)
    expected = weights / weights.sum() * NUM_STREAMS * NUM_SEEDS
    assert chi_square_z(age_blocks(law, num_blocks), expected) < 4


@pytest.mark.parametrize("law", [Uniform(), Exponential(3.0), Pareto(5.0)], ids=str)
def test_inside_a_block_every_age_is_read_once(law: AgeLaw) -> None:
    method = ReplayStreams(num_streams=7, batch_size=8, age_law=law)
    replay = method.replay(0)
    for stop in range(8, 401, 8):
        ages = stop - replay(stop - 8, stop).reshape(7, 8)
        assert (ages.max(axis=1) % 8 == 0).all()
        assert (ages == ages[:, :1] - np.arange(8)).all()


def test_the_law_holds_in_growing_blocks() -> None:
    expected = np.full(80, NUM_STREAMS * NUM_SEEDS / 80)
    assert chi_square_z(age_blocks(Uniform(), 80, first_block=UNIT), expected) < 4


def test_the_test_would_notice_a_reset_off_by_one() -> None:
    observed = np.bincount(np.arange(4800) % 48, minlength=48)
    expected = np.full(48, 100.0)
    assert chi_square_z(observed, expected) < 4
    assert chi_square_z(observed + 2 * (np.arange(48) - 24), expected) > 4


def test_a_pareto_of_huge_scale_is_uniform_and_exponents_decay() -> None:
    ages = np.arange(1, 1000)
    assert np.allclose(Pareto(1e12).weights(ages), 1)
    assert np.allclose(Exponential(100.0).weights(ages), np.exp(-(ages - 1) / 100))
    ratio = Pareto(180.0).weights(np.array([181])) / Pareto(180.0).weights(np.array([361]))
    assert math.isclose(float(ratio[0]), ((1 + 361 / 180) / (1 + 181 / 180)) ** (math.log(5, 4) + 1))


@pytest.mark.parametrize("num_steps", [1, 5, 30])
def test_uniform_streams_and_an_unbounded_buffer_replay_the_same_ages(num_steps: int) -> None:
    streams, buffer = np.zeros(num_steps, np.int64), np.zeros(num_steps, np.int64)
    for seed in range(NUM_SEEDS):
        read = ReplayStreams(num_streams=NUM_STREAMS, batch_size=UNIT).replay(seed)
        draw = ReplayBuffer(num_replays=NUM_STREAMS, batch_size=UNIT).replay(seed)
        for start in range(0, num_steps * UNIT, UNIT):
            from_stream, from_buffer = read(start, start + UNIT), draw(start, start + UNIT)
        streams += np.bincount(from_stream[::UNIT] // UNIT, minlength=num_steps)
        buffer += np.bincount(from_buffer[::UNIT] // UNIT, minlength=num_steps)
    expected = np.full(num_steps, NUM_STREAMS * NUM_SEEDS / num_steps)
    assert chi_square_z(streams, expected) < 4
    assert chi_square_z(buffer, expected) < 4


def test_a_fifo_buffer_forgets_the_oldest_and_a_reservoir_keeps_a_uniform_sample() -> None:
    fifo = ReplayBuffer(num_replays=200, capacity=40, batch_size=20).replay(0)
    for start in range(0, 400, 20):
        drawn = fifo(start, start + 20)
    assert drawn.min() == 360
    assert drawn.max() == 399
    kept = np.zeros(20, np.int64)
    for seed in range(300):
        reservoir = ReplayBuffer(num_replays=10, capacity=40, replacement="reservoir", batch_size=20).replay(seed)
        for start in range(0, 400, 20):
            drawn = reservoir(start, start + 20)
        kept += np.bincount(drawn[:1] // 20, minlength=20)
    assert chi_square_z(kept, np.full(20, 15.0)) < 4
