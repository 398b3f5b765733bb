"""Experts of one run: kept, resumed, left out, refused, stacked, and mixed behind a device."""

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import prequential as pq
from prequential.errors import PreqError, PreqWarning
from prequential.experts.behind import MixingBehind
from prequential.experts.build import build
from prequential.experts.code import MixedCode
from prequential.experts.learner import MixedLearner
from prequential.experts.prediction import MixedPrediction
from prequential.learn.capture import MAY_WAIT
from prequential.learn.prediction import Prediction
from prequential.mixers.kept import kept_after
from prequential.plan import Plan
from prequential.runs.record import ARRAYS
from prequential.targets.simple_codes import frequency_code, previous_label_code, uniform_code

from ..conftest import blobs
from ..laws.test_experts import CHUNKS, METHOD, MIXED, OTHER, labels_of, small
from ..laws.test_records import tiny

EXPERT_ARRAYS = ("expert_nats", "expert_weights_after", "expert_weights")


def same(one: pq.Record, other: pq.Record) -> bool:
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in (*ARRAYS, *EXPERT_ARRAYS))


@pytest.mark.parametrize("name", ["joint", "averages"])
def test_a_mixed_run_is_kept_and_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    data = blobs(64)
    where: dict[str, Any] = {"seed": 0, "out": tmp_path / "run", "checkpoint_seconds": 0}
    whole = pq.run(MIXED[name], data, METHOD, seed=0)
    for position in (16, 40):

        def stop(progress: Any, at: int = position) -> None:
            if progress.position >= at:
                signal.raise_signal(signal.SIGTERM)

        with pytest.raises(pq.Interrupted) as interrupted:
            pq.run(MIXED[name], data, METHOD, **where, resume=True, listeners=[stop])
        assert interrupted.value.record.expert_nats is not None
        assert interrupted.value.record.expert_nats.shape == (position, len(whole.expert_names))
    with pytest.raises(PreqError, match="settings differ from the run in"):
        pq.run(pq.Experts([tiny, small], "bayes"), data, METHOD, **where, resume=True)
    resumed = pq.run(MIXED[name], data, METHOD, **where, resume=True)
    read = pq.load(tmp_path / "run")
    assert same(resumed, whole)
    assert same(read, whole)
    assert read.heldout == whole.heldout
    assert read.expert_names == whole.expert_names
    assert same(read.save(tmp_path / "copy"), pq.load(tmp_path / "copy"))


def test_a_record_of_one_model_says_nothing_of_experts(tmp_path: Path) -> None:
    record = pq.run(tiny, blobs(32), METHOD, seed=0, out=tmp_path / "run")
    assert record.expert_nats is None
    assert record.expert_names == ()
    assert "expert" not in (tmp_path / "run" / "record.json").read_text()
    assert sorted(file.stem for file in (tmp_path / "run").glob("*.npy")) == sorted(ARRAYS)


def test_weights_are_kept_as_often_as_the_length_says() -> None:
    record = pq.run(MIXED["codes"], blobs(40), METHOD, seed=0)
    assert record.expert_weights is not None
    assert record.expert_weights_after is not None
    assert np.array_equal(record.expert_weights_after, kept_after(40))
    assert record.expert_weights.shape == (40, 4)
    assert np.allclose(record.expert_weights.sum(1), 1)
    assert record.expert_names == ("tests.laws.test_experts:small", "uniform", "frequencies", "previous label")
    assert [len(kept_after(length)) for length in (1, 999, 1000, 1001, 5000, 10**7)] == [1, 999, 1000, 501, 1000, 1000]


def test_simple_codes_are_updated_label_by_label() -> None:
    data = blobs(60)
    record, labels = pq.run(MIXED["codes"], data, METHOD, seed=0), labels_of(data)
    assert record.expert_nats is not None
    for column, code in zip(record.expert_nats.T[1:], (uniform_code, frequency_code, previous_label_code), strict=True):
        assert np.allclose(column, code(labels, 3), rtol=1e-12)


