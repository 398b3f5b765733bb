"""A toy behind each seam: a learner of one's own, and a prediction that needs the label before."""

import math
import signal
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
from prequential.data import ArraySequence
from prequential.errors import PreqError
from prequential.learn.inputs import Inputs
from prequential.learn.learner import Learner
from prequential.learn.prediction import Prediction, Stepwise

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
        return Prediction.uniform(stop - start, len(self.counts), self.device)

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
