"""Law 10 for augmentation and training views: they never touch what is charged. And what is read is what was told."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.typing import NDArray
from torch import nn

import prequential as pq
from prequential.data.optional import Read
from prequential.data.sequence import ArraySequence
from prequential.learn.learner import Learner
from prequential.methods import Method
from prequential.models import build
from prequential.plan import Plan

from .strategies import prequential_methods

METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
AUGMENT = ("flip", "shift:2", "cutout:3", "affine", "elastic", "resized-crop", "jitter", "grey", "randaugment")


def pictures(length: int, *, side: int = 12) -> ArraySequence:
    draws = np.random.default_rng(0)
    labels = draws.integers(0, 3, length)
    images = draws.integers(0, 120, (length, 1, side, side))
    images[np.arange(length), :, 4 * labels // 2, :] += 120
    return pq.from_arrays(images.astype(np.uint8), labels, num_classes=3)


def net(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), 16), nn.ReLU(), nn.Linear(16, num_classes))


def test_augmentation_is_never_charged() -> None:
    frozen = pq.Recipe(learning_rate=1e-30, weight_decay=0)
    changed = pq.Recipe(learning_rate=1e-30, weight_decay=0, augment=AUGMENT)
    one, other = (pq.run(net, pictures(64), METHOD, recipe, seed=0) for recipe in (frozen, changed))
    assert np.allclose(one.nats, other.nats, rtol=0, atol=1e-12)
    learning, augmented = (
        pq.run(net, pictures(64), METHOD, pq.Recipe(augment=augment), seed=0) for augment in ((), AUGMENT)
    )
    assert np.array_equal(learning.nats[:8], augmented.nats[:8]), "before anything was learned"
    assert not np.array_equal(learning.nats, augmented.nats), "training sees it"


def test_augmentation_depends_on_seed_and_event_alone() -> None:
    recipe = pq.Recipe(augment=AUGMENT)
    one, same = (pq.run(net, pictures(48), METHOD, recipe, seed=3) for _ in range(2))
    assert np.array_equal(one.nats, same.nats)
    learner = Learner(net, pictures(48), recipe, seed=3)
    positions = np.arange(8)
    assert torch.equal(learner.inputs.training(positions, 5), learner.inputs.training(positions, 5))
    assert not torch.equal(learner.inputs.training(positions, 5), learner.inputs.training(positions, 6))
    assert torch.equal(
        learner.inputs.clean(positions), Learner(net, pictures(48), pq.Recipe(), seed=9).inputs.clean(positions)
    )


@pytest.mark.parametrize("method", [METHOD, pq.ChunksFineTuned(batch_size=8, epochs=1, split_points=(8, 16))])
def test_augmented_codes_decode(method: Method) -> None:
    data = pictures(48)
    bits = pq.encode(net, data, method, pq.Recipe(augment=AUGMENT, average_flips=True), seed=1)
    assert np.array_equal(pq.decode(bits, pq.from_arrays(data.stored_inputs), net), data.stored_labels.numpy())


def test_averaging_over_flips_sees_no_side() -> None:
    data = pictures(40)
    mirrored = pq.from_arrays(data.stored_inputs.flip(-1), data.stored_labels, num_classes=3)
    recipe = pq.Recipe(learning_rate=1e-30, weight_decay=0, average_flips=True)
    one, other = (pq.run(net, each, METHOD, recipe, seed=0) for each in (data, mirrored))
    assert np.allclose(one.nats, other.nats, atol=1e-6)
    plain = pq.run(net, data, METHOD, pq.Recipe(learning_rate=1e-30, weight_decay=0), seed=0)
    assert not np.allclose(plain.nats, one.nats, atol=1e-6)
    learner = Learner(net, data, recipe, seed=0)
    inputs = learner.inputs.clean(np.arange(4))
    expected = (learner.averaged(inputs) + learner.averaged(inputs.flip(-1))) / 2
    torch.testing.assert_close(learner.inputs.logits(learner.averaged, inputs), expected)
    assert one.flops is not None
    assert plain.flops is not None
    assert one.flops["code"] > plain.flops["code"], "a second forward pass is counted"


def test_averaging_over_views_is_the_mean_of_fixed_movements() -> None:
    data = pictures(40)
    recipe = pq.Recipe(augment=("flip", "cutout:3", "shift:2", "affine"), average_views=5, average_flips=True)
    learner, other = (Learner(net, data, recipe, seed=seed) for seed in (0, 7))
    inputs = learner.inputs.clean(np.arange(6))
    views = learner.inputs._seen(inputs)
    assert len(views) == 10
    assert torch.equal(views[0], inputs)
    for view, again in zip(views, other.inputs._seen(inputs[2:5]), strict=True):
        assert torch.equal(view[2:5], again), "no view depends on the seed or on its neighbours"
    assert all(not torch.equal(view, inputs) for view in views[1:])
    expected = torch.stack([learner.averaged(view) for view in views]).mean(0)
    torch.testing.assert_close(learner.logits(inputs), expected)
    draws = learner.inputs._view_draws
    torch.testing.assert_close(draws[:2] + draws[2:], torch.ones(2, 7), msg="views come in opposite pairs")
    one, five = (
        pq.run(net, data, METHOD, pq.Recipe(augment=("shift:1",), average_views=number), seed=0) for number in (1, 5)
    )
    assert one.flops is not None
    assert five.flops is not None
    trained, predicted = Plan(METHOD, 40).counts().trained_examples, 40
    forward = (five.flops["code"] - one.flops["code"]) / (4 * predicted)
    assert forward > 0
    assert one.flops["code"] > forward * (predicted + 2 * trained)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"average_views": 4, "augment": ("affine",)}, "average_views must be odd .* got 4"),
        ({"average_views": 3, "augment": ("flip", "cutout:2")}, "add shift:N or affine to augment"),
        ({"average_views": 0}, "average_views must be"),
        ({"full_rate_steps": -1}, "full_rate_steps must be"),
    ],
)
def test_views_that_make_no_sense(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(pq.PreqError, match=complaint):
        pq.Recipe(**settings)


@pytest.mark.parametrize(
    ("recipe", "complaint"),
    [
        (pq.Recipe(augment=("shift:9",)), "shift:9 is more than half of a 12x12 image"),
        (pq.Recipe(augment=["cutout:13"]), "cutout:13 is larger than a 12x12 image"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_told_before_the_run(recipe: pq.Recipe, complaint: str) -> None:
    with pytest.raises(pq.PreqError, match=complaint):
        pq.run(net, pictures(16), METHOD, recipe, seed=0)
    table = pq.from_arrays(np.zeros((16, 3)), np.arange(16) % 2)
    with pytest.raises(pq.PreqError, match="flip takes images"):
        pq.run("mlp1", table, METHOD, pq.Recipe(average_flips=True), seed=0)
    with pytest.raises(pq.PreqError, match="unknown augmentation 'flop'; did you mean 'flip'"):
        pq.Recipe(augment=("flop",))


@dataclass(frozen=True, eq=False)
class Watched(ArraySequence):
    """Notes what is read, and what it was told would be."""

    def note(self, kind: str, value: object) -> None:
        notes: dict[str, list[object]] = self.__dict__.setdefault("notes", {"read": [], "told": []})
        notes[kind].append(value)

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        self.note("read", (tuple(positions), None))
        return super().inputs(positions)

    def training_inputs(self, positions: NDArray[np.int64], key: int) -> torch.Tensor:
        self.note("read", (tuple(positions), key))
        return super().inputs(positions)

    def read_ahead(self, reads: Iterator[Read]) -> None:
        self.__dict__["notes"] = {"read": [], "told": [(tuple(positions), key) for positions, key in reads]}


@given(method=prequential_methods())
@settings(max_examples=25)
def test_what_was_told_is_what_is_read(method: Method) -> None:
    base = pictures(70)
    data = Watched(base.stored_inputs, base.stored_labels, 3, base.order)
    pq.run(net, data, method, seed=0)
    notes = data.__dict__["notes"]
    assert notes["read"][: len(notes["told"])] == notes["told"]
    assert len(notes["read"]) <= len(notes["told"]) + 1, "one more, to count FLOPs"
    keys = [key for _, key in notes["told"] if key is not None]
    assert len(set(keys)) == len(keys), "every training event has crops of its own"


def test_only_training_sees_the_training_view() -> None:
    class Dark(ArraySequence):
        def training_inputs(self, positions: NDArray[np.int64], key: int) -> torch.Tensor:
            return super().inputs(positions) * 0

    base = pictures(40)
    dark = Dark(base.stored_inputs, base.stored_labels, 3, base.order)
    assert not dark.training_inputs(np.arange(3), 0).any()
    learner = Learner(net, dark, pq.Recipe(), seed=0)
    assert (learner.inputs.training(np.arange(3), 0) == -1).all()
    assert torch.equal(
        learner.inputs.clean(np.arange(3)), Learner(net, base, pq.Recipe(), seed=0).inputs.clean(np.arange(3))
    )
    bits = pq.encode(net, dark, METHOD, seed=1)
    assert np.array_equal(pq.decode(bits, dark, net), base.stored_labels.numpy()), "a decoder trains on the same view"


@pytest.mark.parametrize(
    ("recipe", "momentum"),
    [
        (pq.Recipe(), 1.0),
        (pq.Recipe(batch_statistics="averaged-twice"), 0.1),
        (pq.Recipe(ema_step_size=0.5), 0.1),
        (pq.Recipe(batch_statistics="raw"), 0.1),
    ],
)
def test_batch_statistics_are_averaged_once(recipe: pq.Recipe, momentum: float) -> None:
    learner = Learner("smallconv", pictures(16, side=16), recipe, seed=0, width=0.1)
    layers = [layer for layer in learner.model.modules() if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)]
    assert {layer.momentum for layer in layers} == {momentum}
    untouched = build("smallconv", (1, 16, 16), 3, width=0.1)
    assert {m.momentum for m in untouched.modules() if isinstance(m, nn.BatchNorm2d)} == {0.1}
