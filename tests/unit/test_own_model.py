"""A user's model that would be trained, averaged or saved wrongly without a word is refused in words."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError
from prequential.testing import check_model

from ..conftest import blobs

METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


def run(factory: Callable[[], nn.Module], data: ArraySequence | None = None) -> pq.Record:
    return pq.run(factory, blobs(32) if data is None else data, METHOD, seed=0)


def linear() -> nn.Linear:
    return nn.Linear(5, 3)


def test_a_model_that_was_trained_is_not_begun_with_again() -> None:
    kept = linear()
    first = run(lambda: copy.deepcopy(kept)).codelength
    assert run(lambda: kept).codelength == first
    with pytest.raises(PreqError, match="gives again what it gave before, which may be trained by now; make fresh"):
        run(lambda: kept)
    with pytest.raises(PreqError, match=r"gives again what it gave before \(the layer '0'\)"):
        run(lambda: nn.Sequential(kept))


def test_fresh_weights_are_fresh_at_every_split_point() -> None:
    kept = linear()
    with pytest.raises(PreqError, match="gives again what it gave before"):
        pq.run(lambda: kept, blobs(32), pq.ChunksFromScratch(split_points=(8, 16), epochs=1, batch_size=4), seed=0)


@pytest.mark.parametrize("repeats", [True, False], ids=["the same again", "only once"])
def test_a_run_that_is_kept_needs_no_second_model(repeats: bool, tmp_path: Path) -> None:
    """Its checkpoints remember what a fresh one does, where there is one."""
    kept = [linear()]
    alone = run(partial(copy.deepcopy, kept[0])).codelength
    factory = (lambda: kept[0]) if repeats else kept.pop
    record = pq.run(factory, blobs(32), METHOD, seed=0, out=tmp_path / "run", checkpoint_seconds=0)
    assert (record.status, record.codelength) == ("finished", alone)


def test_what_is_frozen_may_be_shared() -> None:
    frozen = nn.Linear(5, 5).requires_grad_(False)

    def factory() -> nn.Module:
        return nn.Sequential(frozen, nn.ReLU(), linear())

    assert run(factory).codelength == run(factory).codelength
    check_model(factory, (5,), 3)


class Centred(nn.Module):
    """Inputs less a mean that never moves."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((5,), 0.7, dtype=torch.float64))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs - self.get_buffer("mean").to(inputs.dtype)


def test_what_has_buffers_may_be_shared_while_they_are_as_they_were() -> None:
    constant, moving = Centred(), nn.BatchNorm1d(5, affine=False)
    assert run(lambda: nn.Sequential(constant, linear())).codelength == (
        run(lambda: nn.Sequential(constant, linear())).codelength
    )
    run(lambda: nn.Sequential(moving, linear()))
    with pytest.raises(PreqError, match=r"gives again what it gave before \(the layer '0'\)"):
        run(lambda: nn.Sequential(moving, linear()))


def test_the_public_check_finds_layers_that_come_again() -> None:
    shared = linear()
    with pytest.raises(AssertionError, match="returned the same layer '0' twice"):
        check_model(lambda: nn.Sequential(shared), (5,), 3)


