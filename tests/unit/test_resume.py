"""Checkpoints: what is resumed is the same to the bit, and nothing that happens to the machine loses a run."""

import importlib
import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import prequential as pq
from prequential import files
from prequential.cli import main
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError, PreqWarning
from prequential.learn.environment import environment
from prequential.learn.recipe import OPTIMIZERS
from prequential.lock import DirectoryLock
from prequential.methods import Method
from prequential.runs import beginning, session
from prequential.runs.live import DIED, status_of
from prequential.runs.progress import Progress
from prequential.runs.record import ARRAYS, Record

from ..conftest import blobs
from ..laws.test_records import IDS, METHODS, tiny
from ..processes import GATED, PATIENCE, Gate, start_preq, wait_for
from ..processes import start as start_process

run_module = importlib.import_module("prequential.runs.run")
METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
LENGTH = 400
SHORT = 80
"""Enough for dozens of checkpoints."""


def start(
    out: Path | None,
    *,
    resume: bool = True,
    stop_at: int | None = None,
    method: Method = METHOD,
    recipe: pq.Recipe | None = None,
    length: int = LENGTH,
) -> Record:
    """A run that saves its state at every pause, and is asked to stop at a position."""

    def ask(progress: Progress) -> None:
        if stop_at is not None and progress.position >= stop_at:
            signal.raise_signal(signal.SIGTERM)

    how: dict[str, Any] = {"out": out, "resume": resume, "checkpoint_seconds": 0, "listeners": [ask]}
    return pq.run(tiny, blobs(length), method, recipe, seed=0, **how)


@pytest.fixture(autouse=True)
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    monkeypatch.setattr("prequential.runs.live.SECONDS_BETWEEN_WRITES", 1e9)  # file operations that depend on no clock


def assert_same(one: Record, other: Record) -> None:
    for name in ARRAYS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert one.heldout == other.heldout
    assert one.flops == other.flops
    assert one.status == other.status == "finished"


@pytest.fixture(scope="module")
def undisturbed() -> Record:
    return pq.run(tiny, blobs(LENGTH), METHOD, seed=0)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
@pytest.mark.parametrize("stops", [[1], [100, 200], list(range(20, 400, 38))], ids=["once", "twice", "ten times"])
def test_a_resumed_run_is_the_same_to_the_bit(tmp_path: Path, method: Method, stops: list[int]) -> None:
    for stop in stops:
        with pytest.raises(pq.Interrupted) as caught:
            start(tmp_path / "run", stop_at=stop, method=method)
        assert caught.value.signal_number == signal.SIGTERM
        stopped = pq.load(tmp_path / "run")
        assert stopped.status == "stopped"
        assert len(stopped.nats) >= stop
    record = start(tmp_path / "run", method=method)
    assert_same(record, pq.run(tiny, blobs(LENGTH), method, seed=0))
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == sorted(
        [*(f"{name}.npy" for name in ARRAYS), "lock", "record.json"]
    )


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_checkpoint_holds_what_each_optimizer_remembers(tmp_path: Path, optimizer: str) -> None:
    recipe = pq.Recipe(optimizer=optimizer)
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=40, recipe=recipe, length=SHORT)
    resumed = start(tmp_path / "run", recipe=recipe, length=SHORT)
    assert_same(resumed, pq.run(tiny, blobs(SHORT), METHOD, recipe, seed=0))


def test_a_finished_run_is_returned_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = start(tmp_path / "run", resume=False)
    monkeypatch.setattr("prequential.runs.course.execute", None)  # nothing is learned again, nor measured
    monkeypatch.setattr(session, "find_num_threads", None)
    again = start(tmp_path / "run")
    assert_same(record, again)
    assert record.seconds == again.seconds


