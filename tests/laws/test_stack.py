"""The stacked engine: each member of a stack is the run it would be alone."""

import os
import resource
import warnings
from dataclasses import replace
from functools import partial
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
from prequential.coding.labels import Scorer
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError, PreqWarning
from prequential.learn import programs
from prequential.learn.learner import Learner
from prequential.models.mlp import mlp
from prequential.models.mnistnet import mnistnet
from prequential.models.smallconv import smallconv
from prequential.models.vgg import vggpp
from prequential.plan import Plan
from prequential.report.watching import Watcher
from prequential.runs.loop import execute
from prequential.runs.measured import Measured
from prequential.runs.progress import Pruned
from prequential.runs.recorder import Recorder
from prequential.runs.run import Interrupted, run_stack
from prequential.stack.dropout import HashedDropout, dropout_keys, hash_dropout
from prequential.stack.learner import StackedLearner

from ..conftest import blobs
from ..unit.test_resume import assert_same
from .test_engines import Recorded, Slow
from .test_records import IDS, METHODS, tiny

AUGMENT = ("affine", "flip", "shift:2", "cutout:4")
DOUBLE: dict[str, Any] = {"dtype": torch.float64}
calm = partial(tiny, dropout=0.0)


def small_mlp(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return mlp(input_shape, num_classes, width=0.1, dropout=0.0)


def small_smallconv(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return smallconv(input_shape, num_classes, width=0.125, dropout=0.0)


def small_mnistnet(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return mnistnet(input_shape, num_classes, width=0.125, dropout=0.0)


def small_vggpp(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Batch normalisation and standardised weights."""
    return vggpp(input_shape, num_classes, width=0.05, dropout=0.0)


def alone(model: Any, data: ArraySequence, method: Any, recipe: pq.Recipe, seed: int) -> Measured:
    """The plain engine in float64."""
    plan = Plan(method, len(data), heldout=data.heldout is not None)
    factor = method.calibration_rate_factor
    learner = Learner(model, data, recipe, seed=seed, calibration_rate_factor=factor, **DOUBLE)
    learner.probe(8)
    recorder = Recorder(plan, data.target)
    execute(plan, learner, Scorer(data, learner.device), recorder)
    return recorder.members[0]


def together(
    model: Any, data: ArraySequence, method: Any, recipes: list[pq.Recipe], seeds: list[int], **more: Any
) -> list[Measured]:
    """The stacked engine in float64."""
    plan = Plan(method, len(data), heldout=data.heldout is not None)
    factor = method.calibration_rate_factor
    learner = StackedLearner(model, data, recipes, seeds=seeds, calibration_rate_factor=factor, **DOUBLE, **more)
    recorder = Recorder(plan, data.target, [None] * len(seeds))
    execute(plan, learner, Scorer(data, learner.device), recorder)
    return recorder.members


def assert_close(found: Measured, wanted: Measured, tolerance: float = 1e-9) -> None:
    for name, array in wanted.arrays().items():
        least = 1e-6 if array.dtype == np.float32 else 0.0
        np.testing.assert_allclose(found.arrays()[name], array, rtol=least, atol=max(tolerance, least), err_msg=name)
    assert found.status == wanted.status
    assert (found.num_events, found.trained_examples) == (wanted.num_events, wanted.trained_examples)
    if wanted.heldout is not None:
        assert found.heldout == pytest.approx(wanted.heldout, rel=1e-6)


@pytest.mark.parametrize(
    "model",
    ["lenet", small_mlp, small_smallconv, small_mnistnet, small_vggpp],
    ids=["lenet", "mlp", "smallconv", "mnistnet", "vggpp"],
)
def test_a_stack_of_one_is_the_plain_engine(mnist: ArraySequence, model: Any) -> None:
    data, method = mnist.take(256).without_heldout(), pq.ReplayStreams(num_streams=2)
    (stacked,) = together(model, data, method, [pq.Recipe()], [3])
    assert_close(stacked, alone(model, data, method, pq.Recipe(), 3), 1e-6)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_every_event_means_the_same_in_a_stack(method: Any) -> None:
    recipes = [pq.Recipe(), pq.Recipe(learning_rate=1e-2, ema_step_size=0.3, label_smoothing=0.1, weight_decay=1.0)]
    stacked = together(calm, blobs(72), method, recipes, [1, 2])
    for member, recipe, seed in zip(stacked, recipes, [1, 2], strict=True):
        assert_close(member, alone(calm, blobs(72), method, recipe, seed), 1e-9)


@pytest.mark.parametrize(
    "common",
    [
        {"augment": AUGMENT, "ema_warmup": False, "average_flips": True, "average_views": 3},
        {"optimizer": "rmsprop"},
        {"optimizer": "sgd", "batch_statistics": "averaged-twice"},
        {"batch_statistics": "raw"},
        {"optimizer": "muon"},
    ],
    ids=["augmented", "rmsprop", "sgd", "raw", "muon"],
)
def test_every_setting_is_each_members_own(mnist: ArraySequence, common: dict[str, Any]) -> None:
    recipes = [
        pq.Recipe(**common, learning_rate=1e-4, full_rate_steps=3, eps=1e-6),
        pq.Recipe(**common, momentum=0.0, ema_step_size=0.5, label_smoothing=0.2),
        pq.Recipe(**common, learning_rate=1e-2, weight_decay=2.0, eps=1e-2, momentum=0.5),
    ]
    data, method = mnist.take(96).without_heldout(), pq.ReplayStreams(num_streams=2, batch_size=16)
    stacked = together(small_smallconv, data, method, recipes, [5, 6, 7])
    for member, recipe, seed in zip(stacked, recipes, [5, 6, 7], strict=True):
        assert_close(member, alone(small_smallconv, data, method, recipe, seed), 1e-6)


MEMBERS = [(pq.Recipe(learning_rate=rate, ema_step_size=step), seed)
           for seed, (rate, step) in enumerate([(1e-3, 0.01), (1e-2, 0.3), (3e-2, 0.05), (1e-3, 1.0)])]  # fmt: skip


@settings(max_examples=12)
@given(st.lists(st.sampled_from(range(4)), min_size=1, max_size=4, unique=True))
def test_neighbours_and_order_do_not_matter(chosen: list[int]) -> None:
    """With dropout: a member's draws are its own."""

    def stack(numbers: list[int]) -> list[Any]:
        recipes, seeds = [MEMBERS[n][0] for n in numbers], [MEMBERS[n][1] for n in numbers]
        return together(tiny, blobs(48), METHODS[0], recipes, seeds)

    everyone = stack([0, 1, 2, 3])
    for number, member in zip(chosen, stack(chosen), strict=True):
        assert_close(member, everyone[number], 1e-9)


def test_a_diverging_member_leaves_the_others_alone_to_the_bit() -> None:
    optimizer = "muon"  # whose moves of all members are products of matrices, made at once
    tame, wild = pq.Recipe(optimizer=optimizer), pq.Recipe(optimizer=optimizer, learning_rate=1e30)
    seeds = [0, 1, 2]
    calm_stack = run_stack(tiny, blobs(96), METHODS[0], [tame] * 3, seeds=seeds)
    stack = run_stack(tiny, blobs(96), METHODS[0], [tame, wild, tame], seeds=seeds)
    assert [record.status for record in stack] == ["finished", "diverged", "finished"]
    for number in (0, 2):
        assert_same(replace(stack[number], seconds=0.0), replace(calm_stack[number], seconds=0.0))
    bad = stack[1]
    assert np.isinf(bad.nats[-1])
    assert np.isfinite(bad.nats[:-1]).all()
    single = pq.run(tiny, blobs(96), METHODS[0], wild, seed=1)
    assert (single.status, len(single.nats)) == ("diverged", len(bad.nats))
    assert bad.heldout is None
    assert bad.flops is not None
    assert stack[0].flops is not None
    assert bad.flops["code"] < stack[0].flops["code"]


def test_a_stack_ends_when_all_have_diverged() -> None:
    records = run_stack(tiny, blobs(400), METHODS[0], [pq.Recipe(learning_rate=1e30)] * 2, seeds=[0, 1])
    assert [record.status for record in records] == ["diverged"] * 2
    assert all(len(record.nats) < 100 for record in records)


def test_weights_that_are_no_numbers_after_the_last_label_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    erm = pq.FullDataset(epochs=2, batch_size=8)
    tame, wild = run_stack(calm, blobs(64), erm, [pq.Recipe(), pq.Recipe(learning_rate=1e30)], seeds=[0, 1])
    assert (tame.status, wild.status) == ("finished", "diverged")
    assert tame.codelength is None
    single = pq.run(calm, blobs(64), erm, seed=0)
    assert tame.heldout == pytest.approx(single.heldout, rel=1e-3)


def test_eight_networks_code_as_well_as_eight_runs(mnist: ArraySequence) -> None:
    data, method, recipe = mnist.take(512).without_heldout(), pq.ReplayStreams(num_streams=1), pq.Recipe()
    stacked = run_stack("lenet", data, method, [recipe] * 8, seeds=range(8))
    single = [pq.run("lenet", data, method, recipe, seed=seed) for seed in range(8)]
    means = [np.mean([record.codelength for record in records]) for records in (stacked, single)]
    assert means[0] == pytest.approx(means[1], rel=0.005)
    different = {"seconds", "environment"}
    for one, other in zip(stacked, single, strict=True):
        assert {k: v for k, v in one.facts().items() if k not in different} == {
            k: v for k, v in other.facts().items() if k not in different
        }


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4))
def test_dropout_keys_depend_on_seed_event_and_layer_alone(event: int, num_steps: int, num_layers: int) -> None:
    keys = dropout_keys([3, 4, 5], event, num_steps, num_layers)
    later = dropout_keys([5, 3], event + num_steps - 1, 1, num_layers)
    assert np.array_equal(keys[-1, 2], later[0, 0])
    assert np.array_equal(keys[-1, 0], later[0, 1])
    assert len(np.unique(keys)) == keys.size


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.7, 1.0])
def test_hashed_dropout_keeps_the_mean_and_zeroes_its_share(rate: float) -> None:
    dropout, ones = HashedDropout(rate, whole_channels=False), torch.ones(64, 512)
    out = dropout(ones)
    assert float((out == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert float(out.mean()) == pytest.approx(float(rate < 1), abs=0.02)
    assert bool((dropout(ones) == out).all()) == (rate in (0.0, 1.0))  # used again, it draws again
    assert dropout.eval()(ones) is ones


def test_whole_channels_are_dropped_together() -> None:
    out = HashedDropout(0.5, whole_channels=True)(torch.ones(40, 8, 3, 3)).flatten(2)
    assert bool((out.amin(2) == out.amax(2)).all())
    assert 0.3 < float((out[..., 0] == 0).float().mean()) < 0.7


def test_a_stack_drops_the_channels_of_mnistnet_as_a_whole(mnist: ArraySequence) -> None:
    model = mnistnet((1, 28, 28), 10, width=0.1)
    hashed = [layer for name in hash_dropout(model) if isinstance(layer := model.get_submodule(name), HashedDropout)]
    assert [(layer.whole_channels, layer.p) for layer in hashed] == [(True, 0.3)] + 3 * [(True, 0.4)] + 3 * [
        (False, 0.5)
    ]
    data, method = mnist.take(96).without_heldout(), pq.ReplayStreams(num_streams=1, batch_size=16)
    narrow = partial(mnistnet, width=0.1)
    both = together(narrow, data, method, [pq.Recipe(), pq.Recipe(learning_rate=1e-3)], [1, 2])
    assert_close(both[0], together(narrow, data, method, [pq.Recipe()], [1])[0], 1e-6)


class Twice(nn.Module):
    """A user's own module: dropout of two kinds, one of them used twice, a frozen weight and a normalisation."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(input_shape[0], 12), nn.Linear(12, num_classes)
        self.dropout, self.channels = nn.Dropout(0.4), nn.Dropout1d(0.2)
        self.scale = nn.Parameter(torch.tensor(0.7), requires_grad=False)
        self.norm = nn.LayerNorm(12)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.dropout(self.norm(self.first(self.dropout(inputs)))) * self.scale
        logits: Tensor = self.last(self.channels(F.gelu(hidden)[:, :, None])[:, :, 0])
        return logits


def test_users_own_modules_stack() -> None:
    method = pq.ChunksFineTuned(batch_size=8, epochs=2, split_points=(8, 16, 32), shrink=0.5, perturb=0.2)
    pair = together(Twice, blobs(48), method, [pq.Recipe()] * 2, [0, 1])
    (one,) = together(Twice, blobs(48), method, [pq.Recipe()], [1])
    assert_close(pair[1], one)
    assert pair[0].total_nats != pair[1].total_nats


class Draws(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        return F.dropout(inputs, 0.5, self.training)


class Recurrent(nn.Module):
    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTM(input_shape[0], 4, batch_first=True), nn.Linear(4, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.cell(inputs[:, None])[0][:, -1])
        return logits


class Branching(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        return inputs if bool(inputs.sum() > 0) else -inputs


class Hidden(nn.Module):
    """Keeps a tensor that is neither a parameter nor a buffer."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.head, self.rows = nn.Linear(input_shape[0], num_classes), [torch.randn(num_classes)]

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(inputs)
        return logits + self.rows[0]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            lambda input_shape: nn.Sequential(nn.Linear(input_shape[0], 3), nn.Sequential(Draws())),
            r"layer '1\.0' \(Draws",
        ),
        (lambda input_shape: nn.Sequential(nn.Linear(input_shape[0], 3), Branching()), r"layer '1' \(Branching\)"),
        (Recurrent, r"layer 'cell' \(LSTM\)"),
        (Hidden, "computes something else when it is stacked"),
    ],
    ids=["draws", "branches", "recurrent", "hidden"],
)
def test_what_cannot_be_stacked_is_named(model: Any, message: str) -> None:
    with pytest.raises(PreqError, match=message) as error:
        run_stack(model, blobs(40), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1])
    assert "one by one" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("recipes", "message"),
    [
        ([pq.Recipe(), pq.Recipe(optimizer="sgd")], "must share optimizer, got adamw and sgd"),
        ([pq.Recipe(), pq.Recipe(ema_warmup=False)], "must share ema_warmup, got True and False"),
        ([pq.Recipe()], "a recipe and a seed for each member, got 1 and 2"),
        ([], "a recipe and a seed for each member, got 0 and 2"),
    ],
)
def test_members_that_do_not_fit_together(recipes: list[pq.Recipe], message: str, tmp_path: Path) -> None:
    with pytest.raises(PreqError, match=message):
        run_stack(tiny, blobs(40), METHODS[0], recipes, seeds=[0, 1], out=[tmp_path / "a", tmp_path / "b"])
    assert not list(tmp_path.iterdir())


