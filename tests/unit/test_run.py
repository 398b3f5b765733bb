"""Runs and records: what is kept, how it ends, what is refused."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import prequential as pq
from prequential.data.arrays import from_arrays
from prequential.errors import PreqError
from prequential.events import Calibrate, Event, Predict, Train
from prequential.methods import MethodDefaults
from prequential.models import build, name_of
from prequential.runs.progress import Progress
from prequential.runs.record import ARRAYS
from prequential.testing import check_data, check_model

from ..conftest import blobs


class Needy(nn.Linear):
    def __init__(self, hidden: int) -> None:
        super().__init__(5, 3)


class Frozen(nn.Linear):
    def __init__(self) -> None:
        super().__init__(5, 3)
        self.requires_grad_(False)


class AlwaysDropping(nn.Linear):
    def __init__(self) -> None:
        super().__init__(5, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return F.dropout(super().forward(inputs))


class Reassigning(nn.Linear):
    def __init__(self) -> None:
        super().__init__(5, 3)
        self.mean = nn.Buffer(torch.zeros(5))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * inputs.mean(0)  # type: ignore[assignment]
        return super().forward(inputs - self.mean)


def normed() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))


METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
AGREED_KEYS = {
    "codelength_nats", "codelength_bits", "bits_per_label", "errors", "length", "num_classes", "flops", "heldout",
    "seconds", "method", "model", "data", "seed", "record",
}  # fmt: skip


def net() -> nn.Module:
    return nn.Linear(5, 3)


def test_a_record_survives_the_disk(tmp_path: Path) -> None:
    record = pq.run(net, blobs(50), METHOD, seed=3, plan_seed=4, out=tmp_path / "run")
    again = pq.load(tmp_path / "run")
    for name in ARRAYS:
        mine, other = getattr(record, name), getattr(again, name)
        assert mine.dtype == other.dtype
        assert np.array_equal(mine, other)
    assert record.summary() == again.summary()
    assert record.summary().keys() == AGREED_KEYS
    assert again.seeds == {"seed": 3, "order_seed": None, "plan_seed": 4}
    assert again.method["age_law"] == {"name": "uniform"}
    assert again.model["name"] == "tests.unit.test_run:net"
    assert again.model["num_parameters"] == 18
    assert {p.suffix for p in (tmp_path / "run").iterdir()} == {".json", ".npy", ""}
    assert (tmp_path / "run" / "lock").stat().st_size == 0
    assert repr(again).startswith("<Record: tests.unit.test_run:net on blobs by mi-rs, ")


def test_the_arrays_agree_with_each_other_and_stay_small(tmp_path: Path) -> None:
    record = pq.run(net, blobs(50), METHOD, seed=0)
    assert record.codelength == pytest.approx(record.nats.sum())
    assert record.bits_per_label == pytest.approx(record.nats.mean() / math.log(2))
    assert record.labels.tolist() == blobs(50).stored_labels.tolist()
    right = record.labels == record.predicted
    assert record.errors == (~right).sum()
    np.testing.assert_allclose(record.confidence[right], np.exp(-record.nats[right]), rtol=1e-6)
    assert (record.confidence[~right] >= np.exp(-record.nats[~right]) - 1e-6).all()
    assert record.nats[:8] == pytest.approx(record.uncalibrated_nats[:8], rel=1e-6)
    assert record.temperature_positions.tolist() == [0, 8, 16, 24, 32, 40, 48]
    assert record.temperatures[0] == 1
    assert sum(getattr(record, name).nbytes for name in ARRAYS[:5]) / 50 <= 18


def test_without_calibration_the_temperature_stays_one() -> None:
    record = pq.run(net, blobs(50), pq.ReplayStreams(num_streams=2, batch_size=8, calibrate=False), seed=0)
    assert set(record.temperatures) == {1.0}
    np.testing.assert_allclose(record.nats, record.uncalibrated_nats, rtol=1e-6)


def test_erm_has_no_codelength_and_no_temperature() -> None:
    record = pq.run(net, blobs(50), pq.FullDataset(epochs=3, batch_size=8), seed=0)
    assert record.codelength is None
    assert record.errors is None
    assert record.summary()["codelength_nats"] is None
    assert record.heldout is not None
    assert record.heldout["loss"] < math.log(3)


def test_listeners_hear_of_the_end() -> None:
    heard: list[Progress] = []
    record = pq.run(net, blobs(50), METHOD, seed=0, listeners=[heard.append])
    assert heard[-1].position == 50
    assert heard[-1].nats == pytest.approx(record.codelength)
    assert heard[-1].trained_examples == 150


class Breaking(nn.Module):
    """Turns into NaN after some training steps."""

    def __init__(self, value: float = math.nan, after: int = 5) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.steps = nn.Buffer(torch.zeros((), dtype=torch.int64))
        self.value, self.after = value, after

    def forward(self, inputs: Tensor) -> Tensor:
        self.steps.add_(int(self.training))
        return self.linear(inputs) + (self.value if self.steps > self.after else 0.0)


def test_a_run_that_diverges_stops_there_and_keeps_its_record(tmp_path: Path) -> None:
    record = pq.run(Breaking, blobs(64), METHOD, seed=0, out=tmp_path / "run")
    assert record.status == "diverged"
    assert record.codelength == math.inf
    assert np.isfinite(record.nats[:-1]).all()
    assert len(record.nats) % 8 == 1
    assert record.heldout is None
    facts = json.loads(json.dumps(record.summary(), allow_nan=False))
    assert facts["codelength_nats"] is None
    assert facts["status"] == "diverged"
    assert pq.load(tmp_path / "run").nats[-1] == math.inf


class Certain(nn.Module):
    """Bets everything on class 0."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.tensor([[1e4, 0.0, 0.0]]).expand(len(inputs), -1) + self.weight * 0


