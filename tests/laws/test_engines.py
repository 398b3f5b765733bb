"""Engines agree: the graph engine computes what the eager one does, by other means."""

import gc
import warnings
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import prequential as pq
from prequential.coding.labels import Scorer
from prequential.data.augment import DeviceDraws, augmentation_key, draws_for
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError, PreqWarning
from prequential.events import Event, Predict, Reinit, Train
from prequential.learn import capture, classes, programs
from prequential.learn.execution import Execution
from prequential.learn.graph import GraphLearner
from prequential.learn.inputs import Resident, Streamed, make_feed
from prequential.learn.learner import Learner
from prequential.learn.shapes import Shapes
from prequential.plan import Plan
from prequential.runs.loop import execute
from prequential.runs.recorder import Recorder
from prequential.walks import blocks

from ..conftest import blobs
from ..unit.test_resume import assert_same
from .test_records import IDS, METHODS, tiny

AUGMENT = ("affine", "flip", "shift:2", "cutout:4")


class Recorded:
    """A CUDA graph's contract on a CPU: what is recorded runs again on the same tensors, without Python's help."""

    def __init__(self, work: Any, tape: Any) -> None:
        for _ in range(capture.WARM_UPS):
            work()
        self._work, self._result = work, work()

    def replay(self) -> Any:
        result = self._work()
        return self._copied(self._result, result)

    def _copied(self, old: Any, new: Any) -> Any:
        if isinstance(old, torch.Tensor):
            return old.copy_(new)
        if isinstance(old, tuple):
            return tuple(self._copied(o, n) for o, n in zip(old, new, strict=True))
        if old is not None:
            for name in old.__slots__:
                self._copied(getattr(old, name), getattr(new, name))
        return old


def weights(learner: Learner) -> torch.Tensor:
    return torch.cat(
        [
            tensor.double().flatten()
            for tensors in (learner.raw_tensors, learner.ema_tensors)
            for tensor in tensors.averaged
        ]
    )


def trained(kind: type[Learner], data: ArraySequence, model: Any, recipe: pq.Recipe, **settings: Any) -> Learner:
    """After twenty steps in float64."""
    learner = kind(model, data, recipe, seed=3, dtype=torch.float64, **settings)
    learner.probe(8)
    batches = np.random.default_rng(0).integers(0, len(data), (20, 8))
    labels = data.labels(batches.ravel()).view(batches.shape)
    learner.train_steps(batches[:12], labels[:12], 5)
    learner.train_steps(batches[12:], labels[12:], 17)
    return learner


