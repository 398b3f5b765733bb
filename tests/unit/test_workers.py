"""The processes that decode: the same pixels for any number of them, and none that stays behind."""

import errno
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from prequential.data.decode import decode_image
from prequential.data.views import ImageView
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
    with closing(DecodePool(2)) as pool:
        yield pool


def views_in(folder: Path, size: int = 16, key: int | None = None) -> list[ImageView]:
    return [ImageView(str(path), size, key, row) for row, path in enumerate(sorted(folder.iterdir()))]


def test_the_pixels_are_the_same_for_any_number_of_workers_and_order_of_taking(folder: Path, pool: DecodePool) -> None:
    batches = [views_in(folder, 16), views_in(folder, 16, 7)[5:], views_in(folder, 9, 8)[:3], views_in(folder, 16, 9)]
    expected = [np.stack([view.read() for view in views]) for views in batches]
    assert not np.array_equal(expected[0], expected[3])
    with closing(DecodePool(0)) as here, closing(DecodePool(1)) as alone:
        for workers in (here, alone, pool):
            coming = [workers.submit(views) for views in batches]
            for number in (2, 0, 3, 1):
                images, broken = coming[number].result()
                assert np.array_equal(images, expected[number])
                assert not broken
                assert coming[number].result()[0] is images
    draws = uniforms(7, np.arange(4) + 4 * 6).tolist()
    view = batches[1][1]
    assert np.array_equal(expected[1][1], decode_image(Path(view.path).read_bytes(), 16, "x", draws))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_broken_rows_are_reported_and_the_others_are_right(
    num_workers: int, folder: Path, pool: DecodePool, tmp_path: Path
) -> None:
    (tmp_path / "half.jpg").write_bytes(WHOLE[:-100])
    (tmp_path / "empty.png").touch()
    views = views_in(folder)
    good = np.stack([view.read() for view in views])
    views[3], views[4] = ImageView(f"{tmp_path}/half.jpg", 16), ImageView(f"{tmp_path}/nowhere.jpg", 16, 3)
    views[-1] = ImageView(f"{tmp_path}/empty.png", 16)
    images, broken = (pool if num_workers else DecodePool(0)).submit(views).result()
    assert [row for row, _ in broken] == [3, 4, 23]
    assert "truncated" in broken[0][1]
    assert broken[1][1] == "cannot be read: No such file or directory"
    assert broken[2][1] == "the file is empty"
    rows = [row for row in range(24) if row not in (3, 4, 23)]
    assert np.array_equal(images[rows], good[rows])
    assert not images[[3, 4, 23]].any()
    del images
    assert not pool.submit(views_in(folder)).result()[1], "the reasons of an earlier batch are gone"


def test_memory_is_shared_for_a_piece_and_what_was_taken_stays(folder: Path, pool: DecodePool) -> None:
    views = views_in(folder, 64)
    kept, _ = pool.submit(views[:12]).result()
    expected = np.stack([view.read() for view in views[:12]])
    for _ in range(10):
        pool.submit(views)  # nobody waits for these
    right = np.stack([view.read() for view in views[::-1]])
    assert np.array_equal(pool.submit(views[::-1]).result()[0], right)
    assert np.array_equal(kept, expected)
    assert all(len(worker._memory) <= 4 * 3 * 64 * 64 for worker in pool.workers)


def test_much_work_at_once_is_done(pool: DecodePool) -> None:
    images, broken = pool.submit([ImageView("nowhere.png", 1)] * 20_000).result()
    assert len(images) == len(broken) == 20_000


def processes_of(pool: DecodePool) -> list["subprocess.Popen[str]"]:
    return [worker.process for worker in pool.workers]


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
    with closing(DecodePool(2)) as pool, ExitStack() as opened:
        done = pool.submit(views_in(folder))
        expected = done.result()[0].copy()
        coming = [pool.submit([ImageView(str(pipe), 16) for pipe in pipes])] if busy else []
        for pipe in pipes if busy else []:  # until each worker has one
            end = wait_for(partial(held_by_us, pipe))
            assert end is not None
            opened.callback(os.close, end)
        os.kill(processes_of(pool)[1].pid, signal.SIGKILL)
        processes_of(pool)[1].wait()
        with pytest.raises(PreqError, match=r"a decoding worker \(process \d+\) was killed by signal 9; start"):
            (coming.pop() if busy else pool.submit(views_in(folder))).result()
        pool.close()
        with pytest.raises(PreqError, match="killed by signal 9"):
            pool.submit(views_in(folder)).result()
        assert all(process.returncode is not None for process in processes_of(pool))
        assert np.array_equal(done.result()[0], expected)


def test_signals_to_the_group_do_not_end_workers(folder: Path) -> None:
    with closing(DecodePool(2)) as pool:
        for moment in ("starting", "at work"):
            for process in processes_of(pool):
                os.kill(process.pid, signal.SIGINT)
                os.kill(process.pid, signal.SIGTERM)
            assert not pool.submit(views_in(folder)).result()[1], moment


def test_a_pool_that_is_dropped_or_closed_ends_its_processes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = DecodePool(1)
    processes = processes_of(dropped)
    images, _ = dropped.submit(views_in(folder)).result()
    del dropped
    gc.collect()
    wait_for(lambda: processes[0].returncode is not None)
    assert np.array_equal(images[0], views_in(folder)[0].read()), "what was taken stays"
    assert len(DecodePool(1).submit(views_in(folder)).result()[0]) == 24, "a batch keeps its pool"
    closed = DecodePool(1)
    batch = closed.submit(views_in(folder, 500))
    closed.close()
    closed.close()
    assert processes_of(closed)[0].returncode is not None
    for late in (batch.result, closed.submit(views_in(folder)).result):
        with pytest.raises(PreqError, match="the DecodePool is closed; make a new one"):
            late()
    with closing(DecodePool(1)) as pool, monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        with pytest.raises(PreqError, match="cannot be used in a forked process"):
            pool.submit(views_in(folder))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(PreqError, match=r"a decoding worker could not be started: .*No such file"):
        DecodePool(1)


UNGUARDED = """
import signal, sys
from pathlib import Path
from prequential.data.workers import DecodePool, ImageView
print("once")
views = [ImageView(str(path), 16) for path in sorted(Path(sys.argv[1]).iterdir())]
pool = DecodePool(2)
print(*(worker.process.pid for worker in pool.workers))
print(len(pool.submit(views).result()[0]), flush=True)
if len(sys.argv) > 2:
    coming = [pool.submit([ImageView(view.path, 500) for view in views]) for _ in range(20)]
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
    code = "import sys, prequential.data.views; sys.exit('torch' in sys.modules or 'PIL' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
