"""The processes that decode: the same pixels for any number of them, and none that stays behind."""

import errno
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from prequential.data.decode import decode_random
from prequential.data.jobs import Job, decode_job
from prequential.data.workers import DecodePool
from prequential.errors import PreqError
from prequential.rng import uniforms

from ..processes import start, wait_for
from .test_decode import WHOLE, file_of, pixels


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    for number in range(24):
        kind, ending = (("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp"))[number % 3]
        (folder / f"ü {number}.{ending}").write_bytes(file_of(pixels(40 + number, 60 - number, number), kind))
    return folder


@pytest.fixture(scope="module")
def pool() -> Iterator[DecodePool]:
    with DecodePool(2) as pool:
        yield pool


def jobs_in(folder: Path, size: int = 16, key: int | None = None) -> list[Job]:
    return [Job(str(path), size, key, row) for row, path in enumerate(sorted(folder.iterdir()))]


def test_the_pixels_are_the_same_for_any_number_of_workers_and_order_of_taking(folder: Path, pool: DecodePool) -> None:
    batches = [jobs_in(folder, 16), jobs_in(folder, 16, 7)[5:], jobs_in(folder, 9, 8)[:3], jobs_in(folder, 16, 9)]
    expected = [np.stack([decode_job(job) for job in jobs]) for jobs in batches]
    assert not np.array_equal(expected[0], expected[3])
    with DecodePool(0) as here, DecodePool(1) as alone:
        for workers in (here, alone, pool):
            coming = [workers.submit(jobs) for jobs in batches]
            for number in (2, 0, 3, 1):
                images, broken = coming[number].result()
                assert np.array_equal(images, expected[number])
                assert not broken
                assert coming[number].result()[0] is images
    odd = Job(batches[1][1].path, np.int64(16), 7, np.int64(6))  # type: ignore[arg-type]
    assert np.array_equal(pool.submit([odd]).result()[0][0], expected[1][1]), "numbers of NumPy will do"
    draws = uniforms(7, np.arange(4) + 4 * 6).tolist()
    job = batches[1][1]
    assert np.array_equal(expected[1][1], decode_random(Path(job.path).read_bytes(), 16, "x", draws))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_broken_rows_are_reported_and_the_others_are_right(
    num_workers: int, folder: Path, pool: DecodePool, tmp_path: Path
) -> None:
    (tmp_path / "half.jpg").write_bytes(WHOLE[:-100])
    (tmp_path / "empty.png").touch()
    jobs = jobs_in(folder)
    good = np.stack([decode_job(job) for job in jobs])
    jobs[3], jobs[4] = Job(f"{tmp_path}/half.jpg", 16), Job(f"{tmp_path}/nowhere.jpg", 16, 3)
    jobs[-1] = Job(f"{tmp_path}/empty.png", 16)
    images, broken = (pool if num_workers else DecodePool(0)).submit(jobs).result()
    assert [row for row, _ in broken] == [3, 4, 23]
    assert "truncated" in broken[0][1]
    assert broken[1][1] == "cannot be read: No such file or directory"
    assert broken[2][1] == "the file is empty"
    rows = [row for row in range(24) if row not in (3, 4, 23)]
    assert np.array_equal(images[rows], good[rows])
    assert not images[[3, 4, 23]].any()
    del images
    assert not pool.submit(jobs_in(folder)).result()[1], "the reasons of an earlier batch are gone"


def test_memory_is_used_again_but_never_under_an_array_in_use(folder: Path, pool: DecodePool) -> None:
    jobs = jobs_in(folder, 64)
    assert pool._crew is not None
    for number in range(3):
        pool.submit(jobs[number:]).result()
    kept, _ = pool.submit(jobs[:12]).result()
    view, expected = kept[3:7, 1], kept[3:7, 1].copy()
    del kept
    sizes = []
    for number in range(60):
        coming = [pool.submit(jobs[number % 12 :][:12]) for _ in range(3)]
        coming[2].result()
        sizes.append(os.fstat(pool._crew.file).st_size)
    del coming
    assert sizes[-1] == sizes[5]
    assert np.array_equal(view, expected)
    for _ in range(40):
        pool.submit(jobs)  # nobody waits for these
    assert os.fstat(pool._crew.file).st_size <= sizes[-1] + 2 * (1 << 19)
    right = np.stack([decode_job(job) for job in jobs[::-1]])
    for _ in range(5):
        pool.submit(jobs)
        assert np.array_equal(pool.submit(jobs[::-1]).result()[0], right)


def test_more_work_than_the_pipe_holds_is_done(pool: DecodePool) -> None:
    images, broken = pool.submit([Job("nowhere.png", 1)] * 20_000).result()
    assert len(images) == len(broken) == 20_000


def processes_of(pool: DecodePool) -> list["subprocess.Popen[bytes]"]:
    assert pool._crew is not None
    return list(pool._crew.processes.values())


