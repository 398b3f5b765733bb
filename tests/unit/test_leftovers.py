"""What a kill leaves between the last word of a record and the cleaning: gone when the next command comes by."""

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqError
from prequential.lock import DirectoryLock
from prequential.runs.leftovers import remove_leftovers
from prequential.runs.live import PROGRESS_FILE
from prequential.runs.record import ARRAYS
from prequential.sweeps import Summary

from ..conftest import blobs
from ..laws.test_records import tiny

RUN = ["mnist", "mlp1", "--width", "0.1", "--length", "64", "--streams", "1", "--threads", "1"]
WHOLE = sorted([*(f"{name}.npy" for name in ARRAYS), "lock", "record.json"])
COMMANDS = {
    "resume": ["run", *RUN, "--out", "RUN", "--resume"],
    "compare": ["compare", "RUN"],
    "plot": ["plot", "curve", "RUN", "-o", "OUT.svg"],
    "report": ["report", "RUN", "-o", "OUT.html"],
    "pareto": ["pareto", "RUN"],
    "watch": ["watch", "RUN", "--once"],
    "folder": ["watch", "ABOVE", "--once"],
    "verify": ["verify", "RUN"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main(["run", *RUN, "--out", str(path)]) == 0
    return path


def littered(path: Path) -> Path:
    """As it is where the process was killed as soon as the record was written."""
    (path / "checkpoints").mkdir(parents=True)
    for number, ending in ((1, "safetensors"), (2, "safetensors"), (3, "damaged")):
        (path / "checkpoints" / f"{number:014d}-{number:032x}.{ending}").write_bytes(b"state")
    (path / "checkpoints" / f".{4:014d}-{4:032x}.safetensors.tmp").write_bytes(b"half")
    (path / PROGRESS_FILE).write_text("{}")
    (path / f".{PROGRESS_FILE}.tmp").write_text("{")
    return path


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_next_command_removes_what_a_kill_left(command: list[str], finished: Path, tmp_path: Path) -> None:
    path = littered(Path(shutil.copytree(finished, tmp_path / "runs" / "run")))
    given = {"RUN": str(path), "ABOVE": str(path.parent)}
    assert main([given.get(word, word.replace("OUT", str(tmp_path / "out"))) for word in command]) == 0
    assert names(path) == WHOLE


def test_a_resumed_sweep_removes_it_too(tmp_path: Path) -> None:
    space, out = {"learning_rate": pq.LogUniform(1e-3, 1e-2)}, tmp_path / "sweep"
    given: dict[str, Any] = {"space": space, "seed": 0, "out": out}
    first = pq.sweep(tiny, blobs(32), pq.ReplayStreams(num_streams=1, batch_size=8), trials=1, **given)
    littered(out / "trials" / "00000")
    with sqlite3.connect(out / "study.db") as study:  # the sweep was killed as well, before it heard of the end
        study.execute("UPDATE trials SET state = 'RUNNING', datetime_complete = NULL")
        study.execute("DELETE FROM trial_user_attributes WHERE key = 'result'")
    study.close()
    again = pq.sweep(tiny, blobs(32), pq.ReplayStreams(num_streams=1, batch_size=8), trials=1, resume=True, **given)
    assert [trial.value for trial in again.trials] == [trial.value for trial in first.trials]
    assert names(out / "trials" / "00000") == WHOLE


def test_what_is_not_a_leftover_stays(finished: Path, tmp_path: Path) -> None:
    path = littered(Path(shutil.copytree(finished, tmp_path / "run")))
    litter = names(path), names(path / "checkpoints")
    for status in ("running", "stopped", "failed"):
        remove_leftovers(path, status)
    with DirectoryLock(path):
        remove_leftovers(path, "finished")
    remove_leftovers(None, "finished")
    assert (names(path), names(path / "checkpoints")) == litter
    (path / "checkpoints" / "mine.safetensors").write_bytes(b"mine")
    remove_leftovers(path, "finished")
    assert names(path) == sorted([*WHOLE, "checkpoints"])
    assert names(path / "checkpoints") == ["mine.safetensors"]


def test_one_who_may_only_read_is_not_disturbed(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = littered(Path(shutil.copytree(finished, tmp_path / "run")))

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert main(["compare", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)


def test_an_empty_file_that_encode_left_is_no_obstacle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "labels.preq"
    file.touch()
    assert main(["encode", *RUN, "-o", str(file)]) == 0
    assert file.stat().st_size > 0
    capsys.readouterr()
    assert main(["encode", *RUN, "-o", str(file)]) == 2
    assert "is already there; choose another name or remove it" in capsys.readouterr().err
    labels = tmp_path / "labels.npy"
    labels.touch()
    assert main(["decode", str(file), "--data", "mnist", "-o", str(labels)]) == 0


def garbled(content: bytes, where: bytes, by: bytes) -> bytes:
    assert where in content
    return content.replace(where, by)


def test_a_damaged_study_is_told_with_what_to_do_and_that_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweep(**more: Any) -> Summary:
        space, method = {"learning_rate": pq.LogUniform(1e-3, 1e-2)}, pq.ReplayStreams(num_streams=1, batch_size=8)
        return pq.sweep(tiny, blobs(32), method, space=space, seed=0, trials=2, out=tmp_path / "sweep", **more)

    whole, file = sweep(), tmp_path / "sweep" / "study.db"
    content, records = file.read_bytes(), [trial.path for trial in whole.trials]
    for damage in (
        b"this is no database\n" * 100,
        content[: len(content) // 2],
        content[:4096] + b"\xff\x1b" * 2048 + content[8192:],
        garbled(content, b"FINITE", b"VINITE"),
        garbled(content, b'"status": "fin', b'"status": ]fin'),
        garbled(content, b"CREATE TABLE trials", b"CREATE TABNE trials"),
    ):
        file.write_bytes(damage)
        told = f"the study {file} is damaged"
        todo = "remove it and resume the sweep (--resume), which finds the trials that have run"
        assert main(["sweep", "show", str(tmp_path / "sweep")]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"preq: {told} (")
        assert error.endswith(f"); {todo}\n")
        assert error[:-1].isprintable()
        with pytest.raises(PreqError, match=f"{re.escape(told)} .*; {re.escape(todo)}$"):
            sweep(resume=True)
        assert file.read_bytes() == damage
        file.unlink()
        again = sweep(resume=True)
        assert [(each.value, each.path) for each in again.trials] == [(each.value, each.path) for each in whole.trials]
        assert all(path is not None and names(path) == WHOLE for path in records)
