"""Trackers: what they are told and when, that they disturb no run, and the real ones read back."""

import importlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prequential as pq
from prequential import PreqError, Record, cli
from prequential.errors import PreqWarning
from prequential.runs.progress import Progress
from prequential.runs.record import ARRAYS
from prequential.sweeps import LogUniform
from prequential.sweeps.directory import trial_path
from prequential.trackers import tracker_names
from prequential.trackers.backends import BACKENDS
from prequential.trackers.tracker import Tracker

from ..conftest import blobs

Captured = pytest.CaptureFixture[str]
METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


def require(name: str, *, is_large: bool = False) -> Any:
    """The package of a tracker, or a reason to skip the test."""
    if is_large and not os.environ.get("PREQ_TRACKERS"):
        pytest.skip(f"{name} takes long; make test-trackers installs it and runs this")
    return pytest.importorskip(name, reason=f"{name} is not installed; make test-trackers installs it and runs this")


class Notebook:
    """A backend that writes down what it is told; `fails_at` is the entry at which it breaks."""

    name = "notebook"
    seconds_between_entries = 0.0

    def __init__(self, fails_at: int | None = None) -> None:
        self.opened: list[tuple[str, str | None]] = []
        self.entries: list[tuple[int, dict[str, float]]] = []
        self.closed: list[tuple[dict[str, Any], dict[str, float], str]] = []
        self.fails_at = fails_at

    def open(self, title: str, settings: Mapping[str, Any], identity: str | None) -> str | None:
        self.opened.append((title, identity))
        return identity or f"log {len(self.opened)}"

    def log(self, position: int, figures: Mapping[str, float]) -> None:
        if self.fails_at is not None and len(self.entries) >= self.fails_at:
            raise ConnectionError("the server is gone\nand more")
        self.entries.append((position, dict(figures)))

    def close(self, settings: Mapping[str, Any], results: Mapping[str, float], status: str) -> None:
        self.closed.append((dict(settings), dict(results), status))


@pytest.fixture(autouse=True)
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)


def start(out: Path, tracker: Any, *, stop_at: int | None = None, resume: bool = True, length: int = 200) -> Record:
    asked: list[bool] = []

    def ask(progress: Progress) -> None:
        if stop_at is not None and progress.position >= stop_at and not asked:
            asked.append(True)
            signal.raise_signal(signal.SIGTERM)

    return pq.run(
        "mlp1", blobs(length), METHOD, seed=0, width=0.05, out=out, resume=resume, checkpoint_seconds=1e9,
        listeners=[ask, tracker],
    )  # fmt: skip


def assert_same(one: Record, other: Record) -> None:
    for name in ARRAYS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


@pytest.fixture(scope="module")
def undisturbed() -> Record:
    return pq.run("mlp1", blobs(200), METHOD, seed=0, width=0.05)


def assert_tells(entries: list[tuple[int, dict[str, float]]], record: Record, begin: int = 0) -> None:
    """Each entry says what the record says of that position."""
    before = begin
    for position, figures in entries:
        assert figures["codelength_nats"] == pytest.approx(record.nats[:position].sum(), rel=1e-6)
        assert figures["nats_per_label"] == pytest.approx(record.nats[before:position].mean(), rel=1e-5)
        assert figures["errors"] == (record.labels != record.predicted)[:position].sum()
        assert figures["temperature"] in record.temperatures
        before = position


def test_entries_settings_and_results(undisturbed: Record, tmp_path: Path) -> None:
    book = Notebook()
    record = start(tmp_path / "lenet", Tracker(book, tmp_path / "lenet"))
    assert_same(record, undisturbed)
    assert book.opened == [("lenet", None)]
    positions = [position for position, _ in book.entries]
    assert positions == sorted(set(positions))
    assert positions[-1] == 200
    assert len(positions) > 10
    assert_tells(book.entries, record)
    [(settings, results, status)] = book.closed
    assert (settings["model.name"], settings["method.num_streams"], settings["recipe.learning_rate"]) == (
        "mlp1",
        1,
        0.003,
    )
    assert not any(len(str(value)) == 32 for value in settings.values())
    assert status == "finished"
    assert record.heldout is not None
    assert results["final_codelength_nats"] == record.codelength
    assert results["heldout_loss"] == record.heldout["loss"]