def test_an_expert_that_diverges_is_left_out(tmp_path: Path) -> None:
    wild = pq.Expert(tiny, recipe=pq.Recipe(optimizer="sgd", learning_rate=1e30))
    with pytest.warns(
        PreqWarning, match=r"the expert '.*tiny 2' gave no finite prediction at label \d+ and is left out"
    ):
        record = pq.run(pq.Experts([tiny, wild], "bayes"), blobs(64), METHOD, seed=0, out=tmp_path / "run")
    assert record.status == "finished"
    ((name, position),) = (record.left_out or {}).items()
    assert name == record.expert_names[1]
    assert record.expert_nats is not None
    assert record.expert_weights is not None
    assert np.isinf(record.expert_nats[position:, 1]).all()
    assert np.isfinite(record.expert_nats[:position]).all()
    assert not record.expert_weights[position:, 1].any()
    assert pq.load(tmp_path / "run").left_out == record.left_out


def test_a_run_stops_when_no_expert_is_left() -> None:
    wild = pq.Expert(tiny, recipe=pq.Recipe(optimizer="sgd", learning_rate=1e30))
    with pytest.warns(PreqWarning, match="is left out"):
        record = pq.run(pq.Experts([wild, wild], "logistic"), blobs(64), METHOD, seed=0)
    assert record.status == "diverged"
    assert len(record.nats) < 64
    assert np.isinf(record.nats[-1])
    with pytest.warns(PreqWarning, match="is left out"), pytest.raises(PreqError, match="has no finite codelength"):
        pq.encode(pq.Experts([wild], "bayes"), blobs(64), METHOD, seed=0)


