"""Laws of spaces: what is drawn lies where it should, depends on nothing else, and can be told to Optuna and back."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import FixedTrial

from prequential.errors import PreqError
from prequential.learn.recipe import Recipe
from prequential.methods import METHODS, ChunksFineTuned, Exponential, ReplayBuffer, ReplayStreams
from prequential.presets import find_preset
from prequential.sweeps import SPACES, Between, Choice, LogUniform
from prequential.sweeps.pruning import Rule, is_hopeless
from prequential.sweeps.sampling import Distribution, draw_settings, drawn, run_seed
from prequential.sweeps.spaces import Resolved, find_space, on_grid, require_space, resolve
from prequential.sweeps.trials import Trial, stacks

shares = st.floats(0, 1, exclude_max=True)
BASE = Resolved(ReplayStreams(), Recipe(), 1.0, 0)


@st.composite
def intervals(draw: st.DrawFn) -> Between | LogUniform:
    kinds: list[type[Between] | type[LogUniform]] = [Between, LogUniform]
    kind = draw(st.sampled_from(kinds))
    if draw(st.booleans()):
        first, last = sorted(draw(st.lists(st.integers(1, 500), min_size=2, max_size=2, unique=True)))
        return kind(first, last, whole=True)
    low, ratio = draw(st.floats(1e-6, 1e3)), draw(st.floats(1.001, 1e6))
    return kind(low, low * ratio)


choices = st.lists(st.one_of(st.integers(), st.text(max_size=3)), min_size=1, max_size=5, unique_by=str).map(
    lambda values: Choice(tuple(values))
)
objects = st.just(Choice((("flip",), ("flip", "shift:2"), ())))
distributions = st.one_of(intervals(), choices, objects)


@given(intervals(), shares, shares)
def test_a_draw_lies_between_the_bounds_and_grows_with_the_share(
    each: Between | LogUniform, u: float, v: float
) -> None:
    low, high = sorted((u, v))
    assert each.low <= each.draw(low) <= each.draw(high) <= each.high
    assert isinstance(each.draw(u), int) == each.whole
    assert each.draw(0.0) == each.low
    if each.whole:
        assert each.draw(math.nextafter(1, 0)) == each.high


@given(st.floats(1e-6, 1.0), st.floats(2.0, 1e6), shares)
def test_log_uniform_gives_each_order_of_magnitude_alike(low: float, ratio: float, u: float) -> None:
    value = LogUniform(low, low * ratio).draw(u)
    assert math.log(value / low) / math.log(ratio) == pytest.approx(u, abs=1e-9)


@given(st.integers(1, 20), st.integers(1, 20))
def test_whole_numbers_have_the_probabilities_they_should(low: int, more: int) -> None:
    high, grid = low + more, (np.arange(4000) + 0.5) / 4000
    for each, edge in ((Between(low, high, whole=True), float), (LogUniform(low, high, whole=True), math.log)):
        begin = edge(low - 0.5)
        counts = np.bincount([int(each.draw(u)) for u in grid], minlength=high + 1)[low:]
        wanted = [(edge(n + 0.5) - edge(n - 0.5)) / (edge(high + 0.5) - begin) for n in range(low, high + 1)]
        assert np.abs(counts / 4000 - wanted).max() < 1e-3


@given(distributions, shares)
def test_optuna_can_hold_every_draw_and_give_it_back(each: Distribution, u: float) -> None:
    value = each.draw(u)
    trial: Any = FixedTrial({"x": each.label(value)})
    assert each.suggest(trial, "x") == value


@given(
    st.dictionaries(st.sampled_from("abcdef"), distributions, min_size=1), st.integers(0, 2**40), st.integers(0, 999)
)
def test_a_setting_depends_on_seed_number_and_name_alone(space: dict[str, Any], seed: int, number: int) -> None:
    settings = draw_settings(space, seed, number)
    assert settings == draw_settings(space, seed, number)
    for name, each in space.items():
        assert draw_settings({"other": Between(0, 1), name: each}, seed, number)[name] == settings[name]


def test_trials_seeds_and_names_draw_differently() -> None:
    space = {"a": Between(0, 1), "b": Between(0, 1)}
    drawn_values = [value for seed in (0, 1) for n in range(50) for value in draw_settings(space, seed, n).values()]
    assert len(set(drawn_values)) == 200
    assert abs(float(np.mean(drawn_values)) - 0.5) < 0.1
    assert len({run_seed(seed, n) for seed in (0, 1) for n in range(50)}) == 100


@given(st.sampled_from(sorted(SPACES)), st.sampled_from(sorted(METHODS.keys() - {"online"})), st.integers(0, 10_000))
def test_every_space_of_the_paper_fits_every_method_that_trains(name: str, method: str, number: int) -> None:
    space, base = SPACES[name], replace(BASE, method=METHODS[method]())
    require_space(space, base.method)
    settings = draw_settings(space, 0, number)
    trial = resolve(settings, base)
    passes = {
        getattr(trial.method, own) for own in ("num_streams", "num_replays", "epochs") if hasattr(trial.method, own)
    }
    assert passes == {settings["num_streams"]}
    assert getattr(trial.method, "batch_size") == settings["batch_size"]  # noqa: B009  # a protocol has no settings
    assert (trial.recipe.learning_rate, trial.recipe.eps) == (settings["learning_rate"], settings["eps"])
    assert not trial.recipe.ema_warmup
    assert trial.recipe.batch_statistics == ("raw" if name.startswith("cifar") else "averaged-twice")


def test_the_spaces_are_the_papers() -> None:
    many, ema, decay = LogUniform(25, 100, whole=True), LogUniform(1e-3, 1e-1), LogUniform(1e-4, 1.0)
    rate, eps, slow = LogUniform(1e-4, 3e-3), LogUniform(1e-4, 1.0), LogUniform(1e-3, 1e-2)
    batches, wide = Choice((32, 64, 128)), LogUniform(10, 100, whole=True)
    columns = ("num_streams", "learning_rate", "eps", "ema_step_size", "weight_decay", "batch_size", "label_smoothing")
    table: dict[str, tuple[Any, ...]] = {
        "mnist": (many, rate, eps, ema, decay, 32, 0.001),
        "cifar": (many, rate, eps, ema, LogUniform(1e-4, 1e-1), batches, 0.01),
        "imagenet": (many, rate, eps, slow, decay, 512, 0.01),
        "cloc": (LogUniform(10, 25, whole=True), rate, 1e-8, slow, 1e-4, 128, 0.1),
        "mnist-pareto": (wide, rate, eps, ema, decay, 32, 0.001),
        "cifar-pareto": (wide, rate, eps, ema, LogUniform(1e-4, 1e-1), batches, 0.01),
        "imagenet-pareto": (wide, rate, eps, slow, decay, 512, 0.01),
    }
    assert set(table) == set(SPACES)
    for name, values in table.items():
        assert tuple(SPACES[name][column] for column in columns) == values, name
    assert {name: space["width"] for name, space in SPACES.items() if "width" in space} == {
        name: LogUniform(0.25, 4.0) for name in ("mnist-pareto", "cifar-pareto", "imagenet-pareto")
    }
    assert [SPACES[n]["augment"] for n in ("mnist", "cifar", "imagenet", "cloc")] == [
        find_preset("paper", data).recipe.augment for data in ("mnist", "cifar10", "imagenet", "cloc")
    ]
    assert SPACES["mnist"]["full_rate_steps"] == 0


@pytest.mark.parametrize(
    ("space", "complaint"),
    [
        ({"num_stream": Between(1, 2)}, "names 'num_stream', which mi-rs does not have; known: optimizer"),
        ({"capacity": Between(1, 2)}, "names 'capacity', which mi-rs does not have; it belongs to mi-rb"),
        ({"num_streams": 3, "epochs": Between(1, 2)}, "num_streams and epochs, which are one setting of mi-rs"),
        ({"eps": 1.0}, "draws nothing"),
        ({"eps": Between}, "gives eps the class Between; make an instance"),
        ({"eps": Exponential(3.0)}, "gives eps an age law; a distribution is one of Between, LogUniform, Choice"),
        ([("eps", Between(0, 1))], "must be a dictionary of settings and distributions, got list"),
    ],
)
def test_a_space_that_cannot_be_is_refused(space: Any, complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        require_space(space, ReplayStreams())


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Between(2, 1), "low must be below high, got 2 and 1"),
        (lambda: LogUniform(0, 1), "low must be a number above 0, got 0"),
        (lambda: Between(0.5, 2, whole=True), "low must be a whole number"),
        (lambda: Between(0, math.inf), "high must be a number"),
        (lambda: Choice(()), "at least one value"),
        (lambda: Choice("ab"), "at least one value"),  # type: ignore[arg-type]
        (lambda: Choice((1, 1)), "values that differ, got"),
    ],
)
def test_a_distribution_that_cannot_be_is_refused(make: Any, complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        make()


def test_spaces_are_found_by_name_or_in_a_file(tmp_path: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from prequential import Between\nspace = {'eps': Between(0.1, 1)}\nbroken = 1 / 1\n")
    assert find_space(f"{file}:space") == {"eps": Between(0.1, 1)}
    old = tmp_path / "old.py"
    old.write_text("from prequential.sweep import Uniform\nspace = {'eps': Uniform(0.1, 1)}\n")
    with pytest.warns(DeprecationWarning, match="Uniform of prequential.sweep is Between of prequential.sweeps now"):
        assert find_space(f"{old}:space") == {"eps": Between(0.1, 1)}
    with pytest.raises(PreqError, match="unknown space 'minst'; did you mean 'mnist'"):
        find_space("minst")
    with pytest.raises(PreqError, match="has no 'spice'"):
        find_space(f"{file}:spice")
    with pytest.raises(PreqError, match=r"cannot import 'nowhere.py' for the space .*FileNotFoundError"):
        find_space("nowhere.py:space")


@given(intervals(), st.integers(2, 6))
def test_a_grid_lies_inside_and_has_both_ends(each: Between | LogUniform, size: int) -> None:
    values = each.grid(size).values
    assert list(values) == sorted(set(values))
    assert (values[0], values[-1]) == (each.low, pytest.approx(each.high))
    assert len(values) <= size


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 99))
def test_stacks_share_what_they_must_and_hold_every_trial_once(number: int, size: int, seed: int) -> None:
    space = on_grid(SPACES["imagenet-pareto"], ReplayBuffer(), 2)
    assert set(drawn(space)) == set(drawn(SPACES["imagenet-pareto"]))
    base = replace(BASE, method=ReplayBuffer())
    groups = stacks([Trial(n, draw_settings(space, seed, n), n) for n in range(number)], base, size)
    assert sorted(claimed.number for group in groups for claimed in group) == list(range(number))
    for group in groups:
        trials = [resolve(claimed.settings, base) for claimed in group]
        assert 1 <= len(group) <= size
        assert len({(trial.method, trial.width) for trial in trials}) == 1
    smaller = [group for group in groups if len(group) < size]
    assert len(smaller) <= 4  # one for each plan and width at most


@given(st.lists(st.floats(0, 10), min_size=2, max_size=9), st.data())
def test_pruning_by_regret_never_stops_a_trial_that_could_win(best: list[float], data: st.DataObject) -> None:
    curve = np.cumsum(best)
    position = data.draw(st.integers(1, len(best)))
    nats = data.draw(st.floats(0, 100))
    assert is_hopeless(nats, position, curve, factor=0) == (nats > curve[position - 1])
    if is_hopeless(nats, position, curve):
        assert nats >= curve[-1] * (1 - 1e-12)
        assert is_hopeless(nats, position, curve, factor=0.5)
    else:
        assert nats <= curve[-1] * (1 + 1e-12)


def test_ways_to_prune_are_read_and_refused() -> None:
    assert Rule.parse("regret").pruner() is None
    for text in ("median", "percentile:25", "hyperband", "successive-halving"):
        assert type(Rule.parse(text).pruner()).__name__.lower().startswith(text.partition(":")[0].replace("-", ""))
    for text, complaint in [
        ("regrets", "unknown way to prune 'regrets'; did you mean 'regret'"),
        ("percentile", "prune by 'percentile:25', got 'percentile'"),
        ("median:3", "prune by 'median', got 'median:3'"),
        ("regret:x", "a number must follow the colon of 'regret:x'"),
        ("regret:-1", "must be a number at least 0, got -1"),
    ]:
        with pytest.raises(PreqError, match=complaint):
            Rule.parse(text)


def test_settings_reach_method_recipe_width_and_seed() -> None:
    trial = resolve({"epochs": 3, "shrink": 0.5, "width": 2, "seed": 9}, replace(BASE, method=ChunksFineTuned()))
    assert trial == Resolved(ChunksFineTuned(epochs=3, shrink=0.5), Recipe(), 2.0, 9)
