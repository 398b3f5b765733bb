"""Laws of probing: no label tells on an earlier one, every readout is a distribution, and switching loses little."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prequential.errors import PreqError
from prequential.probing.blocks import block_ends, code_in_blocks
from prequential.probing.closed import CLOSED, BayesianRegression, Frequencies
from prequential.probing.coding import READOUTS, code_online, make_readouts
from prequential.probing.control import control_labels

NUM_CLASSES = 3


def features_and_labels(length: int, seed: int, size: int = 4) -> tuple[torch.Tensor, np.ndarray]:
    chance = np.random.default_rng(seed)
    labels = chance.integers(NUM_CLASSES, size=length)
    return torch.from_numpy((chance.normal(size=(length, size)) + labels[:, None]).astype(np.float32)), labels


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1000), place=st.integers(1, 79))
def test_labels_past_a_place_move_nothing_before_it(seed: int, place: int) -> None:
    features, labels = features_and_labels(80, seed)
    changed = np.concatenate([labels[:place], (labels[place:] + 1) % NUM_CLASSES])
    one, other = (code_online(features, each, NUM_CLASSES, READOUTS) for each in (labels, changed))
    assert np.array_equal(one.nats[:place], other.nats[:place])
    assert np.array_equal(one.expert_nats[:place], other.expert_nats[:place])
    kept = one.weights_after <= place
    assert np.array_equal(one.weights[kept], other.weights[kept])


@pytest.mark.parametrize("readout", ["linear", "bayes-linear"])
def test_blocks_are_causal_too(readout: str) -> None:
    features, labels = features_and_labels(64, 3)
    changed = np.concatenate([labels[:32], (labels[32:] + 1) % NUM_CLASSES])
    one, other = (code_in_blocks(features, each, NUM_CLASSES, [readout]) for each in (labels, changed))
    assert np.array_equal(one.nats[:32], other.nats[:32])
    assert one.nats[: block_ends(64)[0]] == pytest.approx(math.log(NUM_CLASSES))  # the first block is uniform
    with pytest.raises(PreqError, match="one readout"):
        code_in_blocks(features, labels, NUM_CLASSES, ["linear", "knn"])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), seen=st.integers(0, 40), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_every_readout_gives_distributions_without_zeros(seed: int, seen: int, scale: float) -> None:
    features, labels = features_and_labels(50, seed)
    _, members = make_readouts(READOUTS, 4, NUM_CLASSES, seed)
    for member in [*members, Frequencies(4, NUM_CLASSES)]:
        for start in range(0, seen, 8):
            member.predict(features[start : start + 8])
            member.observe(features[start : start + 8], torch.from_numpy(labels[start : start + 8]))
        rows = member.predict(scale * features[:7])
        assert rows.dtype == torch.float64
        assert rows.shape == (len(member.experts), 7, NUM_CLASSES)
        assert bool(rows.isfinite().all())
        assert torch.allclose(rows.exp().sum(-1), torch.ones((), dtype=torch.float64), atol=1e-12)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), length=st.integers(64, 150))
def test_switching_loses_little_against_the_best_expert(seed: int, length: int) -> None:
    features, labels = features_and_labels(length, seed)
    code = code_online(features, labels, NUM_CLASSES, ["nearest-mean", "knn", "bayes-linear"])
    assert code.nats.sum() <= code.expert_nats.sum(0).min() + math.log(len(code.experts)) + math.log(length) + 1e-9
    assert np.allclose(code.weights.sum(1), 1)


@pytest.mark.parametrize("name", [name for name in CLOSED if name != "nearest-mean"])  # it measures as examples come
def test_closed_forms_do_not_depend_on_how_examples_are_cut(name: str) -> None:
    features, labels = features_and_labels(40, 1)
    once, often = (CLOSED[name](4, NUM_CLASSES) for _ in range(2))
    once.observe(features, torch.from_numpy(labels))
    for start in range(0, 40, 5):
        often.observe(features[start : start + 5], torch.from_numpy(labels[start : start + 5]))
    assert torch.allclose(once.predict(features[:9]), often.predict(features[:9]), atol=1e-9)


def test_bayesian_regression_is_the_formula() -> None:
    features, labels = features_and_labels(30, 2)
    readout = BayesianRegression(4, NUM_CLASSES)
    for start in range(0, 30, 7):
        readout.observe(features[start : start + 7], torch.from_numpy(labels[start : start + 7]))
    x = np.hstack([features.double().numpy(), np.ones((30, 1))])
    inverse = np.linalg.inv(4 * np.eye(5) + x.T @ x)
    mean = x @ inverse @ x.T @ np.eye(NUM_CLASSES)[labels]
    logits = readout.sharpness[1] * mean / np.sqrt(1 + np.einsum("ni,ij,nj->n", x, inverse, x))[:, None]
    assert np.allclose(readout.predict(features)[1].numpy(), logits - np.logaddexp.reduce(logits, 1)[:, None])


@given(values=st.lists(st.integers(0, 4), min_size=10, max_size=60), seed=st.integers(0, 9))
def test_a_control_is_a_function_of_the_value(values: list[int], seed: int) -> None:
    labels = np.arange(len(values)) % NUM_CLASSES
    made = control_labels(values, labels, seed=seed)
    assert len({(value, label) for value, label in zip(values, made.tolist(), strict=True)}) == len(set(values))
    assert set(made.tolist()) <= set(labels.tolist())


def test_a_control_of_values_that_do_not_repeat_is_refused() -> None:
    with pytest.raises(PreqError, match=r"do not repeat .* untrained network"):
        control_labels(np.arange(50), np.arange(50) % 2)
