"""The page and the names of a sweep's trials, and the chart of what settings cost."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prequential as pq
from prequential.report.columns import columns_of
from prequential.report.names import short_names, varying
from prequential.report.page.cost import MOST_TICKS, Axis, cost_of
from prequential.report.page.facts import mattered, setting_columns
from prequential.report.plots.dots import name_dots
from prequential.report.plots.front import Front, plot_pareto
from prequential.report.runs import RunSet
from prequential.report.sentences import _of_pair
from prequential.runs.record import Record

from ..records import made_record


def trial(folder: Path, number: int, nats: float = 1.0, **given_: object) -> Record:
    """A trial of the sweep in a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "sweep.json").write_text(json.dumps({}))
    recipe = {"learning_rate": 0.1, **given_}
    flops = {"code": 10.0 ** (1 + number % 4), "heldout": 1.0}
    record = made_record([nats, nats], name=f"{number:05d}", recipe=recipe, flops=flops, seed=number)
    record.save(folder / "trials" / f"{number:05d}")
    return pq.load(folder / "trials" / f"{number:05d}")


def test_trials_are_called_by_the_settings_that_tell_them_apart(tmp_path: Path) -> None:
    trials = [trial(tmp_path / "a", n, learning_rate=rate) for n, rate in enumerate([0.1, 0.2, 0.00312345])]
    assert short_names(trials) == ["lr 0.1", "lr 0.2", "lr 0.00312"]
    two = [trial(tmp_path / "b", n, learning_rate=0.1 + n % 2, eps=n / 8) for n in range(3)]
    assert short_names(two) == ["lr 0.1, eps 0", "lr 1.1, eps 0.125", "lr 0.1, eps 0.25"]
    same = [trial(tmp_path / "c", n) for n in range(2)]
    assert short_names(same) == ["seed 0", "seed 1"]
    assert short_names(trials[:1]) == ["00000"]
    assert short_names([*trials[:2], made_record([1.0], name="mine")]) == ["lr 0.1", "lr 0.2", "mine"]


def test_trials_of_two_sweeps_begin_with_the_name_of_theirs(tmp_path: Path) -> None:
    both = [trial(tmp_path / sweep, 0, learning_rate=rate) for sweep, rate in (("a", 0.1), ("b", 0.2))]
    assert short_names(both) == ["a: lr 0.1", "b: lr 0.2"]


