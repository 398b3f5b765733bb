"""Learners that are no networks: classifiers of scikit-learn and river as models of runs."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import prequential as pq
from prequential import cli
from prequential.errors import PreqError, PreqWarning
from prequential.estimators import learner_kind
from prequential.estimators.label_by_label import LabelByLabel
from prequential.estimators.refitted import Refitted, next_fit
from prequential.estimators.smoothing import SHARES, Smoothing
from prequential.experts.build import build
from prequential.libraries import Classifier, prefix_of
from prequential.plan import Plan
from prequential.runs.run import Interrupted
from prequential.testing import check_method

from ..laws.resuming import require_same_bits
from ..laws.test_experts import labels_of

HAS_RIVER = importlib.util.find_spec("river") is not None
needs_river = pytest.mark.skipif(not HAS_RIVER, reason="river is not installed")
TREES = "sklearn:ensemble.ExtraTreesClassifier(n_estimators=5)"
BOOSTED = "sklearn:ensemble.HistGradientBoostingClassifier(max_iter=5, refit=1.5)"
BAYES = "sklearn:naive_bayes.GaussianNB"
ONE_BY_ONE = "river:tree.HoeffdingTreeClassifier"
FOREST = "river:forest.ARFClassifier(n_models=3)"
ALL = [
    TREES,
    f"{TREES[:-1]}, window=70, refit=1.5)",
    BAYES,
    *(pytest.param(m, marks=needs_river) for m in (ONE_BY_ONE, FOREST)),
]


def points(length: int = 200, num_classes: int = 3) -> Any:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(length, 4)).astype(np.float32)
    labels = (inputs[:, 0] > 0).astype(int) + (inputs[:, 1] > 1) * (num_classes > 2)
    return pq.from_arrays(inputs, labels, num_classes=num_classes)


@pytest.mark.parametrize("model", ALL)
def test_it_learns_repeats_and_depends_on_no_later_label(model: str) -> None:
    data = points()
    record, again = (pq.run(model, data, seed=3) for _ in range(2))
    assert record.status == "finished"
    assert record.method["name"] == "online"
    assert np.array_equal(record.nats, again.nats)
    assert record.codelength < 200 * np.log(3)
    prefix = pq.run(model, data.take(90), seed=3)
    assert np.array_equal(prefix.nats[:64], record.nats[:64])
    assert record.flops is None
    assert record.model["num_parameters"] == 0
    assert set(record.temperatures) == {1.0}


@pytest.mark.parametrize("model", ALL)
def test_an_interrupted_run_goes_on_to_the_same_bits(model: str, tmp_path: Path) -> None:
    data, whole = points(), pq.run(model, points(), seed=1)
    stops = iter((40, 100, 150))

    def resumed(out: Path) -> pq.Record:
        """Stopped a few times, each time somewhere further on."""
        at = next(stops, None)

        def listener(progress: Any) -> None:
            if at is not None and progress.position >= at:
                raise KeyboardInterrupt

        try:
            return pq.run(model, data, seed=1, out=out, resume=True, checkpoint_seconds=0, listeners=[listener])
        except Interrupted:
            return resumed(out)

    record = resumed(tmp_path / "run")
    assert np.array_equal(record.nats, whole.nats)
    assert np.array_equal(record.predicted, whole.predicted)


@settings(max_examples=12, deadline=None)
@given(stop=st.integers(0, 12), others=st.integers(0, 3))
@pytest.mark.parametrize("model", [TREES, BAYES, *([ONE_BY_ONE] if HAS_RIVER else [])])
def test_a_restored_learner_says_what_the_first_one_says(model: str, stop: int, others: int) -> None:
    """Wherever it is left, and whatever events of training it hears of on the way."""
    data, kind = points(), learner_kind(model)
    assert kind is not None
    labels = data.labels(np.arange(200))

    def walk(learner: Any, begin: int, end: int) -> Iterator[torch.Tensor]:
        for start in range(begin * 16, end * 16, 16):
            found, said = labels[start : start + 16], learner.predict(start, start + 16)
            if (rows := said.rows()) is None:
                given_rows = []
                for label in found.tolist():
                    given_rows.append(said.row())
                    said.tell(label)
                rows = torch.stack(given_rows)
            yield rows
            learner.observe(start, start + 16, found)
            for number in range(others):
                learner.train_steps(np.zeros((1, 4), np.int64), labels[:4][None], number)
                learner.calibrate(np.arange(4), labels[:4])
                learner.reinit(number)

    first = kind(model, data, seed=5)
    list(walk(first, 0, stop))
    second = kind(model, data, seed=5)
    second.restore({name: [t.clone() for t in tensors] for name, tensors in first.tensors().items()})
    for one, other in zip(walk(first, stop, 12), walk(second, stop, 12), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (BOOSTED, [BOOSTED]),
        pytest.param(FOREST, [FOREST], marks=needs_river),
        (pq.Experts(["mlp1", TREES], simple_codes=True), ["mlp1", TREES]),
    ],
    ids=["boosted", "forest", "trees mixed in"],
)
def test_encoded_here_and_decoded_in_another_process(model: Any, names: list[str], tmp_path: Path) -> None:
    data, out = points(150), tmp_path / "labels.npy"
    small: dict[str, Any] = {"width": 0.02, "threads": 1} if isinstance(model, pq.Experts) else {}
    content = pq.encode(model, data, seed=2, **small)
    record = pq.run(model, data, seed=2, **small)
    (tmp_path / "labels.preq").write_bytes(content)
    np.save(tmp_path / "inputs.npy", data.inputs(np.arange(150)).numpy())
    files = [str(tmp_path / "labels.preq"), "-o", str(out), "--inputs", str(tmp_path / "inputs.npy")]
    command = [sys.executable, "-m", "prequential.cli", "decode", *files]
    with pytest.raises(PreqError, match=r"give it again .--model"):
        pq.decode(content, data)
    subprocess.run([*command, *(f"--model={name}" for name in names)], check=True, capture_output=True)
    assert np.array_equal(np.load(out), record.labels)
    from prequential.coding.container import Container

    assert 8 * len(Container.from_bytes(content).payload) <= record.codelength / np.log(2) + 64


def test_what_prints_flops_copes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.random.default_rng(0).normal(size=(120, 3))
    lines = [f"{a},{b},{c},{'up' if a > b else 'down'}" for a, b, c in rows]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,y", *lines]))
    table, out = f"table:{tmp_path / 't.csv'}", tmp_path / "runs"
    for name, model in (("trees", TREES), ("net", "mlp1")):
        small = ["--width", "0.1"] if name == "net" else []
        assert (
            cli.main(["run", table, model, "--label", "y", "--out", str(out / name), "--threads", "auto", *small]) == 0
        )
    assert cli.main(["compare", str(out)]) == 0
    assert TREES in capsys.readouterr().out
    assert cli.main(["verify", str(out / "trees")]) == 2
    assert f"give it again (--model '{TREES}')" in capsys.readouterr().err  # as a shell takes it
    assert cli.main(["verify", str(out / "trees"), "--model", TREES]) == 0
    assert cli.main(["verify", str(out / "trees"), "--model", TREES, "--max-flops", "1e30"]) == 2
    assert "an unknown number of FLOPs" in capsys.readouterr().err
    assert cli.main(["report", str(out), "-o", str(tmp_path / "page.html")]) == 0
    assert cli.main(["watch", str(out), "--once"]) == 0
    assert cli.main(["plan", table, TREES, "--label", "y"]) == 0
    assert "cost       cannot be counted" in capsys.readouterr().out
    assert cli.main(["plan", table, TREES, "--label", "y", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["flops"] is None
    assert pq.load(out / "trees").recipe == pq.run(BAYES, points(20), seed=0).recipe


def test_another_version_is_told_when_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)  # however fast the machine

    def stop(progress: Any) -> None:
        if progress.position >= 80:
            raise KeyboardInterrupt

    arguments: dict[str, Any] = {"seed": 0, "out": tmp_path / "run", "checkpoint_seconds": 0}
    with pytest.raises(Interrupted):
        pq.run(TREES, points(), listeners=[stop], **arguments)
    monkeypatch.setattr(Classifier, "versions", {"scikit-learn": "0.1"})
    with pytest.warns(PreqWarning, match="bits may differ.*scikit-learn"):
        pq.run(TREES, points(), resume=True, **arguments)
    content = pq.encode(TREES, points(64), seed=0)
    with pytest.raises(PreqError, match=re.escape(f"give it again (--model '{TREES}')")):
        pq.decode(content, points(64))
    monkeypatch.setattr(Classifier, "versions", {"scikit-learn": "0.2"})
    with pytest.warns(PreqWarning, match="scikit-learn 0.1 there, 0.2 here"):
        pq.decode(content, points(64), TREES)


REFUSED = {
    "sklearn:": "no name of a classifier",
    "sklearn:RandomForestClassifier": "no name of a classifier",
    "sklearn:ensemble.__builtins__": "no name of a classifier",
    "sklearn:os.system('true')": "no name of a classifier",
    "sklearn:ensemble.RandomForestClassifier(10)": "no name of a classifier",
    "sklearn:ensemble.RandomForestClassifier(max_depth=__import__('os'))": "no name of a classifier",
    "sklearn:ensemble.RandomForestClassifier(**{'max_depth': 3})": "no name of a classifier",
    "sklearn:ensemble.RandomForestClassifier(max_depth=1e999)": "must be a plain value",
    "sklearn:" + "(" * 500: "no name of a classifier",
    "sklearn:ensemble.RandomForest": "has no classifier 'ensemble.RandomForest'",
    "sklearn:utils.np.ndarray": "has no classifier",
    "sklearn:linear_model.LinearRegression": "gives no probabilities",
    "sklearn:svm.LinearSVC": "gives no probabilities",
    "sklearn:linear_model.SGDClassifier": "does not work with this data",
    "sklearn:ensemble.RandomForestClassifier(depth=3)": "has no setting 'depth'; it has: bootstrap",
    "sklearn:ensemble.RandomForestClassifier(max_depth=-3)": "does not work with this data",
    "sklearn:ensemble.RandomForestClassifier(random_state=3)": "comes from the run's seed; leave it out",
    "sklearn:ensemble.RandomForestClassifier(n_jobs=2)": "so that the bits repeat; leave it out",
    "sklearn:ensemble.RandomForestClassifier(refit=0.5)": "refit must be a number at least 1",
    "sklearn:ensemble.RandomForestClassifier(window=1)": "window must be a whole number of at least 2",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_names_are_refused_in_words(name: str) -> None:
    with pytest.raises(PreqError, match=REFUSED[name].replace("(", "[(]")) as refused:
        pq.run(name, points(), seed=0)
    assert "PreqError" not in str(refused.value)  # a mistake of the name is told as one, not as the data's


@needs_river
def test_names_of_river_are_refused_too() -> None:
    with pytest.raises(PreqError, match="knows two classes, the data has 3"):
        pq.run("river:linear_model.LogisticRegression", points(), seed=0)
    with pytest.raises(PreqError, match="could not be made"):
        pq.run("river:ensemble.ADWINBaggingClassifier", points(), seed=0)
    assert pq.run("river:linear_model.LogisticRegression", points(40, 2), seed=0).status == "finished"


def test_what_means_nothing_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data: Any = points(64)
    unfit: dict[str, dict[str, Any]] = {
        "trains networks; take --method online": {"method": pq.ReplayStreams()},
        "is about training a network": {"recipe": pq.Recipe(learning_rate=1.0)},
        "has no width to scale": {"width": 2.0},
        "computes on the CPU": {"device": "cuda"},
        "engine, precision and compiling": {"execution": pq.Execution(engine="graph")},
    }
    for words, arguments in unfit.items():
        with pytest.raises(PreqError, match=words):
            pq.run(TREES, data, seed=0, **arguments)
    with pytest.raises(PreqError, match="would learn nothing"):
        pq.run("mlp1", data, pq.Online(), seed=0)
    with pytest.raises(PreqError, match="a stack trains networks"):
        pq.run_stack(TREES, data, None, [pq.Recipe()], seeds=[0])
    with pytest.raises(PreqError, match="a sweep is about the training of networks"):
        pq.sweep(TREES, data, space={"learning_rate": pq.LogUniform(1e-4, 1)}, seed=0, out=tmp_path)
    assert cli.main(["run", "mnist", TREES, "--lr", "0.1"]) == 2
    assert "--lr is about training a network" in capsys.readouterr().err


def test_held_out_data_is_evaluated() -> None:
    inputs, labels = np.eye(2, dtype=np.float32).repeat(60, 0), np.arange(2).repeat(60)
    order = np.random.default_rng(0).permutation(120)
    data = pq.from_arrays(inputs[order], labels[order], heldout=(inputs, labels))
    heldout = pq.run(TREES, data, seed=0).heldout
    assert heldout is not None
    assert heldout["error_rate"] == 0
    assert heldout["loss"] < 0.2


def test_a_fit_that_fails_leaves_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Refitted._fit

    def failing(self: Refitted, estimator: Any, rows: Any, labels: Any) -> Any:
        if len(labels) > 100:
            raise ValueError("one of a kind")
        return fit(self, estimator, rows, labels)

    monkeypatch.setattr(Refitted, "_fit", failing)
    with pytest.warns(PreqWarning, match="could not be fitted to .* .ValueError: one of a kind. and goes on with"):
        record = pq.run(f"{TREES[:-1]}, refit=1.3)", points(), seed=0)
    assert record.status == "finished"


def test_probabilities_that_do_not_sum_to_one_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        classes_ = np.arange(3)

        def predict_proba(self, rows: Any) -> Any:
            return np.array([[0.5, 0.5, 1.0], [0.0, 0.0, 0.0], [0.2, 0.3, 0.5]])

    found = Refitted(BAYES, points(), seed=0)._probabilities(Odd(), np.zeros((3, 4)))
    assert found.tolist() == [[0.25, 0.25, 0.5], [1 / 3] * 3, [0.2, 0.3, 0.5]]


def test_a_classifier_that_fails_on_its_way_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    near = "sklearn:neighbors.RadiusNeighborsClassifier(radius=2.5)"  # which has no word for what is far from all
    far = points(200).inputs(np.arange(200)).numpy()
    far[100:] *= 100
    data = pq.from_arrays(far, points(200).labels(np.arange(200)).numpy())
    with pytest.raises(PreqError, match=r"cannot predict after \d+ labels \(ValueError: No neighbors found"):
        pq.run(near, data, seed=0, out=tmp_path / "run")
    assert pq.load(tmp_path / "run").status == "failed"
    counted = pq.from_arrays(-abs(far), points(200).labels(np.arange(200)).numpy())
    with pytest.raises(PreqError, match=r"does not work with this data \(ValueError: Negative values"):
        pq.run("sklearn:naive_bayes.MultinomialNB", counted, seed=0)
    counted = pq.from_arrays(far.clip(min=0) - (np.arange(200) > 120)[:, None], labels_of(data))
    with pytest.raises(PreqError, match=r"cannot (learn|predict) .*ValueError: Negative values"):
        pq.run("sklearn:naive_bayes.MultinomialNB", counted, seed=0)


class Fickle:
    """A classifier of river's kind that changes by being asked, and is lost after a while."""

    def __init__(self, lasts: int) -> None:
        self.asked = self.told = 0
        self._lasts = lasts

    def predict_proba_one(self, row: Any) -> dict[int, float]:
        self.asked += 1
        return {0: float("nan") if self.told > self._lasts else 1 / (1 + self.asked), 1: 0.5}

    def learn_one(self, row: Any, label: int) -> None:
        self.told += 1


