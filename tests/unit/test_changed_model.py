"""A model whose code changed between stop and resume: noticed before it does anything."""

import re
import shutil
import signal
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import prequential as pq
from prequential.errors import PreqError, PreqWarning
from prequential.learn import environment as machine
from prequential.learn.base import BaseLearner
from prequential.learn.repeated import prediction_of_few
from prequential.runs import beginning, checkpoints

from ..conftest import blobs
from ..laws.test_seams import Adaptive

METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
LENGTH = 64
scale = 1.0
"""What `forward` multiplies by: no weight, and nothing that is printed."""


class Scaled(nn.Linear):
    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) * scale


def scaled() -> nn.Module:
    return nn.Sequential(Scaled(5, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 3))


def eager(**more: Any) -> list[pq.Record]:
    return [pq.run(scaled, blobs(LENGTH), METHOD, seed=0, **more)]


def graph(**more: Any) -> list[pq.Record]:
    return eager(execution=pq.Execution(engine="graph"), **more)


def stack(out: Path | None = None, **more: Any) -> list[pq.Record]:
    paths = None if out is None else [out / name for name in "ab"]
    recipes = [pq.Recipe(), pq.Recipe(learning_rate=1e30)]  # the second diverges
    return pq.run_stack(scaled, blobs(LENGTH), METHOD, recipes, seeds=[0, 1], out=paths, **more)


Start = Callable[..., list[pq.Record]]
ENGINES: list[Start] = [eager, graph, stack]


@pytest.fixture(autouse=True)
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)


@pytest.fixture(params=ENGINES, ids=lambda start: start.__name__)
def start(request: pytest.FixtureRequest) -> Start:
    found: Start = request.param
    return found


def stopped(start: Start, out: Path) -> Path:
    def stop(progress: Any) -> None:
        if progress.position >= 32:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(pq.Interrupted):
        start(out=out, checkpoint_seconds=0, listeners=[stop])
    return out


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("now", [1.5, -1.0, 1.0001])
def test_a_changed_forward_is_refused_and_nothing_is_written(
    start: Start, now: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = stopped(start, tmp_path / "run")
    before = contents(out)
    with monkeypatch.context() as patch:
        patch.setattr("tests.unit.test_changed_model.scale", now)
        with pytest.raises(PreqError, match="gives something else for the same weights and inputs than when") as caught:
            start(out=out, resume=True)
    assert "\n" not in str(caught.value)
    assert contents(out) == before
    assert_same(start(out=out, resume=True), start())


def assert_same(found: list[pq.Record], wanted: list[pq.Record]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert (one.nats.tobytes(), one.status) == (other.nats.tobytes(), other.status)


@pytest.mark.parametrize(("now", "is_near"), [(1.0001, True), (1.5, False)])
def test_where_the_machine_differs_a_tolerance_and_the_warning_of_before_do(
    start: Start, now: float, is_near: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real = stopped(start, tmp_path / "run"), machine.environment
    monkeypatch.setattr(beginning, "environment", lambda learner: real(learner) | {"processor": "another"})
    monkeypatch.setattr("tests.unit.test_changed_model.scale", now)
    refusal = nullcontext() if is_near else pytest.raises(PreqError, match="gives something else")
    told = pytest.warns(PreqWarning, match=r"the bits may differ from here on: processor .* then, another now")
    with told, refusal:
        start(out=out, resume=True)
    assert (len(list(out.rglob("checkpoints"))) == 0) == is_near, "it went on to its end, or not at all"


def test_a_checkpoint_that_remembers_nothing_goes_on_with_a_warning(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "networks_of", lambda learner: [])
        out = stopped(start, tmp_path / "run")
    with pytest.warns(PreqWarning, match="of an earlier version, which remembered no prediction"):
        found = start(out=out, resume=True)
    assert_same(found, start())


def test_a_learner_of_ones_own_is_asked_nothing(tmp_path: Path) -> None:
    def run(**more: Any) -> list[pq.Record]:
        data = blobs(LENGTH).without_heldout()
        return [pq.run(scaled, data, METHOD, seed=0, learner=Adaptive, **more)]

    out = stopped(run, tmp_path / "run")
    with warnings.catch_warnings(action="error"):
        assert_same(run(out=out, resume=True), run())


def test_what_is_remembered_is_a_few_numbers_and_looking_changes_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real: Callable[[Any], Tensor] = prediction_of_few

    def watched(learner: Any) -> Tensor:
        assert isinstance(learner, BaseLearner)
        before, generator = learner.state(), torch.get_rng_state()
        found = real(learner)
        sizes.append(found.numel())
        for name, tensors in learner.state().items():
            assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(tensors, before[name], strict=True))
        assert torch.equal(generator, torch.get_rng_state())
        return found

    monkeypatch.setattr(checkpoints, "prediction_of_few", watched)
    assert_same(start(out=tmp_path / "run", checkpoint_seconds=0), start())
    assert max(sizes) <= 2 * 4 * 3


def test_a_moved_checkpoint_names_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(eager, tmp_path / "run")
    shutil.move(tmp_path / "run", tmp_path / "moved")
    monkeypatch.setattr("tests.unit.test_changed_model.scale", 2.0)
    with pytest.raises(PreqError, match=re.escape(str(tmp_path / "moved"))):
        eager(out=tmp_path / "moved", resume=True)
