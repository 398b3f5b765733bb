"""Files that an earlier version wrote, in which `mnistnet` is what is called `smallconv` now.

`record-1`, `half-1` and `labels-1.preq` were made by the last version of format 1: `mnistnet` of width 0.02 on the
first 48 labels of MNIST, seed 0, without held-out data, one thread. Record and bitstream are of CI/FS, which codes so
few labels uniformly, so that every machine decodes them; `half-1` is MI/RS, stopped at label 16. `sweep-2` is a sweep
of three trials, `smallconv` and CI/FS on the same labels, that was stopped when the second had begun; it was written
before a trial could have several attempts. Its study is kept as SQL. `prepared-1` is prepared data whose inputs lie in
three files of 21, 21 and 8 rows: 50 rows of three bytes and 9 held out, drawn by `default_rng(0)`, shuffled with
seed 3.
"""

import contextlib
import json
import shutil
import signal
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prequential as pq
from prequential.cli import main
from prequential.coding.container import Container
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of
from prequential.models import MODELS as MODELS_OF_NOW
from prequential.names_of_before import MODELS, hint, in_names_of_now
from prequential.report.runs import RunSet
from prequential.runs.progress import Progress
from prequential.runs.record import Record, read_facts
from prequential.runs.run import Interrupted, run_stack
from prequential.sweeps import LogUniform, summarise
from prequential.sweeps.directory import SweepFile
from prequential.testing import check_data

FILES = Path(__file__).parent / "files"
CHUNKS = pq.ChunksFromScratch(epochs=2)
STREAMS = pq.ReplayStreams(num_streams=2, batch_size=8)
SMALL: dict[str, Any] = {"seed": 0, "width": 0.02, "threads": 1}


@pytest.fixture
def data(mnist: ArraySequence) -> ArraySequence:
    return mnist.take(48).without_heldout()


@pytest.fixture(autouse=True)
def _on_any_machine() -> Any:
    """Notes on other versions of torch, say, are no matter here."""
    with warnings.catch_warnings(action="ignore", category=PreqWarning):
        yield


def test_the_files_are_of_before() -> None:
    for name in ("record-1", "half-1"):
        written = json.loads((FILES / name / "record.json").read_text())["record"]
        assert (written["format"], written["model"]["name"]) == (1, "mnistnet")
    assert (FILES / "labels-1.preq").read_bytes()[4] == 1


