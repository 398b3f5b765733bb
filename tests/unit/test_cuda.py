"""The graph engine on a real GPU; skipped where there is none (`python experiments/engines.py` shows more)."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqWarning

from ..conftest import blobs
from ..laws.test_records import tiny

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
METHOD = pq.ReplayStreams(num_streams=3, batch_size=16, first_block=4, min_steps=2)


def nats(model: Any, data: ArraySequence, execution: pq.Execution) -> np.ndarray:
    record = pq.run(model, data, METHOD, pq.Recipe(learning_rate=1e-3), seed=0, device="cuda", execution=execution)
    assert record.environment["fallback"] is None
    return record.nats


def test_recorded_steps_draw_the_dropout_of_eager_ones() -> None:
    eager, graphed = (
        nats(tiny, blobs(300), pq.Execution(engine=engine, precision="fp32")) for engine in ("eager", "graph")
    )
    np.testing.assert_allclose(graphed, eager, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("model", ["smallconv", "mnistnet"])
def test_the_same_bits_again_and_streamed(mnist: ArraySequence, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = mnist.take(400).without_heldout()
    one, two = (nats(model, data, pq.Execution(deterministic=True)) for _ in range(2))
    assert one.tobytes() == two.tobytes()
    monkeypatch.setattr("prequential.learn.inputs.SHARE", 0.0)
    assert nats(model, data, pq.Execution(deterministic=True)).tobytes() == one.tobytes()


def test_labels_come_back(mnist: ArraySequence) -> None:
    data = mnist.take(200)
    bits = pq.encode("lenet", data, METHOD, seed=0, device="cuda")
    assert np.array_equal(pq.decode(bits, data, device="cuda"), data.labels(np.arange(200)).numpy())


class Waits(nn.Module):
    """Asks the GPU for a number in the middle of a step."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout, self.layer = nn.Dropout(0.5), nn.Linear(5, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        scale = float(inputs.abs().max()) if self.training else 1.0
        logits: Tensor = self.layer(self.dropout(inputs)) / scale
        return logits


def test_a_model_that_waits_for_the_gpu_goes_on_eagerly(mnist: ArraySequence) -> None:
    with pytest.warns(PreqWarning, match="cannot be recorded"):
        record = pq.run(Waits, blobs(200), METHOD, seed=0, device="cuda", execution=pq.Execution(precision="fp32"))
    eager = pq.run(Waits, blobs(200), METHOD, seed=0, device="cuda", execution=pq.Execution(engine="eager"))
    np.testing.assert_allclose(record.nats, eager.nats, rtol=1e-2, atol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert len(nats("lenet", mnist.take(200), pq.Execution(compiled=True))) == 200