def test_a_study_is_told_at_position_0_and_labels_as_ever(tmp_path: Path) -> None:
    book = Notebook()
    method = pq.AllInputs(method=METHOD, study_steps=4, study_batch_size=16, beside=1)
    record = pq.run(
        "mlp1", blobs(96), method, seed=0, width=0.05, out=tmp_path / "a", study_dir=tmp_path / "studies",
        listeners=[Tracker(book, tmp_path / "a")],
    )  # fmt: skip
    assert [entry for entry in book.entries if "studied" in entry[1]] == [
        (0, {"studied": share}) for share in (0.25, 0.5, 0.75)
    ]
    assert_tells([entry for entry in book.entries if "studied" not in entry[1]], record)


def test_a_resumed_run_goes_on_in_the_same_log_and_repeats_nothing(undisturbed: Record, tmp_path: Path) -> None:
    books = [Notebook() for _ in range(3)]
    for book, stop in zip(books, (60, 130), strict=False):
        with pytest.raises(pq.Interrupted):
            start(tmp_path / "run", Tracker(book, tmp_path / "run"), stop_at=stop)
    record = start(tmp_path / "run", Tracker(books[2], tmp_path / "run"))
    assert_same(record, undisturbed)
    assert [book.opened for book in books] == [[("run", None)], [("run", "log 1")], [("run", "log 1")]]
    positions = [position for book in books for position, _ in book.entries]
    assert positions == sorted(set(positions))
    assert [book.closed[0][2] for book in books] == ["stopped", "stopped", "finished"]
    assert [bool(book.closed[0][1]) for book in books] == [False, False, True]
    for book in books:
        for position, figures in book.entries:
            assert figures["codelength_nats"] == pytest.approx(record.nats[:position].sum())


def test_what_was_logged_after_the_last_checkpoint_is_not_logged_again(undisturbed: Record, tmp_path: Path) -> None:
    """A killed process logged up to 100; the run goes on from an earlier checkpoint."""
    facts, book = undisturbed.facts(), Notebook()
    killed = Tracker(book, tmp_path)
    killed.begin(facts, Progress(0, 200, 0.0, 0, 0, 0.0))
    for position in (50, 100):
        killed(Progress(position, 200, float(position), 0, 0, position / 10))
    again = Tracker(book, tmp_path)
    again.begin(facts, Progress(60, 200, 60.0, 0, 0, 6.0))
    for position in (80, 100, 120):
        again(Progress(position, 200, float(position), 0, 0, position / 10))
    assert [position for position, _ in book.entries] == [50, 100, 120]
    assert book.entries[-1][1]["nats_per_label"] == 1.0
    assert book.opened[1][1] == "log 1"
    other = Tracker(book, tmp_path)
    other.begin(facts | {"length": 300}, Progress(0, 300, 0.0, 0, 0, 0.0))
    assert book.opened[2][1] is None  # another run is another log
    other(Progress(50, 300, 50.0, 0, 0, 1.0))
    assert book.entries[-1][0] == 50


@pytest.mark.parametrize("fails_at", [0, 3])
def test_a_tracker_that_fails_is_told_once_and_the_run_goes_on(
    fails_at: int, undisturbed: Record, tmp_path: Path
) -> None:
    book = Notebook(fails_at)
    complaint = r"notebook failed \(ConnectionError: the server is gone\); the run goes on without it"
    with pytest.warns(PreqWarning, match=complaint) as caught:
        record = start(tmp_path / "run", Tracker(book, tmp_path / "run"))
    assert len(caught) == 1
    assert_same(record, undisturbed)
    assert len(book.entries) == fails_at
    assert book.closed == []