def test_a_probability_is_never_forgiven() -> None:
    record = pq.run(Certain, blobs(64), METHOD, seed=0)
    first_error = int(np.flatnonzero(blobs(64).stored_labels.numpy() != 0)[0])
    assert record.nats[first_error] == pytest.approx(1e4)
    assert record.status == "finished"


@pytest.fixture
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)


@pytest.mark.usefixtures("_pause_often")
def test_an_interrupted_run_keeps_what_was_measured(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.position >= 16:
            raise KeyboardInterrupt

    with pytest.raises(pq.Interrupted, match="stopped at label") as caught:
        pq.run(net, blobs(640), METHOD, seed=0, out=tmp_path / "run", listeners=[interrupt])
    record = pq.load(tmp_path / "run")
    assert record.status == "stopped"
    assert len(record.nats) == len(caught.value.record.nats) == 16
    whole = pq.run(net, blobs(640), METHOD, seed=0)
    assert np.array_equal(whole.nats[:16], record.nats)


def test_batch_norm_works_with_a_left_over_example() -> None:
    def factory() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))

    for method in (METHOD, pq.ReplayBuffer(num_replays=1, batch_size=8), pq.FullDataset(batch_size=8, epochs=1),
                   pq.ChunksFromScratch(batch_size=8, epochs=1, split_points=(1, 2, 9, 17))):  # fmt: skip
        record = pq.run(factory, blobs(49), method, seed=0)
        assert record.status == "finished"


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: pq.run("lenett", blobs(50), METHOD, seed=0), "unknown model 'lenett'; did you mean 'lenet'"),
        (lambda: pq.run("lenet", blobs(50), METHOD, seed=0), r"lenet takes images .* got inputs of shape \(5,\)"),
        (lambda: pq.run(lambda: nn.Linear(5, 4), blobs(50), METHOD, seed=0), r"gives \(4,\) for one .* wanted \(3,\)"),
        (lambda: pq.run(lambda: nn.Linear(4, 3), blobs(50), METHOD, seed=0), r"fails when predicting .*\(5,\): mat1"),
        (lambda: pq.run(nn.Linear(5, 3), blobs(50), METHOD, seed=0), "give a factory, not a Linear"),
        (lambda: pq.run(lambda: 3, blobs(50), METHOD, seed=0), "returned a int, not an nn.Module"),  # type: ignore[arg-type,return-value]
        (lambda: pq.run(7, blobs(50), METHOD, seed=0), "a name or a factory, got int"),  # type: ignore[arg-type]
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, width=2.0), "has no width to scale, got width 2"),
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, width=0.0), "width must be a number above 0, got 0.0"),
        (lambda: pq.run("no.such:thing", blobs(50), METHOD, seed=0), "cannot import 'no.such'"),
        (lambda: pq.run("sys:exit", blobs(50), METHOD, seed=0), r"'sys:exit' could not be built \(SystemExit"),
        (lambda: pq.run("json:thing", blobs(50), METHOD, seed=0), "module 'json' has no 'thing'"),
        (lambda: pq.run("json:__name__", blobs(50), METHOD, seed=0), "is a str; name a function or class"),
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, device="cuda:77"), "device 'cuda:77' is not there"),
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, device="gpu"), "device 'gpu' is not there"),
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, device="meta"), "device 'meta' is not there"),
        (lambda: pq.run(net, blobs(50), METHOD, seed=1.5), "seed must be a whole number, got 1.5"),  # type: ignore[arg-type]
        (lambda: pq.run(net, blobs(50), METHOD, seed=None), "seed must be a whole number, got None"),  # type: ignore[arg-type]
        (lambda: blobs(50).shuffled(True), "the order seed must be a whole number, got True"),
        (lambda: pq.run(net, blobs(50), pq.Recipe(), seed=0), "the method must be one such as .* got Recipe"),  # type: ignore[arg-type]
        (lambda: pq.run(net, blobs(50), pq.ReplayStreams, seed=0), "got the class ReplayStreams; make an instance"),  # type: ignore[arg-type]
        (lambda: pq.run(net, (1, 2), METHOD, seed=0), "the data must be a sequence, .* got tuple"),  # type: ignore[arg-type]
        (lambda: pq.run(net, blobs(50), METHOD, 3, seed=0), "the recipe must be a Recipe.* got int"),  # type: ignore[arg-type]
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, execution="graph"), "execution must be an Execution.* got str"),  # type: ignore[arg-type]
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, learner=3), "the learner must be a class or .* got int"),  # type: ignore[arg-type]
        (lambda: pq.run(net, blobs(50).without_heldout(), pq.FullDataset(), seed=0), "erm measures only held-out data"),
        (lambda: pq.run(Needy, blobs(50), METHOD, seed=0), "could not be built .TypeError: .* 'hidden'"),
        (lambda: pq.run(Frozen, blobs(50), METHOD, seed=0), "has no parameter to train"),
        (lambda: pq.run(AlwaysDropping, blobs(50), METHOD, seed=0), "draws random numbers when it predicts"),
        (lambda: pq.run(Reassigning, blobs(50), METHOD, seed=0), "replaces its buffer 'mean' while training"),
        (lambda: pq.run(nn.BatchNorm1d(5), blobs(50), METHOD, seed=0), "give a factory, not a BatchNorm1d"),
        (lambda: pq.run(normed, blobs(50), pq.ReplayStreams(batch_size=1), seed=0), "fails when training on 1 inputs"),
        (lambda: pq.run(net, from_arrays(np.zeros((40, 4), int), [0, 1] * 20), METHOD, seed=0), "nor as floats"),
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, resume=True), "resume needs the directory of the run"),
        (lambda: pq.ReplayStreams(batch_size=8, first_block=8, min_steps=3), "min_steps acts only while blocks grow"),
        (lambda: pq.ReplayStreams(num_streams=10**12), "at least 1 and at most 1000000, got 1000000000000"),
        (lambda: pq.run(net, blobs(50), METHOD, seed=0, threads=0), "threads must be a whole number of at least 1"),
        (lambda: pq.run(net, blobs(7), METHOD, seed=0), r"batch_size 8 is larger than the data .7 labels."),
        (lambda: pq.ReplayStreams(num_streams=0), "num_streams must be a whole number .* got 0"),
        (lambda: pq.ReplayStreams(batch_size=-1), "batch_size must be a whole number of at least 1, got -1"),
        (lambda: pq.ReplayStreams(batch_size=8, first_block=3), "first_block must divide the batch size 8, got 3"),
        (lambda: pq.ReplayStreams(min_steps=3), "min_steps acts only while blocks grow"),
        (lambda: pq.ReplayStreams(early_labels=10**6), "early_labels must be .* at most 100000, got 1000000"),
        (lambda: pq.ReplayBuffer(replacement="lifo", capacity=5), "unknown replacement 'lifo'; did you mean 'fifo'"),
        (lambda: pq.ReplayBuffer(replacement="reservoir"), "a reservoir needs a capacity"),
        (lambda: pq.ChunksFromScratch(split_points=(32, 32, 64)), r"got \[32, 32, 64\]; remove the repeated 32"),
        (lambda: pq.ChunksFromScratch(split_points=(64, 32)), r"got \[64, 32\]; sort them"),
        (lambda: pq.ChunksFromScratch(split_points=(0, 32)), "a split point must be a whole number of at least 1"),
        (lambda: pq.ChunksFromScratch(split_points=()), "at least one position, got none"),
        (lambda: pq.ChunksFineTuned(shrink=1.5), "shrink must be a number at least 0 and at most 1, got 1.5"),
        (lambda: pq.Pareto(0.0), "the scale of the age law must be a number above 0, got 0.0"),
        (lambda: pq.Recipe(optimizer="adam"), "unknown optimizer 'adam'; did you mean 'adamw'"),
        (lambda: pq.Recipe(learning_rate=math.nan), "learning_rate must be a number above 0, got nan"),
        (lambda: pq.Recipe(ema_step_size=0), "ema_step_size must be a number above 0 and at most 1, got 0"),
        (lambda: pq.Recipe(label_smoothing=1.0), "label_smoothing must be a number at least 0 and below 1, got 1.0"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(call: Callable[[], object], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_mistake_writes_nothing_and_a_run_is_never_overwritten(tmp_path: Path) -> None:
    with pytest.raises(PreqError):
        pq.run(net, blobs(7), METHOD, seed=0, out=tmp_path / "new")
    with pytest.raises(PreqError):
        pq.run(lambda: nn.Linear(5, 4), blobs(50), METHOD, seed=0, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    pq.run(net, blobs(50), METHOD, seed=0, out=tmp_path / "run")
    before = {p: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    with pytest.raises(PreqError, match="already holds a run; choose another directory, or resume it"):
        pq.run(net, blobs(50), METHOD, seed=1, out=tmp_path / "run")
    assert before == {p: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    (tmp_path / "file").touch()
    with pytest.raises(PreqError, match="is a file; name a directory"):
        pq.run(net, blobs(50), METHOD, seed=1, out=tmp_path / "file")
    with pytest.raises(PreqError, match="is not empty"):
        pq.run(net, blobs(50), METHOD, seed=1, out=tmp_path)
    with pytest.raises(PreqError, match="cannot write into"):
        pq.run(net, blobs(50), METHOD, seed=1, out=tmp_path / "file" / "below")


def test_broken_records_are_named(tmp_path: Path) -> None:
    record = pq.run(net, blobs(50), METHOD, seed=0, out=tmp_path / "run")
    assert record.path is not None
    with pytest.raises(PreqError, match="holds no run"):
        pq.load(tmp_path)
    nats = record.path / "nats.npy"
    whole = nats.read_bytes()
    for content, complaint in [(whole[:-8], "nats.npy is truncated"), (b"\x80\x04K\x01.", "nats.npy is damaged"),
                               (b"", "nats.npy is damaged"), (whole[:-1] + b"!", "does not fit")]:  # fmt: skip
        nats.write_bytes(content)
        with pytest.raises(PreqError, match=complaint):
            pq.load(record.path)
    np.save(nats, record.nats[:-1])
    with pytest.raises(PreqError, match="no array of at least 50 numbers"):
        pq.load(record.path)
    nats.unlink()
    with pytest.raises(PreqError, match=r"nats.npy cannot be read"):
        pq.load(record.path)
    nats.write_bytes(whole)
    facts = record.path / "record.json"
    for text, complaint in [
        ("{", "is damaged"),
        ("[]", "is not a record"),
        ('{"format": 9}', "is not a record"),
        ('{"checksum": "", "record": {"format": 9}}', "has format 9, this version reads 1 and 2"),
        (facts.read_text().replace('"length": 50', '"length": 49'), "its checksum does not fit its content"),
    ]:
        facts.write_text(text)
        with pytest.raises(PreqError, match=complaint):
            pq.load(record.path)


def test_factories_get_what_they_ask_for() -> None:
    def wide(num_classes: int, *, width: float) -> nn.Module:
        return nn.Linear(round(5 * width), num_classes)

    assert build(wide, (5,), 3, width=2.0).in_features == 10
    assert build(net, (5,), 3).out_features == 3
    assert name_of("lenet") == "lenet"
    assert name_of(build).startswith("prequential.models:")


def test_the_public_checks_catch_bad_parts() -> None:
    shared = nn.Linear(5, 3)
    with pytest.raises(AssertionError, match="same object twice"):
        check_model(lambda: shared, (5,), 3)

    class Leaky(nn.Linear):
        def forward(self, inputs: Tensor) -> Tensor:
            return super().forward(inputs - inputs.mean(0))

    with pytest.raises(AssertionError, match="depends on the rest of its batch"):
        check_model(lambda: Leaky(5, 3), (5,), 3)
    values = iter(range(100))

    def unseeded() -> nn.Module:
        layer = nn.Linear(5, 3)
        nn.init.constant_(layer.weight, next(values))
        return layer

    with pytest.raises(AssertionError, match="outside torch's default generator"):
        check_model(unseeded, (5,), 3)

    class Drifting:
        name, num_classes, input_shape, order_seed, heldout = "drift", 3, (5,), None, None
        reads = 0

        def __len__(self) -> int:
            return 30

        def inputs(self, positions: np.ndarray) -> Tensor:
            self.reads += 1
            return torch.full((len(positions), 5), float(self.reads))

        def labels(self, positions: np.ndarray) -> Tensor:
            return torch.zeros(len(positions), dtype=torch.int64)

        def digests(self) -> dict[str, str]:
            return {"inputs": "", "labels": "", "order": ""}

    with pytest.raises(AssertionError, match="twice gives different values"):
        check_data(Drifting())


class Listed(MethodDefaults):
    """A user's method, right or wrong."""

    name: ClassVar[str] = "listed"
    title: ClassVar[str] = "Listed"

    def __init__(self, *events: Event) -> None:
        self._events = events

    def events(self, length: int, seed: int) -> Iterator[Event]:
        yield from self._events


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ([Predict(32, 50)], r"predicts \[32, 50\), but the next label to predict is 0 of 50"),
        ([Predict(0, 50), Predict(0, 50)], r"predicts \[0, 50\), but the next label to predict is 50 of 50"),
        ([Predict(0, 8)], "the plan ends at label 8 of 50"),
        ([], "the plan ends at label 0 of 50"),
        ([Train(np.arange(8))], r"only \[0, 0\) is revealed"),
        ([Predict(0, 8), Calibrate(np.arange(9))], r"only \[0, 8\) is revealed"),
    ],
)
def test_a_plan_that_cheats_is_stopped_while_it_runs(events: list[Event], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        pq.run(net, blobs(50), Listed(*events), seed=0)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    method = pq.ReplayStreams(num_streams=np.int64(2), batch_size=np.int32(8))  # type: ignore[arg-type]
    recipe = pq.Recipe(learning_rate=np.float32(0.01))  # type: ignore[arg-type]
    data = blobs(50).shuffled(np.int64(1))  # type: ignore[arg-type]
    record = pq.run(net, data, method, recipe, seed=np.int64(3), out=tmp_path / "run")  # type: ignore[arg-type]
    assert pq.load(tmp_path / "run").method == record.method
    assert pq.ChunksFromScratch(split_points=np.array([8, 16])).split_points == (8, 16)  # type: ignore[arg-type]


def test_lazy_and_parametrised_models_run_and_are_counted() -> None:
    def lazy() -> nn.Module:
        return nn.Sequential(nn.LazyLinear(7), nn.ReLU(), nn.Linear(7, 3))

    def reparametrised() -> nn.Module:
        return nn.utils.parametrizations.weight_norm(nn.Linear(5, 3))

    for factory in (lazy, reparametrised):
        record = pq.run(factory, blobs(50), METHOD, seed=0)
        assert np.array_equal(record.nats, pq.run(factory, blobs(50), METHOD, seed=0).nats)
        assert record.flops is not None
        assert record.flops["code"] > 0


def test_erm_that_diverges_says_so(tmp_path: Path) -> None:
    record = pq.run(Breaking, blobs(64), pq.FullDataset(batch_size=8, epochs=2), seed=0, out=tmp_path / "run")
    assert record.status == "diverged"
    assert record.heldout is None
    assert pq.load(tmp_path / "run").status == "diverged"


@pytest.mark.usefixtures("_pause_often")
def test_a_run_that_fails_keeps_its_record(tmp_path: Path) -> None:
    def fail(progress: Progress) -> None:
        if progress.position >= 16:
            raise RuntimeError("listener")

    with pytest.raises(RuntimeError, match="listener"):
        pq.run(net, blobs(640), METHOD, seed=0, out=tmp_path / "run", listeners=[fail])
    record = pq.load(tmp_path / "run")
    assert record.status == "failed"
    assert len(record.nats) == 16


def test_what_appears_beside_a_run_does_not_lose_it(tmp_path: Path) -> None:
    def litter(progress: Progress) -> None:
        (tmp_path / "run" / "note.txt").touch()

    assert pq.run(net, blobs(50), METHOD, seed=0, out=tmp_path / "run", listeners=[litter]).status == "finished"


def test_a_draw_that_begins_late_leaves_torchs_generator_alone() -> None:
    class Late(Breaking):
        def forward(self, inputs: Tensor) -> Tensor:
            logits = self.linear(inputs)
            self.steps.add_(int(self.training))
            return F.dropout(logits) if self.training and self.steps > 5 else logits

    before = torch.get_rng_state()
    one, other = (pq.run(Late, blobs(64), METHOD, seed=0) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(one.nats, other.nats)
