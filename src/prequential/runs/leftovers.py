"""What a process leaves that was killed between the last word of its record and the cleaning. No torch."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from prequential.runs.live import PROGRESS_FILE, ProgressFile, is_locked
from prequential.runs.record import OVER

CHECKPOINTS = "checkpoints"
NAME = "[0-9]" * 14 + "-" + "[0-9a-f]" * 32
"""How checkpoints are named: the number of events, then the fingerprint of the content."""


def clear_checkpoints(folder: Path) -> None:
    """Remove all checkpoints of a folder, and the folder unless something of the user's is in it."""
    for file in _checkpoints(folder):
        file.unlink(missing_ok=True)  # somebody else may be at it
    with contextlib.suppress(OSError):
        folder.rmdir()


def _checkpoints(folder: Path) -> Iterator[Path]:
    for pattern in (f"{NAME}.safetensors", f"{NAME}.damaged", f".{NAME}.safetensors.tmp"):
        yield from sorted(folder.glob(pattern))


def remove_leftovers(directory: Path | None, status: str) -> None:
    """Whoever reads a run that is over removes what only going on with it would have needed: checkpoints and
    `progress.json`. Not while its process is there, which does so itself, and not where one may only read."""
    if directory is None or status not in OVER:
        return
    folder = directory / CHECKPOINTS
    if (folder.is_dir() or (directory / PROGRESS_FILE).exists()) and not is_locked(directory):
        with contextlib.suppress(OSError):
            clear_checkpoints(folder)
        ProgressFile(directory).end(None)