@pytest.mark.parametrize(
    ("experts", "message"),
    [
        (pq.Experts([tiny, pq.Expert(tiny, method=pq.ReplayStreams(batch_size=4))]), r"\[0, 8\) and mi-rs \[0, 4\)"),
        (pq.Experts([tiny, pq.Expert(tiny, method=CHUNKS)]), "codes .* uniformly"),
        (pq.Experts([tiny, pq.Expert(tiny, method=pq.FullDataset(batch_size=8))]), "erm is not prequential"),
        (pq.Experts([tiny, pq.Expert(tiny, method=pq.ReplayStreams(batch_size=8, first_block=2))]), "same first block"),
    ],
)
def test_experts_that_cannot_share_a_plan_are_refused(experts: pq.Experts, message: str, tmp_path: Path) -> None:
    with pytest.raises(PreqError, match=message):
        pq.run(experts, blobs(64), METHOD, seed=0, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pq.Experts([]), "a list of at least one model"),
        (lambda: pq.Experts("lenet"), "a list of at least one model"),
        (lambda: pq.Experts(["lenet"], mixer="boys"), "unknown mixer 'boys'"),
        (lambda: pq.Experts(["lenet"], mixer=pq.Bayes), "the mixer must be a name or one such as"),  # type: ignore[arg-type]
        (lambda: pq.Experts([pq.Expert("lenet", averages=(2.0,))]), "averages must be a number"),
        (lambda: pq.Experts([pq.Expert("lenet", averages=(0.1, 0.1))]), "must differ from each other"),
        (lambda: pq.Experts([nn.Linear]).of_seeds("lenet", 0), "number of experts must be a whole number"),
        (lambda: pq.Expert(pq.Experts(["lenet"])), "the model of an expert must be a name or a factory"),  # type: ignore[arg-type]
        (lambda: pq.Expert("sklearn:linear_model.LogisticRegression", averages=(0.1,)), "no weights to average"),
        (lambda: pq.run(["mlp1", "mlp2"], blobs(32), METHOD, seed=0), "got list; give several as Experts"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_in_experts_are_told(make: Any, message: str) -> None:
    with pytest.raises(PreqError, match=message):
        make()


def test_experts_have_no_learner_of_ones_own() -> None:
    with pytest.raises(PreqError, match="leave learner= out"):
        pq.run(MIXED["seeds"], blobs(32), METHOD, seed=0, learner=lambda *_: None)  # type: ignore[arg-type]


def test_other_numbers_of_classes_are_refused() -> None:
    code = MixedCode(pq.Bayes(), 1, 3, 8, simple_codes=False)
    with pytest.raises(PreqError, match="needs 3 log-probabilities from each"):
        code.mixing.row(np.log(np.full((1, 4), 0.25)))


def test_decoding_needs_models_that_are_not_of_the_package() -> None:
    data = blobs(40).without_heldout()
    bits = pq.encode(MIXED["joint"], data, METHOD, seed=0)
    with pytest.raises(PreqError, match=r"the model '.*tiny' is not one of the package; give it again"):
        pq.decode(bits, data)
    with pytest.raises(PreqError, match=r"the experts are .*, got lenet; give the same"):
        pq.decode(bits, data, "lenet")
    one = pq.encode(pq.Experts(["mlp1", small], "bayes"), data, METHOD, seed=0, width=1.0)
    assert np.array_equal(pq.decode(one, data, small), labels_of(data))


def test_the_same_experts_are_a_stack_where_that_is_faster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data, experts = blobs(64), pq.Experts(["mlp1", pq.Expert("mlp2", method=OTHER), "mlp1"], "switching", True)
    one_by_one = pq.run(experts, data, METHOD, seed=0, width=0.02)
    monkeypatch.setattr("prequential.experts.build.STACKED_ON", ("cpu",))
    stacked = pq.run(experts, data, METHOD, seed=0, width=0.02, out=tmp_path / "run")
    assert stacked.environment["engine"] == "graph"
    assert stacked.expert_names == one_by_one.expert_names
    assert stacked.flops == one_by_one.flops
    assert stacked.model["experts"] == one_by_one.model["experts"]
    assert stacked.expert_nats is not None
    assert one_by_one.expert_nats is not None
    assert np.allclose(stacked.expert_nats[:8], one_by_one.expert_nats[:8], rtol=1e-4)
    assert np.allclose(stacked.expert_nats[:, 1:2], one_by_one.expert_nats[:, 1:2], rtol=1e-4)
    bits = pq.encode(experts, data, METHOD, seed=0, width=0.02, execution=pq.Execution(engine="graph"))
    assert np.array_equal(pq.decode(bits, data), labels_of(data))


def test_mixing_behind_a_device_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = blobs(64)
    at_once = pq.run(MIXED["averages"], data, METHOD, seed=0)
    monkeypatch.setattr(MixedPrediction, "on_host", False)
    behind = pq.run(MIXED["averages"], data, METHOD, seed=0, out=tmp_path / "run", checkpoint_seconds=0)
    assert same(behind, at_once)
    assert behind.heldout == at_once.heldout


def test_held_out_data_is_predicted_with_the_last_weights() -> None:
    data = blobs(64)
    record = pq.run(pq.Experts.of_seeds(small, 2, mixer="bayes"), data, METHOD, seed=0)
    seeds = [expert["seed"] for expert in record.model["experts"]]
    alone = [pq.run(small, data, METHOD, seed=seed) for seed in seeds]
    assert record.heldout is not None
    losses = [run.heldout["loss"] for run in alone if run.heldout is not None]
    assert record.expert_weights is not None
    believed = int(record.expert_weights[-1].argmax())
    assert record.heldout["loss"] <= losses[believed] - np.log(record.expert_weights[-1, believed]) + 1e-6


def test_flops_are_those_of_all_experts() -> None:
    data = blobs(64)
    alone = [pq.run(model, data, METHOD, seed=0).flops for model in (tiny, small)]
    together = pq.run(pq.Experts([tiny, small]), data, METHOD, seed=0).flops
    assert together is not None
    assert together == {part: sum(flops[part] for flops in alone if flops is not None) for part in together}
    assert torch.get_num_threads() == 1


def test_experts_are_swept(tmp_path: Path) -> None:
    data, space = blobs(48).without_heldout(), {"learning_rate": pq.LogUniform(1e-3, 1e-2)}
    experts = pq.Experts.of_seeds(small, 2, mixer="bayes")
    pq.sweep(experts, data, METHOD, space=space, seed=0, trials=2, out=tmp_path / "sweep")
    records = [pq.load(path) for path in sorted((tmp_path / "sweep" / "trials").iterdir())]
    assert [len(record.expert_names) for record in records] == [2, 2]
    with pytest.raises(PreqError, match="experts have learners of their own"):
        pq.sweep(experts, data, METHOD, space=space, seed=0, trials=2, out=tmp_path / "other", stack=2)


def test_a_run_ends_where_those_who_are_left_have_no_weight() -> None:
    code = MixedCode(pq.Bayes(), 2, 2, 4, simple_codes=False)
    half, never = np.log([0.5, 0.5]), np.array([-np.inf, 0.0])
    code.row(np.stack([never, half]))
    code.tell(0)  # the first has the weight 0 from here on
    assert np.isnan(code.row(np.stack([half, [np.nan, np.nan]]))).all()
    told = code.charge(np.stack([half, half])[:, None], np.array([1]))
    assert np.isnan(told[0]).all()


def test_what_was_asked_of_the_networks_counts_beside_learners_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a GPU is not made to repeat its bits, and no code can be decoded there."""
    experts = pq.Experts([tiny, "sklearn:naive_bayes.GaussianNB"], "bayes").completed(METHOD, pq.Recipe(), 1.0, 0)
    plan = Plan(METHOD, 32, 0)
    for is_asked in (False, True):
        execution = pq.Execution(deterministic=is_asked)
        learner = build(experts, blobs(32), plan, torch.device("cpu"), execution)
        assert learner.deterministic is is_asked
    monkeypatch.setattr(learner.members[0], "compiled", True)
    assert MixedLearner(learner.each, learner.code, learner.names).compiled


def test_nothing_is_read_ahead_for_training_that_means_nothing() -> None:
    experts: list[Any] = [tiny, "sklearn:naive_bayes.GaussianNB", pq.Expert(small, method=OTHER)]
    for chosen, num_predict in ((experts[:2], 2), (experts, 3)):
        full = pq.Experts(chosen, "bayes").completed(METHOD, pq.Recipe(), 1.0, 0)
        plan = Plan(full.method, 32, 0)
        learner = build(full, blobs(32), plan, torch.device("cpu"), pq.Execution())
        counts = plan.counts()
        keys = [key is not None for _, key in learner.inputs.reads(plan.events(), 0)]
        assert (sum(keys), len(keys)) == (counts.trains, counts.trains + num_predict * counts.predicts)


def test_experts_may_be_left_out_while_it_is_told_who_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread mixes behind the device."""
    full = pq.Experts([small, small, small], "bayes").completed(METHOD, pq.Recipe(), 1.0, 0)
    learner = build(full, blobs(32), Plan(METHOD, 32, 0), torch.device("cpu"), pq.Execution())
    left_out, told = learner.code.mixing.left_out, list[str]()

    def warn(note: str, *_: Any, **__: Any) -> None:
        left_out[len(left_out)] = 5
        told.append(note)

    monkeypatch.setattr("prequential.experts.learner.warnings.warn", warn)
    left_out[0] = 3
    learner.tell_left_out()
    learner.tell_left_out()
    assert [note.partition(" gave")[0] for note in told] == [f"the expert '{name}'" for name in full.names[:2]]


def test_mixing_behind_waits_for_the_device_only_while_nothing_is_recorded() -> None:
    code = MixedCode(pq.Bayes(), 1, 2, 4, simple_codes=False)
    rows = torch.full((4, 2), 0.5, dtype=torch.float64).log()
    prediction = MixedPrediction(code, [Prediction(rows, rows, torch.ones(()))], [[0]], 4)
    with closing(MixingBehind()) as behind:
        with MAY_WAIT:
            behind.add(0, prediction, torch.zeros(4, dtype=torch.int64))
            with pytest.raises(TimeoutError):
                behind._waiting[0][1].result(timeout=0.1)
        ((start, measured),) = behind.all()
    assert (start, measured.shape) == (0, (7, 4))


def test_models_of_ones_own_may_have_the_same_name() -> None:
    def narrow(width: int) -> Any:
        return lambda input_shape, num_classes: nn.Sequential(
            nn.Linear(input_shape[0], width), nn.Linear(width, num_classes)
        )

    experts, data = pq.Experts([narrow(3), narrow(5)], "bayes"), blobs(48).without_heldout()
    content = pq.encode(experts, data, METHOD, seed=0)
    assert np.array_equal(pq.decode(content, data, experts), labels_of(data))


class MixedLate(MixingBehind):
    """As if its thread were very slow."""

    def add(self, start: int, prediction: MixedPrediction, labels: torch.Tensor) -> None:
        self.late = [*getattr(self, "late", []), (start, prediction, labels)]

    def all(self) -> Iterator[tuple[int, np.ndarray]]:
        while self.late:
            start, prediction, labels = self.late.pop(0)
            yield start, prediction.charged(labels.numpy())


def test_who_is_left_out_is_told_though_it_is_mixed_after_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MixedPrediction, "on_host", False)
    monkeypatch.setattr("prequential.runs.recorder.MixingBehind", MixedLate)
    wild = pq.Expert(small, recipe=pq.Recipe(optimizer="sgd", learning_rate=1e30))
    with pytest.warns(PreqWarning, match="gave no finite prediction at label 8 and is left out"):
        record = pq.run(pq.Experts([small, wild], "bayes"), blobs(32), METHOD, seed=0)
    assert record.left_out == {record.expert_names[1]: 8}
