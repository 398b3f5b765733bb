"""Where a run stands, told by its directory while it goes: `progress.json`, and the lock. No torch."""

import contextlib
import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prequential.formats import PROGRESS
from prequential.plain import checksum_of, parsed, read_bytes, require_checksum, require_shape
from prequential.runs.progress import Progress
from prequential.runs.record import OVER, finite_or_none, read_facts

DIED = "died"
"""The status of a run whose process is gone without a word. No record says it; with --resume the run goes on."""
PROGRESS_FILE = "progress.json"
ALWAYS_TOLD = ("position", "errors", "trained_examples", "seconds")
OF_STUDIES = ("studied_steps", "study_steps", "study_seconds")
SECONDS_BETWEEN_WRITES = 1.0
SECONDS_OF_SILENCE = 60.0
"""A run on another machine, whose lock may not be seen here, counts as running if it wrote so recently."""


@dataclass(frozen=True)
class Standing:
    """What `progress.json` says."""

    position: int
    nats: float | None
    errors: int
    trained_examples: int
    seconds: float
    host: str
    studied_steps: int = 0
    study_steps: int = 0
    study_seconds: float = 0.0

    @property
    def studied(self) -> float | None:
        """The share of its studies that is done; None where they are over, or there is none."""
        is_studying = not self.position and self.studied_steps < self.study_steps
        return self.studied_steps / self.study_steps if is_studying else None


class ProgressFile:
    """A listener that keeps `progress.json` up to date, at most once a second, and removes it when the run is over.

    It is replaced whole and never synced: it may be lost with the machine, since nothing but a live view reads it. A
    file that cannot be written does not disturb the run.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / PROGRESS_FILE
        self._temporary = directory / f".{PROGRESS_FILE}.tmp"
        self._next = 0.0

    def begin(self, facts: Mapping[str, Any], progress: Progress) -> None:
        """Say where the run begins, in place of what an earlier process said before it was killed."""
        self(progress)

    def __call__(self, progress: Progress) -> None:
        if progress.seconds < self._next:
            return
        self._next = progress.seconds + SECONDS_BETWEEN_WRITES
        names = [*ALWAYS_TOLD, *(OF_STUDIES if progress.study_steps else ())]
        content: dict[str, Any] = {name: getattr(progress, name) for name in names}
        content |= {"nats": finite_or_none(progress.nats), "host": platform.node()}
        with contextlib.suppress(OSError):
            content["checksum"] = checksum_of(content)
            self._temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
            self._temporary.replace(self._path)

    def end(self, record: object) -> None:
        """From here on the record tells."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
            self._temporary.unlink(missing_ok=True)


def read_standing(directory: Path) -> Standing | None:
    """What `progress.json` says; None where there is none, or none that makes sense."""
    try:
        content = parsed(read_bytes(directory / PROGRESS_FILE))
        require_shape(content, PROGRESS)
        require_checksum(content)
    except ValueError:
        return None
    names = (name.removesuffix("?") for name in PROGRESS)
    return Standing(**{name: content[name] for name in names if name in content})


def is_locked(directory: Path) -> bool:
    """Whether a process holds the lock of a directory. Nothing is written, and nobody is kept out by asking."""
    try:
        import fcntl

        with (directory / "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError) as error:
        return isinstance(error, BlockingIOError)
    return False


def is_going(directory: Path, standing: Standing | None) -> bool:
    """Whether a run is being written here: its lock is held or, for one on another machine, it wrote just now."""
    if is_locked(directory):
        return True
    if standing is None or (standing.host == platform.node() and os.name == "posix"):
        return False
    with contextlib.suppress(OSError):
        return time.time() - (directory / PROGRESS_FILE).stat().st_mtime < SECONDS_OF_SILENCE
    return False


def status_of(directory: Path | None, recorded: str) -> str:
    """How a run stands now: "finished", "diverged", "pruned", "stopped", "failed", "running" or "died".

    Args:
        directory: of the run; None for one that is not on disk, which stands as it says.
        recorded: the status that its record has. A process cannot write that it was killed, so "running" may be untrue;
            and a run that is resumed keeps an earlier status until its first checkpoint.
    """
    if directory is None or recorded in OVER:
        return recorded
    if is_going(directory, read_standing(directory)):
        return "running"
    if recorded != "running":
        return recorded
    again = str(read_facts(directory)["status"])  # it may have ended between being read and being asked for
    return DIED if again == "running" else again
