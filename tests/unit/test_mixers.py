"""Mixers beside what they are made of: forward calibration, their settings, and what they refuse."""

import json
import math

import numpy as np
import pytest
import torch

import prequential as pq
from prequential import PreqError
from prequential.learn.classes import calibration_gradient, log_probabilities
from prequential.learn.functional import INITIAL_BETA
from prequential.learn.optimizers import make_optimizer
from prequential.mixers import MIXERS, Mixer, PureLogistic, mixer_from_settings
from prequential.settings import settings_of

HALVES = np.log([[0.5, 0.5], [0.25, 0.75]])


def test_of_one_expert_it_is_forward_calibration() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(300, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(5, (300,), generator=generator)
    labels[::2] = logits[::2].argmax(-1)
    recipe = pq.Recipe(learning_rate=0.01)
    beta = torch.tensor(INITIAL_BETA, dtype=torch.float64)
    optimizer = make_optimizer(recipe, [beta], rate_factor=3.0, decay=False)
    mixer = PureLogistic(
        learning_rate=3 * recipe.learning_rate,
        parametrisation="softplus",
        optimizer="adamw",
        momentum=recipe.momentum,
        eps=recipe.eps,
        floor=-1000.0,
    )
    mixing = mixer.begin(1, 5)
    for row, label in zip(logits, labels, strict=True):
        assert abs(mixing.parameters.item() - beta.item()) <= 1e-12
        expected = log_probabilities(row, beta).numpy()
        assert np.abs(mixing.row(torch.log_softmax(row, -1).numpy()[None]) - expected).max() <= 1e-12
        mixing.tell(int(label))
        optimizer.step([calibration_gradient(row[None], label[None], beta)])
    assert abs(beta.item() - INITIAL_BETA) > 0.1, "it has moved"


@pytest.mark.parametrize(
    "mixer",
    [
        pq.Bayes(prior=(0.25, 0.75)),
        pq.Switching(),
        pq.Switching(rate=0.01),
        pq.Switching(rate="grid", prior=(0.5, 0.5)),
        pq.Logistic(),
        pq.Logistic(learning_rate=0.1, by_previous_label=True, floor=-9),
    ],
)
def test_settings_survive_a_file(mixer: Mixer) -> None:
    assert mixer_from_settings(json.loads(json.dumps(settings_of(mixer)))) == mixer
    assert MIXERS[mixer.name] is type(mixer)


@pytest.mark.parametrize("told", ["logistik", {"name": "lenet"}, {}, {"name": 3}])
def test_a_mixer_that_nobody_knows_is_told(told: object) -> None:
    with pytest.raises(PreqError, match=r"unknown mixer .*known: bayes, switching, logistic"):
        mixer_from_settings(told)  # type: ignore[arg-type]
    with pytest.raises(PreqError, match="bayes has no setting rate"):
        mixer_from_settings({"name": "bayes", "rate": 0.1})


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        (pq.Bayes, {"prior": (0.5, 0.6)}, "prior must sum to 1, got 1.1"),
        (pq.Bayes, {"prior": ("a", "b")}, "prior must be one number for each of 2 experts, got ..a., .b..$"),
        (pq.Switching, {"prior": (0.5, (0.25, 0.25))}, "prior must be one number for each of 2 experts"),
        (pq.Switching, {"prior": (1.5, -0.5)}, "prior must be positive, got -0.5"),
        (pq.Bayes, {"prior": "0.5"}, "prior must be several values in a tuple"),
        (pq.Bayes, {"prior": 0.5}, "prior must be several values in a tuple, got 0.5"),
        (pq.Switching, {"rate": "t"}, "rate must be a rate between 0 and 1, '1/t' or 'grid', got 't'"),
        (pq.Switching, {"rate": 1.0}, "rate must be a number at least 1e-200 and below 1, got 1.0"),
        (pq.Logistic, {"learning_rate": 0}, "learning_rate must be a number above 0 and at most 1000, got 0"),
        (pq.Logistic, {"floor": 0}, "floor must be a number at least -1000 and below 0, got 0"),
        (PureLogistic, {"optimizer": "sgd"}, "unknown optimizer 'sgd'"),
    ],
)
def test_mistakes_in_settings_are_told(kind: type[Mixer], settings: dict[str, object], reason: str) -> None:
    with pytest.raises(PreqError, match=reason):
        kind(**settings)


