"""What a source is asked for: a name, an order, and options; and where a publisher's files are."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from prequential.data.download import RemoteFile, cache_directory, fetch, unpack
from prequential.errors import PreqError, require_count, require_flag, unknown_name, whole_seed


class _CanShuffle(Protocol):
    def shuffled(self, seed: int) -> Any: ...


Shuffled = TypeVar("Shuffled", bound=_CanShuffle)
CHOICES = {"standardise": ("table", "causal", "none"), "crop": ("random", "centre")}
LIMITS = {"size": (1, 4096), "workers": (0, 1024), "examples": (2, 2**63 - 1)}


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """How a source is read. Each option belongs to some sources; elsewhere it is a mistake."""

    label: str | None = None
    """csv, npz, hf: the column (or array) of labels."""
    array: str | None = None
    """npz: the array of inputs."""
    standardise: str | None = None
    """csv, npz, hf: "table" (mean 0 and variance 1 over the whole table; the default), "causal" (by the
    rows up to each one) or "none"."""
    size: int | None = None
    """Images: the side in pixels. Default: the shorter side of the first image, at most 224."""
    crop: str | None = None
    """Images, for training: "random" (a resized part of the image; the default) or "centre"."""
    workers: int | None = None
    """Images: processes that decode. Default: one per core, at most 8."""
    skip_broken: bool = False
    """Images: leave out those that cannot be decoded, and say how many."""
    examples: int | None = None
    """rgb-mnist: how many examples to make. Default: 100,000."""
    data_seed: int | None = None
    """rgb-mnist: which digits are put together. Default: 0."""

    def __post_init__(self) -> None:
        require_flag("skip_broken", self.skip_broken)
        for name, value in self.given().items():
            if name in CHOICES and value not in CHOICES[name]:
                raise unknown_name("way to standardise" if name == "standardise" else name, value, CHOICES[name])
            if name in LIMITS:
                require_count(name, value, at_least=LIMITS[name][0], at_most=LIMITS[name][1])
        if self.data_seed is not None:
            whole_seed("data_seed", self.data_seed)

    def given(self) -> dict[str, Any]:
        """The options that were set."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}


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

    def ordered(self, data: Shuffled) -> Shuffled:
        """The data in the order that was asked for."""
        if self.order_seed is None:
            return data
        shuffled: Shuffled = data.shuffled(self.order_seed)
        return shuffled

    @property
    def source(self) -> dict[str, Any]:
        """What a record keeps of it."""
        return {"name": self.name, **self.options.given()}

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
            raise PreqError(f"{path} is not there; check the path behind '{self.kind}:'")
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

    def found(self, directory: Path | None) -> Path:
        """The folder that holds them; where there is none, they are downloaded."""
        place = self.where(directory)
        if place is not None:
            return place
        place = cache_directory() / self.folders[0]
        if self.member:
            unpack(fetch(self.remote[0]), [self.member.format(name) for name in self.names], place)
        else:
            for file in self.remote:
                fetch(file, place)
        return place
