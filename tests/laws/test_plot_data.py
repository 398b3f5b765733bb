"""What pictures are drawn from: thinning, windows, reliability and the ages of replay."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prequential as pq
from prequential.methods import Method
from prequential.report.picture import spread
from prequential.report.plots import ages as ages_module
from prequential.report.plots.ages import age_edges, count_ages, expected_ages, trained_at
from prequential.report.plots.calibration import reliability, temperature_line
from prequential.report.plots.lines import find_reference, nats_saved, regret_lines, smoothed_lines, windows
from prequential.report.plots.sequence import ERROR, LOSS
from prequential.report.reduction import columns, kept
from prequential.report.runs import Needs, RunSet
from prequential.report.seeds import SeedGroup

from ..conftest import blobs
from ..records import made_record

SCALES = st.sampled_from(["log", "linear"])
NATS = st.lists(st.floats(0, 9), min_size=1, max_size=400).map(np.array)
METHODS: list[Method] = [
    pq.ReplayStreams(num_streams=3, batch_size=8),
    pq.ReplayStreams(num_streams=5, batch_size=8, first_block=2, min_steps=4, age_law=pq.Pareto(scale=20.0)),
    pq.ReplayBuffer(num_replays=2, batch_size=8),
    pq.ReplayBuffer(num_replays=3, batch_size=4, capacity=21),
    pq.ReplayBuffer(num_replays=3, batch_size=4, capacity=16, replacement="reservoir", first_block=1),
    pq.ChunksFromScratch(epochs=3, batch_size=8),
    pq.ChunksFineTuned(epochs=2, batch_size=8, split_points=(5, 17, 90), calibrate=False),
    pq.ChunksFromScratch(epochs=2, batch_size=1, split_points=(1, 2, 50)),
]


def lines_of(records: list[pq.Record], *, each_seed: bool = False) -> list[SeedGroup]:
    """The records as a picture groups them, the best first."""
    groups = RunSet.find(records, Needs(code=True)).groups(each_seed=each_seed, as_long=True)
    return sorted(groups, key=lambda group: group.codelength)


@given(st.integers(1, 10_000), SCALES, st.integers(1, 50))
def test_columns_divide_the_sequence(length: int, scale: str, most: int) -> None:
    edges = columns(length, scale, most)
    assert (edges[0], edges[-1]) == (0, length)
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= most + 1


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=300).map(np.array), SCALES, st.integers(1, 12))
def test_thinning_keeps_what_a_column_shows(values: np.ndarray, scale: str, most: int) -> None:
    indices = kept(values, scale, most)
    assert (np.diff(indices) > 0).all()
    assert len(indices) <= 4 * most
    edges = columns(len(values), scale, most)
    for low, high in pairwise(edges.tolist()):
        inside = values[indices[(indices >= low) & (indices < high)]]
        piece = values[low:high]
        assert (inside.min(), inside.max()) == (piece.min(), piece.max())
        assert (inside[0], inside[-1]) == (piece[0], piece[-1])


def test_ten_million_positions_become_few_and_the_kinks_stay() -> None:
    values = np.zeros(2_000_000, np.float32)
    values[[17, 1_234_567]] = (3, -2)
    for scale in ("log", "linear"):
        indices = kept(values, scale)
        assert len(indices) < 3300
        assert {17, 1_234_567} <= set(indices.tolist())


@given(NATS)
def test_growing_windows_add_up_to_the_codelength(nats: np.ndarray) -> None:
    spans = windows(len(nats), "log")
    assert (spans.starts[0], spans.stops[-1]) == (0, len(nats))
    assert (spans.starts[1:] == spans.stops[:-1]).all()
    assert (spans.means(nats) * spans.sizes).sum() == pytest.approx(nats.sum())


@given(NATS, st.integers(1, 60))
def test_rolling_means_are_means_and_add_up(nats: np.ndarray, size: int) -> None:
    spans = windows(len(nats), "linear", size)
    assert set(spans.sizes.tolist()) == {min(size, len(nats))}
    assert (spans.starts[0], spans.stops[-1]) == (0, len(nats))
    for start, stop, mean in zip(spans.starts, spans.stops, spans.means(nats), strict=True):
        assert mean == pytest.approx(nats[start:stop].mean(), abs=1e-9)
    if size % 8 == 0 and len(nats) % size == 0:
        apart = spans.starts % size == 0
        assert (spans.means(nats) * spans.sizes)[apart].sum() == pytest.approx(nats.sum())


def test_windows_grow_on_a_logarithmic_axis_and_roll_where_a_size_is_given() -> None:
    assert windows(1000, "log", None).text == "mean over windows that grow with the position"
    assert windows(1000, "log", 50).text == windows(1000, "linear", 50).text == "rolling mean of 50 labels"
    assert windows(60_000, "linear", None).text == "rolling mean of 1,200 labels"
    assert windows(30, "linear", None).text == "rolling mean of 8 labels"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.3))
def test_names_are_spread_no_further_than_needed(places: list[float], gap: float) -> None:
    found = spread(places, gap, 1.0)
    order = np.argsort(places, kind="stable")
    assert (np.diff(found[order]) >= gap - 1e-9).all()
    if gap * (len(places) - 1) <= 1:
        assert found.min() >= -1e-9
        assert found.max() <= 1 + 1e-9
    if (np.diff(np.sort(places)) >= gap).all():
        assert found == pytest.approx(np.array(places), abs=1e-9)


@given(st.data(), st.integers(1, 200), st.integers(1, 20))
def test_reliability_counts_every_prediction_once(data: st.DataObject, length: int, num_bins: int) -> None:
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    confidence = np.round(draw.random(length), 2).astype(np.float32)
    labels, predicted = draw.integers(0, 3, length), draw.integers(0, 3, length)
    record: Any = SimpleNamespace(confidence=confidence, labels=labels, predicted=predicted)
    found = reliability([record, record], num_bins)
    assert found.counts.sum() == 2 * length
    filled = found.counts > 0
    hits = (found.accuracy[filled] * found.counts[filled]).sum()
    assert hits == pytest.approx(2 * (labels == predicted).sum())
    total = (found.confidence[filled] * found.counts[filled]).sum()
    assert total == pytest.approx(2 * confidence.astype(float).sum(), rel=1e-5)
    assert 0 <= found.error <= 1
    assert found.error >= abs(hits - total) / (2 * length) - 1e-6
    assert np.isnan(found.accuracy[~filled]).all()
    edges = np.arange(num_bins + 1) / num_bins
    inside = (found.confidence[filled] <= edges[1:][filled] + 1e-6) & (found.confidence[filled] >= edges[:-1][filled])
    assert inside.all()


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("length", [33, 96, 257])
def test_the_ages_are_those_of_the_plans_replays(method: Method, length: int) -> None:
    found = count_ages(method, length, seed=5)
    seen: set[int] = set()
    expected: list[int] = []
    for frontier, indices in trained_at(pq.Plan(method, length, 5)):
        for index in indices.tolist():
            if index in seen:
                expected.append(frontier - index)
            seen.add(index)
    assert found.counts.sum() == pq.Plan(method, length, 5).counts().trained_examples - len(seen)
    assert found.counts.tolist() == np.histogram(expected, [*found.edges[:-1], found.edges[-1] - 0.5])[0].tolist()
    assert found.share == 1.0
    assert (found.dots[:, 1] < found.dots[:, 0]).all()
    assert (found.density * np.diff(found.edges)).sum() == pytest.approx(1.0 if expected else 0.0)


@pytest.mark.parametrize(
    "method",
    [
        pq.ReplayStreams(num_streams=600, batch_size=4),
        pq.ReplayStreams(num_streams=600, batch_size=4, age_law=pq.Pareto(scale=30.0)),
        pq.ReplayStreams(num_streams=600, batch_size=4, age_law=pq.Exponential(scale=20.0)),
        pq.ReplayBuffer(num_replays=200, batch_size=4),
        pq.ReplayBuffer(num_replays=200, batch_size=4, capacity=30),
        pq.ReplayBuffer(num_replays=200, batch_size=4, capacity=64, replacement="reservoir"),
    ],
    ids=repr,
)
def test_many_streams_follow_the_law_that_is_drawn(method: Method) -> None:
    length = 131
    edges = age_edges(length)
    law = expected_ages(method, length, edges)
    assert law is not None
    assert law.sum() == pytest.approx(length * method.replays_per_label)  # type: ignore[attr-defined]
    found = sum(count_ages(method, length, seed).counts for seed in range(4)) / 4
    assert np.abs(found - law).max() < 0.02 * law.sum()
    assert np.abs(found - law).sum() < 0.1 * law.sum()


def test_methods_without_a_law_have_no_line() -> None:
    assert expected_ages(pq.ChunksFromScratch(), 100, age_edges(100)) is None


def test_a_long_plan_is_sampled_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    method, length = pq.ReplayStreams(num_streams=3, batch_size=4, age_law=pq.Pareto(scale=50.0)), 1003
    whole = np.concatenate([np.stack([np.full(len(i), t), i], 1) for t, i in trained_at(pq.Plan(method, length, 1))])
    monkeypatch.setattr(ages_module, "MOST_STEPS", 100)
    monkeypatch.setattr(ages_module, "NUM_PIECES", 5)
    monkeypatch.setattr(ages_module, "PIECE_STEPS", 8)
    found = count_ages(method, length, 1)
    assert found.share == pytest.approx(5 * 32 / 1003)
    assert found.counts.sum() == 5 * 32 * 3
    assert set(map(tuple, found.dots.tolist())) <= set(map(tuple, whole.tolist()))
    assert found.dots[:, 0].max() > 980


@pytest.fixture(scope="module")
def records() -> list[pq.Record]:
    method = pq.ReplayStreams(num_streams=2, batch_size=8)
    return [pq.run(model, blobs(96), method, seed=seed, width=0.05) for model in ("mlp1", "mlp2") for seed in (0, 1)]


def test_lines_are_what_the_measures_say(records: list[pq.Record]) -> None:
    settings = lines_of(records, each_seed=True)
    by_name = {setting.name: setting for setting in settings}
    assert len(by_name) == 4
    assert [s.codelength for s in settings] == sorted(r.codelength for r in records if r.codelength is not None)
    reference = find_reference(records[3], settings)
    for setting, line in zip(settings, regret_lines(settings, reference.nats, "log"), strict=True):
        record = next(setting.loaded())
        assert line.y == pytest.approx(pq.regret(record, records[3])[line.x.astype(int) - 1])
        assert line.band is None
        back = regret_lines([by_name[reference.name]], record.nats, "log")[0]
        assert back.y == pytest.approx(-line.y)
    for line, setting in zip(regret_lines(settings, 0.0, "linear"), settings, strict=True):
        assert line.end == pytest.approx(setting.codelength)
    for line, setting in zip(smoothed_lines(settings, LOSS.values, "log", None), settings, strict=True):
        sizes = windows(96, "log").sizes
        assert (line.y * sizes).sum() == pytest.approx(setting.codelength)


def test_seeds_become_a_mean_and_its_standard_error(records: list[pq.Record]) -> None:
    settings = lines_of(records)
    assert [len(setting.runs) for setting in settings] == [2, 2]
    lines = regret_lines(settings, np.zeros(96), "log")
    for setting, line in zip(settings, lines, strict=True):
        one, other = (np.cumsum(record.nats) for record in setting.loaded())
        assert line.y == pytest.approx((one + other) / 2)
        assert line.band == pytest.approx(np.abs(one - other) / 2)
        assert setting.codelength == pytest.approx(line.end)


def test_error_rates_are_the_shares_of_wrong_labels() -> None:
    wrong = [[1, 1, 0, 1, 0, 0, 0, 1, 0, 0], [1, 0, 0, 1, 0, 1, 0, 0, 0, 0]]
    labels = np.array([2, 0, 1, 1, 2, 0, 1, 2, 2, 0])
    seeds = [
        replace(made_record([1.0] * 10, seed=seed, labels=labels.tolist()), predicted=(labels + each) % 3)
        for seed, each in enumerate(np.array(wrong))
    ]
    (setting,) = lines_of(seeds)
    (line,) = smoothed_lines([setting], ERROR.values, "linear", 4)
    rates = np.array([[100 * sum(each[start : start + 4]) / 4 for start in range(7)] for each in wrong])
    assert line.x.tolist() == [start + 2.5 for start in range(7)]
    assert line.y.tolist() == rates.mean(axis=0).tolist() == [62.5, 37.5, 37.5, 37.5, 25.0, 25.0, 12.5]
    assert line.band == pytest.approx(np.abs(rates[0] - rates[1]) / 2)
    (alone,) = smoothed_lines(lines_of(seeds[:1]), ERROR.values, "log", None)
    assert (alone.y * windows(10, "log").sizes).sum() / 100 == pytest.approx(seeds[0].errors)
    assert alone.band is None


def test_what_differs_besides_the_seed_is_another_setting(records: list[pq.Record]) -> None:
    first = records[0]
    for changed in (
        replace(records[1], recipe=first.recipe | {"learning_rate": 1.0}),
        replace(records[1], method=first.method | {"num_streams": 3}),
        replace(records[1], seeds=records[1].seeds | {"plan_seed": 4}),
        replace(records[1], model=first.model | {"width": 2.0}),
    ):
        assert len(lines_of([first, changed])) == 2


def test_a_temperature_lasts_until_the_next_one_and_the_last_to_the_end(records: list[pq.Record]) -> None:
    one, other = lines_of(records)[0].loaded()
    line = temperature_line(lines_of([one, other])[0])
    assert line.x.tolist() == [*(one.temperature_positions + 1), 96]
    both = np.stack([one.temperatures, other.temperatures]).astype(float)
    assert line.y == pytest.approx(np.append(both.mean(axis=0), both.mean(axis=0)[-1]))
    assert line.band is not None
    assert line.band[:-1] == pytest.approx(np.abs(both[0] - both[1]) / 2)


def test_saved_nats_end_at_the_difference(records: list[pq.Record], tmp_path: Path) -> None:
    record = records[0]
    saved = nats_saved(record)
    assert saved[-1] == pytest.approx(record.uncalibrated_nats.astype(float).sum() - record.nats.sum(), abs=1e-4)
    infinite = np.append(record.nats[:4], np.inf)
    both = replace(record, nats=infinite, uncalibrated_nats=infinite.astype(np.float32))
    assert np.isfinite(nats_saved(both)).all()
