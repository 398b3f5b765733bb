"""What a model remembers outside its parameters and buffers, and what it draws from: found, or seeded."""

import random
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import prequential as pq
from prequential.errors import PreqError, PreqWarning
from prequential.learn.randomness import FOREIGN, seeded
from prequential.testing import check_model

from ..conftest import blobs

METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
DRAWS: dict[str, Callable[[], float]] = {
    "Python": lambda: random.random(),
    "NumPy": lambda: float(np.random.rand()),
    "both": lambda: random.gauss() + float(np.random.standard_normal()),
}


class Drawing(nn.Linear):
    """Shakes its inputs in training, by a generator that is not torch's."""

    draw: Callable[[], float]

    def __init__(self) -> None:
        super().__init__(5, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs * (1 + 0.1 * type(self).draw()) if self.training else inputs)


def drawing(whose: str) -> type[Drawing]:
    return type("Drawing", (Drawing,), {"draw": staticmethod(DRAWS[whose])})


class Counting(nn.Linear):
    """Counts its training steps where no checkpoint looks, and uses the count `late`."""

    late = 0

    def __init__(self) -> None:
        super().__init__(5, 3)
        self.note()

    def note(self) -> None:
        self.count = getattr(self, "count", -1) + 1

    def known(self) -> int:
        return self.count

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.note()
        return super().forward(inputs) * (1 + max(0, self.known() - self.late))


class InList(Counting):
    late = 1000

    def note(self) -> None:
        self.counts = [*getattr(self, "counts", []), 1]

    def known(self) -> int:
        return len(self.counts)


class OwnGenerator(Counting):
    def note(self) -> None:
        self.generator = getattr(self, "generator", None) or np.random.default_rng(0)
        self.last = self.generator.random()

    def known(self) -> int:
        return int(8 * self.last)


class Outside(Counting):
    """The count is nowhere in the model."""

    steps: list[int]

    def note(self) -> None:
        type(self).steps = [*getattr(type(self), "steps", []), 1]

    def known(self) -> int:
        return len(self.steps)


@pytest.mark.parametrize("factory", [Counting, InList, OwnGenerator, type("Late", (Counting,), {"late": 1000})])
def test_state_outside_parameters_and_buffers_is_found_and_named(factory: type[nn.Module]) -> None:
    with pytest.raises(AssertionError, match=r"'(count|counts|generator|last)' changes when it is used"):
        check_model(factory, (5,), 3)


def test_state_outside_the_model_is_found_by_what_it_does() -> None:
    with pytest.raises(AssertionError, match="remembers something outside its parameters and buffers"):
        check_model(Outside, (5,), 3)


@pytest.mark.parametrize("whose", DRAWS)
def test_draws_from_other_generators_than_torchs_are_found(whose: str) -> None:
    name = whose.replace("both", "NumPy and Python")
    with pytest.raises(AssertionError, match=f"draws from {name}'s generator; draw from torch's"):
        check_model(drawing(whose), (5,), 3)


