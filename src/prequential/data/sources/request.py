"""What a source is asked for: a name, an order, and options."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from prequential.data.download import cache_directory
from prequential.errors import PreqError, require_count, require_flag, unknown_name, whole_seed


class _CanShuffle(Protocol):
    def shuffled(self, seed: int) -> Any: ...


Shuffled = TypeVar("Shuffled", bound=_CanShuffle)
STANDARDISATIONS = ("table", "causal", "none")
CROPS = ("random", "centre")


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
        if self.standardise is not None and self.standardise not in STANDARDISATIONS:
            raise unknown_name("way to standardise", self.standardise, STANDARDISATIONS)
        if self.crop is not None and self.crop not in CROPS:
            raise unknown_name("crop", self.crop, CROPS)
        if self.size is not None:
            require_count("size", self.size, at_most=4096)
        if self.workers is not None:
            require_count("workers", self.workers, at_least=0, at_most=1024)
        if self.examples is not None:
            require_count("examples", self.examples, at_least=2)
        if self.data_seed is not None:
            whole_seed("data_seed", self.data_seed)
        require_flag("skip_broken", self.skip_broken)

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

    def path(self) -> Path:
        """The file or folder behind the colon; looked for in the data directory too."""
        if not self.argument:
            raise PreqError(f"'{self.name}' names no path; write {self.name.partition(':')[0]}:PATH")
        path = Path(self.argument).expanduser()
        if not path.exists() and self.directory is not None and (self.directory / path).exists():
            return self.directory / path
        if not path.exists():
            raise PreqError(f"{path} is not there; check the path behind '{self.name.partition(':')[0]}:'")
        return path


def find_files(directory: Path | None, folders: Sequence[str], names: Sequence[str]) -> Path | None:
    """The folder that holds a publisher's files, plain or gzipped: in the user's directory, then in the cache.

    What a download has begun in the cache counts once it is whole.
    """
    cached = (cache_directory() / folder for folder in folders)
    return find_own(directory, folders, names) or next((place for place in cached if all(_held(place, names))), None)


def find_own(directory: Path | None, folders: Sequence[str], names: Sequence[str]) -> Path | None:
    """The folder of the user's directory that holds one of the files: a missing one can then be told."""
    own = () if directory is None else (directory / folder for folder in folders)
    return next((place for place in own if any(_held(place, names))), None)


def _held(place: Path, names: Sequence[str]) -> list[bool]:
    return [(place / name).exists() or (place / f"{name}.gz").exists() for name in names]