def test_networks_of_different_shapes_are_refused() -> None:
    widths = iter(range(4, 40))
    with pytest.raises(PreqError, match=r"same layers, but 'weight' is \(3, \d+\) in member 0 and"):
        StackedLearner(lambda: nn.Linear(next(widths), 3), blobs(40), [pq.Recipe()] * 2, seeds=[0, 1])


def test_records_are_kept_and_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes, places = [pq.Recipe(), pq.Recipe(eps=1e-3)], [tmp_path / "a", tmp_path / "b"]
    arguments: dict[str, Any] = {"seeds": [0, 1], "evaluate": False}
    first = run_stack(tiny, blobs(40), METHODS[0], recipes, out=places, **arguments)
    for record, place in zip(first, places, strict=True):
        assert_same(pq.load(place), record)
        assert record.heldout is None
    with pytest.raises(PreqError, match="already holds a run"):
        run_stack(tiny, blobs(40), METHODS[0], recipes, out=places, **arguments)
    with pytest.raises(PreqError, match="a directory for each of its 2 members, got 1"):
        run_stack(tiny, blobs(40), METHODS[0], recipes, out=[tmp_path / "c"] * 2, **arguments)
    sizes: list[int] = []
    monkeypatch.setattr("prequential.stack.engines.StackedLearner", _counting(sizes))
    again = run_stack(
        tiny,
        blobs(40),
        METHODS[0],
        [*recipes, pq.Recipe()],
        seeds=[0, 1, 2],
        evaluate=False,
        resume=True,
        out=[*places, tmp_path / "c"],
    )
    assert sizes == [3, 1]  # all of them, to know what their records say; then the missing one
    assert [record.path for record in again] == [*places, tmp_path / "c"]
    for record, kept in zip(again, first, strict=False):
        assert_same(record, kept)


