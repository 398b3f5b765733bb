"""Worker processes that decode images.

The workers are plain processes: a user's script is not run again in them, and they import no torch. There are as many
threads: each sends a free worker a piece of a batch (a few images), and copies the pixels out of memory that is shared.

torch's DataLoader took 0.83 of the speed that this had before for centre crops and 0.92 for random ones (processor time
per image of 640 Imagenette JPEGs at 224, batches of 32, two workers, medians of four); what is here now takes 1.06 and
0.94. It would also fork a process that has threads, or run the user's script again.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass
from queue import SimpleQueue
from typing import IO

import numpy as np
from numpy.typing import NDArray

from prequential.data.views import Broken, ImageView, mapped, read_all
from prequential.errors import PreqError

Decoded = tuple[NDArray[np.uint8], Broken]
"""Images, one row per view, and (row, reason) for each that is broken; a broken row is black."""

_PIECE_SIZE = 4
_START = "import sys; sys.path[:] = sys.argv[2:]; from prequential.data.views import serve; serve(sys.argv[1])"
ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | dict.fromkeys(
    ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(32 << 20)
)
"""Of a worker: no threads of its own, and memory that is freed after an image is kept for the next one. Else glibc
returns the pages to the system and takes new ones each time, which costs as much as the decoding."""


class _Worker:
    """A process, and the memory that is shared with it."""

    def __init__(self) -> None:
        self._file = _shared_file()
        weakref.finalize(self, self._file.close)  # no sooner: a thread may be about to lengthen it
        self._memory = np.empty(0, np.uint8)
        # Blocked from before the first instruction on: Ctrl-C and SIGTERM to the whole group are the parent's affair.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, str(self._file.fileno()), *map(str, sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(self._file.fileno(),),
                text=True,
                env=os.environ | ENVIRONMENT,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def read(self, views: Sequence[ImageView], pixels: NDArray[np.uint8]) -> Broken | None:
        """Fill a row per view; None if the process is gone."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError, ValueError):  # the second where there is no whole answer, or all is closed
            if len(self._memory) < pixels.size:
                os.ftruncate(self._file.fileno(), pixels.size)
                self._memory = mapped(self._file.fileno())
            asked = json.dumps([astuple(view) for view in views])
            print(asked, file=self.process.stdin, flush=True)
            broken: Broken = json.loads(self.process.stdout.readline())
            pixels.reshape(-1)[:] = self._memory[: pixels.size]
            return broken
        return None

    def end(self) -> None:
        """At once: it holds nothing that could be lost."""
        self.process.kill()
        with suppress(BrokenPipeError), self.process:
            pass  # closes its pipes and waits


def _shared_file() -> IO[bytes]:
    """A file that is gone with the last process that has it open; in memory where the system can."""
    return os.fdopen(os.memfd_create("pixels"), "wb") if hasattr(os, "memfd_create") else tempfile.TemporaryFile()


def _end_all(workers: list[_Worker], owner: int) -> None:
    """End the workers, unless this is a fork of the process that started them."""
    if os.getpid() == owner:
        for worker in workers:
            worker.end()


@dataclass(frozen=True, eq=False)
class Batch:
    """Images that are being decoded. Its pool stays until they are."""

    _pixels: NDArray[np.uint8]
    _pieces: dict[int, "Future[Broken]"]

    def result(self) -> Decoded:
        """Wait for the images: an array (n, 3, size, size), and (row, reason) for each that is broken."""
        broken = [(start + row, reason) for start, piece in self._pieces.items() for row, reason in piece.result()]
        return self._pixels, broken


class DecodePool:
    """Worker processes, started at once, that decode batches of images.

    Batches are worked on in the order of `submit` and may be taken in any. The pixels are the same for
    any number of workers. Several threads may use one pool. Where a worker ends, all do, and every batch that is not
    finished is an error. A pool that nobody has any more ends its workers; so does the end of the program, once what
    was submitted is done.

    Args:
        num_workers: processes; with 0 a thread of this process decodes.

    Example:
        >>> images, broken = DecodePool(0).submit([ImageView("nowhere.png", size=32)]).result()
        >>> images.shape, broken
        ((1, 3, 32, 32), [(0, 'cannot be read: No such file or directory')])
    """

    def __init__(self, num_workers: int) -> None:
        self.workers: list[_Worker] = []
        self._owner = os.getpid()
        self._problem = ""
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        self._threads = ThreadPoolExecutor(num_workers or 1)
        self._stop = weakref.finalize(self, _end_all, self.workers, self._owner)
        try:
            for _ in range(num_workers):
                self.workers.append(_Worker())
                self._free.put(self.workers[-1])
        except OSError as error:
            self._stop()
            raise PreqError(f"a decoding worker could not be started: {error}; try --workers 0") from error

    def submit(self, views: Sequence[ImageView]) -> Batch:
        """Have these images decoded, all of one size; returns at once."""
        if self._owner != os.getpid():
            raise PreqError("a DecodePool cannot be used in a forked process; make one there")
        pixels = np.empty((len(views), 3, views[0].size, views[0].size), np.uint8)
        step = max(1, min(_PIECE_SIZE, len(views) // (2 * max(1, len(self.workers)))))
        spans = [slice(start, start + step) for start in range(0, len(views), step)]
        return Batch(pixels, {s.start: self._threads.submit(self._read, views[s], pixels[s]) for s in spans})

    def _read(self, views: Sequence[ImageView], pixels: NDArray[np.uint8]) -> Broken:
        """Have a worker fill a row per view."""
        if not self.workers:
            return read_all(views, pixels)
        if self._problem:
            raise PreqError(self._problem)
        worker = self._free.get()
        broken = worker.read(views, pixels)
        if broken is None:
            status = worker.process.wait()
            how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            self.close(f"a decoding worker (process {worker.process.pid}) {how}; start again, or try --workers 0")
            raise PreqError(self._problem)
        self._free.put(worker)
        return broken

    def close(self, problem: str = "the DecodePool is closed; make a new one") -> None:
        """End the workers. Batches they have not finished cannot be taken any more, for the first problem told."""
        self._problem = self._problem or problem
        self._stop()
