"""Engines agree on learning from all inputs: the graph engine studies and trains beside as the eager one does."""

import gc
import warnings
import weakref
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqWarning
from prequential.learn import programs
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.graph_all_inputs import BesideProgram, GraphFromAllInputs, StudyProgram
from prequential.learn.learner import Learner
from prequential.learn.programs import TrainProgram
from prequential.learn.shapes import Shapes
from prequential.methods import AllInputs, ReplayStreams
from prequential.plan import Plan

from ..conftest import blobs
from ..unit.test_resume import assert_same
from .test_engines import Recorded, Slow, weights
from .test_records import tiny

VIEWS = ("affine", "jitter:0.4")
METHOD = ReplayStreams(num_streams=2, batch_size=8, first_block=4)


def given_inputs(**changes: Any) -> Any:
    """A method that is given all inputs."""
    settings = {"study_steps": 6, "study_batch_size": 12, "study_seed": 5, "beside": 2, "threshold": 0.2}
    return AllInputs(**{"method": METHOD} | settings | changes)


GIVEN = given_inputs()


def normalised(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """It normalises, drops, and ends in a linear layer."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(int(np.prod(input_shape)), 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(16, num_classes),
    )


def made(
    data: ArraySequence, given: AllInputs, model: Any = normalised, kind: type[Learner] | None = None, **more: Any
) -> Any:
    recipe = more.pop("recipe", pq.Recipe(learning_rate=1e-2))
    kinds = (FromAllInputs, GraphFromAllInputs) if kind is None else (kind,)
    learners: list[Any] = []
    for each in kinds:
        learner = each(model, data, recipe, given=given, seed=3, dtype=torch.float64, **more)  # type: ignore[call-arg]
        learner.probe(8)
        learners.append(learner)
    return learners if kind is None else learners[0]


def study(learner: FromAllInputs, data: ArraySequence, first: int = 0, last: int = 6) -> None:
    batches = np.random.default_rng(0).integers(0, len(data), (6, 12))[first:last]
    half = len(batches) // 2
    for part in (batches[:half], batches[half:]):
        if len(part):
            learner.study_steps(part, first)


def train_beside(learner: FromAllInputs, data: ArraySequence, event: int = 7) -> None:
    """Labels are revealed and predicted on the way, as a plan does."""
    batches = np.random.default_rng(1).integers(0, len(data), (5, 24))
    labels = data.labels(batches[:, :8].ravel()).view(5, 8).to(learner.device)
    first = data.labels(np.arange(8)).to(learner.device)
    learner.observe(0, 8, first)
    learner.train_beside_steps(batches[:3], labels[:3], event)
    learner.predict(0, 8)
    learner.calibrate(np.arange(8), first)
    learner.train_beside_steps(batches[3:], labels[3:], event + 3)


def assert_alike(one: FromAllInputs, other: FromAllInputs, tolerance: float = 1e-9) -> None:
    ours, theirs = one.tensors(), other.tensors()
    assert ours.keys() == theirs.keys()
    for name in ours:
        for mine, its in zip(ours[name], theirs[name], strict=True):
            torch.testing.assert_close(mine, its, rtol=tolerance, atol=tolerance, msg=partial("{}: {}".format, name))


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("views", [(), VIEWS], ids=["plain", "views"])
def test_steps_of_a_study_are_the_same(mnist: ArraySequence, optimizer: str, views: tuple[str, ...]) -> None:
    data = mnist.take(40)
    eager, graphed = learners = made(data, given_inputs(study_optimizer=optimizer, study_views=views))
    for learner in learners:
        study(learner, data)
    assert_alike(eager, graphed)
    assert (StudyProgram, 12) in graphed._programs
    assert float(graphed.study_under_way.count) == graphed._num_studied == 6
    for learner in learners:
        learner.end_study(np.arange(40))
    torch.testing.assert_close(weights(eager), weights(graphed), rtol=0, atol=1e-3)  # half precision
    assert not graphed._programs
    assert not graphed.is_studying
    assert eager.num_steps == graphed.num_steps == 0


@pytest.mark.parametrize(
    ("changes", "recipe"),
    [
        ({}, pq.Recipe()),
        ({"weak_views": ("shift:2",), "strong_views": VIEWS}, pq.Recipe(augment=("affine",), full_rate_steps=2)),
        ({"threshold_kind": "relative", "body_rate": 0.3}, pq.Recipe(augment=("flip",), label_smoothing=0.1)),
        ({"threshold_kind": "adaptive", "study_steps": 0, "body_rate": 0.3}, pq.Recipe(batch_statistics="raw")),
        ({"beside_weight": 0.5}, pq.Recipe(optimizer="sgd", learning_rate=1e-2, augment=VIEWS)),
        ({"body_rate": 0.3}, pq.Recipe(optimizer="muon")),
    ],
    ids=["plain", "views", "relative", "adaptive", "sgd", "muon"],
)
def test_steps_beside_are_the_same(mnist: ArraySequence, changes: dict[str, Any], recipe: pq.Recipe) -> None:
    data = mnist.take(40)
    eager, graphed = learners = made(data, given_inputs(**changes), recipe=recipe)
    for learner in learners:
        if learner.is_studying:
            study(learner, data)
            learner.end_study(np.arange(40))
    if eager.studied:
        graphed.take_study(eager.studied)  # what was rounded to half precision may differ in its last bit
    for learner in learners:
        train_beside(learner, data)
    assert_alike(eager, graphed)
    assert (BesideProgram, (8, 16)) in graphed._programs
    assert eager.num_steps == graphed.num_steps == 5
    assert float(graphed.tensors()["beside"][0].sum()) == 10 * 10 + 8  # labels are counted once


def test_what_is_compiled_computes_the_same(mnist: ArraySequence, monkeypatch: pytest.MonkeyPatch) -> None:
    data = mnist.take(40)
    traced = partial(torch.compile, backend="aot_eager", fullgraph=True, dynamic=False)
    monkeypatch.setattr(torch, "compile", lambda function, dynamic, options: traced(function))
    changes = {"study_views": VIEWS, "weak_views": ("flip",), "strong_views": VIEWS, "body_rate": 0.3}
    method = given_inputs(**changes)
    eager = made(data, method, kind=FromAllInputs)
    study(eager, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = made(data, method, kind=GraphFromAllInputs, compiled=True)
        study(compiled, data)
        assert_alike(eager, compiled)
        for learner in (eager, compiled):
            learner.end_study(np.arange(40))
        compiled.take_study(eager.studied)
        train_beside(compiled, data)
    train_beside(eager, data)
    assert compiled.fallback is None
    assert_alike(eager, compiled)


def test_plain_steps_and_steps_beside_are_programs_of_their_own() -> None:
    data = blobs(64)
    learner = made(data, GIVEN, tiny, kind=GraphFromAllInputs)
    batches = np.arange(24)[None]
    learner.train_steps(batches, data.labels(batches[0])[None], 0)
    for number in (8, 12):
        learner.train_beside_steps(batches, data.labels(batches[0, :number])[None], 1)
    assert set(learner._programs) == {(TrainProgram, 24), (BesideProgram, (8, 16)), (BesideProgram, (12, 12))}


def test_the_step_of_a_study_is_known_without_asking_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    data = blobs(64)
    learner = made(data, GIVEN, tiny, kind=GraphFromAllInputs)
    batches, labels = np.arange(24)[None], torch.zeros(1, 8, dtype=torch.int64)
    learner.study_steps(batches[:, :12], 0)
    learner.train_beside_steps(batches, labels, 1)  # which is recorded only now
    counted, asked = torch.Tensor.__int__, list[torch.Tensor]()

    def asking(tensor: torch.Tensor) -> int:
        asked.append(tensor)
        return counted(tensor)

    monkeypatch.setattr(torch.Tensor, "__int__", asking)
    learner.study_steps(batches[:, :12], 1)
    learner.train_beside_steps(batches, labels, 2)
    assert not asked
    assert float(learner.study_under_way.count) == learner._num_studied == 2


def test_programs_and_eager_steps_of_a_study_take_turns() -> None:
    data, shapes = blobs(64), Shapes(batches={}, predictions={}, studied={12: 9})
    eager = made(data, GIVEN, tiny, kind=FromAllInputs)
    graphed = made(data, GIVEN, tiny, kind=GraphFromAllInputs, shapes=shapes)
    for learner in (eager, graphed):
        for number, size in enumerate((12, 7, 12, 12)):
            learner.study_steps(np.arange(size)[None], number)
    assert set(graphed._programs) == {(StudyProgram, 12)}
    assert_alike(eager, graphed)


@pytest.mark.parametrize("studied", range(0, 7, 2))
def test_who_resumes_within_a_study_ends_with_the_same_bits(mnist: ArraySequence, studied: int) -> None:
    data = mnist.take(40)
    method = given_inputs(study_views=VIEWS)
    whole, begun, resumed = (made(data, method, kind=GraphFromAllInputs) for _ in range(3))
    study(whole, data)
    study(begun, data, last=studied)
    study(resumed, data, last=4)  # as one that had gone another way
    resumed.restore(begun.state())
    study(resumed, data, first=studied)
    assert_alike(whole, resumed, 0.0)
    whole.end_study(np.arange(40))
    after = made(data, method, kind=GraphFromAllInputs)
    study(after, data, last=2)
    after.expect(set(whole.tensors()))
    assert not after._programs
    after.restore(whole.state())
    for learner in (whole, after):
        train_beside(learner, data)
    assert_alike(whole, after, 0.0)


@pytest.mark.parametrize("steps", [6, 0])
def test_a_run_gives_the_same_code(mnist: ArraySequence, steps: int) -> None:
    method = given_inputs(study_steps=steps, study_views=("affine",))
    eager, graphed = (
        pq.run("lenet", mnist.take(120).without_heldout(), method, seed=0, execution=pq.Execution(engine=engine))
        for engine in ("eager", "graph")
    )
    assert graphed.environment["engine"] == "graph"
    np.testing.assert_allclose(graphed.nats, eager.nats, rtol=2e-2, atol=2e-3)


def test_recording_and_warming_up_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    method = given_inputs(study_steps=8)
    plain = pq.run(tiny, blobs(200), method, seed=0, execution=pq.Execution(engine="graph"))
    monkeypatch.setattr(programs, "Captured", Recorded)
    recorded = pq.run(tiny, blobs(200), method, seed=0, execution=pq.Execution(engine="graph"))
    assert recorded.nats.tobytes() == plain.nats.tobytes()
    assert recorded.temperatures.tobytes() == plain.temperatures.tobytes()


def test_a_study_that_cannot_be_recorded_goes_on_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    method = given_inputs(study_steps=8)
    eager = pq.run(tiny, blobs(100), method, seed=0)
    monkeypatch.setattr(programs, "Captured", refuse)
    with pytest.warns(PreqWarning, match=r"cannot be recorded \(operation not .* capturing\); going on eagerly"):
        graphed = pq.run(tiny, blobs(100), method, seed=0, execution=pq.Execution(engine="graph"))
    assert graphed.nats.tobytes() == eager.nats.tobytes()


def test_streamed_inputs_are_the_ones_an_eager_engine_reads() -> None:
    plain = blobs(80)
    data = Slow(plain.stored_inputs, plain.stored_labels, 3, plain.order)
    eager, graphed = learners = made(data, GIVEN, tiny)
    for learner in learners:
        study(learner, data)
        train_beside(learner, data)
    assert_alike(eager, graphed)


@pytest.mark.parametrize("stop_at", ["study", "labels"])
def test_a_run_resumes_from_its_directory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, stop_at: str) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    monkeypatch.setattr(GraphFromAllInputs, "steps_at_once", 4)
    method = given_inputs(study_steps=10)

    calls = []

    def ask(progress: Any) -> None:
        calls.append(progress.position)
        if len(calls) == 2 if stop_at == "study" else progress.position >= 60:
            raise RuntimeError("stopped on purpose")

    arguments: dict[str, Any] = {"seed": 0, "execution": pq.Execution(engine="graph"), "checkpoint_seconds": 0}
    whole = pq.run(tiny, blobs(120), method, **arguments)
    with pytest.raises(RuntimeError, match="on purpose"):
        pq.run(tiny, blobs(120), method, **arguments, out=tmp_path / "run", listeners=[ask])
    assert (calls == [0, 0]) is (stop_at == "study")
    assert_same(pq.run(tiny, blobs(120), method, **arguments, out=tmp_path / "run", resume=True), whole)


def test_nothing_of_a_study_outlives_it() -> None:
    data = blobs(64)
    learner = made(data, GIVEN, tiny, kind=GraphFromAllInputs)
    study(learner, data)
    alive = [weakref.ref(learner.study_under_way), weakref.ref(learner._programs[StudyProgram, 12])]
    gc.disable()
    try:
        learner.end_study(np.arange(64))
        assert [each() for each in alive] == [None, None]
    finally:
        gc.enable()


def test_a_network_that_couples_its_rows_is_known_before_it_has_learned() -> None:
    def coupled(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return nn.Sequential(
            nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, num_classes)
        )

    assert not made(blobs(64), GIVEN, coupled, kind=GraphFromAllInputs)._may_fill
    assert made(blobs(64), GIVEN, tiny, kind=GraphFromAllInputs)._may_fill


@settings(max_examples=20)
@given(st.integers(0, 9), st.integers(0, 3), st.integers(2, 40), st.integers(40, 200))
def test_kinds_of_steps_are_told_apart(steps: int, beside: int, size: int, length: int) -> None:
    method = given_inputs(num_inputs=length + 10, study_steps=steps, study_batch_size=size, beside=beside)
    shapes, plain = Shapes.of(Plan(method, length)), Shapes.of(Plan(METHOD, length))
    assert shapes.predictions == plain.predictions
    assert shapes.studied == ({size: steps} if steps > 4 else {})
    assert shapes.batches == ({} if beside else plain.batches)
    ((batch_size, times),) = plain.batches.items()
    assert shapes.beside == ({(batch_size, batch_size * beside): times} if beside else {})
    assert shapes.main_batch == (batch_size * (1 + beside), times)
    assert shapes.most_steps == max(shapes.main_batch[1], steps if steps > 4 else 0)
    assert plain.most_steps == plain.main_batch[1]


def test_a_long_study_hides_nothing_of_what_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.learn.shapes.SURVEYED", 100)
    method = given_inputs(num_inputs=100, study_steps=10**6, study_batch_size=50)
    shapes = Shapes.of(Plan(method, 100))
    assert shapes.studied == {50: 10**6}
    assert list(shapes.beside) == [(8, 16)]


class Noted(Slow):
    """A sequence that notes what it is told of, and what is read."""

    told: ClassVar[list[Any]] = []
    done: ClassVar[list[Any]] = []

    def read_ahead(self, reads: Any) -> None:
        self.told.extend((positions.tolist(), key) for positions, key in reads)

    def inputs(self, positions: Any) -> torch.Tensor:
        self.done.append((positions.tolist(), None))
        return super().inputs(positions)

    def training_inputs(self, positions: Any, key: int) -> torch.Tensor:
        self.done.append((positions.tolist(), key))
        return super().inputs(positions)


@pytest.mark.parametrize("engine", ["eager", "graph"])
def test_whoever_reads_ahead_is_told_what_a_study_reads(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.learn.inputs.MEASURED_AT_ONCE", 20)
    monkeypatch.setattr(Noted, "told", [])
    monkeypatch.setattr(Noted, "done", [])
    plain = blobs(50)
    data = Noted(plain.stored_inputs, plain.stored_labels, 3, plain.order)
    pq.run(tiny, data, given_inputs(study_steps=8), seed=0, execution=pq.Execution(engine=engine))
    assert [len(positions) for positions, _ in Noted.told[:11]] == [12] * 8 + [17, 17, 16]
    read = iter(Noted.done)
    assert all(each in read for each in Noted.told), "in that order"
    taken = FromAllInputs(tiny, data, pq.Recipe(), given=given_inputs(), seed=0)
    taken.take_study(taken.studied)
    assert not list(taken.inputs.reads(islice(Plan(given_inputs(num_inputs=50), 50).events(), 7), 0))
