"""A toy behind each seam: a learner of one's own, a prediction that needs the label before, a kind of target."""

import math
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import prequential as pq
from prequential.coding.labels import Encoder, Scorer
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError
from prequential.learn.classes import ClassTensors
from prequential.learn.inputs import Inputs
from prequential.learn.kinds import TargetTensors, tensors_of
from prequential.learn.learner import Learner
from prequential.learn.prediction import Prediction, Stepwise
from prequential.targets.simple_codes import frequency_code, uniform_code

from ..conftest import blobs
from .test_records import tiny

METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


class Frequencies:
    """A learner without a network: how often each class was seen so far, one more for each. It learns by `observe`."""

    engine, precision, compiled, deterministic = "counts", "fp64", False, True
    fallback: str | None = None
    steps_at_once = 1

    def __init__(self, factory: Any, data: Any, recipe: pq.Recipe, *, seed: int, width: float, device: Any, **_: Any):
        self.factory, self.data, self.width, self.device = factory, data, width, device
        self.inputs = Inputs(data, recipe, seed=seed, device=device, dtype=torch.float32)
        self.model = nn.Linear(1, 1)  # counted, never asked
        self.counts = torch.ones(data.num_classes, dtype=torch.float64)

    def probe(self, num_examples: int) -> None:
        """Nothing can go wrong."""

    def fingerprints(self) -> list[str]:
        return ["counts"]

    def predict(self, start: int, stop: int) -> Prediction | Stepwise:
        rows = (self.counts / self.counts.sum()).log().expand(stop - start, -1)
        return Prediction(rows, rows, torch.ones((), dtype=torch.float64))

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        return ClassTensors(len(self.counts)).uniform(stop - start, self.device)

    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        self.counts += torch.bincount(labels, minlength=len(self.counts))

    def train_steps(self, batches: Any, labels: Tensor, event: int) -> None:
        """It has learned what it can."""

    def calibrate(self, indices: Any, labels: Tensor) -> None:
        """Nothing to scale."""

    def reinit(self, event: int) -> None:
        self.counts.fill_(1)

    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None:
        """Nothing to shrink."""

    def evaluate(self) -> None:
        """Nothing is held out."""

    def finite(self) -> list[bool]:
        return [True]

    def tensors(self) -> dict[str, list[Tensor]]:
        return {"counts": [self.counts]}

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        self.counts.copy_(state["counts"][0])

    def close(self) -> None:
        """Nothing to let go of."""


class Adaptive(Frequencies):
    """The same counts, but each label of a span counts before the next is predicted."""

    def predict(self, start: int, stop: int) -> Prediction | Stepwise:
        learner = self

        class Counting(Stepwise):
            def next_row(self) -> Tensor:
                told = torch.bincount(torch.tensor(self.told, dtype=torch.int64), minlength=len(learner.counts))
                counts = learner.counts + told
                return (counts / counts.sum()).log()

        return Counting()


