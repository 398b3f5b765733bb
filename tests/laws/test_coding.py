"""Law 6: decode(encode(labels)) = labels, and the coded size stays within its bound."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

import prequential as pq
from prequential.coding.container import Container
from prequential.coding.labels import CHECKED_TOGETHER
from prequential.coding.range_coder import RangeDecoder, RangeEncoder
from prequential.data.arrays import from_arrays
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError, PreqWarning
from prequential.learn.learner import Learner
from prequential.methods import Method
from prequential.methods.rebuild import method_from_settings
from prequential.models import ModelFactory
from prequential.rng import derive, uniforms
from prequential.settings import settings_of

from ..conftest import blobs
from .strategies import methods
from .test_records import IDS, METHODS, tiny


def bound_bits(nats: float, num_labels: int, num_classes: int) -> float:
    return (nats * 1.001 + num_labels * num_classes * 2.0**-24) / math.log(2) + 64


def table(num_labels: int, num_classes: int, sharpness: float, seed: int) -> NDArray[np.float64]:
    """Probabilities from a formula, so that they are the same everywhere."""
    draws = uniforms(derive(seed, "table"), np.arange(num_labels * num_classes)).reshape(num_labels, num_classes)
    weights = (draws / draws.max(1, keepdims=True)) ** sharpness
    result: NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
    return result


@given(
    st.integers(1, 300),
    st.sampled_from([2, 3, 10, 47, 1000]),
    st.sampled_from([0.0, 1.0, 30.0, 1000.0]),
    st.integers(0, 99),
    st.booleans(),
)
def test_labels_come_back_and_the_size_is_bounded(
    num_labels: int, num_classes: int, sharpness: float, seed: int, unlikely: bool
) -> None:
    probabilities = table(num_labels, num_classes, sharpness, seed)
    labels = (uniforms(derive(seed, "labels"), np.arange(num_labels)) * num_classes).astype(np.int64)
    if unlikely:
        labels = probabilities.argmin(1)
    encoder = RangeEncoder()
    for start in range(0, num_labels, 32):
        encoder.write(labels[start : start + 32], probabilities[start : start + 32])
    decoder = RangeDecoder(encoder.payload())
    pieces = [decoder.read(probabilities[start : start + 32]) for start in range(0, num_labels, 32)]
    assert np.array_equal(np.concatenate(pieces), labels)
    with np.errstate(divide="ignore"):
        nats = float(-np.log(probabilities[np.arange(num_labels), labels]).clip(max=1e300).sum())
    size = 8 * len(encoder.payload())
    assert size <= bound_bits(nats, num_labels, num_classes)
    assert size <= num_labels * 24.001 + 64, "no label costs more than the resolution"


def test_the_largest_alphabet() -> None:
    probabilities = table(4, 65_536, 50.0, 0)
    labels = np.array([0, 65_535, 40_000, 7])
    encoder = RangeEncoder()
    encoder.write(labels, probabilities)
    assert RangeDecoder(encoder.payload()).read(probabilities).tolist() == labels.tolist()


GOLDEN_CONTAINER = (
    "5052455102000000180000000400000000000000ddaebd70edce73b1ad4e2d3af3712cd6"
    "50f21536142cf23a3e3e25f01ef8d5ea7b226c656e677468223a332c226e616d65223a22c3a9227d01020304"
)
GOLDEN_PAYLOAD = "c47fa0b28f59eb858b0d018454806ac5"


def test_golden_bytes() -> None:
    """From a stored table of probabilities, never from a network. A change here breaks every file."""
    numerators = np.array([[1, 2, 3, 10], [16, 0, 0, 0], [4, 4, 4, 4], [1, 13, 1, 1], [0, 0, 1, 15]] * 6)
    encoder = RangeEncoder()
    encoder.write(np.tile([3, 0, 2, 1, 2, 0, 3, 1, 1, 3], 3), numerators / 16)
    assert encoder.payload().hex() == GOLDEN_PAYLOAD
    content = Container({"length": 3, "name": "é"}, b"\x01\x02\x03\x04").to_bytes()
    assert content.hex() == GOLDEN_CONTAINER
    of_before = content[:4] + b"\x01" + content[5:]
    assert Container.from_bytes(of_before) == Container.from_bytes(content), "formats 1 and 2 differ in names alone"
    with pytest.raises(PreqError, match="the bitstream has format 3, this version reads 1 and 2"):
        Container.from_bytes(content[:4] + b"\x03" + content[5:])


@pytest.mark.parametrize("method", METHODS, ids=IDS)
@pytest.mark.parametrize("factory", [tiny, "mlp1"], ids=["batch-normalised", "mlp1"])
def test_every_method_encodes_and_decodes(method: Method, factory: str | ModelFactory) -> None:
    data = blobs(CHECKED_TOGETHER + 77).shuffled(1)
    if not isinstance(factory, str):
        data = data.take(90)
    record = pq.run(factory, data, method, seed=0)
    content = pq.encode(factory, data, method, seed=0)
    header = Container.from_bytes(content).header
    assert header["codelength_nats"] == pytest.approx(record.codelength, rel=1e-12)
    size = 8 * len(Container.from_bytes(content).payload)
    assert record.codelength is not None
    assert size <= bound_bits(record.codelength, len(data), 3)
    blind = from_arrays(data.stored_inputs, None).shuffled(1).take(len(data))
    decoded = pq.decode(content, blind, None if isinstance(factory, str) else factory)
    assert np.array_equal(decoded, record.labels)


@given(methods())
@settings(max_examples=50)
def test_methods_survive_their_settings(method: Method) -> None:
    assert method_from_settings(settings_of(method)) == method


METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


@pytest.fixture(scope="module")
def coded() -> tuple[bytes, ArraySequence]:
    data = blobs(200)
    return pq.encode("mlp1", data, METHOD, seed=0, width=0.02), from_arrays(data.stored_inputs, None)


def resealed(content: bytes, **changes: object) -> bytes:
    container = Container.from_bytes(content)
    return Container(container.header | changes, container.payload).to_bytes()


def test_a_decoder_with_other_arithmetic_is_stopped(
    coded: tuple[bytes, ArraySequence], monkeypatch: pytest.MonkeyPatch
) -> None:
    content, inputs = coded
    original = Learner.predict

    def perturbed(self: Learner, start: int, stop: int):  # type: ignore[no-untyped-def]
        prediction = original(self, start, stop)
        if start < 64:
            return prediction
        return replace(prediction, log_probabilities=(prediction.log_probabilities * 0.5).log_softmax(-1))

    monkeypatch.setattr(Learner, "predict", perturbed)
    with pytest.raises(PreqError, match=r"decode to something else than was encoded|does not fit the predictions"):
        pq.decode(content, inputs)


def test_differences_are_reported_before_work_starts(coded: tuple[bytes, ArraySequence]) -> None:
    content, inputs = coded
    header = Container.from_bytes(content).header
    other = resealed(content, environment=header["environment"] | {"torch": "1.0"})
    with pytest.warns(PreqWarning, match=r"decoding may fail \(torch 1.0 there, "):
        pq.decode(other, inputs)


def test_lies_that_are_resealed_end_in_a_clean_error_or_the_right_labels(coded: tuple[bytes, ArraySequence]) -> None:
    """Every value of the header, one at a time, replaced by something else, with the checksums made to fit."""
    content, inputs = coded
    header = Container.from_bytes(content).header
    right = blobs(200).stored_labels.numpy()
    places: list[tuple[str, ...]] = [(key,) for key in header]
    places += [(key, inner) for key, value in header.items() if isinstance(value, dict) for inner in value]
    for place in places:
        for lie in (None, 0, -1, 7, 1.5, 1e308, True, "x", [], [1], {}, {"name": "uniform"}):
            changed = {key: dict(value) if isinstance(value, dict) else value for key, value in header.items()}
            (changed[place[0]] if len(place) == 2 else changed)[place[-1]] = lie
            if place in [("method", "num_streams"), ("recipe", "momentum")] and lie == 7:
                continue
            with warnings.catch_warnings(action="ignore"):
                try:
                    assert np.array_equal(pq.decode(resealed(content, **changed), inputs), right), (place, lie)
                except PreqError as error:
                    told = str(error)
                else:
                    told = ""
            assert "\n" not in told


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"length": 199}, "is about 199 labels, the data has 200 inputs"),
        ({"plan": "0"}, "the plan differs from the encoder's"),
        ({"fingerprint": "0"}, "is not the encoder's: other layers or other weights"),
        ({"labels": "0"}, "not those that were encoded"),
        ({"checks": ["00000000"]}, "decode to something else"),
        ({"checks": []}, "number of checks"),
        ({"method": {"name": "os.system"}}, "not one of the package"),
        ({"method": {"name": "mi-rs", "x": 1}}, "has no setting x"),
        ({"method": {"name": "mi-rs", "num_streams": "a"}}, "num_streams must be a whole number"),
        ({"model": {"name": "os:system", "width": 1.0, "num_parameters": 9}}, r"give it again \(--model os:system\)"),
        ({"model": {"name": "mlp1", "width": 1e5, "num_parameters": 9}}, "has .* parameters, not 9"),
        ({"num_events": 5}, "more than the 5 events"),
        ({"num_classes": 70_000}, "num_classes must be a whole number in 2 … 65536, got 70000"),
        ({"num_classes": 10**30}, "num_classes must be a whole number in"),
        ({"method": []}, "damaged or incomplete: method"),
        ({"method": {"name": []}}, "method.name must be text"),
        ({"labels": None}, "damaged or incomplete: labels"),
        ({"recipe": {"learning_rate": -1.0}}, "learning_rate must be"),
        ({"recipe": {"nothing": 1}}, "has no setting nothing"),
        ({"seeds": None}, "damaged or incomplete"),
        ({"device": "cuda:55"}, "device 'cuda:55' is not there"),
        ({"num_classes": "many"}, "damaged or incomplete"),
        ({"environment": {"threads": 10**9}}, "environment.threads must be a whole number in 1 … 1024"),
    ],
    ids=str,
)
def test_headers_that_lie_are_refused(
    coded: tuple[bytes, ArraySequence], changes: dict[str, object], complaint: str
) -> None:
    content, inputs = coded
    lying = resealed(content, **changes)
    with warnings.catch_warnings(action="ignore", category=PreqWarning), pytest.raises(PreqError) as caught:
        pq.decode(lying, inputs)
    assert re.search(complaint, str(caught.value))
    assert "\n" not in str(caught.value)


def test_other_inputs_or_models_are_refused(coded: tuple[bytes, ArraySequence]) -> None:
    content, inputs = coded
    with pytest.raises(PreqError, match="not the inputs that were encoded"):
        pq.decode(content, inputs.shuffled(0))
    with pytest.raises(PreqError, match="made with the model 'mlp1', got 'mlp2'"):
        pq.decode(content, inputs, "mlp2")
    own = pq.encode(tiny, blobs(40), METHOD, seed=0)
    with pytest.raises(PreqError, match=r"is not one of the package; give it again"):
        pq.decode(own, from_arrays(blobs(40).stored_inputs, None))


def test_what_has_no_code_is_refused() -> None:
    with pytest.raises(PreqError, match="erm is not prequential"):
        pq.encode("mlp1", blobs(50), pq.FullDataset(), seed=0)
    with pytest.raises(PreqError, match="no finite codelength, so there is nothing to encode"):
        pq.encode("mlp1", blobs(200), METHOD, pq.Recipe(optimizer="sgd", learning_rate=1e30), seed=0)
    with pytest.raises(PreqError, match="'arrays' has no labels; they can be decoded, not scored"):
        pq.run("mlp1", from_arrays(blobs(50).stored_inputs, None), METHOD, seed=0)
    many = from_arrays(np.zeros((40, 5), np.float32), np.arange(40), num_classes=70_000)
    with pytest.raises(PreqError, match="at most 65536 classes, the data has 70000"):
        pq.encode(lambda: nn.Linear(5, 70_000), many, METHOD, seed=0)


def test_a_decoder_never_asks_for_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    data = blobs(100)
    content = pq.encode("mlp1", data, METHOD, seed=0)
    monkeypatch.setattr(ArraySequence, "labels", lambda *_: pytest.fail("labels were read"))
    decoded = pq.decode(content, data)
    assert torch.equal(torch.from_numpy(decoded), data.stored_labels)
