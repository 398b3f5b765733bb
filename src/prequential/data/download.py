"""The publishers' files, downloaded once, checked and kept. No torch."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prequential.data.archive import extract
from prequential.data.remote import RemoteFile
from prequential.data.transfer import NoAnswerError, Part, RefusedError, alone, complete
from prequential.errors import PreqError
from prequential.files import sync_directory, writing

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["DownloadBar", "Listener", "cache_directory", "extract", "fetch"]

Listener = Callable[[str, int, int], object]
"""Called with a file's name, the bytes that are here and the bytes there will be."""


def cache_directory() -> Path:
    """Where downloads are kept: $PREQ_CACHE, else $XDG_CACHE_HOME/prequential, else ~/.cache/prequential."""
    if named := os.environ.get("PREQ_CACHE"):
        return Path(named)
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():
        return shared / "prequential"
    try:
        return Path.home() / ".cache" / "prequential"
    except RuntimeError:
        raise PreqError("there is no home directory to keep downloads in; name a directory in PREQ_CACHE") from None


def fetch(file: RemoteFile, directory: Path | None = None, *, listener: Listener | None = None) -> Path:
    """The file, whole and of the published SHA-256; downloaded unless it is in the directory already.

    May be called from several threads and processes at once: one downloads, the others wait for it. A call that
    was killed leaves NAME.part, which the next one continues. The hash is taken anew each time.

    Args:
        directory: where it is kept. Default: `cache_directory() / "downloads"`.
        listener: told the name, the bytes that are here and the size, after each block.

    Raises:
        PreqError: if no address gives it, with where to get it by hand; or if it cannot be written.
    """
    path = (cache_directory() / "downloads" if directory is None else directory) / file.name
    if _holds(path, file):
        return path
    place = path.with_name(f"{path.name}.part")

    def report(length: int) -> None:
        if listener is not None:
            listener(file.name, length, file.size)

    with alone(path, lambda: report(_size(place))):
        if not _holds(path, file):
            with contextlib.closing(Part(place, file, report)) as part:
                _download(file, path, part)
            with writing(path):
                place.replace(path)
                sync_directory(path.parent)
    return path


def _download(file: RemoteFile, path: Path, part: Part) -> None:
    """Complete the part from the first address that gives the file."""
    unanswered, refused = [], []
    for url in file.urls:
        host = urlsplit(url).hostname
        try:
            return complete(url, part)
        except NoAnswerError as error:
            unanswered.append(f"{host}: {error}")
        except RefusedError as error:
            refused.append(f"{host} {error}")
    if unanswered:
        refused.append(f"no network ({', '.join(unanswered)})")
    if path.exists():
        refused.append(f"the one in {path.parent} is damaged")
    raise PreqError(
        f"{file.name} ({_readable(file.size)}) cannot be downloaded: {', '.join(refused)}; get it from {file.urls[0]} "
        f"and put it into {path.parent}, or unpack it into a directory named by --data-dir or PREQ_DATA"
    )


def _readable(size: int) -> str:
    """A size for people.

    Example:
        >>> _readable(170_052_171), _readable(29_515), _readable(148)
        ('170 MB', '30 kB', '148 bytes')
    """
    for unit, name in ((10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.0f} {name}"
    return f"{size} bytes"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _holds(path: Path, file: RemoteFile) -> bool:
    """Whether the right file is at that place. One that cannot be read is not."""
    try:
        if _size(path) != file.size:
            return False
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


class DownloadBar:
    """A listener that shows name, bytes, speed and time left on standard error, if that is a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.progress import TransferSpeedColumn as SpeedColumn

        console = Console(stderr=True)
        self._shown = console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            DownloadColumn(),
            SpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
            disable=not self._shown,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "DownloadBar":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, name: str, length: int, size: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=size, completed=length)  # a rest's speed is its own
        else:
            self._bar.update(self._tasks[name], completed=length)
