"""Laws of probing: no label tells on an earlier one or on itself, readouts are distributions, switching loses little.

Each law is a function of what it is about, so that the last test can show a broken one to each of them.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from prequential.errors import PreqError
from prequential.mixers.mixing import Floats
from prequential.mixers.switching import Switching, SwitchingMixing
from prequential.probing import blocks, coding
from prequential.probing.blocks import BATCH_SIZE, block_ends, code_in_blocks, tell
from prequential.probing.closed import CLOSED, BayesianRegression, Frequencies, NearestMean, NearestNeighbours, Readout
from prequential.probing.coding import READOUTS, Code, code_online, make_readouts
from prequential.probing.control import control_labels
from prequential.probing.features import Representation
from prequential.probing.networks import Network

NUM_CLASSES = 3
CHEAP = ["nearest-mean", "knn", "bayes-linear"]

Labels = NDArray[np.int64]
Coded = Callable[[Tensor, Labels], Code]
Told = Callable[[Readout, Tensor, Tensor], None]


def features_and_labels(length: int, seed: int, size: int = 4) -> tuple[Tensor, Labels]:
    chance = np.random.default_rng(seed)
    labels = chance.integers(NUM_CLASSES, size=length)
    return torch.from_numpy((chance.normal(size=(length, size)) + labels[:, None]).astype(np.float32)), labels


def online(*readouts: str) -> Coded:
    return lambda features, labels: code_online(features, labels, NUM_CLASSES, readouts)


def in_blocks(readout: str) -> Coded:
    return lambda features, labels: code_in_blocks(features, labels, NUM_CLASSES, [readout])


def law_of_causality(code: Coded, features: Tensor, labels: Labels, place: int) -> None:
    """Labels past a place move nothing before it."""
    changed = np.concatenate([labels[:place], (labels[place:] + 1) % NUM_CLASSES])
    one, other = code(features, labels), code(features, changed)
    assert np.array_equal(one.nats[:place], other.nats[:place])
    assert np.array_equal(one.expert_nats[:place], other.expert_nats[:place])
    kept = one.weights_after <= place
    assert np.array_equal(one.weights[kept], other.weights[kept])


def law_of_alternatives(code: Coded, features: Tensor, labels: Labels, place: int) -> None:
    """What the classes would cost at a place are the codelengths of one distribution, for the code and each expert."""
    total: Floats = np.zeros(1)
    for label in range(NUM_CLASSES):
        found = code(features, np.concatenate([labels[:place], [label], labels[place + 1 :]]))
        total = total + np.exp(-np.append(found.nats[place], found.expert_nats[place]))
    assert np.allclose(total, 1, rtol=0, atol=1e-9)


def law_of_the_first_block(code: Coded, features: Tensor, labels: Labels) -> None:
    """Block by block, nothing is known of the first: it is uniform."""
    first = code(features, labels).nats[: block_ends(len(labels))[0]]
    assert first == pytest.approx(math.log(NUM_CLASSES), rel=1e-12)


def law_of_distributions(readout: Readout, features: Tensor, labels: Labels, seen: int, scale: float = 1.0) -> None:
    """Float64, finite and of sum 1, whatever was seen and asked; no class has probability 0; asking changes nothing."""
    for start in range(0, seen, 8):
        readout.predict(features[start : start + 8])
        readout.observe(features[start : start + 8], torch.from_numpy(labels[start : start + 8]))
    rows = readout.predict(scale * features[:7])
    assert rows.dtype == torch.float64
    assert rows.shape == (len(readout.experts), 7, NUM_CLASSES)
    assert bool(rows.isfinite().all())
    assert torch.allclose(rows.exp().sum(-1), torch.ones((), dtype=torch.float64), rtol=0, atol=1e-12)
    assert torch.equal(rows, readout.predict(scale * features[:7]))


def law_of_the_best(code: Coded, features: Tensor, labels: Labels) -> None:
    """At most ln n + ln T nats more than the best expert; frequencies are one, so no features cost much."""
    found = code(features, labels)
    allowed = math.log(len(found.experts)) + math.log(len(labels)) + 1e-9
    assert "frequencies" in found.experts
    assert found.nats.sum() <= found.expert_nats.sum(0).min() + allowed
    assert np.allclose(found.weights.sum(1), 1)


def law_of_cutting(make: Callable[[], Readout], told: Told, features: Tensor, labels: Labels, cut: int) -> None:
    """What is known does not depend on how many were told at once."""
    once, often, known = make(), make(), torch.from_numpy(labels)
    told(once, features, known)
    for start in range(0, len(known), cut):
        told(often, features[start : start + cut], known[start : start + cut])
    assert torch.allclose(once.predict(features[:9]), often.predict(features[:9]), rtol=0, atol=1e-9)


def law_of_regression(readout: BayesianRegression, features: Tensor, labels: Labels) -> None:
    """The formula, with an inverse."""
    for start in range(0, len(labels), 7):
        readout.observe(features[start : start + 7], torch.from_numpy(labels[start : start + 7]))
    x = np.hstack([features.double().numpy(), np.ones((len(labels), 1))])
    inverse = np.linalg.inv(4 * np.eye(5) + x.T @ x)
    mean = x @ inverse @ x.T @ np.eye(NUM_CLASSES)[labels]
    logits = readout.sharpness[1] * mean / np.sqrt(1 + np.einsum("ni,ij,nj->n", x, inverse, x))[:, None]
    assert np.allclose(readout.predict(features)[1].numpy(), logits - np.logaddexp.reduce(logits, 1)[:, None])


def law_of_controls(make: Callable[[list[int], Labels], Labels], values: list[int]) -> None:
    """A control is a function of the value, and gives classes that there are."""
    labels = np.arange(len(values)) % NUM_CLASSES
    made = make(values, labels)
    assert len({(value, label) for value, label in zip(values, made.tolist(), strict=True)}) == len(set(values))
    assert set(made.tolist()) <= set(labels.tolist())


def law_of_standardising(standardised: Callable[[NDArray[np.float32]], Tensor], rows: NDArray[np.float32]) -> None:
    """Mean 0 and variance 1 over all inputs, whatever the units; what does not vary is 0."""
    found = standardised(rows).numpy()
    varies = np.ptp(rows, axis=0) > 0
    assert np.allclose(found.mean(0), 0, atol=1e-3)
    assert np.allclose(found.std(0), varies, atol=1e-3)
    assert np.allclose(standardised(rows * np.float32(-512) + np.float32(4)).numpy(), -found, atol=1e-3)


def standardised(rows: NDArray[np.float32]) -> Tensor:
    return Representation(Network("rows", None, ""), "", rows).standardised()


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 1000), place=st.integers(1, 79))
def test_labels_past_a_place_move_nothing_before_it(seed: int, place: int) -> None:
    law_of_causality(online(*READOUTS), *features_and_labels(80, seed), place)


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 1000), place=st.integers(0, 79))
def test_the_classes_at_a_place_are_one_distribution(seed: int, place: int) -> None:
    law_of_alternatives(online(*CHEAP), *features_and_labels(80, seed), place)


@pytest.mark.parametrize("readout", ["linear", "bayes-linear"])
def test_blocks_are_causal_too(readout: str) -> None:
    features, labels = features_and_labels(64, 3)
    law_of_causality(in_blocks(readout), features, labels, 40)
    law_of_the_first_block(in_blocks(readout), features, labels)
    law_of_alternatives(in_blocks("bayes-linear"), features, labels, 40)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), seen=st.integers(0, 40), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_every_readout_gives_distributions_without_zeros(seed: int, seen: int, scale: float) -> None:
    for member in [*make_readouts(READOUTS, 4, NUM_CLASSES, seed)[1], Frequencies(4, NUM_CLASSES)]:
        law_of_distributions(member, *features_and_labels(50, seed), seen, scale)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), length=st.integers(64, 150))
def test_switching_loses_little_against_the_best_expert(seed: int, length: int) -> None:
    law_of_the_best(online(*CHEAP), *features_and_labels(length, seed))


def at_once(readout: Readout, features: Tensor, labels: Tensor) -> None:
    readout.observe(features, labels)


@pytest.mark.parametrize("name", [name for name in CLOSED if name != "nearest-mean"])  # it measures as examples come
def test_closed_forms_do_not_depend_on_how_examples_are_cut(name: str) -> None:
    law_of_cutting(lambda: CLOSED[name](4, NUM_CLASSES), at_once, *features_and_labels(40, 1), cut=5)


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("batches", [1, 3])
def test_blocks_tell_every_closed_form_the_same_however_long_they_are(name: str, batches: int) -> None:
    law_of_cutting(lambda: CLOSED[name](4, NUM_CLASSES), tell, *features_and_labels(300, 1), cut=batches * BATCH_SIZE)


def test_bayesian_regression_is_the_formula() -> None:
    law_of_regression(BayesianRegression(4, NUM_CLASSES), *features_and_labels(30, 2))


@given(
    values=st.lists(st.integers(0, 4), min_size=10, max_size=60).filter(lambda v: len(set(v)) > 1),
    seed=st.integers(0, 9),
)
def test_a_control_is_a_function_of_the_value(values: list[int], seed: int) -> None:
    law_of_controls(lambda values, labels: control_labels(values, labels, seed=seed), values)


def test_a_control_of_values_that_do_not_repeat_is_refused() -> None:
    with pytest.raises(PreqError, match=r"do not repeat .* untrained network"):
        control_labels(np.arange(50), np.arange(50) % 2)


UNITS = st.sampled_from([1e-6, 1e-2, 1.0, 1e5])


@given(seed=st.integers(0, 1000), unit=UNITS, constant=st.sampled_from([0.0, 1.0, -7e4]))
def test_features_are_standardised_over_all_inputs(seed: int, unit: float, constant: float) -> None:
    rows = features_and_labels(60, seed)[0].numpy() * np.float32(unit)
    rows[:, 0] = constant
    law_of_standardising(standardised, rows)


class Knowing(Frequencies):
    """A readout that was handed all labels, which none may be."""

    def __init__(self, features: Tensor, labels: Labels) -> None:
        super().__init__(4, NUM_CLASSES)
        self.label_of = {tuple(row): label for row, label in zip(features.tolist(), labels.tolist(), strict=True)}

    def labels(self, features: Tensor) -> Tensor:
        return torch.tensor([self.label_of[tuple(row)] for row in features.tolist()])


class Peeking(Knowing):
    """Looks at the label before it predicts it."""

    def predict(self, features: Tensor) -> Tensor:
        return (
            (torch.nn.functional.one_hot(self.labels(features), NUM_CLASSES).double() + 0.1).log().log_softmax(-1)[None]
        )


class Hasty(Knowing):
    """Learns a block before it is predicted."""

    def predict(self, features: Tensor) -> Tensor:
        self.observe(features, self.labels(features))
        return super().predict(features)


class Unnormalised(NearestMean):
    """Forgets the sum, by little."""

    def predict(self, features: Tensor) -> Tensor:
        return super().predict(features) + 1e-9


class Certain(NearestNeighbours):
    """Gives what no neighbour has the probability 0."""

    def predict(self, features: Tensor) -> Tensor:
        rows = super().predict(features)
        return rows.where(rows.exp() > 0.1, -torch.inf).log_softmax(-1)


class Impatient(BayesianRegression):
    """Learns from being asked."""

    def predict(self, features: Tensor) -> Tensor:
        self.observe(features, torch.zeros(len(features), dtype=torch.int64))
        return super().predict(features)


class Careless(BayesianRegression):
    """Updates the inverse without what the rows of a piece have in common."""

    def observe(self, features: Tensor, labels: Tensor) -> None:
        for row, label in zip(features, labels, strict=True):
            before = self._inverse.clone()
            super().observe(row[None], label[None])
            self._inverse = (before + self._inverse) / 2


class Deaf(SwitchingMixing):
    """Believes all experts alike, for good."""

    def learn(self, experts: Floats, label: int) -> None:
        pass


def code_by(module: object, code: Coded, kind: type[Knowing]) -> Coded:
    """A code whose one readout is handed all labels."""

    def broken(features: Tensor, labels: Labels) -> Code:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "make_readouts", lambda *_: (None, [kind(features, labels)]))
            return code(features, labels)

    return broken


def deaf_code(features: Tensor, labels: Labels) -> Code:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Switching, "begin", lambda self, n, c: Deaf(n, c, self.rate))
        return online("nearest-mean", "knn")(features, labels)


def cautious_code(features: Tensor, labels: Labels) -> Code:
    """By blocks that all are coded by a readout, the first one by the whole."""
    found = in_blocks("knn")(features, labels)
    found.nats[: block_ends(len(labels))[0]] = found.nats.mean()
    return found


def in_units(rows: NDArray[np.float32]) -> Tensor:
    """Standardised by the first half alone, as if the rest did not come."""
    half = rows[: len(rows) // 2]
    return torch.from_numpy((rows - half.mean(0)) / half.std(0))


SMALL, LONGER = features_and_labels(80, 5), features_and_labels(300, 5)
ONLINE, BLOCKS = (coding, online("knn")), (blocks, in_blocks("knn"))
VARYING = SMALL[0].numpy() * np.float32(1e-2)
BREAKS: dict[str, Callable[[], None]] = {
    "causality": lambda: law_of_causality(code_by(*ONLINE, Hasty), *SMALL, 43),
    "causality of blocks": lambda: law_of_causality(code_by(*BLOCKS, Hasty), *SMALL, 50),
    "alternatives": lambda: law_of_alternatives(code_by(*ONLINE, Peeking), *SMALL, 41),
    "alternatives of blocks": lambda: law_of_alternatives(code_by(*BLOCKS, Peeking), *SMALL, 50),
    "first block": lambda: law_of_the_first_block(cautious_code, *SMALL),
    "sum": lambda: law_of_distributions(Unnormalised(4, NUM_CLASSES), *SMALL, 24),
    "zeros": lambda: law_of_distributions(Certain(4, NUM_CLASSES), *SMALL, 24),
    "asking": lambda: law_of_distributions(Impatient(4, NUM_CLASSES), *SMALL, 24),
    "the best": lambda: law_of_the_best(deaf_code, *LONGER),
    "cutting": lambda: law_of_cutting(lambda: NearestMean(4, NUM_CLASSES), at_once, *LONGER, cut=64),
    "formula": lambda: law_of_regression(Careless(4, NUM_CLASSES), *SMALL),
    "controls": lambda: law_of_controls(lambda values, labels: labels, [0, 1, 2, 3] * 5),
    "standardising": lambda: law_of_standardising(in_units, VARYING),
}


@pytest.mark.parametrize("law", BREAKS)
def test_each_law_finds_what_breaks_it(law: str) -> None:
    with pytest.raises(AssertionError):
        BREAKS[law]()


def test_the_laws_let_the_right_ones_through() -> None:
    for module, code in (ONLINE, BLOCKS):
        law_of_causality(code_by(module, code, Knowing), *SMALL, 41)
        law_of_alternatives(code_by(module, code, Knowing), *SMALL, 50)
    law_of_the_first_block(in_blocks("knn"), *SMALL)
    for kind in CLOSED.values():
        law_of_distributions(kind(4, NUM_CLASSES), *SMALL, 24)
    law_of_the_best(online("nearest-mean", "knn"), *LONGER)
    law_of_regression(BayesianRegression(4, NUM_CLASSES), *SMALL)
    law_of_controls(control_labels, [0, 1, 2, 3] * 5)
    law_of_standardising(standardised, VARYING)
