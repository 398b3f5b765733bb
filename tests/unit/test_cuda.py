"""The graph engine on a real GPU; skipped where there is none (`python experiments/engines.py` shows more)."""

import signal
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqWarning
from prequential.experts.learner import MixedLearner
from prequential.learn.capture import Captured, Tape
from prequential.learn.lanes import side_by_side
from prequential.runs.session import make_session

from ..conftest import blobs
from ..laws.test_experts import labels_of, small
from ..laws.test_records import tiny
from .test_experts import same

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


def calm(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Without dropout, which a stack draws otherwise than a single network does."""
    return tiny(input_shape, num_classes, dropout=0.0)


STACKED = pq.Experts([calm, calm, small, calm], "logistic", simple_codes=True)
RECIPE = pq.Recipe(learning_rate=1e-3)


def test_stacked_experts_mixed_behind_the_gpu_cost_what_they_cost_on_a_cpu() -> None:
    data, execution = blobs(300), pq.Execution(precision="fp32")
    learner = make_session(STACKED, data, METHOD, [RECIPE], [0], device="cuda", execution=execution).learner
    assert isinstance(learner, MixedLearner)
    assert [each.engine for each in learner.members] == ["stack", "graph"]
    one = pq.run(STACKED, data, METHOD, RECIPE, seed=0)
    other = pq.run(STACKED, data, METHOD, RECIPE, seed=0, device="cuda", execution=execution)
    assert other.environment["fallback"] is None
    assert one.expert_nats is not None
    assert other.expert_nats is not None
    np.testing.assert_allclose(other.expert_nats[:64], one.expert_nats[:64], rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(other.nats[:64], one.nats[:64], rtol=1e-2, atol=1e-3)
    assert other.codelength == pytest.approx(one.codelength, rel=0.02)


def require_lanes(experts: pq.Experts, data: ArraySequence, method: Any, settings: dict[str, Any]) -> None:
    """All of them side by side, none where the others wait."""
    learner = make_session(experts, data, method, [RECIPE], [0], **settings).learner
    assert isinstance(learner, MixedLearner)
    learner.probe(16)
    lanes = {each.lane.cuda_stream for each in learner.members}  # type: ignore[attr-defined]
    assert len(lanes) == len(learner.members)
    assert torch.cuda.current_stream().cuda_stream not in lanes
    learner.close()


@pytest.mark.parametrize("given", ["inputs so far", "all inputs"])
def test_experts_side_by_side_are_to_the_bit_what_they_are_alone(mnist: ArraySequence, given: str) -> None:
    data, execution = mnist.take(600).without_heldout(), pq.Execution(deterministic=True)
    method: Any = pq.ReplayStreams(num_streams=20, batch_size=16, first_block=4, min_steps=4)
    settings: dict[str, Any] = {"device": "cuda", "execution": execution, "width": 0.25}
    names = ["smallconv", "lenet", "resnet18"]
    if given == "all inputs":
        method = pq.AllInputs(method=method, beside=3, strong_views=("affine", "cutout:8"))
        names = ["smallconv", "smallconv", "lenet"]
    experts = pq.Experts([pq.Expert(name, seed=seed) for seed, name in enumerate(names)])
    require_lanes(experts, data, method, settings)
    mixed = pq.run(experts, data, method, RECIPE, seed=0, **settings)
    assert mixed.environment["fallback"] is None
    assert mixed.expert_nats is not None
    for number, name in enumerate(names):
        alone = pq.run(name, data, method, RECIPE, seed=number, **settings)
        assert alone.nats.tobytes() == mixed.expert_nats[:, number].tobytes()


def test_dropout_is_drawn_alike_whoever_draws_beside(mnist: ArraySequence) -> None:
    data, given = mnist.take(300).without_heldout(), pq.AllInputs(method=METHOD, beside=1)
    settings: dict[str, Any] = {"device": "cuda", "execution": pq.Execution(deterministic=True), "width": 0.25}
    before = torch.cuda.get_rng_state()
    names = ("mnistnet", "smallconv", "mlp2", "mlp3")
    experts = pq.Experts([pq.Expert(name, seed=0) for name in names])
    require_lanes(experts, data, given, settings)
    mixed = pq.run(experts, data, given, RECIPE, seed=0, **settings)
    assert mixed.environment["fallback"] is None
    assert mixed.expert_nats is not None
    for number, name in enumerate(names):
        alone = pq.run(name, data, given, RECIPE, seed=0, **settings)
        assert alone.nats.tobytes() == mixed.expert_nats[:, number].tobytes()
    assert torch.equal(torch.cuda.get_rng_state(), before)


LONG = 10**8
"""Clock cycles that a stream is kept waiting."""


def test_replays_at_the_same_time_draw_what_each_was_told() -> None:
    ones = torch.ones(1000, device="cuda")
    tapes = [Tape(torch.device("cuda")) for _ in range(2)]
    recorded, drawn = [], []
    for tape in tapes:
        with tape.drawing():
            recorded.append(Captured(lambda: F.dropout(ones, 0.5), tape))
    for seed, (tape, each) in enumerate(zip(tapes, recorded, strict=True)):
        with torch.cuda.stream(tape.stream):
            torch.cuda._sleep(LONG * (1 - seed))  # the first is not done when the second is told its seed
            tape.generator.manual_seed(seed)
            drawn.append(each.replay())
    torch.cuda.synchronize()
    for seed, draws in enumerate(drawn):
        with torch.random.fork_rng(["cuda"]):
            torch.cuda.manual_seed(seed)
            assert torch.equal(draws, F.dropout(ones, 0.5))


def test_lanes_wait_for_the_stream_outside_and_it_for_them() -> None:
    outside, workers = torch.zeros(2, device="cuda"), [Lane(torch.cuda.Stream()) for _ in range(2)]
    torch.cuda._sleep(LONG)
    outside.fill_(1.0)
    for number, _ in enumerate(side_by_side(workers)):
        torch.cuda._sleep(LONG)
        outside[number] += 1
    assert (outside * 2).tolist() == [4.0, 4.0]


@dataclass
class Lane:
    """A learner, as far as lanes go."""

    lane: torch.cuda.Stream


class Recurrent(nn.Module):
    """Whose dropout is drawn by cuDNN."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.last = nn.GRU(5, 8, num_layers=2, dropout=0.5), nn.Linear(8, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.last(self.recurrent(inputs[None])[0][0])
        return logits


def test_dropout_between_recurrent_layers_is_not_recorded() -> None:
    execution = pq.Execution(precision="fp32")
    with pytest.warns(PreqWarning, match="cannot be recorded"):
        record = pq.run(Recurrent, blobs(100), METHOD, RECIPE, seed=0, device="cuda", execution=execution)
    eager = pq.run(Recurrent, blobs(100), METHOD, seed=0, device="cuda", execution=pq.Execution(engine="eager"))
    assert record.codelength == pytest.approx(eager.codelength, rel=0.02)


@pytest.mark.parametrize("experts", [STACKED, pq.Experts([pq.Expert(tiny, averages=(0.1, 0.01)), tiny], "switching")])
def test_a_mixed_run_on_a_gpu_goes_on_to_the_same_bits(
    experts: pq.Experts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    given: dict[str, Any] = {"seed": 0, "device": "cuda", "execution": pq.Execution(deterministic=True)}
    kept: dict[str, Any] = {"out": tmp_path / "run", "resume": True, "checkpoint_seconds": 0}
    whole = pq.run(experts, blobs(300), METHOD, RECIPE, **given)
    for position in (40, 150):

        def stop(progress: Any, at: int = position) -> None:
            if progress.position >= at:
                signal.raise_signal(signal.SIGTERM)

        with pytest.raises(pq.Interrupted):
            pq.run(experts, blobs(300), METHOD, RECIPE, **given, **kept, listeners=[stop])
    resumed = pq.run(experts, blobs(300), METHOD, RECIPE, **given, **kept)
    assert same(resumed, whole)
    assert resumed.heldout == whole.heldout


def test_labels_of_mixed_experts_come_back() -> None:
    pytest.importorskip("sklearn")
    data = blobs(200).without_heldout()
    experts = pq.Experts([calm, calm, "sklearn:naive_bayes.GaussianNB"], "logistic")
    content = pq.encode(experts, data, METHOD, seed=0, device="cuda")
    assert np.array_equal(pq.decode(content, data, experts), labels_of(data))
