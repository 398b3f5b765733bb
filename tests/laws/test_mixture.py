"""Mixtures are codes: what they may lose against the runs they are made of, and what they refuse."""

import importlib
import itertools
import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import prequential as pq
from prequential import PreqError, Record
from prequential.measure import bootstrap_best
from prequential.measure.mixing import Floats, mix

from ..conftest import blobs

NONE_KEPT = np.array([], np.int64)
CLOSE = {"rel_tol": 1e-9, "abs_tol": 1e-9}


@st.composite
def many_nats(draw: st.DrawFn, max_labels: int = 30, max_runs: int = 5) -> Floats:
    """A row of nats for each run; some are certain, some surprised, some have diverged."""
    shape = draw(st.tuples(st.integers(1, max_runs), st.integers(1, max_labels)))
    nats = draw(arrays(np.float64, shape, elements=st.floats(0, 5) | st.floats(0, 2000)))
    for row in nats:
        if draw(st.integers(0, 5)) == 0:
            start = draw(st.integers(0, shape[1] - 1))
            row[start : draw(st.sampled_from([start + 1, shape[1]]))] = np.inf
    return nats


RATES = st.none() | st.just("1/t") | st.floats(1e-12, 1, exclude_max=True)


def mixed(nats: Floats, switching: float | str | None = None, weights: Floats | None = None) -> tuple[Floats, Floats]:
    weights = np.full(len(nats), 1 / len(nats)) if weights is None else weights
    length = nats.shape[1]
    rates = {None: None, "1/t": 1 / np.arange(1, length + 1)}.get(switching, np.full(length, switching))  # type: ignore[arg-type]
    return mix(list(nats), weights, rates if len(nats) > 1 else None, NONE_KEPT)[:2]


@given(many_nats())
def test_a_mixture_loses_at_most_ln_n_against_the_best(nats: Floats) -> None:
    charged, _ = mixed(nats)
    best = nats.sum(axis=1).min()
    assert charged.sum() <= best * (1 + 1e-12) + math.log(len(nats)) + 1e-9
    totals = -nats.sum(axis=1) - math.log(len(nats))
    assert math.isclose(charged.sum(), -np.logaddexp.reduce(totals), **CLOSE)


@given(many_nats(max_runs=1), RATES)
def test_a_mixture_of_one_is_that_one(nats: Floats, switching: float | str | None) -> None:
    charged, weights = mixed(nats, switching)
    assert np.array_equal(charged, np.where(np.isinf(np.cumsum(nats[0])), np.inf, nats[0]))
    assert weights == 1.0


@given(many_nats(), RATES, st.randoms())
def test_the_order_of_the_runs_is_irrelevant(nats: Floats, switching: float | str | None, random: object) -> None:
    order = np.arange(len(nats))
    random.shuffle(order)  # type: ignore[attr-defined]
    (charged, weights), (other, others) = mixed(nats, switching), mixed(nats[order], switching)
    assert np.allclose(charged, other, rtol=1e-9, atol=1e-9)
    assert np.allclose(weights[order], others, rtol=1e-6, atol=1e-9)


@given(many_nats(), RATES)
def test_its_probability_of_each_label_is_a_mean_of_theirs_and_weights_sum_to_1(
    nats: Floats, switching: float | str | None
) -> None:
    charged, weights = mixed(nats, switching)
    assert math.isclose(weights.sum(), 1.0, **CLOSE)
    assert (weights >= 0).all()
    assert not np.isnan(charged).any()
    alive = np.isfinite(charged)
    assert (charged[alive] >= nats.min(axis=0)[alive] * (1 - 1e-9) - 1e-9).all()
    assert (charged[alive] <= nats.max(axis=0)[alive] * (1 + 1e-9) + 1e-9).all()
    assert not alive[np.isinf(nats).all(axis=0)].any()
    assert not alive[alive.argmin() :].any() or alive.all()  # once infinite, always


@given(many_nats(), RATES, st.data())
def test_the_mixture_of_a_prefix_is_the_prefix_of_the_mixture(
    nats: Floats, switching: float | str | None, data: st.DataObject
) -> None:
    length = data.draw(st.integers(1, nats.shape[1]))
    charged, weights = mixed(nats[:, :length], switching)
    assert np.allclose(charged, mixed(nats, switching)[0][:length], rtol=1e-12, atol=1e-12)
    rates = None if len(nats) == 1 or switching is None else 1 / np.arange(1, nats.shape[1] + 1)
    if rates is not None and switching != "1/t":
        rates[:] = float(switching)  # type: ignore[arg-type]
    kept = mix(list(nats), np.full(len(nats), 1 / len(nats)), rates, np.array([length]))[2]
    assert np.allclose(kept[0], weights, rtol=1e-9, atol=1e-12)


