"""Worker processes that decode images into shared memory.

The workers are plain processes: a user's script is not run again in them, and they import no torch.
Jobs and pixels lie in one file without a name, mapped by all. A piece of a batch (a few images) is
announced by a ticket in one pipe that all workers read, so each takes the next piece when it is free;
its end is announced in a pipe of the worker's own. A pipe that closes tells the other side to stop.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from prequential.data.jobs import DONE, IDLE_SECONDS, TICKET, Job, Region, decode_rows, describe, room_for, shared_file
from prequential.errors import PreqError, require_count

__all__ = ["ENVIRONMENT", "Batch", "DecodePool", "Decoded", "Job"]

Decoded = tuple[NDArray[np.uint8], list[tuple[int, str]]]
"""Images, one row per job, and (row, reason) for each that is broken; a broken row is black."""

_PIECE_SIZE = 4
_START = "import sys; sys.path[:] = sys.argv[5:]; from prequential.data.jobs import serve; serve(*sys.argv[1:5])"
ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | dict.fromkeys(
    ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(32 << 20)
)
"""Of a worker: no threads of its own, and memory that is freed after an image is kept for the next one. Else glibc
returns the pages to the system and takes new ones each time, which costs as much as the decoding."""


class Batch:
    """Images that are being decoded. Keeps its pool open until it has them."""

    def __init__(self, wait: Callable[[], Decoded]) -> None:
        self._wait: Callable[[], Decoded] | None = wait
        self._decoded: Decoded | None = None

    def result(self) -> Decoded:
        """Wait for the images: an array (n, 3, size, size), and (row, reason) for each that is broken.

        The array may lie in shared memory, which is used again when nothing refers to it any more.
        """
        if self._wait is not None:
            self._decoded = self._wait()
            self._wait = None
        assert self._decoded is not None
        return self._decoded


class _Crew:
    """The processes, the pipes and the shared file; no reference to the pool, which must be free to go."""

    def __init__(self, num_workers: int) -> None:
        self.owner = os.getpid()
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.file = shared_file()
        tickets, self.tickets = os.pipe()
        os.set_blocking(tickets, False)
        os.set_blocking(self.tickets, False)
        self.poll = select.poll()
        try:
            for _ in range(num_workers):
                self._start(tickets)
        except OSError as error:
            self.stop()
            raise PreqError(f"a decoding worker could not be started: {error}; try --workers 0") from error
        finally:
            os.close(tickets)

    def _start(self, tickets: int) -> None:
        done, done_end = os.pipe()
        numbers = [str(number) for number in (tickets, done_end, self.file, self.owner)]
        # Blocked from before the first instruction: Ctrl-C and SIGTERM to the whole group are the parent's affair.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            self.processes[done] = subprocess.Popen(
                [sys.executable, "-c", _START, *numbers, *map(str, sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(tickets, done_end, self.file),
                env=os.environ | ENVIRONMENT,
            )
            self.poll.register(done, select.POLLIN)
        except OSError:
            os.close(done)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(done_end)

    def stop(self) -> None:
        """End the processes at once: they hold nothing that could be lost."""
        if os.getpid() == self.owner:
            for process in self.processes.values():
                process.kill()
            for process in self.processes.values():
                process.wait()
        for end in (self.tickets, self.file, *self.processes):
            os.close(end)


class DecodePool:
    """Worker processes, started at once, that decode batches of images.

    Batches are worked on in the order of `submit` and may be taken in any. The pixels are the same for
    any number of workers. Several threads may use one pool; they then wait for each other.

    Args:
        num_workers: processes; with 0 a batch is decoded by its `result`, in the calling process.

    Example:
        >>> with DecodePool(0) as pool:
        ...     images, broken = pool.submit([Job("nowhere.png", size=32)]).result()
        >>> images.shape, broken
        ((1, 3, 32, 32), [(0, 'cannot be read: No such file or directory')])
    """

    def __init__(self, num_workers: int) -> None:
        require_count("num_workers", num_workers, at_least=0)
        self.num_workers = num_workers
        self._lock = threading.Lock()
        self._regions: dict[int, Region] = {}
        self._unsent: deque[bytes] = deque()
        self._problem = ""
        self._crew = _Crew(num_workers) if num_workers else None
        self._stop = weakref.finalize(self, self._crew.stop) if self._crew else None

    def submit(self, jobs: Sequence[Job]) -> Batch:
        """Have these images decoded, all of one size; returns at once."""
        sizes = {job.size for job in jobs}
        if len(sizes) != 1:
            raise PreqError(f"a batch needs images of one size, got {len(jobs)} jobs of sizes {sorted(sizes)}")
        with self._lock:
            self._require_usable()
            if self._crew is None:
                return Batch(partial(_decode_here, tuple(jobs)))
            return self._submit(self._crew, jobs, int(sizes.pop()))

    def _submit(self, crew: _Crew, jobs: Sequence[Job], size: int) -> Batch:
        piece_size = max(1, min(_PIECE_SIZE, len(jobs) // (2 * self.num_workers)))
        starts = range(0, len(jobs), piece_size)
        pieces = [describe(start, len(jobs), jobs[start : start + piece_size]) for start in starts]
        self._collect(crew, seconds=0)
        where = room_for(len(jobs), size)
        region = self._free_region(crew, where + sum(map(len, pieces)))
        pixels, reasons = region.lend(len(jobs), size)
        reasons[:] = b""
        tickets = []
        for piece in pieces:
            region.memory[where : where + len(piece)] = piece
            tickets.append(TICKET.pack(region.begin, region.length, where))
            where += len(piece)
        region.num_pieces_left = len(tickets)
        self._unsent.extend(tickets)
        self._send(crew)
        return Batch(partial(self._wait, crew, region, pixels, reasons))

    def _free_region(self, crew: _Crew, num_bytes: int) -> Region:
        """Memory for a batch: used again where possible. Untouched pages of the file take no memory."""
        length = max(1 << 16, 1 << (num_bytes - 1).bit_length())
        while unused := [region for region in self._regions.values() if region.length == length and not region.in_use]:
            for region in unused:
                if region.num_pieces_left == 0:
                    return region
            self._collect(crew, seconds=IDLE_SECONDS)  # batches that nobody waits for must not pile up
        begin = sum(region.length for region in self._regions.values())
        os.ftruncate(crew.file, begin + length)
        self._regions[begin] = Region(crew.file, begin, length)
        return self._regions[begin]

    def _send(self, crew: _Crew) -> None:
        try:
            while self._unsent:
                os.write(crew.tickets, self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            pass  # the pipe is full: the workers are busy for long enough
        except BrokenPipeError:
            pass  # all workers are gone, which the next look at their pipes tells

    def _collect(self, crew: _Crew, *, seconds: float) -> None:
        """Note the pieces that are done; waits for at most so long if there are none."""
        self._require_usable()
        self._send(crew)
        ready = crew.poll.poll(seconds * 1000)
        for done, _ in ready:
            content = os.read(done, 1 << 16)
            if not content:
                self._fail(crew.processes[done])
            for begin, num_done in DONE.iter_unpack(content):
                self._regions[begin].num_pieces_left -= num_done
        if seconds and not ready:  # a fork of this process may hold a dead worker's pipe open
            for process in crew.processes.values():
                if process.poll() is not None:
                    self._fail(process)

    def _wait(self, crew: _Crew, region: Region, pixels: NDArray[np.uint8], reasons: NDArray[np.bytes_]) -> Decoded:
        with self._lock:
            while region.num_pieces_left:
                self._collect(crew, seconds=IDLE_SECONDS)
        return pixels, [(row, text.decode(errors="ignore")) for row, text in enumerate(reasons.tolist()) if text]

    def _fail(self, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        self._problem = f"a decoding worker (process {process.pid}) {how}; start again, or try --workers 0"
        if self._stop is not None:
            self._stop()
        raise PreqError(self._problem)

    def _require_usable(self) -> None:
        if self._problem:
            raise PreqError(self._problem)
        if self._crew is not None and self._crew.owner != os.getpid():
            raise PreqError("a DecodePool cannot be used in a forked process; make one there")

    def close(self) -> None:
        """End the workers. Batches they have not finished cannot be taken any more."""
        self._problem = self._problem or "the DecodePool is closed; make a new one"
        if self._stop is not None:
            self._stop()

    def __enter__(self) -> "DecodePool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _decode_here(jobs: Sequence[Job]) -> Decoded:
    pixels = np.empty((len(jobs), 3, jobs[0].size, jobs[0].size), np.uint8)
    return pixels, [(row, reason.decode(errors="ignore")) for row, reason in decode_rows(jobs, pixels)]