@needs_river
def test_what_was_not_asked_for_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that are coded uniformly are told and never asked for, and a classifier may change by being asked."""
    monkeypatch.setattr(LabelByLabel, "_fresh", lambda self: Fickle(lasts=1000))
    data, full = points(60), pq.Experts([ONE_BY_ONE, "mlp1"], "bayes", simple_codes=True)
    chunks = pq.ChunksFromScratch(batch_size=8, epochs=1, split_points=(16, 32))
    experts = full.completed(chunks, pq.Recipe(), 0.02, 0)
    plan = Plan(experts.method, len(data), 0)
    require_same_bits(
        plan, data, lambda: build(experts, data, plan, torch.device("cpu"), pq.Execution()), [2, 5, 9], num_experts=5
    )


@needs_river
def test_a_classifier_whose_output_is_not_finite_has_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LabelByLabel, "_fresh", lambda self: Fickle(lasts=40))
    record = pq.run(ONE_BY_ONE, points(60, 2), seed=0)
    assert (record.status, len(record.nats)) == ("diverged", 42)
    with pytest.warns(PreqWarning, match="gave no finite prediction at label 41 and is left out"):
        mixed = pq.run(pq.Experts([ONE_BY_ONE], "bayes", simple_codes=True), points(60, 2), seed=0)
    assert (mixed.status, mixed.left_out) == ("finished", {ONE_BY_ONE: 41})


def test_names_are_written_one_way() -> None:
    name = 'sklearn:ensemble.ExtraTreesClassifier( n_estimators = 5, criterion="gini" )'
    assert pq.run(name, points(20), seed=0).model["name"] == f"{TREES[:-1]}, criterion='gini')"
    assert prefix_of("timm:resnet18") is None


@given(st.integers(1, 10**6), st.floats(1, 3), st.none() | st.integers(2, 10**6))
def test_fits_come_at_growing_points(labels: int, growth: float, window: int | None) -> None:
    after = next_fit(labels, growth, window)
    assert after > labels
    assert after - labels <= max(1, (growth - 1) * (window or labels) + 1)


@given(st.integers(2, 5), st.data())
def test_smoothing_costs_little_more_than_the_best_share(num_classes: int, data: st.DataObject) -> None:
    """No label has probability 0, rows sum to 1, and the share that would have been best costs at most ln 14 less."""
    smoothing, total, alone = Smoothing(num_classes), 0.0, np.zeros(len(SHARES))
    for _ in range(data.draw(st.integers(1, 12))):
        label = data.draw(st.integers(0, num_classes - 1))
        said = np.eye(num_classes)[[data.draw(st.integers(0, num_classes - 1))]]
        (row,) = smoothing.rows(said, 1)
        assert row.min() > 0
        assert abs(row.sum() - 1) < 1e-12
        total -= np.log(row[label])
        alone -= np.log((1 - SHARES) * said[0, label] + SHARES * smoothing.frequencies[label])
        smoothing.learn(np.array([label]), said)
    assert total <= alone.min() + np.log(len(SHARES)) + 1e-9


@given(st.integers(1, 300), st.sampled_from([(1, None), (8, None), (32, 4), (16, 16), (6, 2)]))
def test_online_is_a_method_with_the_spans_of_mi_rs(length: int, sizes: tuple[int, int | None]) -> None:
    method = pq.Online(batch_size=sizes[0], first_block=sizes[1])
    check_method(method)
    found = [(event.start, event.stop) for event in method.events(length, 0) if isinstance(event, pq.Predict)]
    assert found == list(pq.ReplayStreams(batch_size=sizes[0], first_block=sizes[1]).time_steps(length))
    assert method.most_work(length).events >= len(found)
