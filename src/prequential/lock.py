"""Locks that die with their owner. No torch.

filelock holds them: on Unix by flock, which the system takes back when a process ends, however it ends. The file stays.
"""

from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from prequential.errors import PreqError
from prequential.files import writing

PATIENCE_SECONDS = 0.05
"""Someone who only asks whether a lock is held has it for some microseconds: one refusal says nothing yet."""


class Lock:
    """Inside, no other thread or process is inside with the same file.

    Args:
        path: the file; its directory must be there.
        refusal: what is said where another has it for longer than that; without one it is waited for.
        patience_seconds: how long it is waited for where there is a refusal.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Lock(Path(folder) / "lock"):
        ...     print("one at a time")
        one at a time
    """

    def __init__(self, path: Path, refusal: str = "", patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._path, self._refusal = path, refusal
        seconds = patience_seconds if refusal else -1
        self._lock = FileLock(path, timeout=seconds, poll_interval=0.01, thread_local=False)

    def __enter__(self) -> Self:
        with writing(self._path):
            try:
                self._lock.acquire()
            except Timeout:
                raise PreqError(self._refusal) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class DirectoryLock(Lock):
    """Keeps a second run out of a directory."""

    def __init__(self, directory: Path, patience_seconds: float = PATIENCE_SECONDS) -> None:
        refusal = f"another run is writing into {directory}; wait for it or choose another directory"
        super().__init__(directory / "lock", refusal, patience_seconds)