@pytest.mark.parametrize("name", MIXERS)
def test_what_cannot_be_mixed_is_refused(name: str) -> None:
    mixing = mixer_from_settings(name).begin(2, 2)
    with pytest.raises(PreqError, match="label 0 was told before it was predicted; call row first"):
        mixing.tell(0)
    for wrong in (np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(2)):
        with pytest.raises(
            PreqError, match=r"a mixture of 2 experts needs 2 log-probabilities from each, got an array"
        ):
            mixing.row(wrong)
    mixing.row(HALVES)
    for label in (-1, 2, 0.5):
        with pytest.raises(PreqError, match="label must be a whole number of at least 0 and at most 1"):
            mixing.tell(label)  # type: ignore[arg-type]
    with pytest.raises(PreqError, match=r"probabilities of expert 1 sum to 1\.5 at label 0, not to 1"):
        mixer_from_settings(name).begin(2, 2).row(np.log([[0.5, 0.5], [0.75, 0.75]]))
    with pytest.raises(PreqError, match=r"prior must be one number for each of 2 experts, got the shape \(1,\)"):
        pq.Bayes(prior=(1.0,)).begin(2, 2)


@pytest.mark.parametrize("name", MIXERS)
def test_a_state_of_something_else_is_refused(name: str) -> None:
    mixing = mixer_from_settings(name).begin(2, 2)
    state = mixing.state()
    for wrong in ({}, mixer_from_settings(name).begin(3, 2).state(), state | {"more": np.zeros(1)}):
        with pytest.raises(PreqError, match="this is not a state of this mixer"):
            mixing.restore(wrong)
    for bad in (math.nan, 0.5):
        with pytest.raises(PreqError, match="this state of a mixer is damaged"):
            mixing.restore(state | {"left_out": np.array([bad, -1.0])})


def test_the_run_stops_when_nobody_is_left_and_bayes_has_lost_trust_in_the_rest() -> None:
    mixing = pq.Bayes().begin(2, 2)
    mixing.row([[0.0, -math.inf], [math.log(0.5)] * 2])
    mixing.tell(1)
    with pytest.raises(
        PreqError, match=r"no expert is left at label 1: each gave an earlier label probability 0 or was"
    ):
        mixing.row([[math.log(0.5)] * 2, [math.nan] * 2])
    other = pq.Logistic().begin(2, 2)
    other.row([[0.0, -math.inf], [math.log(0.5)] * 2])
    other.tell(1)
    assert np.exp(other.row([[math.log(0.5)] * 2, [math.nan] * 2])) == pytest.approx([0.5, 0.5])
    assert other.left_out == {1: 1}


def test_logistic_mixing_floors_what_it_weighs_and_charges_nothing_less() -> None:
    never = np.array([[0.0, -math.inf], [0.0, -math.inf]])
    assert np.allclose(PureLogistic(floor=-20.0).begin(2, 2).row(never)[1], -20.0, atol=1e-6)
    assert pq.Bayes().begin(2, 2).row(never)[1] == -math.inf
    guarded = pq.Logistic().begin(2, 2).row(never)
    assert np.isclose(guarded[1], -20.0 - math.log(3), atol=1e-6)
    assert np.isclose(np.exp(guarded).sum(), 1.0, rtol=1e-14)


def test_each_previous_label_may_have_its_own_weights() -> None:
    """One expert is right after a 0 and wrong after a 1, the other the other way round."""
    rows, labels = np.log([[0.9, 0.1], [0.1, 0.9]]), [0, 1, 1, 0] * 60
    lengths = {}
    for by_previous_label in (False, True):
        mixing, total = PureLogistic(learning_rate=0.1, by_previous_label=by_previous_label).begin(2, 2), 0.0
        for previous, label in zip([0, *labels], labels, strict=False):
            total -= mixing.row(rows if (previous == 0) == (label == 0) else rows[::-1])[label]
            mixing.tell(label)
        lengths[by_previous_label] = total
    assert lengths[True] < lengths[False] / 2


def test_a_weight_far_below_zero_learns_without_a_warning() -> None:
    mixing = PureLogistic(learning_rate=100.0, parametrisation="softplus", optimizer="gradient").begin(1, 2)
    for experts in (np.array([[-np.inf, 0.0]]), np.log([[0.5, 0.5]])):
        mixing.row(experts)
        mixing.tell(0)
    assert np.isfinite(mixing.row(np.log([[0.9, 0.1]]))).all()