def laplace(labels: np.ndarray, num_classes: int, block: int) -> float:
    """Σ −ln of (n_label + 1)/(n + C), the counts being those before the label's block."""
    nats = 0.0
    for position, label in enumerate(labels):
        seen = labels[: position // block * block]
        nats -= math.log((np.sum(seen == label) + 1) / (len(seen) + num_classes))
    return nats


def labels_of(data: ArraySequence) -> np.ndarray:
    return data.labels(np.arange(len(data))).numpy()


def test_a_learner_of_ones_own_is_run() -> None:
    data = blobs(50, num_classes=4).without_heldout()
    record = pq.run(tiny, data, METHOD, seed=0, learner=Frequencies)
    assert record.codelength == pytest.approx(laplace(labels_of(data), 4, block=8), rel=1e-12)
    assert record.environment["engine"] == "counts"


def test_a_learner_derived_from_ours_is_run() -> None:
    class Lazy(Learner):
        def train_steps(self, batches: Any, labels: Tensor, event: int) -> None:
            """It never learns."""

    data = blobs(64).without_heldout()
    lazy, keen = (pq.run(tiny, data, METHOD, seed=0, learner=learner) for learner in (Lazy, None))
    assert lazy.codelength is not None
    assert keen.codelength is not None
    assert lazy.codelength > keen.codelength
    assert pq.run(tiny, data, METHOD, seed=0, learner=Learner).nats.tobytes() == keen.nats.tobytes()


def predicting(change: Callable[[Tensor], Tensor]) -> type[Learner]:
    class Changed(Learner):
        def predict(self, start: int, stop: int) -> Prediction:
            found = super().predict(start, stop)
            rows = change(found.log_probabilities)
            return Prediction(rows, rows, found.temperature)

    return Changed


class TooSureEachTime(Frequencies):
    def predict(self, start: int, stop: int) -> Stepwise:
        class Free(Stepwise):
            def next_row(self) -> Tensor:
                return torch.full((3,), -1.0, dtype=torch.float64)

        return Free()


@pytest.mark.parametrize(
    ("learner", "complaint"),
    [
        (
            predicting(lambda rows: rows + 1),
            r"at position 0 sum to 2\.718282, of which there is no code; normalise them",
        ),
        (predicting(lambda rows: rows + 1e4), "at position 0 sum to inf, of which there is no code"),
        (predicting(lambda rows: torch.cat([rows[:-1], rows[-1:] + 0.1])), "at position 7 sum to 1.105171"),
        (predicting(lambda rows: rows[:1]), "positions 0 to 7 were predicted by 1 rows; give one for each"),
        (TooSureEachTime, "at position 0 sum to 1.103638"),
    ],
)
def test_nobody_has_free_nats(learner: Any, complaint: str) -> None:
    data = blobs(50).without_heldout()
    for use in (pq.run, pq.encode):
        with pytest.raises(PreqError, match=complaint):
            use(tiny, data, METHOD, seed=0, learner=learner)
    rounded = predicting(lambda rows: rows.float())
    assert pq.run(tiny, data, METHOD, seed=0, learner=rounded).status == "finished"


def test_a_prediction_may_need_the_label_before() -> None:
    data = blobs(50, num_classes=4).without_heldout()
    record = pq.run(tiny, data, METHOD, seed=0, learner=Adaptive)
    assert record.codelength == pytest.approx(laplace(labels_of(data), 4, block=1), rel=1e-12)


@settings(max_examples=10)
@given(st.sampled_from([Frequencies, Adaptive]), st.integers(8, 40), st.integers(2, 5))
def test_what_ones_own_learner_codes_is_decoded(learner: Any, length: int, num_classes: int) -> None:
    data = blobs(length, num_classes=num_classes).without_heldout()
    bits = pq.encode(tiny, data, METHOD, seed=0, learner=learner)
    assert np.array_equal(pq.decode(bits, data, tiny, learner=learner), labels_of(data))


def test_another_learner_than_the_encoders_is_noticed() -> None:
    data = blobs(40, num_classes=4).without_heldout()
    bits = pq.encode(tiny, data, METHOD, seed=0, learner=Adaptive)
    with pytest.raises(PreqError, match=r"made by a learner of its own \('counts'\); give it again"):
        pq.decode(bits, data, tiny)
    with pytest.raises(PreqError, match="is not the encoder's: other layers or other weights"):
        pq.decode(bits, data, tiny, learner=Learner)


def test_ones_own_learner_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    data = blobs(50, num_classes=4).without_heldout()

    def stop(progress: Any) -> None:
        if progress.position >= 24:
            signal.raise_signal(signal.SIGTERM)

    arguments: dict[str, Any] = {"seed": 0, "learner": Adaptive, "out": tmp_path / "run", "checkpoint_seconds": 0}
    with pytest.raises(pq.Interrupted):
        pq.run(tiny, data, METHOD, **arguments, listeners=[stop])
    resumed = pq.run(tiny, data, METHOD, **arguments, resume=True)
    assert resumed.nats.tobytes() == pq.run(tiny, data, METHOD, seed=0, learner=Adaptive).nats.tobytes()


def test_whole_spans_are_asked_for_at_once() -> None:
    class Whole:
        asked = 0

        def rows(self) -> Tensor:
            self.asked += 1
            return torch.full((3, 3), -math.log(3), dtype=torch.float64)

        def row(self) -> Tensor:
            raise AssertionError("a span that is known at once is never walked through")

        def tell(self, label: int) -> None:
            raise AssertionError("and no label is told")

    for kind in (Scorer, Encoder):
        whole = Whole()
        kind(blobs(3), torch.device("cpu")).reveal(0, 3, whole)
        assert whole.asked == 1


MOST = 40
"""Counts that are coded; none beyond comes up."""


@dataclass(frozen=True)
class Counts:
    """How often something happened: n with probability (1 − q)·qⁿ, cut off at MOST. The network gives ln q/(1 − q)."""

    output_size, output_words, num_symbols, dtype = 1, "one number, the log-odds of one more", MOST, np.dtype(np.uint8)

    def facts(self) -> dict[str, Any]:
        return {"num_classes": MOST, "target": {"kind": "counts", "most": MOST}}

    def require(self, targets: np.ndarray) -> None:
        if targets.min() < 0 or targets.max() >= MOST:
            raise PreqError(f"counts must be in 0 … {MOST - 1}")


class CountTensors:
    """Its other half: −ln p = −ln(1 − q) − n·ln q, up to what is cut off; the temperature scales the log-odds."""

    def _rows(self, odds: Tensor) -> Tensor:
        return (torch.arange(MOST, device=odds.device) * nn.functional.logsigmoid(odds)).log_softmax(-1)

    def loss_gradient(self, outputs: Tensor, labels: Tensor, smoothing: float | Tensor) -> Tensor:
        with torch.enable_grad():
            odds = outputs.detach().requires_grad_()
            loss = -self._rows(odds).gather(-1, labels[:, None]).mean()
            return torch.autograd.grad(loss, odds)[0]

    def calibration_gradient(self, outputs: Tensor, labels: Tensor, beta: Tensor, count: Tensor | None) -> Tensor:
        with torch.enable_grad():
            free = beta.detach().requires_grad_()
            rows = self._rows(nn.functional.softplus(free) * outputs.double())
            return torch.autograd.grad(-rows.gather(-1, labels[:, None]).mean(), free)[0]

    def prediction(self, outputs: Tensor, beta: Tensor) -> Prediction:
        scale = nn.functional.softplus(beta).double()
        return Prediction(self._rows(scale * outputs.double()), self._rows(outputs.double()), scale)

    def uniform(self, num_positions: int, device: torch.device) -> Prediction:
        return ClassTensors(MOST).uniform(num_positions, device)


@tensors_of.register
def _(target: Counts) -> TargetTensors:
    return CountTensors()


class Visits(ArraySequence):
    """Counts that the first input decides."""

    @property
    def target(self) -> Counts:
        return Counts()


def visits(length: int) -> Visits:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(length, 5, generator=generator)
    chance = torch.sigmoid(2 * inputs[:, 0])
    counts = torch.zeros(length, dtype=torch.int64)
    for _ in range(MOST - 1):
        counts += (counts == counts.max()) & (torch.rand(length, generator=generator) < chance)
    return Visits(inputs, counts, MOST, torch.arange(length))


def one_number(input_shape: tuple[int, ...], output_size: int) -> nn.Module:
    return nn.Linear(input_shape[0], output_size)


STREAMS = pq.ReplayStreams(num_streams=8, batch_size=16)


@pytest.mark.parametrize("engine", ["eager", "graph"])
def test_a_kind_of_target_of_ones_own_is_learned(engine: str, tmp_path: Path) -> None:
    data = visits(400)
    recipe = pq.Recipe(learning_rate=3e-2)
    record = pq.run(
        one_number, data, STREAMS, recipe, seed=0, execution=pq.Execution(engine=engine), out=tmp_path / "run"
    )
    uniform, frequencies = uniform_code(labels_of(data), MOST).sum(), frequency_code(labels_of(data), MOST).sum()
    assert record.codelength is not None
    assert record.codelength < 0.9 * frequencies < uniform
    assert pq.load(tmp_path / "run").target == {"kind": "counts", "most": MOST}


def test_a_kind_of_target_of_ones_own_is_decoded() -> None:
    data = visits(100)
    bits = pq.encode(one_number, data, STREAMS, seed=0)
    assert np.array_equal(pq.decode(bits, data, one_number), labels_of(data))
    classes = ArraySequence(data.stored_inputs, data.stored_labels, MOST, data.order)
    with pytest.raises(PreqError, match=r"is about targets .*counts.*, the data has"):
        pq.decode(bits, classes, one_number)


def test_a_network_that_gives_other_numbers_is_refused_in_words() -> None:
    with pytest.raises(PreqError, match=r"wanted \(1,\): one number, the log-odds of one more; change its last layer"):
        pq.run(lambda input_shape: nn.Linear(5, 2), visits(40), STREAMS, seed=0)


def test_a_kind_that_nobody_computes_with_is_refused() -> None:
    class Unknown(Visits):
        @property
        def target(self) -> Any:
            return object()

    data = visits(20)
    with pytest.raises(PreqError, match="nobody computes with targets of the kind object"):
        pq.run(one_number, Unknown(data.stored_inputs, data.stored_labels, MOST, data.order), STREAMS, seed=0)