def _counting(sizes: list[int]) -> type[StackedLearner]:
    class Counting(StackedLearner):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            sizes.append(len(self))

    return Counting


def test_an_interrupted_stack_says_so_in_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)

    def interrupt(progress: Any) -> None:
        if progress.position >= 16:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stopped:
        run_stack(tiny, blobs(80), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1], listeners=[interrupt],
                  out=[tmp_path / "a", tmp_path / "b"])  # fmt: skip
    assert [record.status for record in stopped.value.records] == ["stopped"] * 2
    assert [len(record.nats) for record in stopped.value.records] == [16, 16]
    assert [pq.load(tmp_path / name).status for name in "ab"] == ["stopped"] * 2
    assert not list(tmp_path.glob("?/progress.json"))


@pytest.mark.parametrize("method", [METHODS[1], METHODS[4]], ids=[IDS[1], IDS[4]])
def test_recording_changes_nothing(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = [pq.Recipe(full_rate_steps=9), pq.Recipe(ema_step_size=0.4)]
    plain = run_stack(tiny, blobs(96), method, recipes, seeds=[0, 1])
    monkeypatch.setattr(programs, "Captured", Recorded)
    recorded = run_stack(tiny, blobs(96), method, recipes, seeds=[0, 1])
    for one, other in zip(plain, recorded, strict=True):
        assert_same(replace(one, seconds=0.0), replace(other, seconds=0.0))


def test_a_stack_that_cannot_be_recorded_goes_on_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(work: Any, *_: Any) -> None:
        work()
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    plain = run_stack(tiny, blobs(60), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1])
    monkeypatch.setattr(programs, "Captured", refuse)
    with pytest.warns(PreqWarning, match=r"cannot be recorded \(operation not .* capturing\); going on eagerly"):
        eager = run_stack(tiny, blobs(60), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1])
    for one, other in zip(plain, eager, strict=True):
        assert one.nats.tobytes() == other.nats.tobytes()
        assert one.environment["fallback"] is None
        assert other.environment["fallback"].startswith("not recorded: operation not permitted")


