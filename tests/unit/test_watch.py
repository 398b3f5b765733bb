"""`preq watch`: what directories tell of runs that go, are over, or died; and the file that runs keep for it."""

import io
import json
import math
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import prequential as pq
from prequential import PreqError, Record, cli
from prequential.cli.watch_table import view
from prequential.files import write_array
from prequential.lock import DirectoryLock
from prequential.plain import checksum_of
from prequential.plan import Plan
from prequential.report import standings as sums_module
from prequential.report.standings import Row, Sums
from prequential.report.watching import Snapshot, Watcher, regrets
from prequential.runs.live import PROGRESS_FILE, ProgressFile, Standing, is_going, is_locked, read_standing
from prequential.runs.progress import Progress
from prequential.runs.record import write_facts

from ..conftest import blobs
from ..processes import GATED, PATIENCE, Gate, start, start_preq, wait_for
from .test_imports import BLOCK_TORCH

Captured = pytest.CaptureFixture[str]
METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)
STUDYING = pq.AllInputs(method=METHOD, study_steps=6, study_batch_size=16, beside=1)


@pytest.fixture(scope="module")
def record() -> Record:
    return pq.run("mlp1", blobs(96), METHOD, seed=0, width=0.05)


def shifted(record: Record, by: float, to: Path, **facts: object) -> Record:
    """The same run with every label more expensive."""
    return replace(record, nats=record.nats + by, **facts).save(to)  # type: ignore[arg-type]


