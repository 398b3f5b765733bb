"""Worker processes that decode images.

The workers are plain processes: a user's script is not run again in them, and they import no torch. A thread for each
sends it a piece of a batch (a few images) when it is free, and copies the pixels out of memory that it shares with it.

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
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import astuple, dataclass
from queue import SimpleQueue
from typing import IO

import numpy as np
from numpy.typing import NDArray

from prequential.data.views import Broken, ImageView, mapped, read_all
from prequential.errors import PreqError, require_count

Decoded = tuple[NDArray[np.uint8], Broken]
"""Images, one row per view, and (row, reason) for each that is broken; a broken row is black."""
_Piece = tuple["Future[Broken]", Sequence[ImageView], NDArray[np.uint8]]

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
        except OSError:
            self._file.close()
            raise
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
            asked = json.dumps([astuple(view) for view in views], default=int)
            print(asked, file=self.process.stdin, flush=True)
            broken: Broken = json.loads(self.process.stdout.readline())
            pixels.reshape(-1)[:] = self._memory[: pixels.size]
            return broken
        return None

    def end(self) -> None:
        """At once: it holds nothing that could be lost."""
        self.process.kill()
        self._file.close()
        with suppress(BrokenPipeError), self.process:
            pass  # closes its pipes and waits


def _shared_file() -> IO[bytes]:
    """A file that is gone with the last process that has it open; in memory where the system can."""
    return os.fdopen(os.memfd_create("pixels"), "wb") if hasattr(os, "memfd_create") else tempfile.TemporaryFile()


class _Crew:
    """The processes and their work; no reference to the pool, which must be free to go."""

    def __init__(self, num_workers: int) -> None:
        self.owner = os.getpid()
        self.problem = ""
        self.workers: list[_Worker] = []
        self.pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        try:
            for _ in range(num_workers):
                self.workers.append(_Worker())
        except OSError as error:
            self.stop()
            raise PreqError(f"a decoding worker could not be started: {error}; try --workers 0") from error
        for worker in self.workers:
            threading.Thread(target=self._work, args=(worker,), daemon=True).start()

    def _work(self, worker: _Worker) -> None:
        """Give a worker one piece after the other."""
        while (piece := self.pieces.get()) is not None:
            future, views, pixels = piece
            broken = worker.read(views, pixels)
            if broken is None:
                future.set_exception(self.failed(worker))
            else:
                future.set_result(broken)

    def failed(self, worker: _Worker) -> PreqError:
        """Note that a worker has ended, and end the others."""
        status = worker.process.wait()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        told = f"a decoding worker (process {worker.process.pid}) {how}; start again, or try --workers 0"
        self.problem = self.problem or told
        self.stop()
        return PreqError(self.problem)

    def require_usable(self) -> None:
        """Refuse to go on without one of the workers."""
        if self.owner != os.getpid():
            raise PreqError("a DecodePool cannot be used in a forked process; make one there")
        if self.problem:
            raise PreqError(self.problem)
        for worker in self.workers:
            if worker.process.poll() is not None:
                raise self.failed(worker)

    def stop(self) -> None:
        """End all, and with them their threads."""
        if os.getpid() == self.owner:
            for worker in self.workers:
                worker.end()
                self.pieces.put(None)


@dataclass(frozen=True, eq=False)
class Batch:
    """Images that are being decoded. Keeps its pool open."""

    _pool: "DecodePool"
    _pixels: NDArray[np.uint8]
    _pieces: list[tuple[int, "Future[Broken]"]]

    def result(self) -> Decoded:
        """Wait for the images: an array (n, 3, size, size), and (row, reason) for each that is broken."""
        broken = [(start + row, reason) for start, piece in self._pieces for row, reason in piece.result()]
        return self._pixels, broken


class DecodePool:
    """Worker processes, started at once, that decode batches of images.

    Batches are worked on in the order of `submit` and may be taken in any. The pixels are the same for
    any number of workers. Several threads may use one pool.

    Args:
        num_workers: processes; with 0 a batch is decoded by `submit`, in the calling process.

    Example:
        >>> with DecodePool(0) as pool:
        ...     images, broken = pool.submit([ImageView("nowhere.png", size=32)]).result()
        >>> images.shape, broken
        ((1, 3, 32, 32), [(0, 'cannot be read: No such file or directory')])
    """

    def __init__(self, num_workers: int) -> None:
        require_count("num_workers", num_workers, at_least=0)
        self.num_workers = num_workers
        self._crew = _Crew(num_workers)
        self._stop = weakref.finalize(self, self._crew.stop)

    def submit(self, views: Sequence[ImageView]) -> Batch:
        """Have these images decoded, all of one size; returns at once where there are workers."""
        sizes = {int(view.size) for view in views}
        if len(sizes) != 1:
            raise PreqError(f"a batch needs images of one size, got {len(views)} images of sizes {sorted(sizes)}")
        self._crew.require_usable()
        size = sizes.pop()
        pixels = np.empty((len(views), 3, size, size), np.uint8)
        piece_size = max(1, min(_PIECE_SIZE, len(views) // (2 * max(1, self.num_workers))))
        pieces: list[tuple[int, Future[Broken]]] = []
        for start in range(0, len(views), piece_size):
            stop = start + piece_size
            pieces.append((start, Future()))
            if self.num_workers:
                self._crew.pieces.put((pieces[-1][1], views[start:stop], pixels[start:stop]))
            else:
                pieces[-1][1].set_result(read_all(views[start:stop], pixels[start:stop]))
        return Batch(self, pixels, pieces)

    def close(self) -> None:
        """End the workers. Batches they have not finished cannot be taken any more."""
        self._crew.problem = self._crew.problem or "the DecodePool is closed; make a new one"
        self._stop()

    def __enter__(self) -> "DecodePool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