@pytest.mark.parametrize("model", ["lenet", "smallconv", "mnistnet", "vggpp"])
@pytest.mark.parametrize(
    "recipe",
    [
        pq.Recipe(),
        pq.Recipe(augment=AUGMENT, ema_warmup=False, label_smoothing=0.1),
        pq.Recipe(full_rate_steps=5),
        pq.Recipe(optimizer="rmsprop", learning_rate=1e-4),
        pq.Recipe(optimizer="sgd", learning_rate=1e-2, full_rate_steps=3),
        pq.Recipe(optimizer="sgd", learning_rate=1e-2, momentum=0.0, batch_statistics="averaged-twice"),
        pq.Recipe(batch_statistics="raw"),
        pq.Recipe(optimizer="muon"),
        pq.Recipe(optimizer="muon", full_rate_steps=3, momentum=0.5),
    ],
    ids=["default", "augmented", "decaying", "rmsprop", "decaying-sgd", "sgd", "raw", "muon", "decaying-muon"],
)
def test_twenty_steps_in_double_precision_are_the_same(mnist: ArraySequence, model: str, recipe: pq.Recipe) -> None:
    data = mnist.take(64)
    slow = {"smallconv": 0.125, "mnistnet": 0.125} if recipe.optimizer == "muon" else {}
    width = ({"vggpp": 0.125, "mnistnet": 0.25} | slow).get(model, 1.0)
    eager, graphed = (trained(kind, data, model, recipe, width=width) for kind in (Learner, GraphLearner))
    torch.testing.assert_close(weights(graphed), weights(eager), rtol=1e-9, atol=1e-9)
    for one, other in zip(eager.ema_tensors.others, graphed.ema_tensors.others, strict=True):
        if one.is_floating_point():  # raw statistics
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
        else:
            assert one.equal(other)  # batches are counted alike
    assert graphed.num_steps == eager.num_steps == 20
    torch.testing.assert_close(
        graphed.predict(3, 9).log_probabilities, eager.predict(3, 9).log_probabilities, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("optimizer", ["adamw", "rmsprop", "sgd", "muon"])
def test_what_is_compiled_computes_the_same(
    mnist: ArraySequence, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = partial(torch.compile, backend="aot_eager", fullgraph=optimizer == "adamw", dynamic=False)
    monkeypatch.setattr(torch, "compile", lambda function, dynamic, options: traced(function))
    recipe = pq.Recipe(optimizer=optimizer, learning_rate=1e-4, augment=AUGMENT, full_rate_steps=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = trained(GraphLearner, mnist.take(64), "lenet", recipe, compiled=True)
    assert compiled.compiled
    eager = trained(Learner, mnist.take(64), "lenet", recipe)
    torch.testing.assert_close(weights(compiled), weights(eager), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_a_run_gives_the_same_code(method: Any) -> None:
    data = blobs(400)
    eager = pq.run(tiny, data, method, seed=0)
    graphed = pq.run(tiny, data, method, seed=0, execution=pq.Execution(engine="graph"))
    assert graphed.environment["engine"] == "graph"
    np.testing.assert_allclose(graphed.nats, eager.nats, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(graphed.temperatures, eager.temperatures, rtol=1e-4)
    assert graphed.flops == eager.flops


def test_growing_spans_share_programs_and_predict_the_same(mnist: ArraySequence) -> None:
    method = pq.ReplayStreams(num_streams=2, batch_size=32, first_block=4, min_steps=2)
    recipe = pq.Recipe(augment=("affine",), average_flips=True, average_views=3)
    eager, graphed = (
        pq.run(
            "lenet", mnist.take(900).without_heldout(), method, recipe, seed=0, execution=pq.Execution(engine=engine)
        )
        for engine in ("eager", "graph")
    )
    np.testing.assert_allclose(graphed.nats, eager.nats, rtol=1e-2, atol=1e-3)


class Slow(ArraySequence):
    """A sequence whose inputs take work to read, and that trains on something else than it predicts from."""

    def read_ahead(self, reads: Any) -> None:
        pass

    def training_inputs(self, positions: Any, key: int) -> torch.Tensor:
        return self.inputs(positions) + 0.01 * (key % 7)


def test_streamed_inputs_are_the_ones_an_eager_engine_reads() -> None:
    plain = blobs(300)
    data = Slow(plain.stored_inputs, plain.stored_labels, 3, plain.order)
    method = pq.ReplayStreams(num_streams=2, batch_size=8, first_block=4)
    eager, graphed = (
        pq.run(tiny, data, method, seed=0, execution=pq.Execution(engine=engine)) for engine in ("eager", "graph")
    )
    np.testing.assert_allclose(graphed.nats, eager.nats, rtol=1e-3, atol=1e-4)
    learners = [GraphLearner(tiny, d, pq.Recipe(), seed=0) for d in (plain, data)]
    assert isinstance(make_feed(learners[0].inputs)(8), Resident)
    assert isinstance(make_feed(learners[1].inputs)(8), Streamed)


def test_data_that_does_not_fit_is_streamed(monkeypatch: pytest.MonkeyPatch, mnist: ArraySequence) -> None:
    data = mnist.take(300).without_heldout()
    resident = pq.run("lenet", data, seed=0, execution=pq.Execution(engine="graph"))
    monkeypatch.setattr("prequential.learn.inputs.SHARE", 0.0)
    streamed = pq.run("lenet", data, seed=0, execution=pq.Execution(engine="graph"))
    np.testing.assert_allclose(streamed.nats, resident.nats, rtol=1e-4, atol=1e-5)


def test_a_graph_run_goes_on_after_any_event_to_the_bit(mnist: ArraySequence) -> None:
    data, method = mnist.take(150).without_heldout(), pq.ReplayStreams(num_streams=2, batch_size=24, first_block=3)
    plan = Plan(method, 150)

    def begun(state: Any = None, counters: Any = None) -> tuple[Any, Recorder, Scorer]:
        learner = GraphLearner("lenet", data, pq.Recipe(), seed=0, shapes=Shapes.of(plan))
        recorder, labels = Recorder(plan, data.target), Scorer(data, learner.device)
        if state is not None:
            learner.restore(state)
            (member,) = recorder.members
            member.num_events, labels.frontier = counters
            member.position = labels.frontier
        return learner, recorder, labels

    learner, recorder, labels = begun()
    states: list[Any] = []
    monitor = lambda: states.append((learner.state(), (recorder.num_events, labels.frontier)))  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
        patch.setattr(recorder, "pause_is_due", lambda: True)
        execute(plan, learner, labels, recorder, monitor)
    for state, counters in states[3:-1:5]:
        other, again, known = begun(state, counters)
        execute(plan, other, known, again)
        for one, two in zip(learner.state().values(), other.state().values(), strict=True):
            assert all(a.equal(b) for a, b in zip(one, two, strict=True)), f"after event {counters[0]}"


def test_a_graph_run_resumes_from_its_directory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    method = pq.ReplayStreams(num_streams=3, batch_size=16, first_block=4, min_steps=2)

    def ask(progress: Any) -> None:
        if progress.position >= 200:
            raise RuntimeError("stopped on purpose")

    arguments: dict[str, Any] = {"seed": 0, "execution": pq.Execution(engine="graph"), "checkpoint_seconds": 0}
    whole = pq.run(tiny, blobs(400), method, **arguments)
    with pytest.raises(RuntimeError, match="on purpose"):
        pq.run(tiny, blobs(400), method, **arguments, out=tmp_path / "run", listeners=[ask])
    resumed = pq.run(tiny, blobs(400), method, **arguments, out=tmp_path / "run", resume=True)
    assert_same(resumed, whole)
    with pytest.raises(PreqError, match="engine graph then, eager now"):
        pq.run(tiny, blobs(400), method, seed=0, out=tmp_path / "run", resume=True)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_labels_coded_by_the_graph_engine_come_back(mnist: ArraySequence, optimizer: str) -> None:
    data, method, recipe = mnist.take(200), pq.ReplayStreams(num_streams=1), pq.Recipe(optimizer=optimizer)
    bits = pq.encode("lenet", data, method, recipe, seed=0, execution=pq.Execution(engine="graph"))
    assert np.array_equal(pq.decode(bits, data), data.labels(np.arange(200)).numpy())


def test_bfloat16_is_close_and_charges_in_double_precision(mnist: ArraySequence) -> None:
    data = mnist.take(512).without_heldout()
    recipe = pq.Recipe(learning_rate=1e-3)
    full, half = (
        pq.run("lenet", data, None, recipe, seed=0, execution=pq.Execution(precision=precision))
        for precision in ("fp32", "bf16")
    )
    assert half.codelength is not None
    assert full.codelength is not None
    assert half.environment["precision"] == "bf16"
    assert 0 < abs(half.codelength / full.codelength - 1) < 0.05
    assert half.nats.dtype == np.float64


def test_a_model_that_cannot_be_recorded_goes_on_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    eager = pq.run(tiny, blobs(100), seed=0)
    monkeypatch.setattr(programs, "Captured", refuse)
    with pytest.warns(PreqWarning, match=r"cannot be recorded \(operation not .* capturing\); going on eagerly"):
        graphed = pq.run(tiny, blobs(100), seed=0, execution=pq.Execution(engine="graph"))
    assert graphed.nats.tobytes() == eager.nats.tobytes()
    assert str(graphed.environment["fallback"]).startswith("not recorded: operation not permitted")


def test_a_compiled_recording_that_breaks_off_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    class Breaks(Recorded):
        def __init__(self, work: Any, tape: Any) -> None:
            super().__init__(work, tape)
            attempts.append(work)
            if len(attempts) == 1:
                raise RuntimeError("broke off after its warm-up")

    monkeypatch.setattr(programs, "compiled", lambda function: function)
    monkeypatch.setattr(programs, "Captured", Breaks)
    with pytest.warns(PreqWarning, match="cannot be compiled"):
        learner = trained(GraphLearner, blobs(64), tiny, pq.Recipe(), compiled=True)
    assert len(attempts) == 2
    assert learner.optimizer.state["step"][0] == 20
    torch.testing.assert_close(weights(learner), weights(trained(Learner, blobs(64), tiny, pq.Recipe())))


def test_a_model_that_couples_its_rows_is_not_filled_up() -> None:
    def coupled(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return nn.Sequential(
            nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, num_classes)
        )

    method = pq.ReplayStreams(num_streams=2, batch_size=16, first_block=2)
    eager, graphed = (
        pq.run(coupled, blobs(300), method, seed=0, execution=pq.Execution(engine=engine))
        for engine in ("eager", "graph")
    )
    np.testing.assert_allclose(graphed.nats, eager.nats, rtol=1e-3, atol=1e-4)


def test_nothing_that_only_speed_needed_outlives_a_run() -> None:
    learner = GraphLearner(tiny, blobs(64), pq.Recipe(), seed=0)
    learner.train_steps(np.zeros((1, 8), np.int64), torch.zeros(1, 8, dtype=torch.int64), 0)
    learner.predict(0, 8)
    alive = weakref.ref(learner)
    learner.close()
    gc.disable()
    try:
        del learner
        assert alive() is None
    finally:
        gc.enable()


def test_a_model_that_cannot_be_compiled_is_recorded_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(programs, "compiled", refuse)
    with pytest.warns(PreqWarning, match=r"cannot be compiled \(no compiler here\); going on without"):
        learner = trained(GraphLearner, blobs(64), tiny, pq.Recipe(), compiled=True)
    assert learner.fallback == "not compiled: no compiler here"
    torch.testing.assert_close(weights(learner), weights(trained(Learner, blobs(64), tiny, pq.Recipe())))


def test_warming_up_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    method = pq.ReplayStreams(num_streams=2, batch_size=16, first_block=8)
    plain = pq.run(tiny, blobs(300), method, seed=0, execution=pq.Execution(engine="graph"))
    monkeypatch.setattr(programs, "Captured", Recorded)
    recorded = pq.run(tiny, blobs(300), method, seed=0, execution=pq.Execution(engine="graph"))
    assert recorded.nats.tobytes() == plain.nats.tobytes()
    assert recorded.temperatures.tobytes() == plain.temperatures.tobytes()


@given(st.integers(0, 2**64 - 1), st.integers(0, 10**9), st.integers(1, 9), st.integers(1, 7))
def test_draws_made_on_a_device_are_the_same_bits(seed: int, event: int, batch_size: int, num_draws: int) -> None:
    key = torch.tensor(np.uint64(augmentation_key(seed, event)).astype(np.int64))
    on_device = DeviceDraws(batch_size, num_draws, "cpu")(key)
    assert on_device.equal(draws_for(seed, event, batch_size, num_draws, "cpu"))


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 5), st.integers(0, 9))
def test_blocks_are_the_plan_in_order(kinds: list[int], most: int, first: int) -> None:
    events: list[Event] = [
        Predict(n, n + 1) if kind == 0 else Reinit() if kind == 1 else Train(np.arange(kind) + n)
        for n, kind in enumerate(kinds)
    ]
    back: list[Event] = []
    for number, event, batches in blocks(events, first, most):
        assert number == first + len(back)
        assert len(batches) <= most
        assert len({len(batch) for batch in batches}) <= 1
        back += [Train(batch) for batch in batches] if batches else [event]
    assert back == events


@given(st.integers(1, 6), st.sampled_from([(8, 2), (32, 4), (12, 3), (16, 16)]), st.integers(32, 700))
def test_spans_are_filled_up_and_never_cut(num_streams: int, sizes: tuple[int, int], length: int) -> None:
    method = pq.ReplayStreams(num_streams=num_streams, batch_size=sizes[0], first_block=sizes[1])
    shapes = Shapes.of(Plan(method, length))
    assert all(span <= filled < 2 * span for span, filled in shapes.predictions.items())
    assert set(shapes.batches) <= {sizes[0]}
    assert shapes == Shapes.of(Plan(method, length, heldout=True))


@given(st.integers(1, 8), st.integers(0, 8), st.floats(-2, 2), st.integers(0, 10**6))
def test_filling_does_not_calibrate(count: int, filling: int, beta: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count + filling, 3, generator=generator)
    labels = torch.randint(0, 3, (count + filling,), generator=generator)
    b = torch.tensor(beta, dtype=torch.float64)
    wanted = classes.calibration_gradient(logits[:count], labels[:count], b)
    found = classes.calibration_gradient(logits, labels, b, torch.tensor(count))
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_what_auto_means() -> None:
    assert Execution().on("cuda", num_steps=10).compiled is False
    assert Execution(deterministic=True).on("cuda", num_steps=10**6).compiled is False
    assert Execution(compiled=True).on("cuda", num_steps=1).compiled is True
    assert Execution(engine="eager").on("cuda", num_steps=1).precision == "fp32"
    assert Execution(engine="graph").on("cpu", num_steps=10**6) == Execution(
        engine="graph", precision="fp32", compiled=False
    )


def test_a_code_is_never_compiled() -> None:
    with pytest.raises(PreqError, match="a code needs the same: leave compiling out"):
        pq.encode(tiny, blobs(50), seed=0, execution=pq.Execution(compiled=True))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"engine": "grpah"}, "unknown engine 'grpah'; did you mean 'graph'"),
        ({"precision": "fp16"}, "unknown precision 'fp16'; did you mean 'bf16'"),
        ({"engine": "eager", "compiled": True}, "eager engine compiles nothing"),
        ({"deterministic": True, "compiled": True}, "compiled kernels may give other bits"),
        ({"compiled": True}, "compiling is for the graph engine on a GPU, this runs on cpu"),
    ],
)
def test_choices_that_make_no_sense(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(PreqError, match=message):
        pq.run(tiny, blobs(50), seed=0, execution=pq.Execution(**wrong))


def test_calibrating_on_other_examples_than_were_predicted_looks_at_those() -> None:
    data = blobs(64)
    shapes = Shapes(batches={}, predictions={8: 8})
    betas = []
    learners = [
        Learner(tiny, data, pq.Recipe(), seed=0, dtype=torch.float64),
        GraphLearner(tiny, data, pq.Recipe(), seed=0, dtype=torch.float64, shapes=shapes),
    ]
    for learner in learners:
        learner.predict(0, 8)
        for indices in (np.arange(20, 25), np.arange(30, 38), np.arange(8)):
            learner.calibrate(indices, data.labels(indices))
        betas.append(learner.beta)
    torch.testing.assert_close(betas[0], betas[1], rtol=1e-9, atol=1e-12)


def test_each_learner_is_compiled_on_its_own() -> None:
    """Torch stops compiling a function that has too many variants; a copy of it has none yet."""

    class Owner:
        def method(self) -> int:
            return 1

    def inner(function: Any) -> Any:
        return function

    copies: list[Any] = []
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "compile", lambda function, **_: inner(function))
            copies.append(capture.compiled(Owner().method))
    assert copies[0].__func__.__code__ is not copies[1].__func__.__code__
    assert copies[0]() == 1