def test_a_record_shows_the_name_of_now(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record = pq.load(FILES / "record-1")
    assert record.model["name"] == read_facts(FILES / "record-1")["model"]["name"] == "smallconv"
    assert "smallconv on mnist" in repr(record)
    assert record.codelength == pytest.approx(48 * np.log(10))
    saved = record.save(tmp_path / "again").path
    assert saved is not None
    assert json.loads((saved / "record.json").read_text())["record"]["format"] == 2
    assert pq.load(saved).model == record.model, "it is not translated twice"
    old = shutil.copytree(FILES / "record-1", tmp_path / "old")
    for command in (["compare", "--json"], ["watch", "--once"], ["pareto"]):
        assert main([command[0], str(old), *command[1:]]) == 0
        assert "mnistnet" not in capsys.readouterr().out
    assert main(["verify", str(old)]) == 0
    assert main(["report", str(old), "-o", str(tmp_path / "page.html")]) == 0
    assert "mnistnet" not in (tmp_path / "page.html").read_text()


def test_it_is_compared_with_smallconv_and_never_with_the_mnistnet_of_now(data: ArraySequence) -> None:
    before = pq.load(FILES / "record-1")
    same, other = (pq.run(model, data, CHUNKS, **SMALL | {"seed": 1}) for model in ("smallconv", "mnistnet"))
    assert same.model["num_parameters"] == before.model["num_parameters"] != other.model["num_parameters"]
    assert [group.records for group in RunSet.of([before, same, other]).groups()] == [[before, same], [other]]
    assert pq.run("smallconv", data, CHUNKS, **SMALL).model == before.model, "to the bit the network of before"


def test_a_bitstream_decodes_under_the_name_of_now(data: ArraySequence) -> None:
    content = (FILES / "labels-1.preq").read_bytes()
    assert Container.from_bytes(content).header["model"]["name"] == "smallconv"
    labels = data.labels(np.arange(48)).numpy()
    assert np.array_equal(pq.decode(content, data), labels)
    assert np.array_equal(pq.decode(content, data, "smallconv"), labels)
    with pytest.raises(PreqError, match=r"'smallconv', got 'mnistnet' \(what was called mnistnet before is smallconv"):
        pq.decode(content, data, "mnistnet")
    again = pq.encode("smallconv", data, CHUNKS, **SMALL)
    assert again[4] == 2
    assert Container.from_bytes(again).payload == Container.from_bytes(content).payload


def test_a_half_finished_run_goes_on_under_the_name_of_now(data: ArraySequence, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(FILES / "half-1", out)
    before = {path: path.read_bytes() for path in out.rglob("*.*")}
    with pytest.raises(PreqError, match=r"model.name smallconv then, mnistnet now \(what was called mnistnet before"):
        pq.run("mnistnet", data, STREAMS, **SMALL, out=out, resume=True)
    assert before == {path: path.read_bytes() for path in out.rglob("*.*")}
    (out / "record.json").unlink()
    with pytest.raises(PreqError, match=r"model\.name smallconv then, mnistnet now"):
        pq.run("mnistnet", data, STREAMS, **SMALL, out=out, resume=True)
    shutil.copy(FILES / "half-1/record.json", out)
    positions: list[int] = []
    record = pq.run(
        "smallconv", data, STREAMS, **SMALL, out=out, resume=True, listeners=[lambda p: positions.append(p.position)]
    )
    assert (record.status, record.model["name"]) == ("finished", "smallconv")
    assert positions[0] >= 16, "it went on"
    assert record.codelength == pytest.approx(113.769, rel=1e-3)


def rewrite_checkpoints(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what is written beside the tensors of checkpoints, and name them anew."""
    for file in folder.glob("*.safetensors"):
        content = file.read_bytes()
        size = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:size])
        meta = json.loads(header["__metadata__"]["prequential"])
        change(meta)
        header["__metadata__"]["prequential"] = json.dumps(meta)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        content = len(text).to_bytes(8, "little") + text + content[size:]
        file.unlink()
        file.with_name(f"{file.name[:14]}-{digest_of(content)}.safetensors").write_bytes(content)


def test_a_half_finished_stack_goes_on_under_the_name_of_now(
    data: ArraySequence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    out, seen = [tmp_path / "a", tmp_path / "b"], []

    def go(model: str, stop_at: int = 1000, resume: bool = True) -> list[Record]:
        def listen(progress: Progress) -> None:
            seen.append(progress.position)
            if progress.position >= stop_at:
                signal.raise_signal(signal.SIGTERM)

        return run_stack(
            model, data, STREAMS, [pq.Recipe()] * 2, seeds=[0, 1], width=0.02, out=out, resume=resume,
            checkpoint_seconds=0, listeners=[listen],
        )  # fmt: skip

    with pytest.raises(Interrupted):
        go("smallconv", stop_at=16, resume=False)

    def as_before(meta: dict[str, Any]) -> None:
        assert meta.pop("format") == 2
        for facts in meta["facts"]:
            facts["model"]["name"] = "mnistnet"

    rewrite_checkpoints(tmp_path / "a.stack/checkpoints", as_before)
    with pytest.raises(PreqError, match=r"model\.name smallconv then, mnistnet now \(what was called mnistnet before"):
        go("mnistnet")
    seen.clear()
    assert [record.model["name"] for record in go("smallconv")] == ["smallconv"] * 2
    assert seen[0] >= 16


def test_a_checkpoint_of_a_later_format_is_refused(data: ArraySequence, tmp_path: Path) -> None:
    shutil.copytree(FILES / "half-1", tmp_path / "run")
    rewrite_checkpoints(tmp_path / "run/checkpoints", lambda meta: meta.update(format=3))
    with pytest.raises(PreqError, match=r"safetensors has format 3, this version reads 1 and 2"):
        pq.run("smallconv", data, STREAMS, **SMALL, out=tmp_path / "run", resume=True)


def rewrite(directory: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a `record.json` and seal it again."""
    content = json.loads((directory / "record.json").read_text())["record"]
    change(content)
    checksum = digest_of(json.dumps(content, indent=1, ensure_ascii=False).encode())
    (directory / "record.json").write_text(json.dumps({"checksum": checksum, "record": content}))


def test_a_sweep_shows_and_goes_on_under_the_name_of_now(
    data: ArraySequence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def go(model: str, **changes: Any) -> Any:
        space = {"learning_rate": LogUniform(1e-4, 1e-2)}
        more: dict[str, Any] = {"space": space, "seed": 0, "width": 0.02, "out": tmp_path / "s", "trials": 2} | changes
        return pq.sweep(model, data, CHUNKS, **more)

    go("smallconv", trials=1)

    def as_before(content: dict[str, Any]) -> None:
        content["format"], content["model"]["name"] = 1, "mnistnet"

    rewrite(tmp_path / "s/trials/00000", as_before)
    file = tmp_path / "s/sweep.json"
    content = json.loads(file.read_text())
    content["format"], content["settings"]["model"] = 1, "mnistnet"
    del content["checksum"]
    file.write_text(json.dumps(content))

    with pytest.raises(PreqError, match=r"model smallconv then, mnistnet now \(what was called mnistnet before"):
        go("mnistnet", resume=True)
    assert go("smallconv", resume=True).facts["model"] == "smallconv"
    assert json.loads(file.read_text())["format"] == 2
    file.write_text(json.dumps(content))
    assert main(["sweep", "show", str(tmp_path / "s")]) == 0
    assert "mnist · smallconv · ci-fs" in capsys.readouterr().out


def test_a_sweep_in_which_every_trial_had_one_attempt_is_shown_and_goes_on(data: ArraySequence, tmp_path: Path) -> None:
    out = shutil.copytree(FILES / "sweep-2", tmp_path / "s")
    with contextlib.closing(sqlite3.connect(out / "study.db")) as study:
        study.executescript((out / "study.sql").read_text())
    shown = summarise(out)
    assert [trial.status for trial in shown.trials] == ["finished", "running", "waiting"]
    assert shown.trials[0].codelength == pq.load(out / "trials/00000").codelength
    assert shown.trials[1].settings == pytest.approx(
        {"learning_rate": 1.4483523767467e-4, "label_smoothing": 0.0336915974548082}
    )
    space = {"learning_rate": pq.LogUniform(1e-4, 1e-2), "label_smoothing": pq.Between(0.0, 0.1)}
    given: dict[str, Any] = {"space": space, "seed": 0, "width": 0.02, "trials": 3}
    resumed = pq.sweep("smallconv", data, CHUNKS, **given, out=out, resume=True)
    anew = pq.sweep("smallconv", data, CHUNKS, **given, out=tmp_path / "anew")
    assert [trial.status for trial in resumed.trials] == ["finished"] * 3
    assert resumed.trials[0] == shown.trials[0], "it is not run again"
    assert resumed.trials[1].settings == shown.trials[1].settings
    assert [trial.settings for trial in resumed.trials] == [trial.settings for trial in anew.trials]
    assert [trial.codelength for trial in resumed.trials] == [trial.codelength for trial in anew.trials]


def test_sweeps_of_two_formats_do_not_share_a_study(tmp_path: Path) -> None:
    facts = {"model": "mnistnet", "method": {"name": "mi-rs"}}
    begun = SweepFile.begin(tmp_path, facts, trials=1, resume=False, storage=None)
    of_before = digest_of(json.dumps(facts, sort_keys=True).encode())[:12]
    assert begun.study.startswith("mnistnet mi-rs ")
    assert of_before not in begun.study


@pytest.mark.parametrize("model", [None, 3, [], {}, {"name": None}, {"name": ["mnistnet"]}, "lenet", {"name": "mlp1"}])
def test_what_is_no_name_of_before_stays(model: Any) -> None:
    facts = {"model": model, "length": 3}
    assert in_names_of_now(facts, 1) == facts


def test_translating_leaves_what_was_given_alone() -> None:
    facts: dict[str, Any] = {"model": {"name": "mnistnet-ws", "width": 0.5}, "recipe": {"eps": 0.1}}
    assert in_names_of_now(facts, 1) == {"model": {"name": "smallconv-ws", "width": 0.5}, "recipe": {"eps": 0.1}}
    assert facts["model"]["name"] == "mnistnet-ws"
    assert in_names_of_now(facts, 2) == facts


def test_every_new_name_is_one_of_ours_and_none_is_translated_twice() -> None:
    for name in MODELS.values():
        assert name.removesuffix("-ws").rpartition(":")[2] in MODELS_OF_NOW
        assert name not in MODELS
    assert hint("smallconv", "smallconv") == hint(3, "mnistnet") == hint("smallconv", ["mnistnet"]) == ""


def test_prepared_data_in_several_files_is_read() -> None:
    data = pq.load_data(f"prepared:{FILES / 'prepared-1'}")
    assert sorted(path.name for path in (FILES / "prepared-1").glob("inputs-*")) == [
        f"inputs-000{k}.npy" for k in range(3)
    ]
    draws = np.random.default_rng(0)
    inputs, held = (draws.integers(0, 256, (length, 3)).astype(np.uint8) for length in (50, 9))
    again = pq.from_arrays(inputs, np.arange(50) % 7, num_classes=7, heldout=(held, np.arange(9) % 7)).shuffled(3)
    assert data.heldout is not None
    assert again.heldout is not None
    assert (
        data.digests()
        == again.digests()
        == {
            "inputs": "5d1c978bd09298cb73dd12d474072624",
            "labels": "de5b725f937bb64348aeec1cf769bbc0",
        }
    )
    assert data.heldout.digests() == again.heldout.digests()
    for positions in (np.arange(50), np.arange(18, 25), np.array([49, 0, 30, 21, 20]), np.empty(0, np.int64)):
        assert np.array_equal(data.inputs(positions), again.inputs(positions))
        assert np.array_equal(data.labels(positions), again.labels(positions))
    assert data.take(30).digests() == again.take(30).digests()
    check_data(data)


def test_preparing_again_what_was_finished_before_leaves_it_alone(tmp_path: Path) -> None:
    shutil.copytree(FILES / "prepared-1", tmp_path / "to")
    before = {path.name: path.read_bytes() for path in (tmp_path / "to").glob("*.*")}
    draws = np.random.default_rng(0)
    inputs = draws.integers(0, 256, (50, 3)).astype(np.uint8)
    data = pq.from_arrays(inputs, np.arange(50) % 7, num_classes=7, name="small").shuffled(3)
    assert pq.prepare(data, tmp_path / "to").digests() == data.digests()
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "to").glob("*.*")}