def test_other_settings_or_data_are_refused_with_what_differs(tmp_path: Path) -> None:
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=50)
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"recipe": pq.Recipe(learning_rate=0.5)}, "recipe.learning_rate 0.003 then, 0.5 now"),
        ({"seed": 1}, "seeds.seed 0 then, 1 now"),
        ({"method": pq.ReplayStreams(num_streams=3, batch_size=8)}, "method.num_streams 2 then, 3 now"),
        ({"data": blobs(LENGTH, seed=1)}, "data.inputs"),
        ({"data": blobs(LENGTH).take(300)}, "length 400 then, 300 now"),
        ({"make_model": "mlp1"}, "model.name"),
        ({"threads": 7}, "threads 1 then, 7 now"),
        ({"data": blobs(LENGTH).without_heldout()}, "data.heldout"),
        ({"make_model": relabelled}, "model.fingerprint"),
    ]
    for change, complaint in changes:
        arguments: dict[str, Any] = {"make_model": tiny, "data": blobs(LENGTH), "method": METHOD, "seed": 0}
        arguments |= change
        with pytest.raises(PreqError, match="settings differ from the run in") as caught:
            pq.run(**arguments, out=tmp_path / "run", resume=True)
        assert complaint in str(caught.value)
    assert before == {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}


def relabelled(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Other code under the same name."""
    model = tiny(input_shape, num_classes)
    assert isinstance(model, nn.Sequential)
    model[2] = nn.Tanh()
    return model


relabelled.__module__, relabelled.__qualname__ = tiny.__module__, tiny.__qualname__


def test_another_device_is_refused_and_other_versions_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=50)
    real = environment
    monkeypatch.setattr(beginning, "environment", lambda device: real(device) | {"device": "cuda:0"})
    with pytest.raises(PreqError, match="device cpu then, cuda:0 now"):
        start(tmp_path / "run")
    monkeypatch.setattr(beginning, "environment", lambda device: real(device) | {"torch": "9.9"})
    with pytest.warns(PreqWarning, match=r"the bits may differ from here on: torch .* then, 9.9 now"):
        start(tmp_path / "run")


def test_a_strangers_files_are_never_touched(tmp_path: Path) -> None:
    stranger = tmp_path / "labels.npy"
    stranger.write_bytes(b"mine")
    with pytest.raises(PreqError, match="holds no run, and is not empty"):
        start(tmp_path)
    assert stranger.read_bytes() == b"mine"
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=50)
    (tmp_path / "run" / "checkpoints" / "mine.safetensors").write_bytes(b"mine")
    start(tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "mine.safetensors").read_bytes() == b"mine"


def test_a_run_that_ends_while_another_is_set_up_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = run_module.make_session

    def slow(*arguments: Any, **keywords: Any) -> session.Session:
        monkeypatch.setattr(run_module, "make_session", real)
        pq.run("mlp1", blobs(50), METHOD, seed=5, out=tmp_path / "run")
        return real(*arguments, **keywords)

    monkeypatch.setattr(run_module, "make_session", slow)
    with pytest.raises(PreqError, match="already holds a run"):
        start(tmp_path / "run", resume=False)
    assert pq.load(tmp_path / "run").seeds["seed"] == 5


def test_a_diverged_state_is_not_saved(tmp_path: Path) -> None:
    seen = []

    def look(progress: Progress) -> None:
        seen.append(sorted(p.name for p in (tmp_path / "run").glob("checkpoints/*")))

    recipe = pq.Recipe(optimizer="sgd", learning_rate=1e30)
    arguments: dict[str, Any] = {"seed": 0, "out": tmp_path / "run", "checkpoint_seconds": 0, "listeners": [look]}
    record = pq.run("mlp1", blobs(LENGTH), METHOD, recipe, **arguments)
    assert record.status == "diverged"
    again = pq.run("mlp1", blobs(LENGTH), METHOD, recipe, **arguments, resume=True)
    assert again.nats.tobytes() == record.nats.tobytes()


def test_damaged_checkpoints_do_not_push_out_good_ones(tmp_path: Path, undisturbed: Record) -> None:
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=200)
    good = checkpoints(tmp_path / "run")
    for number in ("99999999999998", "99999999999999"):
        good[-1].with_name(f"{number}-{'0' * 32}.safetensors").write_bytes(b"damaged")
    with pytest.warns(PreqWarning, match="trying an older one"), pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=250)
    whole = [file for file in checkpoints(tmp_path / "run") if file.suffix == ".safetensors"]
    assert len(whole) == 2
    assert all(not file.name.startswith("9") for file in whole)
    assert_same(start(tmp_path / "run"), undisturbed)


def checkpoints(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").iterdir())


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "renamed", "array"])
def test_an_older_checkpoint_serves_where_the_newest_is_damaged(
    tmp_path: Path, damage: str, undisturbed: Record
) -> None:
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=200)
    older, newest = checkpoints(tmp_path / "run")
    content = newest.read_bytes()
    if damage == "truncated":
        newest.write_bytes(content[:-5])
    elif damage == "flipped":
        newest.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif damage == "foreign":
        newest.write_bytes(b"\x80\x04cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    elif damage == "renamed":
        other = "0" if newest.stem[-1] != "0" else "1"
        newest.rename(newest.with_name(newest.stem[:-1] + other + newest.suffix))
    else:
        position = int(older.read_bytes().partition(b'position\\": ')[2].partition(b",")[0])
        nats = tmp_path / "run" / "nats.npy"
        values = bytearray(nats.read_bytes())
        values[files.HEADER_SIZE + 8 * position + 3] ^= 1
        nats.write_bytes(values)
    with pytest.warns(PreqWarning, match="cannot be used: .*; trying an older one"):
        record = start(tmp_path / "run")
    assert_same(record, undisturbed)


def test_no_whole_checkpoint_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=200)
    for file in checkpoints(tmp_path / "run"):
        file.write_bytes(b"")
    with pytest.warns(PreqWarning), pytest.raises(PreqError, match=r"no checkpoint in .* is whole"):
        start(tmp_path / "run")


def test_a_damaged_record_does_not_stop_a_resume(tmp_path: Path, undisturbed: Record) -> None:
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=200)
    (tmp_path / "run" / "record.json").write_bytes(b"{")
    with pytest.warns(PreqWarning, match="record.json is damaged"):
        assert_same(start(tmp_path / "run"), undisturbed)


def test_two_runs_into_one_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=50)
    with DirectoryLock(tmp_path / "run"), pytest.raises(PreqError, match="another run is writing into"):
        start(tmp_path / "run")


class Crash(BaseException):
    """The machine stops here."""


@contextmanager
def file_operations(watch: Callable[[str, object], None]) -> Iterator[None]:
    """Every operation that changes the disk goes through `watch` first."""
    patch = pytest.MonkeyPatch()
    for owner, name in [(os, "fsync"), (os, "pwrite"), (os, "ftruncate"), (Path, "replace"), (Path, "unlink"),
                        (Path, "mkdir"), (Path, "rmdir")]:  # fmt: skip
        original = getattr(owner, name)

        def watched(*arguments, _name=name, _original=original, **keywords):
            watch(_name, arguments[0])
            return _original(*arguments, **keywords)

        patch.setattr(owner, name, watched)
    try:
        yield
    finally:
        patch.undo()


def test_a_checkpoint_is_durable_before_an_older_one_goes(tmp_path: Path) -> None:
    log: list[tuple[str, str]] = []

    def note(name: str, subject: object) -> None:
        if name == "fsync":
            log.append((name, Path(f"/proc/self/fd/{subject}").readlink().name))
        elif name in ("replace", "unlink"):
            log.append((name, Path(str(subject)).name))

    with file_operations(note), pytest.raises(pq.Interrupted):
        start(tmp_path / "run", stop_at=100)
    removed = [number for number, (name, file) in enumerate(log) if name == "unlink" and file.endswith(".safetensors")]
    assert removed, "older checkpoints are removed"
    for number in removed:
        before = log[:number]
        renamed = max(i for i, (name, file) in enumerate(before) if name == "replace" and ".safetensors" in file)
        temporary = before[renamed][1]
        assert ("fsync", temporary) in before[:renamed], "content is synced before the rename"
        assert ("fsync", "checkpoints") in before[renamed:], "the rename is synced before anything goes"
        arrays = [("fsync", f"{name}.npy") for name in ARRAYS]
        synced = before[:renamed]
        assert all(entry in synced for entry in arrays), "arrays are synced before the checkpoint that names them"
    assert len(checkpoints(tmp_path / "run")) == 2


def test_a_crash_at_any_file_operation_loses_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # counted, but not waited for: this crash loses no write
    total, undisturbed = 0, pq.run(tiny, blobs(SHORT), METHOD, seed=0)

    def count(name: str, subject: object) -> None:
        nonlocal total
        total += 1

    with file_operations(count):
        start(tmp_path / "whole", resume=False, length=SHORT)
    for crash_at in sorted({*range(30), *range(total - 25, total), *range(30, total, max(total // 15, 1))}):
        seen = 0

        def crash(name: str, subject: object, crash_at: int = crash_at) -> None:
            nonlocal seen
            seen += 1
            if seen > crash_at:
                raise Crash

        out = tmp_path / f"run{crash_at}"
        with file_operations(crash), pytest.raises(Crash):
            start(out, resume=False, length=SHORT)
        with warnings.catch_warnings(action="ignore", category=PreqWarning):
            assert_same(start(out, length=SHORT), undisturbed)


def test_a_full_disk_stops_the_run_with_the_last_state_whole(tmp_path: Path, undisturbed: Record) -> None:
    written = 0

    def full(name: str, subject: object) -> None:
        nonlocal written
        written += name == "replace"
        if written > 6 and name != "unlink":
            raise OSError(28, "No space left on device")

    with file_operations(full), pytest.raises(PreqError, match=r"cannot write .*No space left on device"):
        start(tmp_path / "run", resume=False)
    assert_same(start(tmp_path / "run"), undisturbed)


def test_a_file_size_limit_is_told_in_one_line(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        with pytest.raises(PreqError, match=r"cannot write .*: File too large"):
            start(tmp_path / "run", resume=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_read_only_directory_is_told_in_one_line() -> None:
    with pytest.raises(PreqError, match="cannot write into /proc/run: "):  # not even root may
        start(Path("/proc/run"), resume=False)


def test_the_command_line_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["run", "mnist", GATED, "--width", "0.1", "--length", "2000", "--streams", "2", "--threads", "1", "--json"]
    assert main([*flags, "--out", str(tmp_path / "whole")]) == 0
    gate = Gate(tmp_path / "gate", step=40)
    process = start_preq([*flags, "--out", str(tmp_path / "run"), "--checkpoint-seconds", "0"], gate.environment)
    wait_for(lambda: gate.waiting, process)
    assert list(tmp_path.glob("run/checkpoints/*.safetensors"))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    assert "--resume goes on" in err
    assert 0 < len(pq.load(tmp_path / "run").nats) < 2000
    assert main([*flags, "--out", str(tmp_path / "run"), "--resume"]) == 0
    assert np.array_equal(pq.load(tmp_path / "run").nats, pq.load(tmp_path / "whole").nats)
    capsys.readouterr()


def test_verify_proves_a_run_and_catches_a_forged_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nets.py").write_text(
        "from torch import nn\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))\n"
    )
    model = f"{tmp_path}/nets.py:net"
    flags = f"run mnist {model} --length 200 --streams 1 --threads 1 --json --out {tmp_path / 'run'}"
    assert main(flags.split()) == 0
    assert main(["verify", str(tmp_path / "run")]) == 2
    assert "is not one of the package; give it again" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "run"), "--model", model]) == 0
    assert "decoded without labels, every label identical" in capsys.readouterr().out
    forged = replace(pq.load(tmp_path / "run"), nats=pq.load(tmp_path / "run").nats * 0.01)
    forged.save(tmp_path / "forged")
    assert main(["verify", str(tmp_path / "forged"), "--model", model]) == 2
    assert "is not what its settings give here: from label 0 on its nats differ" in capsys.readouterr().err
    record = pq.load(tmp_path / "run")
    on_gpu = {"device": "cuda", "device_name": "NVIDIA H200", "deterministic": False}
    replace(record, environment=record.environment | on_gpu).save(tmp_path / "gpu")
    assert main(["verify", str(tmp_path / "gpu"), "--model", model]) == 2
    assert "make the run with --deterministic to verify it" in capsys.readouterr().err


def test_verify_proves_a_run_of_the_graph_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = f"run mnist mlp1 --width 0.1 --length 200 --streams 1 --threads 1 --json --out {tmp_path / 'run'}"
    assert main([*flags.split(), "--engine", "graph", "--precision", "bf16"]) == 0
    assert main(["verify", str(tmp_path / "run")]) == 0
    assert "every label identical" in capsys.readouterr().out
    assert main([*flags.split(), "--resume", "--engine", "eager"]) == 2
    err = capsys.readouterr().err
    assert "engine graph then, eager now" in err
    assert "precision bf16 then, fp32 now" in err
    assert main(["run", "mnist", "mlp1", "--compile", "maybe"]) == 2
    assert "unknown --compile 'maybe'" in capsys.readouterr().err


def test_the_command_line_encodes_and_decodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, labels = tmp_path / "labels.preq", tmp_path / "labels.npy"
    flags = f"encode mnist mlp1 --length 200 --streams 1 --threads 1 -o {file}".split()
    assert main(flags) == 0
    assert "bits of header" in capsys.readouterr().out
    true = pq.load_data("mnist").take(200)
    assert isinstance(true, ArraySequence)
    assert main(["decode", str(file), "--data", "mnist", "-o", str(labels)]) == 0
    assert np.array_equal(np.load(labels), true.labels(np.arange(200)).numpy())
    labels.unlink()
    assert main(["decode", str(file), "--data", "mnist", "-o", str(labels), "--original-order"]) == 0
    assert np.array_equal(np.load(labels), true.stored_labels[true.order.sort().values].numpy())
    capsys.readouterr()
    foreign = tmp_path / "foreign.npy"
    foreign.write_bytes(b"PK\x03\x04 not a zip")
    new = str(tmp_path / "new.npy")
    for command, complaint in [
        (flags, "is already there"),
        (["decode", str(file), "-o", new], "give either --data NAME or --inputs"),
        (["decode", str(file), "--inputs", "x", "--original-order", "-o", new], "--original-order needs --data"),
        (["decode", str(file), "--inputs", str(foreign), "-o", new], "cannot be read as .npy"),
        (["decode", str(foreign), "--data", "mnist", "-o", new], "not a bitstream of preq: it begins with 504b0304"),
        (["decode", str(tmp_path / "none"), "--data", "mnist", "-o", new], "No such file"),
        (["decode", str(file), "--data", "mnist", "-o", "/proc/l.npy"], "cannot write /proc/l.npy"),
        (["decode", str(file), "--data", "mnist", "-o", new, "--order", "given"], "unrecognized options: --order"),
        (["verify", str(tmp_path)], "holds no run"),
    ]:
        assert main(command) == 2, command
        err = capsys.readouterr().err
        assert complaint in err
        assert err.count("\n") == 1
    assert not Path(new).exists()


def test_a_directory_tells_how_its_run_stands(tmp_path: Path) -> None:
    record = pq.run(tiny, blobs(16), METHOD, seed=0)
    for status in ("finished", "diverged", "pruned", "stopped", "failed"):
        path = tmp_path / status
        replace(record, status=status).save(path)
        assert status_of(path, status) == status
        assert status_of(path, "running") == status, "it ended after its record was read"
        with DirectoryLock(path):
            assert status_of(path, status) == ("running" if status in ("stopped", "failed") else status), "resumed"
    replace(record, status="running").save(tmp_path / "killed")
    assert status_of(tmp_path / "killed", "running") == DIED
    with DirectoryLock(tmp_path / "killed"):
        assert status_of(tmp_path / "killed", "running") == "running"


def test_five_kills_change_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    script = [sys.executable, str(root / "benchmarks" / "kill.py"), "--kills", "5"]
    script += ["--kinds", "small", "--to", str(tmp_path)]
    done = start_process(script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    told, _ = done.communicate(timeout=PATIENCE)
    assert done.returncode == 0, told
    assert "5 kills, 1 of 1 kinds of run identical" in told