@given(many_nats(max_labels=5, max_runs=3), st.none() | st.just("1/t") | st.floats(1e-3, 0.999), st.data())
def test_it_is_the_sum_over_all_sequences_of_runs(
    nats: Floats, switching: float | str | None, data: st.DataObject
) -> None:
    num_runs, length = nats.shape
    weights = data.draw(arrays(np.float64, num_runs, elements=st.floats(0.1, 1)))
    weights /= weights.sum()
    total = -np.inf
    for sequence in itertools.product(range(num_runs), repeat=length):
        prior = math.log(weights[sequence[0]])
        for t in range(2, length + 1):
            rate = 0.0 if switching is None or num_runs == 1 else 1 / t if switching == "1/t" else float(switching)
            moved = sequence[t - 2] != sequence[t - 1]
            chance = rate / (num_runs - 1) if moved else 1 - rate
            prior += math.log(chance) if chance else -math.inf
        total = np.logaddexp(total, prior - nats[list(sequence), range(length)].sum())
    assert math.isclose(mixed(nats, switching, weights)[0].sum(), -total, **CLOSE)


def best_with_switches(nats: Floats, num_switches: int) -> float:
    """The shortest code that changes runs exactly so many times, by dynamic programming."""
    ends = np.full((num_switches + 1, len(nats)), np.inf)
    ends[0] = nats[:, 0]
    for column in nats.T[1:]:
        others = np.array([[np.delete(row, i).min(initial=np.inf) for i in range(len(nats))] for row in ends[:-1]])
        ends[1:] = np.minimum(ends[1:], others.reshape(num_switches, len(nats)))
        ends += column
    return float(ends[num_switches].min())


@given(many_nats(), st.floats(1e-6, 0.999), st.integers(0, 4))
def test_switching_loses_no_more_than_the_bound_says(nats: Floats, rate: float, num_switches: int) -> None:
    (n, length), k = nats.shape, num_switches
    if n == 1 or k >= length or math.isinf(best := best_with_switches(nats, k)):
        return
    fixed = math.log(n) + k * math.log((n - 1) / rate) - (length - 1 - k) * math.log1p(-rate)
    assert mixed(nats, rate)[0].sum() <= best * (1 + 1e-12) + fixed + 1e-9
    falling = math.log(n) + k * math.log(n - 1) + (k + 1) * math.log(length)
    assert mixed(nats, "1/t")[0].sum() <= best * (1 + 1e-12) + falling + 1e-9


@given(many_nats(), RATES, st.integers(1, 9))
@example(np.array([[1.0, np.inf, 1.0], [2.0, np.inf, 1.0]]), 0.1, 1)
def test_it_does_not_depend_on_how_many_labels_are_mixed_at_a_time(
    nats: Floats, switching: float | str | None, block_size: int
) -> None:
    charged, weights = mixed(nats, switching)
    with patch.object(importlib.import_module("prequential.measure.mixing"), "BLOCK_SIZE", block_size):
        other, others = mixed(nats, switching)
    assert np.allclose(charged, other, rtol=1e-9, atol=1e-9)
    assert np.allclose(weights, others, rtol=1e-6, atol=1e-9)


def test_switching_wins_where_runs_take_turns() -> None:
    length = 5000
    turns = np.arange(length) // 1000 % 2
    nats = np.where(np.stack([turns, 1 - turns]) == 1, 0.1, 3.0)
    for switching in (1e-3, "1/t"):
        charged, _ = mixed(nats, switching)
        assert charged.sum() < 0.1 * length + 5 * math.log(length)
    assert math.isclose(mixed(nats)[0].sum(), nats.sum(axis=1).min() + math.log(2), rel_tol=1e-12)


RUNS: list[Record] = []


def runs() -> list[Record]:
    if not RUNS:
        method = pq.ReplayStreams(num_streams=2, batch_size=8)
        RUNS.extend(pq.run("mlp1", blobs(96), method, seed=seed, width=0.05) for seed in range(3))
    return RUNS


def test_records_of_runs_are_mixed_by_name() -> None:
    found = pq.mixture(runs(), keep_every=40)
    lengths = [run.codelength for run in runs()]
    assert found.codelength <= min(map(float, filter(None, lengths))) + math.log(3)
    assert np.array_equal(found.nats, mixed(np.stack([run.nats for run in runs()]))[0])
    for switching in (0.01, "1/t"):
        nats = mixed(np.stack([run.nats for run in runs()]), switching)[0]
        assert np.array_equal(pq.mixture(runs(), switching=switching).nats, nats)
    assert found.names == ("the mlp1 run",) * 3
    assert found.kept_after.tolist() == [40, 80]
    assert np.allclose(found.kept_weights.sum(axis=1), 1)
    assert lengths[int(found.weights.argmax())] == min(lengths, key=float)  # type: ignore[arg-type]
    assert "Mixture of 3: " in repr(found)
    assert len(pq.mixture(runs()).kept_weights) == 0
    sharp = pq.mixture(runs(), weights=[0.98, 0.01, 0.01])
    assert np.isclose(math.exp(-sharp.nats[0]), np.dot([0.98, 0.01, 0.01], [math.exp(-r.nats[0]) for r in runs()]))
    assert pq.mixture(runs()[:1], switching=0.1).codelength == runs()[0].codelength


def stopped(run: Record, position: int, *, diverged: bool) -> Record:
    """What a run leaves that ends at a position."""
    nats = run.nats[:position].copy()
    nats[-1] = np.inf if diverged else nats[-1]
    return replace(run, nats=nats, status="diverged" if diverged else "stopped")


