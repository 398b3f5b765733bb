"""A lock on a directory that dies with its owner. No torch."""

import time
from pathlib import Path
from types import TracebackType

from prequential.errors import PreqError
from prequential.files import writing

ATTEMPTS = 5
"""Someone who only asks whether a lock is held has it for some microseconds: one refusal says nothing yet."""


class DirectoryLock:
    """Keeps a second run out of a directory; the system takes it back when the process ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "lock"

    def __enter__(self) -> "DirectoryLock":
        with writing(self._path):
            self._file = self._path.open("a+b")
        for attempt in range(ATTEMPTS):
            try:
                import fcntl

                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:  # no such locks on this system
                pass
            except OSError:
                if attempt + 1 < ATTEMPTS:
                    time.sleep(0.01)
                    continue
                self._file.close()
                raise PreqError(
                    f"another run is writing into {self._path.parent}; wait for it or choose another directory"
                ) from None
            break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