@pytest.mark.parametrize("optimizer", ["adamw", "rmsprop", "sgd"])
def test_compiled_steps_compute_the_same(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = partial(torch.compile, backend="aot_eager", fullgraph=True, dynamic=False)
    recipes = [pq.Recipe(optimizer=optimizer, learning_rate=1e-3, full_rate_steps=4), pq.Recipe(optimizer=optimizer)]
    plain = together(tiny, blobs(40), METHODS[0], recipes, [0, 1])
    monkeypatch.setattr(torch, "compile", lambda function, dynamic, options: traced(function))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        fused = together(tiny, blobs(40), METHODS[0], recipes, [0, 1], compiled=True)
    for one, other in zip(plain, fused, strict=True):
        assert_close(one, other)


def test_a_stack_that_cannot_be_compiled_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("no compiler here")

    plain = together(tiny, blobs(40), METHODS[0], [pq.Recipe()], [0])
    monkeypatch.setattr("prequential.stack.learner.compiled", lambda function: refuse)
    with pytest.warns(PreqWarning, match=r"cannot be compiled \(no compiler here\); going on without"):
        (other,) = together(tiny, blobs(40), METHODS[0], [pq.Recipe()], [0], compiled=True)
    assert_close(other, plain[0], 0.0)


@pytest.mark.parametrize("model", ["lenet", small_smallconv], ids=["lenet", "normalised"])
def test_bfloat16_is_close_and_named(mnist: ArraySequence, model: Any) -> None:
    data = mnist.take(128).without_heldout()
    full, half = (
        run_stack(model, data, METHODS[0], [pq.Recipe()], seeds=[0], execution=pq.Execution(precision=precision))[0]
        for precision in ("fp32", "bf16")
    )
    assert full.codelength is not None
    assert half.codelength is not None
    assert 0 < abs(half.codelength / full.codelength - 1) < 0.05
    assert half.environment["precision"] == "bf16"
    assert full.environment["engine"] == "stack"


def test_listeners_hear_of_the_whole_stack() -> None:
    heard: list[Any] = []
    records = run_stack(tiny, blobs(64), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1], listeners=[heard.append])
    assert heard[-1].position == heard[-1].length == 64
    assert heard[-1].nats == pytest.approx(np.mean([record.codelength for record in records]))
    assert sum(record.seconds for record in records) <= heard[-1].seconds + 1e-3