def test_not_too_often(tmp_path: Path, undisturbed: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.trackers.tracker.MOST_ENTRIES", 50)
    book = Notebook()
    tracker = Tracker(book, tmp_path)
    tracker.begin(undisturbed.facts(), Progress(0, 10**6, 0.0, 0, 0, 0.0))
    for position in range(0, 10**6 + 1, 100):
        tracker(Progress(position, 10**6, float(position), 0, 0, position / 10))
    assert 40 < len(book.entries) <= 51
    slow = Notebook()
    slow.seconds_between_entries = 1.0
    tracker = Tracker(slow, tmp_path)
    monkeypatch.undo()
    tracker.begin(undisturbed.facts() | {"length": 5}, Progress(0, 100, 0.0, 0, 0, 0.0))
    for position in range(101):
        tracker(Progress(position, 100, float(position), 0, 0, position / 10))
    assert len(slow.entries) == 11
    assert slow.entries[-1][0] == 100


def test_a_diverged_run_has_no_infinite_entry(tmp_path: Path, undisturbed: Record) -> None:
    book = Notebook()
    nats = np.append(undisturbed.nats[:99], np.inf)
    parts = {name: getattr(undisturbed, name)[:100] for name in ("labels", "predicted")}
    tracker = Tracker(book, tmp_path)
    tracker.begin(undisturbed.facts(), Progress(0, 200, 0.0, 0, 0, 0.0))
    for position in (50, 99, 100):
        tracker(Progress(position, 200, float(nats[:position].sum()), 0, 0, position / 10))
    tracker.end(replace(undisturbed, nats=nats, status="diverged", **parts))
    assert [position for position, _ in book.entries] == [50, 99, 100]
    assert all(np.isfinite(list(figures.values())).all() for _, figures in book.entries)
    assert "final_codelength_nats" not in book.closed[0][1]
    assert book.closed[0][2] == "diverged"


def test_names() -> None:
    assert tracker_names(None) == ()
    assert tracker_names("mlflow, tensorboard,mlflow") == ("mlflow", "tensorboard")
    with pytest.raises(PreqError, match="unknown tracker 'tensorbord'; did you mean 'tensorboard'"):
        pq.track("tensorbord", "runs/a")


@pytest.mark.parametrize("name", list(BACKENDS))
def test_a_missing_package_is_one_line_before_anything_happens(
    name: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "run"
    for command in (["run"], ["sweep", "--space", "mnist", "--trials", "1"]):
        arguments = [command[0], "mnist", "mlp1", *command[1:], "--length", "64", "--out", str(out), "--track", name]
        assert cli.main(arguments) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"preq: tracking with {name} needs a package that is not installed")
        assert f"pip install 'prequential[{name}]'" in said
        assert said.count("\n") == 1
        assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--track", "tensorboard"], "--track needs a directory for what it logs and remembers; give --out"),
        (["--track", "tb", "--out", "x"], "unknown tracker 'tb'; known: tensorboard, wandb, mlflow"),
        (["--track", "", "--out", "x"], "unknown tracker ''; known: tensorboard, wandb, mlflow"),
    ],
)
def test_mistakes(flags: list[str], complaint: str, capsys: Captured) -> None:
    assert cli.main(["run", "mnist", "mlp1", *flags]) == 2
    assert capsys.readouterr().err == f"preq: {complaint}\n"


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def entries_of(curves: Mapping[str, list[tuple[int, float]]]) -> list[tuple[int, dict[str, float]]]:
    names = ("codelength_nats", "nats_per_label", "errors", "temperature")
    assert len({tuple(step for step, _ in curves[name]) for name in names}) == 1
    return [
        (curves[names[0]][number][0], {name: curves[name][number][1] for name in names})
        for number in range(len(curves[names[0]]))
    ]