def held_by_us(pipe: Path) -> int | None:
    """The writing end of a pipe that someone reads, who now waits for what never comes; None while nobody reads."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


@pytest.fixture
def pipes(tmp_path: Path) -> list[Path]:
    """Files that cannot be read to their end."""
    made = [tmp_path / "one", tmp_path / "other"]
    for pipe in made:
        os.mkfifo(pipe)
    return made


@pytest.mark.parametrize("busy", [False, True])
def test_a_killed_worker_is_an_error_and_not_a_wait(folder: Path, pipes: list[Path], busy: bool) -> None:
    with DecodePool(2) as pool, ExitStack() as opened:
        done = pool.submit(jobs_in(folder))
        expected = done.result()[0].copy()
        coming = [pool.submit([Job(str(pipe), 16) for pipe in pipes])] if busy else []
        for pipe in pipes if busy else []:  # until each worker has one
            end = wait_for(partial(held_by_us, pipe))
            assert end is not None
            opened.callback(os.close, end)
        os.kill(processes_of(pool)[1].pid, signal.SIGKILL)
        processes_of(pool)[1].wait()
        with pytest.raises(PreqError, match=r"a decoding worker \(process \d+\) was killed by signal 9; start"):
            coming.pop().result() if busy else pool.submit(jobs_in(folder))
        pool.close()
        with pytest.raises(PreqError, match="killed by signal 9"):
            pool.submit(jobs_in(folder))
        assert all(process.returncode is not None for process in processes_of(pool))
        assert np.array_equal(done.result()[0], expected)


def test_signals_to_the_group_do_not_end_workers(folder: Path) -> None:
    with DecodePool(2) as pool:
        for moment in ("starting", "at work"):
            for process in processes_of(pool):
                os.kill(process.pid, signal.SIGINT)
                os.kill(process.pid, signal.SIGTERM)
            assert not pool.submit(jobs_in(folder)).result()[1], moment


def test_a_pool_that_is_dropped_or_closed_ends_its_processes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = DecodePool(1)
    processes = processes_of(dropped)
    images, _ = dropped.submit(jobs_in(folder)).result()
    del dropped
    gc.collect()
    assert processes[0].returncode is not None
    assert np.array_equal(images[0], decode_job(jobs_in(folder)[0])), "what was taken stays"
    assert len(DecodePool(1).submit(jobs_in(folder)).result()[0]) == 24, "a batch keeps its pool"
    closed = DecodePool(1)
    batch = closed.submit(jobs_in(folder, 500))
    closed.close()
    closed.close()
    assert processes_of(closed)[0].returncode is not None
    for late in (batch.result, lambda: closed.submit(jobs_in(folder))):
        with pytest.raises(PreqError, match="the DecodePool is closed; make a new one"):
            late()
    with DecodePool(1) as pool, monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        with pytest.raises(PreqError, match="cannot be used in a forked process"):
            pool.submit(jobs_in(folder))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(PreqError, match=r"a decoding worker could not be started: .*No such file"):
        DecodePool(1)


UNGUARDED = """
import signal, sys
from pathlib import Path
from prequential.data.workers import DecodePool, Job
print("once")
jobs = [Job(str(path), 16) for path in sorted(Path(sys.argv[1]).iterdir())]
pool = DecodePool(2)
print(*(process.pid for process in pool._crew.processes.values()))
print(len(pool.submit(jobs).result()[0]), flush=True)
if len(sys.argv) > 2:
    coming = [pool.submit([Job(job.path, 500) for job in jobs]) for _ in range(20)]
    print("waiting", flush=True)
    signal.pause()
"""


def is_running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


@pytest.mark.parametrize("killed", [False, True])
def test_a_script_without_a_guard_runs_once_and_leaves_no_process(folder: Path, tmp_path: Path, killed: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    here = tmp_path / "here"
    here.mkdir()
    (here / "numpy.py").write_text("raise SystemExit('not for workers')")
    command = [sys.executable, str(script), str(folder), *["wait"] * killed]
    with start(command, stdout=subprocess.PIPE, text=True, cwd=here) as script_process:
        assert script_process.stdout is not None
        assert script_process.stdout.readline() == "once\n"
        pids = [int(pid) for pid in script_process.stdout.readline().split()]
        assert script_process.stdout.readline() == "24\n"
        if killed:
            assert script_process.stdout.readline() == "waiting\n"
            assert all(is_running(pid) for pid in pids)
            script_process.kill()
        assert script_process.stdout.read() == ""
        assert script_process.wait() == (-signal.SIGKILL if killed else 0)
    wait_for(lambda: not any(is_running(pid) for pid in pids))


def test_a_worker_imports_no_torch() -> None:
    code = "import sys, prequential.data.jobs; sys.exit('torch' in sys.modules or 'PIL' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Job("x", 0), "size must be a whole number"),
        (lambda: Job("x", 8, 3, -1), "row must be a whole number"),
        (lambda: Job("x", 8, min_area=2), "min_area must be"),
        (lambda: Job("x", 8, 2**64), "crop_key must be a whole number"),
        (lambda: DecodePool(-1), "num_workers must be a whole number of at least 0, got -1"),
        (lambda: DecodePool(0).submit([]), "a batch needs images of one size, got 0 jobs of sizes"),
        (lambda: DecodePool(0).submit([Job("x", 8), Job("x", 9)]), r"one size, got 2 jobs of sizes \[8, 9\]"),
    ],
)
def test_bad_requests_are_refused_in_one_line(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        make()