def test_a_stack_can_be_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)

    def prune(progress: Any) -> None:
        if progress.position >= 24:
            raise Pruned

    recipes = [pq.Recipe(), pq.Recipe(learning_rate=1e30)]
    run_stack(tiny, blobs(80), METHODS[0], recipes, seeds=[0, 1], listeners=[prune],
              out=[tmp_path / "a", tmp_path / "b"])  # fmt: skip
    kept = [pq.load(tmp_path / name) for name in "ab"]
    assert [record.status for record in kept] == ["pruned", "diverged"]
    assert len(kept[0].nats) == 24


def test_a_sequence_with_its_own_training_view_is_refused() -> None:
    plain = blobs(40)
    data = Slow(plain.stored_inputs, plain.stored_labels, 3, plain.order)
    with pytest.raises(PreqError, match="has its own view of the inputs for each run"):
        run_stack(tiny, data, METHODS[0], [pq.Recipe()], seeds=[0])


def test_slow_sequences_are_streamed() -> None:
    class Streamed(ArraySequence):
        reads_slowly = True

    plain = blobs(64)
    data = Streamed(plain.stored_inputs, plain.stored_labels, 3, plain.order, heldout=plain.heldout)
    resident, streamed = (run_stack(tiny, d, METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1]) for d in (plain, data))
    for one, other in zip(resident, streamed, strict=True):
        assert one.nats.tobytes() == other.nats.tobytes()


