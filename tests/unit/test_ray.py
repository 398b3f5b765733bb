"""Sweeps on Ray: the same trials whatever happens to its workers, and nothing left running."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqError
from prequential.sweep import RayTasks

from ..conftest import blobs
from ..laws.test_records import tiny
from .test_sweep import FILE, METHOD, SPACE, assert_same_trials, study_of, wait_for

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed (pip install 'prequential[ray]')"
)
TOKEN = "PREQ_TEST_OF_RAY"


def command(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "mine.py").write_text(FILE)
    flags = f"sweep mnist mlp1 --width 0.1 --length 640 --space {tmp_path}/mine.py:space --trials 3"
    return [*flags.split(), "--checkpoint-seconds", "0", *more]


def start(arguments: list[str], token: str, home: Path) -> "subprocess.Popen[str]":
    """A sweep with a home of its own: Ray keeps there what protects a local cluster from others."""
    line = [sys.executable, "-m", "prequential.cli", *arguments]
    environment = os.environ | {TOKEN: token, "HOME": str(home)}
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def processes(token: str) -> Iterator[int]:
    """The processes that were started with the token, and theirs."""
    for place in Path("/proc").iterdir():
        try:
            if f"{TOKEN}={token}".encode() in (place / "environ").read_bytes():
                yield int(place.name)
        except (OSError, ValueError):
            continue


def writer_of(run: Path, token: str) -> int | None:
    """The process that holds the lock of a run."""
    for process in processes(token):
        try:
            if any(file.readlink() == run / "lock" for file in Path(f"/proc/{process}/fd").iterdir()):
                return process
        except OSError:
            continue
    return None


def saved(out: Path) -> list[Path]:
    """The runs that are under way and have saved their state."""
    return sorted({path.parent.parent for path in out.glob("trials/*/checkpoints/*.safetensors")})


@needs_ray
def test_trials_survive_a_stop_and_the_death_of_a_worker(tmp_path: Path) -> None:
    out, token = tmp_path / "s", uuid.uuid4().hex
    ray = ["--ray", "local", "--ray-cpus", "0.5", "--jobs", "2", "--out", str(out)]
    process = start(command(tmp_path, *ray), token, tmp_path)
    wait_for(lambda: len(saved(out)) == 2, process)
    process.send_signal(signal.SIGTERM)
    told, said = process.communicate(timeout=60)
    assert (process.returncode, told) == (128 + signal.SIGTERM, "")
    assert said == "preq: stopped after 0 of 3 trials; the same command with --resume goes on\n"
    stopped = saved(out)
    assert len(stopped) == 2
    assert all(0 < len(pq.load(run).nats) < 640 for run in stopped)

    process = start(command(tmp_path, *ray, "--resume", "--json"), token, tmp_path)
    killed = 0

    def kill_one() -> bool:
        nonlocal killed
        killed = next((writer for run in saved(out) if (writer := writer_of(run, token))), 0)
        if killed:
            os.kill(killed, signal.SIGKILL)
        return killed > 0

    wait_for(kill_one, process)
    assert killed != process.pid
    told, said = process.communicate(timeout=60)
    assert "failed: its Ray worker died (WorkerCrashedError)" in said
    assert said.count("\n") == 1
    assert (json.loads(told)["trials"], json.loads(told)["finished"]) == (3, 3)
    study = study_of(out)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3
    assert sum(trial.user_attrs.get("failures", 0) for trial in study.trials) == 1
    assert sorted(path.name for path in (out / "trials").iterdir()) == [f"{k:05d}" for k in range(3)]
    assert main(command(tmp_path, "--out", str(tmp_path / "undisturbed"))) == 0
    assert_same_trials(out, tmp_path / "undisturbed", 3)
    deadline = time.monotonic() + 20
    while left := list(processes(token)):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@needs_ray
def test_a_cluster_that_is_not_there_is_told_at_once(tmp_path: Path, capsys: Any) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        assert main(command(tmp_path, "--out", str(tmp_path / "s"), "--ray", address)) == 2
    told = capsys.readouterr()
    assert f"Ray cannot be reached at {address}" in told.err
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_what_ray_cannot_do_is_refused(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ["--out", str(tmp_path / "s")]
    for more, complaint in (
        (["--ray-gpus", "0.5"], "--ray-gpus has no meaning without --ray"),
        (["--ray", "local", "--ray-gpus", "1.5"], "gpus of a Ray task must be a whole number, or a part of 1"),
        (["--ray", "local", "--ray-cpus", "0"], "cpus of a Ray task must be a number above 0, got 0.0"),
        (["--ray", "local", "--jobs", "0"], "tasks at once must be a whole number of at least 1, got 0"),
        (["--ray", "local", "--device", "cuda", "--ray-gpus", "0"], "a Ray task that is given no GPU has none"),
        (["--ray", "local", "--device", "cuda:1"], "Ray decides which GPU a task is given"),
    ):
        assert main(command(tmp_path, *flags, *more)) == 2
        told = capsys.readouterr()
        assert complaint in told.err
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert not (tmp_path / "s").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(command(tmp_path, *flags, "--ray", "local")) == 2
    assert "Ray is not installed; pip install 'prequential[ray]'" in capsys.readouterr().err
    with pytest.raises(PreqError, match="Ray is not installed"):
        pq.sweep(tiny, blobs(8), METHOD, space=SPACE, seed=0, out=tmp_path / "t", executor=RayTasks())
