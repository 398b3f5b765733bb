"""Laws 3, 5, 9 and 10 of runs: prefixes, resuming in memory, regret, and what is never charged."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import prequential as pq
from prequential.errors import PreqError
from prequential.events import Predict
from prequential.learn.learner import Learner
from prequential.methods import Method
from prequential.models.mlp import mlp
from prequential.plan import Plan

from ..conftest import blobs
from .resuming import require_same_bits
from .strategies import prequential_methods

METHODS: list[Method] = [
    pq.ReplayStreams(num_streams=3, batch_size=8),
    pq.ReplayStreams(num_streams=2, batch_size=8, first_block=2, min_steps=2, age_law=pq.Pareto(20.0)),
    pq.ReplayBuffer(num_replays=2, batch_size=8, capacity=20, replacement="reservoir"),
    pq.ChunksFromScratch(batch_size=8, epochs=2, split_points=(8, 16, 32)),
    pq.ChunksFineTuned(batch_size=8, epochs=2, split_points=(8, 16, 32), shrink=0.5, perturb=0.2),
]
IDS = [method.name for method in METHODS]


def tiny(input_shape: tuple[int, ...], num_classes: int, dropout: float = 0.3) -> nn.Module:
    """Dropout, batch statistics and an integer buffer: everything a state can hold."""
    return nn.Sequential(
        nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, num_classes)
    )


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_the_record_of_a_prefix_does_not_depend_on_what_follows(method: Method) -> None:
    whole = pq.run(tiny, blobs(72), method, seed=1)
    part = pq.run(tiny, blobs(72).take(40), method, seed=1)
    spans = [(e.start, e.stop) for e in Plan(method, 72, 0).events() if isinstance(e, Predict)]
    same = max(stop for _, stop in spans if stop <= 40)
    assert np.array_equal(part.nats[:same], whole.nats[:same])
    # a chunk that the end cuts off is a product of fewer rows, which some processors add up in another order
    np.testing.assert_allclose(part.nats[same:], whole.nats[same:40], rtol=1e-5)


@settings(max_examples=60)
@given(
    st.one_of(st.sampled_from(METHODS), prequential_methods()),
    st.lists(st.integers(0, 60), max_size=3),
    st.sampled_from(["adamw", "rmsprop", "sgd", "muon"]),
)
def test_stopping_after_any_events_and_resuming_gives_the_same_bits(
    method: Method, stops: list[int], optimizer: str
) -> None:
    data = blobs(40)
    recipe = pq.Recipe(optimizer=optimizer, learning_rate=1e-2)
    plan = Plan(method, len(data), 0, heldout=True)

    def fresh() -> Learner:
        return Learner(
            lambda input_shape, num_classes: tiny(input_shape, num_classes) if vars(method)["batch_size"] > 1
            else mlp(input_shape, num_classes, width=0.01),
            data, recipe, seed=5, calibration_rate_factor=method.calibration_rate_factor,
        )  # fmt: skip

    require_same_bits(plan, data, fresh, stops)


class Constant(nn.Module):
    """Says nothing, whatever it learns."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        return (self.weight * 0).expand(len(inputs), -1)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_a_constant_predictor_costs_exactly_the_uniform_code(method: Method) -> None:
    record = pq.run(Constant, blobs(50, num_classes=7), method, seed=0)
    assert record.codelength is not None
    assert math.isclose(record.codelength, 50 * math.log(7), rel_tol=1e-14)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_learning_beats_the_uniform_code(method: Method) -> None:
    if isinstance(method, pq.ChunksFromScratch | pq.ChunksFineTuned):
        method = replace(method, split_points=(16, 32, 64, 128, 256), epochs=20)
    record = pq.run(tiny, blobs(400), method, seed=0)
    assert record.codelength is not None
    assert record.codelength < 400 * math.log(3) * 0.8


def test_regret_is_antisymmetric_and_ends_in_the_difference() -> None:
    one = pq.run(tiny, blobs(64), METHODS[0], seed=0)
    other = pq.run(tiny, blobs(64), METHODS[2], seed=1)
    assert np.array_equal(pq.regret(one, other), -pq.regret(other, one))
    assert not pq.regret(one, one).any()
    assert math.isclose(pq.regret(one, other)[-1], one.codelength - other.codelength)  # type: ignore[operator]


def test_regret_refuses_other_data_order_length_or_erm() -> None:
    one = pq.run(tiny, blobs(64), METHODS[0], seed=0)
    for other, reason in [
        (blobs(64, seed=1), "labels"),
        (blobs(64).shuffled(3), "order"),
        (blobs(64).take(48), "length"),
    ]:
        with pytest.raises(PreqError, match=f"differ in their {reason}"):
            pq.regret(one, pq.run(tiny, other, METHODS[0], seed=0))
    with pytest.raises(PreqError, match="erm is not prequential"):
        pq.regret(one, pq.run(tiny, blobs(64), pq.FullDataset(epochs=1), seed=0))


@given(st.floats(0, 0.9), st.floats(0, 0.9))
@settings(max_examples=20)
def test_smoothing_and_dropout_never_touch_what_is_charged(smoothing: float, dropout: float) -> None:
    def factory(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return tiny(input_shape, num_classes, dropout)

    data = blobs(64)
    learner = Learner(factory, data, pq.Recipe(label_smoothing=smoothing), seed=0)
    plain = Learner(tiny, data, pq.Recipe(label_smoothing=0.0), seed=0)
    assert torch.equal(learner.predict(0, 8).log_probabilities, plain.predict(0, 8).log_probabilities)
    labels = data.labels(np.arange(64))
    for event in range(4):
        learner.train(np.arange(32), labels[:32], event)
        learner.calibrate(np.arange(32), labels[:32])
    charged = learner.predict(32, 64).log_probabilities
    logits = learner.averaged(data.inputs(np.arange(32, 64))).double()
    assert torch.equal(charged, F.log_softmax(F.softplus(learner.beta) * logits, -1))
    assert torch.equal(charged, learner.predict(32, 64).log_probabilities)


def test_a_run_leaves_torchs_generator_alone_and_does_not_depend_on_it() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = pq.run(tiny, blobs(64), METHODS[0], seed=0)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert np.array_equal(one.nats, pq.run(tiny, blobs(64), METHODS[0], seed=0).nats)
    assert not np.array_equal(one.nats, pq.run(tiny, blobs(64), METHODS[0], seed=1).nats)
