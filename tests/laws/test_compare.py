"""Laws of comparisons: posteriors, orders, leads, groups, odds, and the paired test."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import prequential as pq
from prequential import Record
from prequential.measure.chance import paired_test, two_sided
from prequential.report.entries import lead, mean_nats
from prequential.report.names import group_names, shared_part
from prequential.report.runs import RunSet
from prequential.report.seeds import setting_of
from prequential.report.text import odds, probability

from ..records import made_record

QUARTERS = st.integers(0, 12).map(lambda value: value / 4)  # their sums are exact


@st.composite
def many_runs(draw: st.DrawFn) -> list[Record]:
    """Runs of a few settings with a few seeds each; some diverge."""
    length = draw(st.integers(1, 25))
    runs = []
    for number in range(draw(st.integers(1, 4))):
        for seed in draw(st.sets(st.integers(0, 3), min_size=1)):
            scale = draw(st.sampled_from([1.0, 1000.0]))
            nats = (draw(arrays(np.float64, length, elements=QUARTERS)) * scale).tolist()
            if draw(st.integers(0, 7)) == 0:
                nats = [*nats[: draw(st.integers(0, length - 1))], math.inf]
            name, recipe = f"net{number}/{seed}", {"learning_rate": float(number)}
            runs.append(made_record(nats, name=name, seed=seed, length=length, recipe=recipe))
    return runs


@given(many_runs())
def test_posteriors_sum_to_one_and_fit_the_odds(runs: list[Record]) -> None:
    entries = pq.compare(runs).entries
    for entry in entries:
        assert entry.nats == pytest.approx(np.mean([record.nats.sum() for record in entry.records]))
    if math.isinf(entries[0].nats):  # none made the labels possible: there are no odds between them
        assert all(math.isnan(entry.log_odds) and math.isnan(entry.log_posterior) for entry in entries)
        return
    assert math.isclose(sum(math.exp(entry.log_posterior) for entry in entries), 1.0)
    for entry in entries:
        assert entry.log_odds == entry.difference >= 0
        if math.isfinite(entry.nats):
            assert entry.difference == entry.nats - entries[0].nats
            assert entries[0].log_posterior - entry.log_posterior == pytest.approx(entry.log_odds)
    assert [entry.nats for entry in entries] == sorted(entry.nats for entry in entries)


@given(many_runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_runs_does_not_matter(runs: list[Record], chance: random.Random) -> None:
    shuffled = chance.sample(runs, len(runs))
    one, other = pq.compare(runs), pq.compare(shuffled)
    assert repr(one.values()) == repr(other.values())  # nan is like nothing, not even itself
    assert (one.heads(), one.rows(), one.sentences()) == (other.heads(), other.rows(), other.sentences())


@given(many_runs())
def test_groups_are_the_settings_and_nothing_is_lost(runs: list[Record]) -> None:
    entries = pq.compare(runs).entries
    assert sorted(str(run.path) for entry in entries for run in entry.records) == sorted(str(run.path) for run in runs)
    for entry in entries:
        assert len(entry.runs) == len(entry.records)
        assert len({setting_of(record) for record in entry.records}) == 1
        assert entry.seeds == sorted(set(entry.seeds))
    for one, other in itertools.combinations(entries, 2):
        assert setting_of(one.records[0]) != setting_of(other.records[0])


@settings(max_examples=40)
@given(many_runs())
def test_odds_and_tests_are_antisymmetric(runs: list[Record]) -> None:
    for one, other in itertools.combinations(pq.compare(runs).entries, 2):
        there, back = (pq.compare([*first.records, *second.records]) for first, second in [(one, other), (other, one)])
        assert [entry.log_odds for entry in there.entries] == [entry.log_odds for entry in back.entries]
        test, reverse = there.test(one, other), there.test(other, one)
        assert (test is None) == (reverse is None)
        if test is not None and reverse is not None:
            assert (test.mean, test.p_value) == (-reverse.mean, reverse.p_value)


@given(arrays(np.float64, st.tuples(st.just(2), st.integers(1, 30)), elements=QUARTERS), st.integers(0, 30))
def test_a_lead_is_what_looking_at_every_position_finds(nats: np.ndarray[Any, Any], infinite_from: int) -> None:
    best, other = nats
    other[infinite_from:] = np.inf
    ahead = [other[: position + 1].sum() > best[: position + 1].sum() for position in range(len(best))]
    for_good = [position for position in range(len(best)) if all(ahead[position:])]
    found, share = lead(best, other)
    assert found == (for_good[0] if for_good else None)
    total = other.sum() - best.sum()
    assert (share is None) == (found is None or math.isinf(total))
    if share is not None:
        first = math.ceil(len(best) / 10)
        assert share * total == pytest.approx(other[:first].sum() - best[:first].sum())


def test_a_lead_of_means_is_that_of_the_mean_curves() -> None:
    runs = [
        made_record([1, 1, 4], name="x0", seed=0), made_record([3, 1, 0], name="x1", seed=1),
        made_record([1, 2, 9], name="y0", seed=0, recipe={"learning_rate": 1.0}),
    ]  # fmt: skip
    best, other = pq.compare(runs).entries
    assert (best.name, best.nats, best.leads_from, other.leads_from) == ("x", 5.0, 2, 2)
    assert best.early_share == other.early_share == -1 / 7


def test_mean_curves_are_infinite_once_a_run_has_diverged() -> None:
    runs = [made_record([1, 1, 4], seed=0), made_record([3, math.inf], seed=1, length=3)]
    assert mean_nats(runs, 3).tolist() == [2.0, math.inf, math.inf]


@given(st.floats(-30, 30), st.integers(1, 12))
def test_the_tail_of_student_agrees_with_adding_up_its_density(t: float, degrees: int) -> None:
    angles = np.linspace(0, math.pi / 2, 20_001)
    density = np.cos(angles) ** (degrees - 1)
    middle = np.trapezoid(np.where(angles <= math.atan(abs(t) / math.sqrt(degrees)), density, 0.0), angles)
    assert two_sided(t, degrees) == pytest.approx(1 - middle / np.trapezoid(density, angles), abs=2e-4)


@pytest.mark.parametrize(
    ("t", "degrees", "p"),
    [(1.0, 1, 0.5), (12.7062, 1, 0.05), (4.3027, 2, 0.05), (2.7764, 4, 0.05), (1.984, 99, 0.05002)],
)
def test_the_tail_of_student_is_the_one_in_the_tables(t: float, degrees: int, p: float) -> None:
    assert two_sided(t, degrees) == pytest.approx(p, rel=2e-4)
    assert two_sided(1e6, 1) == pytest.approx(2e-6 / math.pi, rel=1e-9)  # far out a Cauchy's is 2 / (π t)


@settings(max_examples=50)
@given(st.lists(st.tuples(QUARTERS, QUARTERS), max_size=6), st.floats(0.5, 4), st.integers(-8, 8))
def test_the_paired_test_knows_no_units_and_no_common_part(
    pairs: list[tuple[float, float]], scale: float, shift: int
) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    test = paired_test(first, second)
    assert (test is None) == (len(pairs) < 2)
    if test is None:
        return
    assume(test.standard_error)
    other = paired_test([scale * value + shift for value in first], [scale * value + shift for value in second])
    assert other is not None
    assert other.p_value == pytest.approx(test.p_value, rel=1e-6)
    assert 0 <= test.p_value <= 1


def test_where_a_paired_test_ends() -> None:
    same, apart = paired_test([1, 2, 3], [1, 2, 3]), paired_test([1, 2, 3], [2, 3, 4])
    assert same is not None
    assert apart is not None
    assert (same.p_value, apart.p_value, apart.mean) == (1.0, 0.0, 1.0)
    assert paired_test([1, math.inf], [1, 2]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": {"learning_rate": 0.2}},
        {"method": {"name": "mi-rs", "batch_size": 2}},
        {"model": {"name": "net", "width": 2.0, "num_parameters": 3, "fingerprint": "f"}},
        {"seeds": {"seed": 1, "order_seed": 0, "plan_seed": 1}},
        {"data": {"name": "made", "inputs": "red", "labels": "l", "heldout": None}},
        {"conditioned_on": "all inputs"},
        {"environment": {"engine": "graph", "precision": "bf16"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_another_setting(change: dict[str, Any]) -> None:
    one = made_record([1.0], seed=0, name="x0")
    same = RunSet.of([one, made_record([2.0], seed=1, name="x1")]).groups()
    assert [group.runs for group in same] == [["x0", "x1"]]
    apart = RunSet.of([one, made_record([2.0], name="x1", **{"seed": 1} | change)]).groups()
    assert [group.runs for group in apart] == [["x0"], ["x1"]]


def test_the_same_seed_twice_is_no_repeated_seed() -> None:
    runs = [made_record([float(n)], name=f"x{n}", seed=seed) for n, seed in enumerate([0, 1, 1])]
    comparison = pq.compare(runs)
    assert [entry.runs for entry in comparison.entries] == [["x0"], ["x1"], ["x2"]]
    assert comparison.sentences()[-1].endswith("are not taken as repeated seeds: x0, x1, x2.")  # names as they are


def test_names_of_groups() -> None:
    def names(*paths: str) -> list[str]:
        runs = RunSet.of([made_record([1.0], name=path, seed=seed) for seed, path in enumerate(paths)]).runs
        return group_names([runs[:2], runs[2:]])

    assert names("mlp1-0", "mlp1-1", "mlp2-0", "mlp2-1") == ["mlp1", "mlp2"]
    assert names("a/mlp1", "b/mlp1", "a/mlp2", "b/mlp2") == ["mlp1", "mlp2"]
    assert names("lenet-seed10", "lenet-seed11", "x", "y") == ["lenet", "net"]
    assert names("0001", "0002", "0003", "0004") == ["0001 +1", "0003 +1"]
    assert names("0001", "0002", "0003") == ["net", "0003"]
    assert names("net-0", "net-1", "net") == ["net mi-rs", "net"]
    assert shared_part(["seed_0", "seed_1"]) == ""


@given(st.floats(0, 1e6) | st.just(math.inf))
def test_odds_and_probabilities_are_never_rounded_to_nothing(nats: float) -> None:
    assert len(odds(nats)) <= 15
    assert odds(nats).endswith(" : 1")
    assert odds(nats)[0] != "0"
    if math.isfinite(nats):
        assert float(probability(-nats).replace("e^−", "").replace(",", "").strip(">%") or 0) > 0
    assert "inf" not in odds(nats) + probability(-nats)
