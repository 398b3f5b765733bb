"""What a source is asked for: a name, an order, and options; and where a publisher's files are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from prequential.data.arrays import Arrays, from_arrays
from prequential.data.download import RemoteFile, cache_directory, fetch, unpack
from prequential.data.options import DataOptions
from prequential.data.sequence import ArraySequence, ReorderableSequence
from prequential.errors import PreqError

Shuffled = TypeVar("Shuffled", bound=ReorderableSequence)


class NotHere(PreqError):  # noqa: N818  # named for the thing
    """Data that is not on this machine, or that is not read because nobody asked for it. The text says nothing of what
    any file holds."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call of `load_data`, taken apart."""

    name: str
    """As the user wrote it, such as "csv:elec.csv"."""
    argument: str = ""
    """What stands behind the colon."""
    directory: Path | None = None
    """The user's data directory."""
    order_seed: int | None = 0
    """None: the given order."""
    order_asked: bool = False
    """Whether the user asked for an order, or it is the source's own."""
    options: DataOptions = field(default_factory=DataOptions)
    unasked: bool = False
    """Whether a file names the data and no person does: then files and folders of this machine are all that is read."""

    def ordered(self, data: Shuffled) -> Shuffled:
        """The data in the order that was asked for."""
        return data if self.order_seed is None else data.shuffled(self.order_seed)

    def sequence(self, inputs: Arrays, labels: Arrays, *, name: str, **more: Any) -> ArraySequence:
        """Arrays in the order that was asked for; see `from_arrays`."""
        return self.ordered(from_arrays(inputs, labels, name=name, source=self.source, **more))

    @property
    def source(self) -> dict[str, Any]:
        """What a record keeps of it: all but how much the user trusts a file."""
        asked = {name: value for name, value in self.options.asked().items() if name != "max_unpacked"}
        return {"name": self.name, **{k: list(v) if isinstance(v, tuple) else v for k, v in asked.items()}}

    @property
    def max_unpacked(self) -> float | None:
        """GiB that a packed file may unpack to, if a person said it."""
        return None if self.unasked else self.options.max_unpacked

    @property
    def kind(self) -> str:
        """What stands before the colon."""
        return self.name.partition(":")[0]

    def path(self) -> Path:
        """The file or folder behind the colon; looked for in the data directory too."""
        if not self.argument:
            raise PreqError(f"'{self.name}' names no path; write {self.kind}:PATH")
        path = Path(self.argument).expanduser()
        if not path.exists() and self.directory is not None and (self.directory / path).exists():
            return self.directory / path
        if not path.exists():
            raise NotHere(f"{path} is not there; check the path behind '{self.kind}:'")
        if self.unasked and not (path.is_file() or path.is_dir()):
            raise NotHere(f"{path} is neither a file nor a folder")  # a device or a pipe may never end
        return path


@dataclass(frozen=True, kw_only=True)
class PublishedFiles:
    """The files of a data set as its publisher names them, where they may be, and what is downloaded otherwise."""

    names: tuple[str, ...]
    """Each may also lie there gzipped. Patterns of `Path.glob` are allowed."""
    folders: tuple[str, ...]
    """Where they may be in the user's directory and in the cache; downloads go into the first."""
    remote: tuple[RemoteFile, ...] = ()
    """What is downloaded: the files themselves, or the one archive that holds them."""
    member: str = ""
    """What a file is called in the archive, with {} for its name; empty where there is no archive."""
    bundled: Path | None = None
    """Where the package carries them."""
    by_hand: str = ""
    """How a person gets what cannot be downloaded."""

    def where(self, directory: Path | None) -> Path | None:
        """The folder that holds them: in the user's directory, then in the cache.

        One file is enough to choose the user's: a missing one can then be told. What a download has begun in the
        cache counts once it is whole.
        """
        for place in () if directory is None else (directory / folder for folder in self.folders):
            if any(self._held(place)):
                return place
        cached = (cache_directory() / folder for folder in self.folders)
        return self.bundled or next((place for place in cached if all(self._held(place))), None)

    def _held(self, place: Path) -> Iterator[bool]:
        return (any(place.glob(name)) or (place / f"{name}.gz").exists() for name in self.names)

    def found(self, request: Request) -> Path:
        """The folder that holds them; where there is none, they are downloaded, if the data was asked for."""
        if (place := self.where(request.directory)) is not None:
            return place
        if self.by_hand:
            raise NotHere(f"{self.by_hand} in the directory named by --data-dir or PREQ_DATA")
        if request.unasked:
            raise NotHere(f"{request.name} is not on this machine, and nothing is downloaded unasked")
        place = cache_directory() / self.folders[0]
        if self.member:
            unpack(fetch(self.remote[0]), [self.member.format(name) for name in self.names], place)
        else:
            for file in self.remote:
                fetch(file, place)
        return place
