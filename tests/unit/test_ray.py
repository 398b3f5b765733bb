"""Sweeps on Ray: the same trials whatever happens to its workers, and nothing left running."""

import contextlib
import importlib.util
import json
import os
import signal
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqError
from prequential.sweeps import RayTasks

from ..conftest import blobs
from ..laws.test_records import tiny
from ..processes import GATED, PATIENCE, Gate, start_preq, wait_for
from .test_sweep import FILE, METHOD, SPACE, assert_same_trials, attempts_of

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed (pip install 'prequential[ray]')"
)
TOKEN = "PREQ_TEST_OF_RAY"


def command(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "mine.py").write_text(FILE)
    flags = f"sweep mnist {GATED} --width 0.1 --length 640 --space {tmp_path}/mine.py:space --trials 3"
    return [*flags.split(), "--checkpoint-seconds", "0", *more]


@pytest.fixture
def token() -> Iterator[str]:
    """A mark of the processes of a test, those that Ray starts in groups of their own included: all end with it."""
    token = uuid.uuid4().hex
    yield token
    while left := list(processes(token)):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


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
def test_trials_survive_a_stop_and_the_death_of_a_worker(tmp_path: Path, token: str) -> None:
    out = tmp_path / "s"
    ray = ["--ray", "local", "--ray-cpus", "0.5", "--jobs", "2", "--out", str(out)]
    # a home of its own: Ray keeps there what protects a local cluster from others
    environment = {TOKEN: token, "HOME": str(tmp_path), "RAY_worker_register_timeout_seconds": str(int(PATIENCE))}
    gate = Gate(tmp_path / "first-gate", step=40)
    process = start_preq(command(tmp_path, *ray), environment | gate.environment)
    wait_for(lambda: len(gate.waiting) == 2, process)
    assert len(saved(out)) == 2
    process.send_signal(signal.SIGTERM)
    told, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (128 + signal.SIGTERM, "")
    assert said == "preq: stopped after 0 of 3 trials; the same command with --resume goes on\n"
    stopped = saved(out)
    assert len(stopped) == 2
    assert all(0 < len(pq.load(run).nats) < 640 for run in stopped)

    gate = Gate(tmp_path / "second-gate", step=40)
    process = start_preq(command(tmp_path, *ray, "--resume", "--json"), environment | gate.environment)
    wait_for(lambda: len(gate.waiting) == 2, process)
    killed = writer_of(stopped[0], token)
    assert killed in gate.waiting
    os.kill(killed, signal.SIGKILL)
    gate.open()
    told, said = process.communicate(timeout=PATIENCE)
    assert "failed: its Ray worker died (WorkerCrashedError)" in said
    assert said.count("\n") == 1
    assert (json.loads(told)["trials"], json.loads(told)["finished"]) == (3, 3)
    assert [trial.state.name for trial in attempts_of(out)] == ["COMPLETE"] * 3
    assert sum(trial.user_attrs["failures"] for trial in attempts_of(out)) == 1
    assert sorted(path.name for path in (out / "trials").iterdir()) == [f"{k:05d}" for k in range(3)]
    assert main(command(tmp_path, "--out", str(tmp_path / "undisturbed"))) == 0
    assert_same_trials(out, tmp_path / "undisturbed", 3)
    wait_for(lambda: not list(processes(token)))


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
