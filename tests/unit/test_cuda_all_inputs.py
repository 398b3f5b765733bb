"""Learning from all inputs on a real GPU; skipped where there is none (`python benchmarks/all_inputs_gpu.py` times it).

The same steps are compared on a CPU by `tests/laws/test_engines_all_inputs.py`.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import prequential as pq
from prequential.data.sequence import ArraySequence, to_network_input
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.graph_all_inputs import BesideProgram, GraphFromAllInputs, StudyProgram
from prequential.methods import ReplayStreams

from ..laws.test_engines_all_inputs import assert_alike, given_inputs, made, study, train_beside
from .test_resume import assert_same

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
VIEWS = ("resized-crop:0.3", "flip", "jitter:0.4", "grey:0.2")
METHOD: Any = given_inputs(
    method=ReplayStreams(num_streams=3, batch_size=16, first_block=4),
    study_steps=20,
    study_batch_size=32,
    study_views=VIEWS,
    weak_views=("shift:2",),
    strong_views=("affine", "jitter:0.4", "cutout:8"),
    body_rate=0.3,
)
RECIPE = pq.Recipe(learning_rate=1e-3, augment=("shift:2",))
SMALL: dict[str, Any] = {"seed": 0, "device": "cuda", "width": 0.125}
EXACT = pq.Execution(deterministic=True)


def nats(data: ArraySequence, execution: pq.Execution, method: Any = METHOD) -> np.ndarray:
    record = pq.run("resnet18", data, method, RECIPE, execution=execution, **SMALL)
    assert record.environment["fallback"] is None
    assert record.environment["engine"] == execution.on("cuda", num_steps=0).engine
    return record.nats


def already_scaled(data: ArraySequence) -> ArraySequence:
    """The same images as floats. Pixels are scaled in single precision, and compiled code rounds that once where eager
    code rounds twice: half a unit of the last place, which a weight that has hardly a gradient shows as 2e-6."""
    images = to_network_input(data.inputs(np.arange(len(data))))
    return pq.from_arrays(images.numpy(), data.labels(np.arange(len(data))).numpy(), num_classes=data.num_classes)


@pytest.mark.parametrize("compiled", [False, True], ids=["recorded", "compiled"])
@pytest.mark.parametrize("kind", ["fixed", "relative", "adaptive"])
def test_recorded_steps_are_the_eager_ones_in_double_precision(
    mnist: ArraySequence, kind: str, *, compiled: bool
) -> None:
    compare(already_scaled(mnist.take(40)), kind, compiled=compiled, tolerance=1e-6)


def test_compiled_steps_scale_pixels_as_the_eager_ones_do_but_for_a_rounding(mnist: ArraySequence) -> None:
    compare(mnist.take(40), "relative", compiled=True, tolerance=1e-5)


def compare(data: ArraySequence, kind: str, *, compiled: bool, tolerance: float) -> None:
    """A study and steps with inputs beside labelled ones, eagerly and by programs."""
    views = ("affine", "jitter:0.4")
    method = given_inputs(study_views=views, strong_views=views, weak_views=("flip",), threshold_kind=kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of compilers; that nothing fell back is asked below
        eager = made(data, method, kind=FromAllInputs, device="cuda")
        graphed = made(data, method, kind=GraphFromAllInputs, device="cuda", compiled=compiled)
        for learner in (eager, graphed):
            study(learner, data)
        assert graphed.fallback is None  # what could not be recorded or compiled, and why
        assert_alike(eager, graphed, tolerance)
        assert (StudyProgram, 12) in graphed._programs
        for learner in (eager, graphed):
            learner.end_study(np.arange(40))
        graphed.take_study(eager.studied)
        for learner in (eager, graphed):
            train_beside(learner, data)
    assert (BesideProgram, (8, 16)) in graphed._programs
    assert_alike(eager, graphed, tolerance)
    assert graphed.fallback is None


def test_a_recorded_run_has_the_code_of_an_eager_one(mnist: ArraySequence) -> None:
    data = mnist.take(200).without_heldout()
    eager, graphed = (nats(data, pq.Execution(engine=e, precision="fp32")) for e in ("eager", "graph"))
    # a single rounding may make an input sure enough, so labels need not agree one by one
    assert abs(graphed.sum() / eager.sum() - 1) < 0.1


def test_the_same_bits_again_and_streamed(mnist: ArraySequence, monkeypatch: pytest.MonkeyPatch) -> None:
    data = mnist.take(200).without_heldout()
    one, two = (nats(data, EXACT) for _ in range(2))
    assert one.tobytes() == two.tobytes()
    monkeypatch.setattr("prequential.learn.inputs.SHARE", 0.0)
    assert nats(data, EXACT).tobytes() == one.tobytes()


def test_every_augmentation_repeats_its_bits(mnist: ArraySequence) -> None:
    data = mnist.take(100).without_heldout()
    method = given_inputs(study_steps=8, study_views=("randaugment", *VIEWS), strong_views=("randaugment",))
    one, two = (nats(data, EXACT, method) for _ in range(2))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("stop_at", ["study", "labels"])
def test_a_stopped_run_goes_on_to_the_same_bits(
    mnist: ArraySequence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: str
) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    monkeypatch.setattr(GraphFromAllInputs, "steps_at_once", 8)
    data, calls = mnist.take(200).without_heldout(), []

    def ask(progress: Any) -> None:
        calls.append(progress.position)
        if len(calls) == 2 if stop_at == "study" else progress.position >= 100:
            raise RuntimeError("stopped on purpose")

    arguments: dict[str, Any] = SMALL | {"execution": EXACT, "checkpoint_seconds": 0}
    whole = pq.run("resnet18", data, METHOD, RECIPE, **arguments)
    with pytest.raises(RuntimeError, match="on purpose"):
        pq.run("resnet18", data, METHOD, RECIPE, **arguments, out=tmp_path / "run", listeners=[ask])
    resumed = pq.run("resnet18", data, METHOD, RECIPE, **arguments, out=tmp_path / "run", resume=True)
    assert_same(resumed, whole)


def test_labels_come_back(mnist: ArraySequence) -> None:
    data = mnist.take(100)
    bits = pq.encode("resnet18", data, METHOD, RECIPE, **SMALL)
    assert np.array_equal(pq.decode(bits, data, device="cuda"), data.labels(np.arange(100)).numpy())


def test_no_step_waits_for_the_gpu(mnist: ArraySequence) -> None:
    data = mnist.take(40)
    learner = made(data, given_inputs(study_views=VIEWS), kind=GraphFromAllInputs, device="cuda")
    batches = np.random.default_rng(1).integers(0, 40, (2, 24))
    labels = data.labels(batches[:, :8].ravel()).view(2, 8).cuda()

    def step() -> None:
        learner.study_steps(batches[:, :12], 0)
        learner.train_beside_steps(batches, labels, 20)

    step()
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode("error")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_the_memory_of_a_study_goes_with_it() -> None:
    images = np.random.default_rng(0).integers(0, 256, (600, 3, 32, 32), dtype=np.uint8)
    data = pq.from_arrays(images, np.arange(600) % 10, num_classes=10)
    learner = GraphFromAllInputs("resnet18", data, RECIPE, given=METHOD, seed=0, device="cuda", precision="bf16")
    learner.probe(16)
    learner.study_steps(np.arange(512)[None], 0)
    torch.cuda.synchronize()
    before = torch.cuda.memory_reserved()
    learner.end_study(np.arange(100))
    assert torch.cuda.memory_reserved() < before / 2
    batches = np.arange(64)[None]
    learner.train_beside_steps(batches, torch.zeros(1, 16, dtype=torch.int64, device="cuda"), 30)  # recorded anew
    assert (BesideProgram, (16, 48)) in learner._programs