def test_all_tensors_of_a_member_are_those_of_a_learner() -> None:
    learner = Learner(calm, blobs(64), pq.Recipe(), seed=1, **DOUBLE)
    stack = StackedLearner(calm, blobs(64), [pq.Recipe(ema_step_size=0.5), pq.Recipe()], seeds=[0, 1], **DOUBLE)
    batches = np.random.default_rng(0).integers(0, 64, (9, 8))
    labels = blobs(64).labels(batches.ravel()).view(batches.shape)
    learner.train_steps(batches, labels, 3)
    stack.train_steps(batches, labels, 3)
    assert_same_tensors(stack, learner)
    assert int(stack.averaged.others["1.num_batches_tracked"][1]) == 9


@pytest.mark.parametrize("model", [calm, Twice])
def test_shrinking_and_starting_again_are_those_of_a_learner(model: Any) -> None:
    learner = Learner(model, blobs(64), pq.Recipe(), seed=1, **DOUBLE)
    stack = StackedLearner(model, blobs(64), [pq.Recipe(), pq.Recipe()], seeds=[0, 1], **DOUBLE)
    for either in (learner, stack):
        either.shrink_perturb(0.5, 0.2, 7)
    assert_same_tensors(stack, learner)
    for either in (learner, stack):
        either.reinit(9)
    assert_same_tensors(stack, learner)


def assert_same_tensors(stack: StackedLearner, learner: Learner) -> None:
    """Member 1 is the learner."""
    for model, state in ((learner.model, stack.raw), (learner.averaged, stack.averaged)):
        found = state.weights | state.others
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            torch.testing.assert_close(found[name][1], tensor.detach(), rtol=1e-9, atol=1e-12)


class Told:
    """A listener that remembers everything it is told."""

    def __init__(self) -> None:
        self.facts: Any = None
        self.progress: list[Any] = []
        self.record: Any = None

    def begin(self, facts: Any, progress: Any) -> None:
        self.facts = facts

    def __call__(self, progress: Any) -> None:
        self.progress.append(progress)

    def end(self, record: Any) -> None:
        self.record = record


