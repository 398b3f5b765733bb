"""Where runs are."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from prequential.errors import PreqError
from prequential.runs.live import is_locked
from prequential.runs.record import RECORD_FILE


def find_runs(directories: Sequence[str | Path]) -> list[Path]:
    """The run directories that are, or lie anywhere below, the given ones; each once, in order of their names.

    Raises:
        PreqError: for a directory that is not there, or with no run in it.
    """
    for directory in directories:
        require_runs(directory, find_work([directory], is_strict=True)[0])
    return find_work(directories)[0]


def require_runs(directory: str | Path, found: Sequence[Path]) -> None:
    """Refuse a directory that is not there, or in which nothing was found."""
    wanted = "that preq run or preq sweep wrote with --out"
    if not Path(directory).is_dir():
        raise PreqError(f"{directory} is no directory; name one {wanted}")
    if not found:
        raise PreqError(f"{directory} holds no run; name a directory {wanted}")


def find_work(directories: Sequence[str | Path], *, is_strict: bool = False) -> tuple[list[Path], list[Path]]:
    """The runs at or below the directories, and what is locked there without being a run: a sweep, or a run that has
    not written anything yet.

    A folder that cannot be read is passed over, unless `is_strict`.
    """
    runs: dict[Path, Path] = {}
    locked: dict[Path, Path] = {}
    for directory in map(Path, directories):
        for path, is_run in _below(directory, is_strict=is_strict):
            if is_run:
                runs.setdefault(path.resolve(), path)
            elif is_locked(path):
                locked.setdefault(path.resolve(), path)
    return list(runs.values()), list(locked.values())


def _below(directory: Path, *, is_strict: bool) -> Iterator[tuple[Path, bool]]:
    if (directory / RECORD_FILE).is_file():
        yield directory, True
        return
    yield directory, False
    try:
        children = sorted(child for child in directory.iterdir() if child.is_dir() and not child.name.startswith("."))
    except OSError as error:
        if is_strict and directory.is_dir():
            raise PreqError(f"{directory} cannot be read: {error.strerror}") from None
        return
    for child in children:
        if not child.is_symlink() or (child / RECORD_FILE).is_file():  # links to folders may go round in circles
            yield from _below(child, is_strict=is_strict)