class Keeping(nn.Module):
    """Remembers in buffers, keeps for speed what it can make again, and notes what it saw: all of it is allowed."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(5, 3), nn.BatchNorm1d(3)
        self.register_buffer("count", torch.zeros(()), persistent=False)
        self.mask: Tensor | None = None
        self.seen: Tensor | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        self.count.add_(int(self.training))
        self.mask = torch.ones(5) if self.mask is None else self.mask
        self.seen = F.dropout(self.norm(self.linear(inputs * self.mask)), training=self.training) * (1 + self.count)
        return self.seen


def test_buffers_caches_and_torchs_draws_are_no_fault() -> None:
    check_model(Keeping, (5,), 3)


def states() -> list[Any]:
    return [repr(generator.get_state()) for generator in FOREIGN.values()]


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(list(DRAWS)), st.integers(0, 60), st.integers(0, 2**31))
def test_draws_from_other_generators_are_those_of_the_event(
    tmp_path_factory: pytest.TempPathFactory, whose: str, stop_at: int, disturbance: int
) -> None:
    """Same bits each time and after a resume, whatever else draws; and nobody else's draws are disturbed."""
    out = tmp_path_factory.mktemp("runs") / "run"

    def stop(progress: Any) -> None:
        random.seed(disturbance)
        np.random.seed(disturbance)
        if progress.position >= stop_at:
            signal.raise_signal(signal.SIGTERM)

    def go(**more: Any) -> pq.Record:
        return pq.run(drawing(whose), blobs(64), METHOD, seed=0, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
        before, whole = states(), go()
        assert states() == before
        with pytest.raises(pq.Interrupted):
            go(out=out, checkpoint_seconds=0, listeners=[stop])
        resumed = go(out=out, resume=True)
    assert resumed.nats.tobytes() == whole.nats.tobytes() == go().nats.tobytes()
    other = pq.run(drawing(whose), blobs(64), METHOD, seed=1)
    assert other.nats.tobytes() != whole.nats.tobytes()


def test_initialisation_by_other_generators_is_that_of_the_seed() -> None:
    def shaken() -> nn.Module:
        layer = nn.Linear(5, 3)
        nn.init.constant_(layer.bias, random.random() + float(np.random.rand()))
        return layer

    chunks = pq.ChunksFromScratch(epochs=1, split_points=(16, 32))
    one, other = (pq.run(shaken, blobs(64), chunks, seed=0) for _ in range(2))
    assert one.nats.tobytes() == other.nats.tobytes()


def test_other_models_do_not_pay_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data, seen = blobs(32), list[object]()

    def watched(*arguments: Any) -> Any:
        seen.append(arguments[4])
        return seeded(*arguments)

    monkeypatch.setattr("prequential.learn.learner.seeded", watched)
    pq.run(lambda: nn.Linear(5, 3), data, METHOD, seed=0)
    assert not seen
    pq.run(lambda: nn.Sequential(nn.Linear(5, 3), nn.Dropout(0.1)), data, METHOD, seed=0)
    assert set(seen) == {frozenset({"cpu"})}


@pytest.mark.parametrize("whose", ["Python", "NumPy"])
def test_what_cannot_be_recorded_goes_on_eagerly_and_is_never_stacked(whose: str, tmp_path: Path) -> None:
    graph = pq.Execution(engine="graph")
    with pytest.warns(PreqWarning, match=f"cannot be recorded .it draws from {whose}'s generator"):
        recorded = pq.run(drawing(whose), blobs(40), METHOD, seed=0, execution=graph)
    assert recorded.nats.tobytes() == pq.run(drawing(whose), blobs(40), METHOD, seed=0).nats.tobytes()
    with pytest.raises(PreqError, match=f"cannot be stacked: it draws from {whose}'s generator"):
        pq.run_stack(drawing(whose), blobs(40), METHOD, [pq.Recipe()] * 2, seeds=[0, 1])


class Shaking(Drawing):
    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + float(np.random.rand())


def test_a_prediction_that_draws_is_refused() -> None:
    with pytest.raises(PreqError, match="draws random numbers when it predicts"):
        pq.run(type("Shaking", (Shaking,), {"draw": staticmethod(float)}), blobs(16), METHOD, seed=0)


@pytest.mark.parametrize(
    ("last", "is_hinted"), [(nn.Softmax(1), True), (nn.LogSoftmax(1), False), (nn.Sigmoid(), False)]
)
def test_an_output_that_sums_to_one_gets_a_hint(last: nn.Module, is_hinted: bool) -> None:
    def ending() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 3), last)

    for go in (
        lambda: pq.run(ending, blobs(16), METHOD, seed=0),
        lambda: pq.run_stack(ending, blobs(16), METHOD, [pq.Recipe()] * 2, seeds=[0, 1]),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            go()
        hints = [str(each.message) for each in told if "sum to one" in str(each.message)]
        assert len(hints) == is_hinted
        assert all("leave its own out" in hint for hint in hints)