def test_seeds_of_one_setting_keep_its_name(tmp_path: Path) -> None:
    trials = [trial(tmp_path / "a", n, learning_rate=0.1 + n // 2) for n in range(4)]
    assert [group.name for group in RunSet.of(trials).groups()] == ["lr 0.1", "lr 1.1"]


def test_settings_that_vary_are_columns_of_the_page_alone(tmp_path: Path) -> None:
    trials = [trial(tmp_path / "a", n, n + 1.0, learning_rate=rate) for n, rate in enumerate([0.1, 0.2, 0.3])]
    comparison = pq.compare(trials)
    assert [column.head for column in setting_columns(comparison)] == ["lr"]
    assert "lr" not in [column.head for column in columns_of(comparison)]
    assert setting_columns(pq.compare([*trials, made_record([1.0, 1.0], name="mine")])) == []
    assert list(varying(trials)) == ["learning_rate", "seed"]
    page = pq.write_report(tmp_path / "a", tmp_path / "page.html").read_text()
    row, *_ = re.findall(r"<tr><th[^>]*>lr 0.2</th>.*?</tr>", page)
    assert '<td data-value="0.2">0.2</td>' in row
    assert "00001</th>" not in page


def test_which_settings_mattered_is_told_where_there_are_enough_trials(tmp_path: Path) -> None:
    few = [trial(tmp_path / "few", n, 2.0 + n, learning_rate=n / 8) for n in range(4)]
    assert mattered(pq.compare(few)) == ("Which settings mattered is told from 16 trials on; 4 ran to their end.", [])
    many = [trial(tmp_path / "many", n, 2.0 + n, learning_rate=n / 8, eps=(7 * n % 5) / 8) for n in range(20)]
    told = mattered(pq.compare(many))
    assert told is not None
    assert next((name, share) for name, _, share in told[1]) == ("lr", "100%")
    assert {name: share for name, _, share in told[1]}["eps"] in ("0%", "1%", "2%")
    assert mattered(pq.compare([made_record([1.0]), *few[:0]])) is None
    page = pq.write_report(tmp_path / "many", tmp_path / "page.html").read_text()
    assert "Which settings mattered" in page
    assert "with the price of choosing" in page
    assert "Choosing the best of 20 begun trials afterwards costs ln 20 = 3.00 nats more." in page


@given(st.floats(1e-3, 1e15), st.floats(1.001, 1e9), st.booleans())
def test_ticks_are_few_round_and_inside(low: float, factor: float, is_log: bool) -> None:
    axis = Axis.of([low, low * factor], is_log=is_log)
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= MOST_TICKS + 1
    assert all(axis.low <= tick <= axis.high * (1 + 1e-9) for tick in ticks)
    assert all(-1e-9 <= axis.share(tick) <= 1 + 1e-9 for tick in ticks)
    assert ticks == sorted(ticks)


def test_the_chart_of_the_cost_is_of_those_that_have_one(tmp_path: Path) -> None:
    trials = [trial(tmp_path / "a", n, 9.0 - n, learning_rate=0.1 * (n + 1)) for n in range(3)]
    drawn = cost_of(pq.compare(trials))
    assert drawn is not None
    assert [name for name, *_ in drawn["front"]] == ["lr 0.1", "lr 0.2", "lr 0.3"]  # type: ignore[attr-defined]
    assert cost_of(pq.compare(trials[:1])) is None
    free = made_record([1.0, 1.0], name="free", flops=None)
    assert cost_of(pq.compare([free, trials[0]])) is None


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (-0.001, "; 0 % of its advantage was earned in the first 10 % of the data."),
        (0.42, "; 42 % of its advantage was earned in the first 10 % of the data."),
        (2.13, "; it was further ahead after the first 10 % of the data, and lost some of that later."),
        (-0.3, "; it was behind after the first 10 % of the data."),
    ],
)
def test_an_advantage_is_told_in_words_that_make_sense(share: float, said: str) -> None:
    length = 20
    early = 40 * share
    one = [1.0] * length
    other = [1.0 + early / 2] * 2 + [1.0 + (40 - early) / 18] * 18
    best, second = pq.compare([made_record(one, name="one"), made_record(other, name="other")]).entries
    assert _of_pair(best, second).endswith(said)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=12))
@settings(max_examples=10, deadline=None)
def test_names_of_dots_cover_neither_each_other_nor_a_dot(points: list[tuple[int, int]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes, places = figure.add_subplot(), np.array(points, float)
    axes.scatter(*places.T)
    axes.set(xlim=(-2, 42), ylim=(-2, 42))
    name_dots(figure, axes, places, {number: f"streams {number}, lr 0.000567" for number in range(len(points))})
    names = [text for text in axes.texts if text.get_text()]
    assert len(names) == len(points)
    boxes = [name.get_window_extent() for name in names]
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
    assert not any(box.contains(*dot) for box in boxes for dot in axes.transData.transform(places))


def test_the_picture_of_a_sweep_names_its_dots(tmp_path: Path) -> None:
    trials = [trial(tmp_path / "a", n, 5 + 1e-3 * n, learning_rate=0.1 * (n + 1)) for n in range(12)]
    front = Front.find([each.path for each in trials if each.path is not None])
    drawn = plot_pareto(front, tmp_path / "front.svg").read_text()
    assert all(f"<!-- {group.name} -->" in drawn for group in front.groups)