def text_of(snapshot: Snapshot, *, top: int = 20, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(view(snapshot, top=top, width=width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_sums_are_those_of_the_prefixes_however_a_run_grows_or_goes_back(lengths: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums_module, "BLOCK", 8)
        file, values, drawn = Path(folder) / "nats.npy", np.zeros(0), 0
        sums = Sums(file)
        for length in lengths:
            fresh = np.arange(drawn, drawn + max(length - len(values), 0), dtype=np.float64)
            values, drawn = np.append(values[:length], fresh), drawn + len(fresh)
            write_array(file, values)
            sums.extend(length)
            for position in (0, length // 2, length):
                assert sums.at(position) == values[:position].sum()
        file.rename(Path(folder) / "old.npy")
        write_array(file, np.ones(40))  # another run in the same place
        sums.extend(40)
        assert sums.at(33) == 33


class Curve:
    """Sums of nats that are at hand."""

    def __init__(self, nats: list[float]) -> None:
        self.nats = nats

    def at(self, position: int) -> float:
        return math.fsum(self.nats[:position])


@given(st.lists(st.lists(st.integers(0, 9).map(float), min_size=1, max_size=6), min_size=2, max_size=5))
def test_regret_is_against_the_best_at_the_same_position(curves: list[list[float]]) -> None:
    runs = [(len(nats), Curve(nats)) for nats in curves]
    found = regrets(runs)  # type: ignore[arg-type]
    for number, nats in enumerate(curves):
        others = max(len(other) for index, other in enumerate(curves) if index != number)
        shared = min(len(nats), others)
        best = min(sum(other[:shared]) for other in curves if len(other) >= shared)
        assert found[number] == sum(nats[:shared]) - best >= 0
    furthest = [value for nats, value in zip(curves, found, strict=True) if len(nats) >= sorted(map(len, curves))[-2]]
    assert min(value for value in furthest if value is not None) == 0


def test_one_run_has_nothing_to_be_compared_with_and_infinity_is_told() -> None:
    assert regrets([(2, Curve([1.0, 2.0]))]) == [None]  # type: ignore[list-item]
    lost, fine = Curve([1.0, math.inf]), Curve([4.0, 1.0, 1.0])
    assert regrets([(2, lost), (3, fine)]) == [math.inf, 0.0]  # type: ignore[list-item]
    assert regrets([(2, lost), (2, lost)]) == [0.0, 0.0]  # type: ignore[list-item]


def test_regret_of_finished_runs_is_that_of_the_measure(record: Record, tmp_path: Path) -> None:
    one, other = record.save(tmp_path / "one"), shifted(record, 0.25, tmp_path / "other")
    rows = dict(Watcher([tmp_path]).snapshot().rows)
    assert rows["one"].regret == 0
    assert rows["other"].regret == pytest.approx(pq.regret(other, one)[-1])
    assert rows["one"].nats == pytest.approx(one.codelength)
    assert (rows["one"].errors, rows["one"].position, rows["one"].status) == (one.errors, 96, "finished")


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    monkeypatch.setattr("prequential.runs.live.SECONDS_BETWEEN_WRITES", 0.0)


@pytest.mark.usefixtures("_often")
def test_a_run_is_seen_between_its_checkpoints(tmp_path: Path) -> None:
    seen: list[tuple[Progress, Snapshot]] = []
    watcher: list[Watcher] = []

    def look(progress: Progress) -> None:
        watcher[:] = watcher or [Watcher([tmp_path])]
        seen.append((progress, watcher[0].snapshot()))

    record = pq.run("mlp1", blobs(200), METHOD, seed=0, width=0.05, out=tmp_path / "a", listeners=[look])
    told = [(progress, snapshot.rows[0][1]) for progress, snapshot in seen]
    assert all(
        row.status == "running" and not snapshot.is_over for (_, row), (_, snapshot) in zip(told, seen, strict=True)
    )
    assert [row.position for _, row in told[1:]] == [progress.position for progress, _ in told[:-1]]
    going = [row for _, row in told if row.position]
    assert len({row.position for row in going}) > 10
    for row in going:
        assert row.nats == pytest.approx(record.nats[: row.position].sum())
        assert row.errors == (record.labels != record.predicted)[: row.position].sum()
        assert row.share == row.position / 200
    assert going[-1].seconds_left is not None
    after = watcher[0].snapshot()
    assert after.is_over
    assert [row.status for _, row in after.rows] == ["finished"]
    assert not (tmp_path / "a" / PROGRESS_FILE).exists()


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize(
    "method", [pq.ChunksFromScratch(epochs=2, batch_size=8), pq.FullDataset(epochs=4, batch_size=8)]
)
def test_time_left_follows_the_training_where_labels_do_not(method: pq.ChunksFromScratch, tmp_path: Path) -> None:
    shares: list[float] = []

    def look(progress: Progress) -> None:
        row = Watcher([tmp_path]).snapshot().rows[0][1]
        if row.seconds_left is not None:
            shares.append(row.seconds / (row.seconds + row.seconds_left))

    pq.run("mlp1", blobs(200), method, seed=0, width=0.05, out=tmp_path / "a", listeners=[look])
    assert np.all(np.diff(shares) > -1e-9)
    assert shares[-1] > 0.9
    row = Watcher([tmp_path]).snapshot().rows[0][1]
    assert (row.share, row.nats is None) == (1.0, not method.prequential)


@pytest.mark.usefixtures("_often")
def test_a_study_is_seen_in_its_middle(record: Record, tmp_path: Path, capsys: Captured) -> None:
    record.save(tmp_path / "over")
    seen: list[tuple[Progress, Row]] = []

    def look(progress: Progress) -> None:
        snapshot = Watcher([tmp_path]).snapshot()
        seen.append((progress, next(row for name, row in snapshot.rows if name == "going")))
        if progress.studied_steps == 4 and not progress.position:
            assert re.search("running +███··· studying 50%", text_of(snapshot))  # the file is a step behind
            page = ["-o", str(tmp_path / "page.html")]
            for line in (["compare", str(tmp_path), "--prefix"], ["report", str(tmp_path), *page]):
                assert cli.main(line) == 0
                assert "left out 1 run not finished (running)" in capsys.readouterr().err
            assert cli.main(["compare", str(tmp_path / "going"), str(tmp_path / "over"), "--prefix"]) == 2
            assert "going has no label to show yet" in capsys.readouterr().err

    network: dict[str, Any] = {"seed": 0, "width": 0.05, "study_dir": tmp_path / "studies"}
    whole = pq.run("mlp1", blobs(96), STUDYING, **network, out=tmp_path / "going", listeners=[look])
    earlier = [progress for progress, _ in seen]
    rows = [row for _, row in seen[1:]]
    studying = [row for row in rows if row.studied is not None]
    assert [row.studied for row in rows[: len(studying)]] == [told.studied_steps / 6 for told in earlier[:5]]
    assert len(studying) == 5
    for row in studying:
        assert (row.position, row.nats, row.rate, row.share) == (0, None, None, 0.0)
        assert row.studied is not None
        assert row.seconds_left == pytest.approx(row.seconds * (1 / row.studied - 1))
    learning = [(row, told) for row, told in zip(rows, earlier, strict=False) if row.position]
    assert whole.study is not None
    for row, told in learning:
        assert told.study_seconds == whole.study["seconds"] < row.seconds
        assert row.rate == pytest.approx(row.position / (row.seconds - told.study_seconds))
    row, told = learning[-1]
    trained = Plan(STUDYING.of(96), 96, 0).counts().trained_examples
    assert row.seconds_left == pytest.approx((row.seconds - told.study_seconds) * (trained / told.trained_examples - 1))
    again: list[Progress] = []
    pq.run("mlp1", blobs(96), STUDYING, **network, listeners=[again.append])
    assert again[-1].study_seconds == 0  # it was there


def test_a_run_is_watched_and_killed_in_its_study(tmp_path: Path) -> None:
    out, gate = tmp_path / "run", Gate(tmp_path / "gate", step=3, most_seconds=0.2)
    job = ["mnist", GATED, "--num-labels", "64", "--width", "0.02", "--all-inputs", "--preset", "plain"]
    job += ["--study-steps", "5000", "--study-batch-size", "16", "--threads", "1"]
    running = start_preq(["run", *job, "--out", str(out)], gate.environment)
    wait_for(lambda: (found := read_standing(out)) is not None and found.studied_steps > 0, running)
    snapshot = Watcher([out]).snapshot()
    (row,) = (row for _, row in snapshot.rows)
    assert (row.status, row.position, row.studied is not None) == ("running", 0, True)
    line = next(line for line in text_of(snapshot).splitlines() if "studying" in line)
    assert "studying" in line
    assert ">" in line
    running.kill()
    running.communicate()
    (row,) = (row for _, row in Watcher([out]).snapshot().rows)
    assert (row.status, row.studied is not None, row.seconds_left) == ("died", True, None)


def test_a_killed_run_has_died_and_goes_on(tmp_path: Path) -> None:
    out, gate = tmp_path / "run", Gate(tmp_path / "gate", step=20, most_seconds=0.2)  # it says every second how it goes
    job = ["mnist", GATED, "--length", "2000", "--width", "0.02", "--streams", "400", "--threads", "1"]
    running = start_preq(["run", *job, "--out", str(out)], gate.environment)
    wait_for(lambda: (found := read_standing(out)) is not None and found.position > 0, running)
    snapshot = Watcher([out]).snapshot()
    assert (snapshot.rows[0][1].status, snapshot.is_over) == ("running", False)
    running.kill()
    running.communicate()
    snapshot = Watcher([out]).snapshot()
    row = snapshot.rows[0][1]
    assert (row.status, snapshot.is_over) == ("died", True)
    assert row.position > 0
    assert "died, resumable: run; the same command with --resume goes on" in text_of(snapshot)
    with DirectoryLock(out):  # someone resumes it: the record still says what it said
        assert Watcher([out]).snapshot().rows[0][1].status == "running"


def test_a_stopped_run_is_stopped_until_it_is_resumed(record: Record, tmp_path: Path) -> None:
    saved = shifted(record, 0.0, tmp_path / "run", status="stopped")
    assert saved.path is not None
    (saved.path / "lock").touch()
    assert Watcher([tmp_path]).snapshot().rows[0][1].status == "stopped"
    with DirectoryLock(saved.path):
        assert Watcher([tmp_path]).snapshot().rows[0][1].status == "running"


def test_a_run_on_another_machine_counts_by_when_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ProgressFile(tmp_path).begin({}, Progress(8, 96, 1.5, 2, 16, 3.0))
    ours = read_standing(tmp_path)
    assert ours is not None
    assert (ours.position, ours.nats, ours.errors, ours.trained_examples, ours.seconds) == (8, 1.5, 2, 16, 3.0)
    elsewhere = replace(ours, host="elsewhere")
    written = (tmp_path / PROGRESS_FILE).stat().st_mtime
    monkeypatch.setattr("prequential.runs.live.time", SimpleNamespace(time=lambda: written + 59))
    assert not is_going(tmp_path, ours)
    assert is_going(tmp_path, elsewhere)
    monkeypatch.setattr("prequential.runs.live.time", SimpleNamespace(time=lambda: written + 61))
    assert not is_going(tmp_path, elsewhere)


def test_the_progress_file_disturbs_no_run(tmp_path: Path) -> None:
    lost = ProgressFile(tmp_path / "nowhere")
    lost.begin({}, Progress(0, 9, 0.0, 0, 0, 0.0))
    lost(Progress(8, 9, math.inf, 0, 0, 9.0))
    lost.end(None)
    kept = ProgressFile(tmp_path)
    kept.begin({}, Progress(0, 9, 0.0, 0, 0, 5.0))
    kept(Progress(1, 9, 0.0, 0, 0, 5.5))
    assert read_standing(tmp_path) == Standing(0, 0.0, 0, 0, 5.0, os.uname().nodename)
    kept(Progress(2, 9, math.inf, 1, 0, 6.0))
    assert read_standing(tmp_path) == Standing(2, None, 1, 0, 6.0, os.uname().nodename)
    (tmp_path / PROGRESS_FILE).write_text('{"position": 3')
    assert read_standing(tmp_path) is None


def test_the_progress_file_tells_of_studies_where_there_are_some(tmp_path: Path) -> None:
    file = tmp_path / PROGRESS_FILE
    ProgressFile(tmp_path).begin({}, Progress(0, 9, 0.0, 0, 0, 5.0))
    assert "stud" not in file.read_text()
    assert (found := read_standing(tmp_path)) is not None
    assert found.studied is None
    ProgressFile(tmp_path).begin({}, Progress(0, 9, 0.0, 0, 0, 5.0, studied_steps=1, study_steps=4, study_seconds=5.0))
    assert (found := read_standing(tmp_path)) is not None
    assert (found.studied, found.study_seconds) == (0.25, 5.0)
    assert replace(found, position=1).studied is None
    assert replace(found, studied_steps=4).studied is None
    content = json.loads(file.read_text())
    for wrong in ({"study_steps": -1}, {"study_seconds": "5"}):
        bad = content | wrong
        file.write_text(json.dumps(bad | {"checksum": checksum_of(bad)}))
        assert read_standing(tmp_path) is None


def test_asking_for_a_lock_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    with DirectoryLock(tmp_path):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "nowhere")
    with (tmp_path / "lock").open("rb") as held:
        flock = fcntl.flock
        flock(held, fcntl.LOCK_SH)

        def refused_once(file: int, how: int) -> None:
            try:
                flock(file, how)
            finally:
                held.close()

        monkeypatch.setattr(fcntl, "flock", refused_once)
        with DirectoryLock(tmp_path):
            assert held.closed


def test_new_runs_show_up_and_sweeps_between_trials_are_waited_for(record: Record, tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        watcher = Watcher([tmp_path])
        empty = watcher.snapshot()
        assert (empty.rows, empty.is_over) == ([], False)
        assert "at work in a directory without a record yet" in text_of(empty)
        record.save(tmp_path / "trials" / "0000")
        assert [name for name, _ in watcher.snapshot().rows] == ["0000"]
        shifted(record, 1.0, tmp_path / "trials" / "0001")
        assert [name for name, _ in watcher.snapshot().rows] == ["0000", "0001"]
        assert not watcher.snapshot().is_over
    assert watcher.snapshot().is_over


def test_a_snapshot_in_80_columns(
    record: Record, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for number in range(30):
        name = f"a-rather-long-name-of-a-run-with-the-learning-rate-0.{number:03d}"
        shifted(record, 100.0 * number, tmp_path / name, length=96, seconds=3.0)
    shifted(record, 1.0, tmp_path / "other", data=record.data | {"name": "else", "labels": "0" * 32})
    for flags in (["--once"], []):
        assert cli.main(["watch", str(tmp_path), "--top", "5", *flags]) == 0
        said = capsys.readouterr().out
        assert max(map(len, said.splitlines())) <= 80
        assert said.count("…") == 6
        assert "0.000  finished  ██████ 96" in said
        assert "… and 26 more: 26 finished" in said
        assert "31 runs: 31 finished" in said
        assert [line.split()[-2] for line in said.splitlines()[2:4]] == ["best", "+9,600.0"]
    assert cli.main(["watch", str(tmp_path)]) == 0
    narrow = text_of(Watcher([tmp_path]).snapshot(), width=60)
    assert max(map(len, narrow.splitlines())) <= 60
    wide = text_of(Watcher([tmp_path]).snapshot(), width=160, top=31)
    assert "recent" in wide
    assert "else · 96 labels · order seed" in wide or "else · 96 labels · in the given order" in wide


def test_broken_runs_are_told_and_the_others_shown(record: Record, tmp_path: Path, capsys: Captured) -> None:
    record.save(tmp_path / "good")
    for name, file in [("a", "nats.npy"), ("b", "record.json"), ("c", "labels.npy"), ("d", "record.json")]:
        record.save(tmp_path / name)
        (tmp_path / name / file).write_bytes(b"\x93NUMPY" if file != "record.json" else b'{"checksum": 1}')
    write_facts(tmp_path / "d", record.facts() | {"data": {}, "seeds": []}, {})
    (tmp_path / "e").mkdir()
    write_facts(tmp_path / "e", record.facts(), {"nats": (1 << 40, "")})
    assert cli.main(["watch", str(tmp_path), "--once"]) == 0
    said = capsys.readouterr().out
    assert "good" in said
    assert "unreadable: b: " in " ".join(said.split())
    assert "unreadable: " in said.splitlines()[-2] or "more" in said.splitlines()[-2]
    assert "unreadable" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("", "preq watch needs at least one run; name its directory, see preq watch --help"),
        ("/nowhere/at/all", "/nowhere/at/all is no directory; name one that preq run or preq sweep wrote with --out"),
        ("EMPTY", "EMPTY holds no run; name a directory that preq run or preq sweep wrote with --out"),
        ("EMPTY --every 0", "--every must be a number at least 0.1, got 0.0"),
        ("EMPTY --top 0", "--top must be a whole number of at least 1, got 0"),
    ],
)
def test_mistakes_get_one_line_and_status_2(arguments: str, complaint: str, tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["watch", *arguments.replace("EMPTY", str(tmp_path)).split()]) == 2
    assert capsys.readouterr().err == f"preq: {complaint}\n".replace("EMPTY", str(tmp_path))


@pytest.fixture
def going(record: Record, tmp_path: Path) -> Iterator[tuple[Path, DirectoryLock]]:
    """A run that goes, as far as its directory tells."""
    saved = shifted(record, 0.0, tmp_path / "run", status="running")
    assert saved.path is not None
    ProgressFile(saved.path).begin({}, Progress(40, 96, 30.0, 9, 80, 2.0))
    with DirectoryLock(saved.path) as lock:
        yield saved.path, lock


class Terminal:
    """One of its own for `preq watch`, without torch."""

    def __init__(self) -> None:
        self._ours, self._theirs = pty.openpty()

    def watch(self, path: Path) -> "subprocess.Popen[bytes]":
        call = f"main(['watch', {str(path)!r}, '--every', '0.1'])"
        code = f"{BLOCK_TORCH}\nfrom prequential.cli import main\nraise SystemExit({call})"
        environment = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
        process = start([sys.executable, "-c", code], environment, stdout=self._theirs, stderr=self._theirs)
        os.close(self._theirs)
        return process

    def read_until(self, text: str | None = None) -> str:
        """What is said up to this text, or up to the end."""
        said, deadline = b"", time.monotonic() + PATIENCE
        with suppress(OSError):  # the other end is closed
            while text is None or text.encode() not in said:
                assert select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))[0], said.decode()
                said += os.read(self._ours, 65536)
        return said.decode()

    def close(self) -> None:
        os.close(self._ours)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with closing(Terminal()) as terminal:
        yield terminal


def test_it_leaves_by_itself_when_all_is_over(
    going: tuple[Path, DirectoryLock], record: Record, terminal: Terminal
) -> None:
    path, lock = going
    process = terminal.watch(path.parent)
    assert "running" in terminal.read_until("40")
    contents = json.loads((path / "record.json").read_text())["record"]["arrays"]
    described = {name: (each["length"], each["digest"]) for name, each in contents.items()}
    write_facts(path, record.facts() | {"status": "finished"}, described)
    lock.__exit__(None, None, None)
    said = terminal.read_until("nothing is running any more")
    assert process.wait(PATIENCE) == 0
    assert "1 run: 1 finished" in said


def test_ctrl_c_leaves_quietly(going: tuple[Path, DirectoryLock], terminal: Terminal) -> None:
    process = terminal.watch(going[0])
    terminal.read_until("running")
    process.send_signal(signal.SIGINT)
    rest = terminal.read_until()
    assert process.wait(PATIENCE) == 0
    assert "Traceback" not in rest
    assert "interrupted" not in rest


def test_errors_of_a_watcher_name_the_directory(tmp_path: Path) -> None:
    with pytest.raises(PreqError, match="is no directory"):
        Watcher([tmp_path / "nothing"])