@pytest.mark.parametrize("switching", [None, 0.01, "1/t"])
def test_a_run_that_diverged_only_loses_its_weight(switching: float | str | None) -> None:
    good, bad, worse = runs()[0], stopped(runs()[1], 30, diverged=True), stopped(runs()[2], 1, diverged=True)
    found = pq.mixture([good, bad, worse], switching=switching)
    assert len(found.nats) == 96
    assert math.isfinite(found.codelength)
    assert found.weights[0] == 1.0
    all_bad = pq.mixture([bad, worse], switching=switching, keep_every=1)
    assert np.flatnonzero(np.isinf(all_bad.nats)).tolist() == [29]
    assert len(all_bad.nats) == 30
    assert all_bad.weights.tolist() == all_bad.kept_weights[-2].tolist() == all_bad.kept_weights[-1].tolist()


def test_what_cannot_be_mixed_is_refused() -> None:
    one = runs()[0]
    method = pq.ReplayStreams(num_streams=2, batch_size=8)
    other = pq.run("mlp1", blobs(96, seed=1), method, seed=0, width=0.05)
    erm = pq.run("mlp1", blobs(96), pq.FullDataset(epochs=1), seed=0, width=0.05)
    for records, reason in [
        ([], "a mixture needs at least one record, got none"),
        (one, "a mixture is of several records, got one; give a list"),
        (["runs/a"], "a mixture is of records, got str; load a directory with pq.load"),
        ([one, other], "differ in their labels"),
        ([one, stopped(other, 20, diverged=True)], "differ in their labels"),
        ([one, erm], "erm is not prequential"),
        ([one, stopped(one, 20, diverged=False)], "stopped at label 20, the mlp1 run at 96; compare finished runs"),
    ]:
        with pytest.raises(PreqError, match=reason):
            pq.mixture(records)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"switching": 0}, "switching must be a number at least 1e-200 and below 1, got 0"),
        ({"switching": 1.0}, "below 1, got 1.0"),
        ({"switching": "t"}, "switching must be None, a rate between 0 and 1, '1/t' or 'grid', got 't'"),
        ({"weights": [0.5, 0.5]}, r"one number for each of 3 records, got the shape \(2,\)"),
        ({"weights": [0.5, 0.5, 0.0]}, "weights must be positive, got 0.0; leave out"),
        ({"weights": [0.5, 0.5, 0.5]}, "weights must sum to 1, got 1.5; divide"),
        ({"keep_every": 0}, "keep_every must be a whole number of at least 1, got 0"),
    ],
)
def test_mistakes_in_the_settings_are_told(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(PreqError, match=reason):
        pq.mixture(runs(), **arguments)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1, max_size=60), st.floats(0.5, 0.99), st.randoms())
def test_the_interval_of_the_best_is_made_of_trials(lengths: list[float], level: float, random: object) -> None:
    low, high = bootstrap_best(lengths, level=level)
    assert low == min(lengths)  # 63 in 100 samples hold the best
    assert high in lengths
    assert high >= low
    random.shuffle(lengths)  # type: ignore[attr-defined]
    assert bootstrap_best(lengths, level=level) == (low, high)
    wider = bootstrap_best(lengths, level=(1 + level) / 2)
    assert wider[1] >= high


@pytest.mark.parametrize("num_trials", [2, 5, 50, 250])
def test_the_interval_of_the_best_follows_the_exact_law(num_trials: int) -> None:
    """A sample's best is the k-th trial (from 0) or worse with probability (1 − k/n)ⁿ."""
    ranks = np.arange(num_trials)
    tails = (1 - ranks / num_trials) ** num_trials
    low, high = bootstrap_best(ranks, num_samples=20_000)
    assert low == 0
    allowed = ranks[(tails > 0.02) & (np.append(tails[1:], 0) < 0.03)]
    assert high in allowed
    assert bootstrap_best(ranks, num_samples=20, seed=1) == bootstrap_best(ranks, num_samples=20, seed=1)
    assert len({bootstrap_best(np.arange(50), num_samples=9, level=0.5, seed=seed)[1] for seed in range(20)}) > 1


@pytest.mark.parametrize(
    ("lengths", "arguments", "reason"),
    [
        ([], {}, "a list of at least one number"),
        ([1.0, math.nan], {}, "a list of at least one number"),
        ([1.0, None], {}, "a list of at least one number"),
        ([1.0, "many"], {}, "codelengths must be numbers"),
        ([1.0], {"level": 1.0}, "level must be a number above 0 and below 1, got 1.0"),
        ([1.0], {"num_samples": 0}, "num_samples must be a whole number of at least 1, got 0"),
        ([1.0], {"seed": 0.5}, "seed must be a whole number, got 0.5"),
    ],
)
def test_an_interval_needs_numbers(lengths: list[float], arguments: dict[str, float], reason: str) -> None:
    with pytest.raises(PreqError, match=reason):
        bootstrap_best(lengths, **arguments)  # type: ignore[arg-type]