class Clipped(nn.Linear):
    """Bounds its weights, as networks for EEG do, by new ones: those that are trained are no longer its own."""

    def __init__(self) -> None:
        super().__init__(5, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        self.weight.data = torch.renorm(self.weight.data, 2, 0, 1.0)
        return super().forward(inputs)


class Replaced(Clipped):
    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.weight = nn.Parameter(self.weight.detach() * 0.99)
        return nn.functional.linear(inputs, self.weight, self.bias)


class Wrapped(Clipped):
    """New parameters in the memory of the old ones, whose gradients are nobody's."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.weight = nn.Parameter(self.weight.data)
        return nn.functional.linear(inputs, self.weight, self.bias)


class Growing(Clipped):
    def forward(self, inputs: Tensor) -> Tensor:
        if self.training and not hasattr(self, "more"):
            self.more = linear()
        return nn.functional.linear(inputs, self.weight, self.bias)


class Turning(Clipped):
    """Has two weights in turn, so that after two looks all seems as it was."""

    def __init__(self) -> None:
        super().__init__()
        self.other = [torch.zeros(3, 5)]

    def forward(self, inputs: Tensor) -> Tensor:
        mine = self.weight.data
        self.weight.data, self.other = self.other[0], [mine]
        return nn.functional.linear(inputs, self.weight, self.bias)


class InPlace(Clipped):
    """The same bound in the weights that are trained."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.weight.data.copy_(torch.renorm(self.weight.data, 2, 0, 1.0))
        return nn.functional.linear(inputs, self.weight, self.bias)


@pytest.mark.parametrize(
    ("factory", "key"),
    [(Clipped, "weight"), (Replaced, "weight"), (Turning, "weight"), (Wrapped, "weight"), (Growing, "more.weight")],
)
def test_parameters_that_come_or_go_in_forward_are_refused(factory: type[nn.Module], key: str) -> None:
    told = rf"replaces its parameter '{key}' while training, so it can be neither trained nor averaged; change it in pl"
    with pytest.raises(PreqError, match=told):
        run(factory)


def test_parameters_may_change_in_place() -> None:
    assert run(InPlace).status == "finished"


class WithBuffer(nn.Module):
    def __init__(self, values: Callable[[nn.Linear], Tensor]) -> None:
        super().__init__()
        self.layer = linear()
        self.register_buffer("extra", values(self.layer))

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.layer(inputs)
        return result


def tied_by_memory() -> nn.Module:
    first, second = nn.Linear(5, 5), nn.Linear(5, 5)
    second.weight.data = first.weight.data
    return nn.Sequential(first, second, linear())


def tied() -> nn.Module:
    first, second = nn.Linear(5, 5), nn.Linear(5, 5)
    second.weight = first.weight
    return nn.Sequential(first, second, linear())


class Lazy(nn.Sequential):
    def __init__(self, size: int) -> None:
        super().__init__(nn.LazyLinear(8), nn.Linear(size, 3))


class Unused(nn.Linear):
    def __init__(self) -> None:
        super().__init__(5, 3)
        self.extra = nn.LazyLinear(8)


class Mute(nn.Linear):
    def __init__(self) -> None:
        super().__init__(5, 3)

    def train(self, mode: bool = True) -> "Mute":
        super().train(mode)
        return None  # type: ignore[return-value]


class Holding(nn.Linear):
    """Keeps what forward computes, as torch.nn.utils.weight_norm does."""

    def __init__(self) -> None:
        super().__init__(5, 3)
        self.squares = self.weight**2


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (lambda: WithBuffer(lambda layer: layer.weight.detach()[0]), r"'(extra|layer.weight)' and '.*' share memory"),
        (
            lambda: WithBuffer(lambda layer: torch.zeros(1).expand(6)),
            "numbers of 'extra' share memory",
        ),
        (tied_by_memory, r"tie them by making both the same nn\.Parameter"),
        (lambda: Lazy(9), r"fails when its lazy layers are given an input of shape \(5,\) \(RuntimeError: mat1"),
        (Unused, r"never uses its lazy 'extra\.weight', so that it has no size; leave it out"),
        (Mute, r"does not return itself from train\(\); end that method with return self"),
        (Holding, "cannot be copied, as its average must be"),
    ],
)
def test_models_that_cannot_be_averaged_are_refused_in_words(factory: Callable[[], nn.Module], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        run(factory)


@pytest.mark.parametrize("factory", [tied, lambda: Lazy(8), lambda: WithBuffer(lambda layer: torch.zeros(0))])
def test_their_whole_cousins_run(factory: Callable[[], nn.Module]) -> None:
    assert run(factory).status == "finished"
