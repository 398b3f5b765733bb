"""Few positions tell a long sequence: ends and kinks are kept, and the error that is stated holds everywhere."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import prequential as pq
from prequential.report.reduction import finite_length, reduced

from ..synthetic import synthetic_record

NATS = st.one_of(st.floats(0, 3), st.floats(0, 1e-9), st.floats(10, 80))
LOST = st.sampled_from([[], [], [], [np.inf]])


@st.composite
def several_runs(draw: st.DrawFn) -> list[np.ndarray]:
    """Runs with jumps, of different lengths, some of them with an infinite end."""
    runs = []
    for _ in range(draw(st.integers(1, 4))):
        levels = draw(st.lists(st.tuples(NATS, st.integers(1, 60)), max_size=6))
        rough = draw(st.lists(NATS, max_size=30))
        parts = [np.full(times, level) for level, times in levels]
        runs.append(np.concatenate([*parts, rough, draw(LOST)]).astype(np.float64))
    return runs


@given(several_runs(), st.integers(16, 80))
def test_no_codelength_is_further_from_its_line_than_is_said(runs: list[np.ndarray], most: int) -> None:
    thinned = reduced(runs, most)
    ends = {finite_length(nats) for nats in runs}
    kept = thinned.kept
    assert (np.diff(kept) > 0).all()
    assert {0} | ends <= set(kept.tolist())
    assert kept[-1] == max(ends)
    assert len(kept) <= most + len(ends)
    for nats, totals in zip(runs, thinned.totals, strict=True):
        end = finite_length(nats)
        truth = np.append(0.0, np.cumsum(nats[:end]))
        assert len(totals) == np.searchsorted(kept, end) + 1
        np.testing.assert_allclose(totals, truth[kept[: len(totals)]], rtol=1e-12, atol=1e-12)
        lines = np.interp(np.arange(end + 1), kept[: len(totals)], totals)
        assert np.abs(lines - truth).max() <= thinned.error + 1e-9 * (1 + truth[-1])


@given(st.lists(st.tuples(st.integers(1, 5000), st.sampled_from([0.1, 0.3, 0.75, 2.0])), min_size=1, max_size=8))
def test_every_kink_is_kept_where_there_is_room(levels: list[tuple[int, float]]) -> None:
    nats = np.concatenate([np.full(times, level) for times, level in levels])
    kinks = 1 + np.flatnonzero(np.diff(nats))
    thinned = reduced([nats, np.full(len(nats), 0.5)], 64)
    assert set(kinks.tolist()) <= set(thinned.kept.tolist())
    assert thinned.error < 1e-6


@settings(max_examples=30)
@given(st.integers(1, 19_998), st.floats(5, 50))
def test_a_jump_of_one_run_among_many_is_kept_on_both_sides(at: int, jump: float) -> None:
    runs = [np.random.default_rng(seed).exponential(0.02, 20_000) for seed in range(3)]
    runs[1][at] += jump
    thinned = reduced(runs, 400)
    assert thinned.error < 2
    assert {at, at + 1} <= set(thinned.kept.tolist()) or jump < 2 * thinned.error
    assert reduced([np.zeros(0)]).kept.tolist() == [0]


def test_regret_against_any_reference_is_exact_where_it_is_kept() -> None:
    runs = [synthetic_record(number, 3000) for number in range(3)]
    thinned = reduced([run.nats for run in runs], 100)
    for one in range(3):
        for other in range(3):
            expected = np.append(0.0, pq.regret(runs[one], runs[other]))[thinned.kept]
            np.testing.assert_allclose(thinned.totals[one] - thinned.totals[other], expected, atol=1e-9)


def test_more_positions_than_labels_keep_all_that_bends() -> None:
    nats = np.random.default_rng(0).exponential(1.0, 500)
    thinned = reduced([nats], 1000)
    assert thinned.kept.tolist() == list(range(501))
    assert thinned.error == 0
