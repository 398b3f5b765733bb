"""One image's work, and the process that does it piece by piece. Its parent is `prequential.data.workers`.

A batch lies in a region of a file that parent and workers map: the pixels of all rows, a field for the
reason of each, then the jobs in pieces. A ticket says where one piece is described.
"""

import json
import mmap
import os
import select
import signal
import struct
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter, methodcaller
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prequential.data.decode import MIN_AREA, BrokenImage, centre_box, crop_box, decode_part, require_min_area
from prequential.errors import require_count
from prequential.rng import uniforms

TICKET = struct.Struct("<QQQ")
"""Where the region begins in the file, its length, and where in it the piece is described."""
DONE = struct.Struct("<QQ")
"""Where the region begins, and how many more pieces of it are done."""
REASON_SIZE = 256
"""Bytes for the reason why a row is broken; all zero where it is not."""
IDLE_SECONDS = 5.0
"""How often one who waits looks whether the other is still there."""


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that decides the pixels of one image."""

    path: str
    """The file."""
    size: int
    """Height and width of the result."""
    crop_key: int | None = None
    """The key of the random crops of a training event; None for the centre."""
    row: int = 0
    """Which example of the training event this is: its draws are numbers 4·row … 4·row+3 under the key."""
    min_area: float = MIN_AREA
    """The smallest share of the image a random crop shows."""

    def __post_init__(self) -> None:
        require_count("size", self.size)
        require_count("row", self.row, at_least=0)
        require_min_area(self.min_area)
        if self.crop_key is not None:
            require_count("crop_key", self.crop_key, at_least=0, at_most=2**64 - 1)


_values_of = attrgetter(*(field.name for field in fields(Job)))


def describe(start: int, num_rows: int, jobs: Sequence[Job]) -> bytes:
    """A piece: its first row, the rows of the whole batch, its jobs; JSON, ended by a zero byte."""
    content = [start, num_rows, [_values_of(job) for job in jobs]]
    return json.dumps(content, default=methodcaller("item")).encode() + b"\0"  # numbers of NumPy become plain ones


def decode_job(job: Job, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """The image of a job, shape (3, size, size), written into `out` if given; BrokenImage where the file holds none."""
    try:
        content = Path(job.path).read_bytes()
    except (OSError, ValueError) as error:
        raise BrokenImage(job.path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if job.crop_key is None:
        return decode_part(content, job.size, job.path, centre_box, out)
    draws = uniforms(job.crop_key, np.arange(4) + 4 * job.row).tolist()
    return decode_part(content, job.size, job.path, partial(crop_box, draws=draws, min_area=job.min_area), out)


def decode_rows(jobs: Sequence[Job], pixels: NDArray[np.uint8]) -> list[tuple[int, bytes]]:
    """Fill a row per job; the rows that are broken are black and returned with the reason."""
    broken = []
    for row, job in enumerate(jobs):
        try:
            decode_job(job, pixels[row])
        except BrokenImage as error:
            pixels[row] = 0
            broken.append((row, error.reason.encode(errors="replace")[:REASON_SIZE]))
    return broken


def shared_file() -> int:
    """A file that is gone with the last process that has it open; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("prequential")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def room_for(num_rows: int, size: int) -> int:
    """What the pixels and reasons of a batch take in its region; the jobs stand behind."""
    return num_rows * (3 * size * size + REASON_SIZE)


class Region:
    """A part of the shared file, mapped. `num_pieces_left` and `in_use` are the parent's notes."""

    def __init__(self, file: int, begin: int, length: int) -> None:
        self.begin, self.length = begin, length
        self.memory = mmap.mmap(file, length, offset=begin)
        self.num_pieces_left = 0
        self.in_use = False

    def rows(self, num_rows: int, size: int) -> tuple[NDArray[np.uint8], NDArray[np.bytes_]]:
        """The pixels and the reasons of a batch."""
        pixels = np.frombuffer(self.memory, np.uint8, num_rows * 3 * size * size)
        reasons = np.frombuffer(self.memory, f"S{REASON_SIZE}", num_rows, pixels.nbytes)
        return pixels.reshape(num_rows, 3, size, size), reasons

    def lend(self, num_rows: int, size: int) -> tuple[NDArray[np.uint8], NDArray[np.bytes_]]:
        """The same, and the region is in use until nothing refers to the pixels, nor to a view of them."""
        pixels, reasons = self.rows(num_rows, size)
        self.in_use = True
        weakref.finalize(pixels.base, self._take_back).atexit = False
        return pixels, reasons

    def _take_back(self) -> None:
        self.in_use = False


def serve(tickets: str, done: str, file: str, parent: str) -> None:
    """What a worker does: pieces as their tickets come, until the parent is gone.

    What is done is reported when the next ticket is for another batch or there is none: a batch of which a
    ticket is left is not complete, and the parent need not be woken.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    poll = select.poll()
    poll.register(int(tickets), select.POLLIN)
    regions: dict[int, Region] = {}
    begin = num_done = 0
    # A pipe that closes tells the same, but not while a fork of the parent holds it open.
    while os.getppid() == int(parent):
        ticket = _next_ticket(int(tickets))
        if ticket == b"":
            return
        following = TICKET.unpack(ticket) if ticket else None
        if num_done and (following is None or following[0] != begin):
            with suppress(BrokenPipeError):
                os.write(int(done), DONE.pack(begin, num_done))
            num_done = 0
        if following is None:
            poll.poll(IDLE_SECONDS * 1000)
            continue
        begin, length, where = following
        if begin not in regions:
            regions[begin] = Region(int(file), begin, length)
        _work(regions[begin], where)
        num_done += 1


def _next_ticket(tickets: int) -> bytes | None:
    """The next ticket; None if there is none now, nothing if there will be none."""
    try:
        return os.read(tickets, TICKET.size)
    except BlockingIOError:
        return None


def _work(region: Region, where: int) -> None:
    start, num_rows, described = json.loads(region.memory[where : region.memory.find(b"\0", where)])
    jobs = [Job(*values) for values in described]
    pixels, reasons = region.rows(num_rows, jobs[0].size)
    for row, reason in decode_rows(jobs, pixels[start : start + len(jobs)]):
        reasons[start + row] = reason