def test_tensorboard(undisturbed: Record, tmp_path: Path) -> None:
    require("tensorboard")
    out = tmp_path / "run"
    with pytest.raises(pq.Interrupted):
        start(out, pq.track("tensorboard", out), stop_at=90)
    record = start(out, pq.track("tensorboard", out))
    assert_same(record, undisturbed)
    curves = scalars(out / "tensorboard")
    entries = entries_of(curves)
    assert len({step for step, _ in entries}) == len(entries)
    assert entries[-1][0] == 200
    assert entries[-1][1]["codelength_nats"] == pytest.approx(record.codelength, rel=1e-6)
    assert curves["final_codelength_nats"][0][1] == pytest.approx(record.codelength, rel=1e-6)
    assert pq.load(out).status == "finished"


@pytest.mark.parametrize("stack", [None, 2])
def test_a_sweep_with_tensorboard(tmp_path: Path, stack: int | None) -> None:
    require("tensorboard")
    space = {"learning_rate": LogUniform(1e-3, 1e-2), "num_streams": 1, "batch_size": 8}
    out = tmp_path / "sweep"
    pq.sweep("mlp1", blobs(64), space=space, trials=2, width=0.1, seed=0, out=out, stack=stack, track=["tensorboard"])
    for number in range(2):
        trial = trial_path(out, number)
        codelength = pq.load(trial).codelength
        step, value = scalars(trial / "tensorboard")["codelength_nats"][-1]
        assert step == 64
        assert value == pytest.approx(codelength, rel=1e-6)


def test_mlflow(undisturbed: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = require("mlflow", is_large=True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "run"
    with pytest.raises(pq.Interrupted):
        start(out, pq.track("mlflow", out), stop_at=90)
    record = start(out, pq.track("mlflow", out))
    assert_same(record, undisturbed)
    client = mlflow.MlflowClient()
    [run] = client.search_runs([client.get_experiment_by_name("prequential").experiment_id])
    assert (run.info.run_name, run.info.status, run.data.tags["status"]) == ("run", "FINISHED", "finished")
    assert run.data.params["recipe.learning_rate"] == "0.003"
    assert run.data.metrics["final_codelength_nats"] == pytest.approx(record.codelength)
    history = client.get_metric_history(run.info.run_id, "codelength_nats")
    steps = [metric.step for metric in history]
    assert len(set(steps)) == len(steps) >= 2
    assert max(steps) == 200


def log_entries(content: bytes) -> Iterator[bytes]:
    """The records of a .wandb file: LevelDB's log format (blocks of 32 KiB, pieces of checksum, size and kind)
    after seven bytes of its own."""
    place, whole = 7, b""
    while place + 7 <= len(content):
        if (1 << 15) - place % (1 << 15) < 7:
            place += (1 << 15) - place % (1 << 15)
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        whole += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last piece
            yield whole
            whole = b""


def test_wandb(undisturbed: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("wandb", is_large=True)
    package: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_ERROR_REPORTING": "false"}.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "run"
    with pytest.raises(pq.Interrupted):
        start(out, pq.track("wandb", out), stop_at=90)
    record = start(out, pq.track("wandb", out))
    assert_same(record, undisturbed)
    logs = sorted((out / "wandb").glob("offline-run-*/*.wandb"))
    assert len({log.name for log in logs}) == 1  # one run, in as many files as there were processes
    assert len(logs) == 2
    steps, summaries = [], {}
    for log in logs:
        for data in log_entries(log.read_bytes()):
            message = package.Record()
            message.ParseFromString(data)
            if message.HasField("history"):
                steps.append(message.history.step.num)
            for item in message.summary.update:
                summaries[item.key or ".".join(item.nested_key)] = item.value_json
    assert len(set(steps)) == len(steps) >= 2
    assert max(steps) == 200
    assert float(summaries["final_codelength_nats"]) == pytest.approx(record.codelength)