def test_listeners_of_each_member_hear_of_its_begin_its_way_and_its_end() -> None:
    told, recipes = [Told(), Told()], [pq.Recipe(), pq.Recipe(learning_rate=1e-2)]
    records = run_stack(tiny, blobs(64), METHODS[0], recipes, seeds=[3, 4], listeners_of_each=[[each] for each in told])
    for each, record, recipe in zip(told, records, recipes, strict=True):
        assert each.facts["recipe"]["learning_rate"] == recipe.learning_rate
        assert each.progress[-1].nats == pytest.approx(record.codelength)
        assert each.record is record


def test_a_member_may_be_pruned_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)

    def prune(progress: Any) -> None:
        if progress.position >= 24:
            raise Pruned

    whole = run_stack(tiny, blobs(80), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1])
    pruned, other = run_stack(
        tiny, blobs(80), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1], listeners_of_each=[[prune], []]
    )
    assert (pruned.status, len(pruned.nats), other.status) == ("pruned", 24, "finished")
    assert other.nats.tobytes() == whole[1].nats.tobytes()


def test_whatever_a_stack_raises_leaves_failed_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)

    def fail(progress: Any) -> None:
        if progress.position >= 16:
            raise RuntimeError("a listener that fails")

    told = [Told(), Told()]
    with pytest.raises(RuntimeError, match="a listener that fails"):
        run_stack(tiny, blobs(80), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1], listeners=[fail],
                  listeners_of_each=[[each] for each in told], out=[tmp_path / "a", tmp_path / "b"])  # fmt: skip
    assert [pq.load(tmp_path / name).status for name in "ab"] == ["failed"] * 2
    assert [each.record.status for each in told] == ["failed"] * 2


def test_members_are_watched_while_they_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    monkeypatch.setattr("prequential.runs.live.SECONDS_BETWEEN_WRITES", 0.0)
    seen: list[list[tuple[str, str, int]]] = []

    def look(progress: Any) -> None:
        rows = Watcher([tmp_path]).snapshot().rows
        seen.append([(name, row.status, row.position) for name, row in rows])

    run_stack(tiny, blobs(64), METHODS[0], [pq.Recipe()] * 2, seeds=[0, 1], listeners=[look],
              out=[tmp_path / "a", tmp_path / "b"])  # fmt: skip
    going = [rows for rows in seen if len(rows) == 2 and {status for _, status, _ in rows} == {"running"}]
    positions = [rows[1][2] for rows in going]
    assert {rows[0][0] for rows in going} == {"a"}
    assert positions == sorted(positions)
    assert positions[-1] > 0
    assert {row.status for _, row in Watcher([tmp_path]).snapshot().rows} == {"finished"}


def test_many_members_may_have_more_files_open_than_is_usual(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as file:
        few = file.fileno() + 60
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, limits[1]))
        out = [tmp_path / str(number) for number in range(12)]
        records = run_stack(tiny, blobs(16), METHODS[0], [pq.Recipe()] * 12, seeds=range(12), out=out)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert {record.status for record in records} == {"finished"}


class Shifted(nn.BatchNorm1d):
    """A normalisation of one's own, which takes more."""

    def forward(self, rows: Tensor, shift: float = 0.0) -> Tensor:
        return super().forward(rows) + shift


class WithShifted(nn.Module):
    def __init__(self, by_name: bool) -> None:
        super().__init__()
        self.below, self.norm, self.last, self.by_name = nn.Linear(5, 8), Shifted(8), nn.Linear(8, 3), by_name

    def forward(self, inputs: Tensor) -> Tensor:
        below = self.below(inputs)
        logits: Tensor = self.last(self.norm(rows=below, shift=0.1) if self.by_name else self.norm(below, 0.1))
        return logits


@pytest.mark.parametrize("by_name", [False, True])
def test_a_normalisation_of_ones_own_may_take_more(by_name: bool) -> None:
    made, method = partial(WithShifted, by_name), pq.ReplayStreams(num_streams=1, batch_size=16)
    stacked = pq.run_stack(made, blobs(48), method, [pq.Recipe()] * 2, seeds=[0, 1])
    assert stacked[0].codelength == pytest.approx(pq.run(made, blobs(48), method, seed=0).codelength, rel=1e-3)
