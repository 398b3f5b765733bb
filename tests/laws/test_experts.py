"""Laws of mixed runs: one code of several experts, the same bits scored, encoded, decoded, and resumed anywhere."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import prequential as pq
from prequential.coding.container import Container
from prequential.errors import PreqError
from prequential.experts.build import build
from prequential.experts.learner import MixedLearner
from prequential.methods.joint import Joint
from prequential.mixers import Mixing
from prequential.plan import Plan
from prequential.runs.codec import encode_and_score
from prequential.runs.session import make_session
from prequential.testing import check_method

from ..conftest import blobs
from .resuming import require_same_bits
from .strategies import minibatch_methods
from .test_records import tiny

METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
OTHER = pq.ReplayBuffer(num_replays=1, batch_size=8)
CHUNKS = pq.ChunksFromScratch(batch_size=8, epochs=1, split_points=(8, 16, 32))


def small(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Linear(input_shape[0], num_classes)


MIXED: dict[str, pq.Experts] = {
    "seeds": pq.Experts.of_seeds(tiny, 3, mixer="logistic"),
    "joint": pq.Experts([pq.Expert(tiny), pq.Expert(small, method=OTHER)], mixer="switching"),
    "codes": pq.Experts([small], mixer="bayes", simple_codes=True),
    "averages": pq.Experts([pq.Expert(tiny, averages=(0.3, 0.01)), small], mixer="logistic", simple_codes=True),
}
CHUNKED = pq.Experts(
    [
        pq.Expert(tiny, method=CHUNKS),
        pq.Expert(
            small,
            method=pq.ChunksFineTuned(batch_size=8, epochs=2, split_points=(8, 16, 32), shrink=0.5, perturb=0.2),
        ),
    ],
    mixer="switching",
    simple_codes=True,
)
IDS = [*MIXED, "chunks"]
ALL = [*MIXED.values(), CHUNKED]


def labels_of(data: Any) -> np.ndarray:
    labels: np.ndarray = data.labels(np.arange(len(data))).numpy()
    return labels


@pytest.mark.parametrize("experts", ALL, ids=IDS)
def test_what_is_mixed_is_decoded_and_no_longer_than_it_says(experts: pq.Experts) -> None:
    data = blobs(70).without_heldout()
    record = pq.run(experts, data, METHOD, seed=3)
    session = make_session(experts, data, METHOD, [None], [3], evaluate=False)
    bits, nats = encode_and_score(session, None)
    assert nats.tobytes() == record.nats.tobytes()
    assert np.array_equal(pq.decode(bits, data, experts), labels_of(data))
    coded_nats = len(Container.from_bytes(bits).payload) * 8 * math.log(2)
    assert record.codelength is not None
    assert coded_nats <= record.codelength * 1.001 + 2**-24 * 70 * 3 + 64 * math.log(2)


@dataclass(frozen=True)
class Half:
    """A mixer of one's own: Bayes with a prior that grows from expert to expert."""

    name: str = "half"
    share: float = 0.5

    def begin(self, num_experts: int, num_classes: int) -> Mixing:
        prior = tuple(self.share + number for number in range(num_experts))
        return pq.Bayes(prior=tuple(each / sum(prior) for each in prior)).begin(num_experts, num_classes)


def test_what_a_mixer_of_ones_own_mixed_is_decoded_by_those_who_have_it() -> None:
    data, experts = blobs(40).without_heldout(), pq.Experts([tiny, small], mixer=Half())
    bits = pq.encode(experts, data, METHOD, seed=1)
    assert np.array_equal(pq.decode(bits, data, experts), labels_of(data))
    with pytest.raises(PreqError, match="the mixer 'half' is not one of the package; give the experts again, with it"):
        pq.decode(bits, data, pq.Experts([tiny, small], mixer="bayes"))
    with pytest.raises(PreqError, match=r"the mixer 'half' had the settings .*0\.5.*, got .*0\.25.*; give the same"):
        pq.decode(bits, data, pq.Experts([tiny, small], mixer=Half(share=0.25)))


@settings(max_examples=15)
@given(st.sampled_from(ALL), st.lists(st.integers(0, 60), max_size=3))
def test_stopping_after_any_events_and_resuming_gives_the_same_bits(experts: pq.Experts, stops: list[int]) -> None:
    data = blobs(40)
    full = experts.completed(METHOD, pq.Recipe(learning_rate=1e-2), 1.0, 5)
    plan = Plan(full.method, len(data), 0, heldout=True)

    def fresh() -> MixedLearner:
        return build(full, data, plan, torch.device("cpu"), pq.Execution())

    require_same_bits(plan, data, fresh, stops, num_experts=len(full.names))


@pytest.mark.parametrize("mixer", ["bayes", "switching"])
def test_mixing_afterwards_agrees_with_the_code(mixer: str) -> None:
    data = blobs(90)
    mixed = pq.run(pq.Experts.of_seeds(tiny, 3, mixer=mixer), data, METHOD, seed=2)
    seeds = [expert["seed"] for expert in mixed.model["experts"]]
    alone = [pq.run(tiny, data, METHOD, seed=seed) for seed in seeds]
    assert mixed.expert_nats is not None
    for column, record in zip(mixed.expert_nats.T, alone, strict=True):
        assert column.tobytes() == record.nats.tobytes()
    afterwards = pq.mixture(alone, switching="1/t" if mixer == "switching" else None)
    assert np.allclose(afterwards.nats, mixed.nats, rtol=0, atol=1e-9)


def test_an_expert_of_a_joint_plan_and_an_average_learn_what_they_would_alone() -> None:
    data = blobs(60).without_heldout()
    both = pq.Experts([tiny, pq.Expert(small_batches, method=OTHER)], "switching")
    joint, alone = pq.run(both, data, METHOD, seed=1), pq.run(small_batches, data, OTHER, seed=1)
    assert joint.expert_nats is not None
    assert joint.expert_nats[:, 1].tobytes() == alone.nats.tobytes()
    for number, step_size in enumerate((0.3, 0.01)):
        alone = pq.run(small_batches, data, METHOD, pq.Recipe(ema_step_size=step_size), seed=1)
        averages = pq.Experts([pq.Expert(small_batches, averages=(0.3, 0.01))], "bayes")
        own = pq.run(averages, data, METHOD, seed=1)
        assert own.expert_nats is not None
        assert own.expert_nats[:, number].tobytes() == alone.nats.tobytes()


def small_batches(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(input_shape[0], 6), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, num_classes))


@settings(max_examples=10)
@given(minibatch_methods(), st.integers(1, 5), st.integers(20, 60))
def test_joint_plans_keep_the_laws_of_plans(method: pq.ReplayStreams, replays: int, length: int) -> None:
    beside = pq.ReplayStreams(num_streams=replays, batch_size=method.batch_size, first_block=method.first_block)
    check_method(Joint((method, beside)), lengths=(length, length + 13))
