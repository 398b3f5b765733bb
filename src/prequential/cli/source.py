"""Flags that say how data is read, shared by every command that reads some."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from prequential.cli.parse import PathText, default, flag_group
from prequential.data.options import DataOptions
from prequential.errors import PreqError
from prequential.settings import setting

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence


@flag_group("data")
class PlaceFlags:
    """Where files are."""

    data_dir: Annotated[PathText, default("$PREQ_DATA")] = None
    """Where the publisher's files are; searched first."""


@flag_group("data")
class AgainFlags(PlaceFlags, DataOptions):
    """The data of a record, named again."""

    data: str | None = setting(None, hint="what the record names, if that is here")
    """The data set; needed where the record's is moved or would be downloaded. Options not given are the record's."""

    num_labels: int | None = setting(None, hint="the record's, if it has inputs without labels")
    """Only the first N labels, given all inputs."""

    def __post_init__(self) -> None:
        """`load_data` checks them."""

    def asked(self) -> dict[str, Any]:
        """What was given besides the data."""
        return super().asked() | ({} if self.num_labels is None else {"num_labels": self.num_labels})


@flag_group("data")
class SourceFlags(PlaceFlags, DataOptions):
    """How data is read."""

    order: str | None = setting(None, hint="shuffled; given for cloc")
    """shuffled, or given: the order of the source, for streams."""
    order_seed: int | None = setting(None, hint="0")
    """The seed of the shuffle."""

    def __post_init__(self) -> None:
        """`load_data` checks them."""

    def options(self) -> dict[str, Any]:
        """What `load_data` takes besides the name."""
        return {"order": self.order, "order_seed": self.order_seed, "data_dir": self.data_dir, **self.asked()}

    def load(self, name: str, length: int | None = None, num_labels: int | None = None) -> "LoadedSequence":
        """The data of that name, in order, cut to length, or with so many labels."""
        if length is not None and num_labels is not None:
            told = f"--length and --num-labels both say how many labels there are, got {length} and {num_labels}"
            raise PreqError(f"{told}; leave one out")
        from prequential.data.sources import load

        data = load(name, **self.options(), num_labels=num_labels)
        return data if length is None else data.take(length)


def named_again(name: str, source: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a record tells of its source, for data that a person names: the options that this kind of data has, but how
    many processes decode, which is for this machine to say."""
    from prequential.data.sources import find_source

    understood = {"num_labels", *find_source(name)[0].options} - {"workers"}
    return {key: value for key, value in (source or {}).items() if key in understood} | {"name": name}


def source_arguments(source: Mapping[str, Any], data_dir: str | None) -> list[str]:
    """The arguments that make a command read that source.

    Example:
        >>> source_arguments({"name": "folder:pets", "size": 64, "skip_broken": True}, None)
        ['--data', 'folder:pets', '--size', '64', '--skip-broken']
    """
    arguments = ["--data", source["name"], *(["--data-dir", data_dir] if data_dir else [])]
    for name, value in source.items():
        if name != "name":
            flag = f"--{name.replace('_', '-')}"
            several = value if isinstance(value, list | tuple) else [value]
            arguments += [flag] if value is True else [flag, *map(str, several)]
    return arguments


def reload(
    source: Mapping[str, Any], order_seed: int | None, data_dir: str | None, *, unasked: bool = False
) -> "LoadedSequence":
    """The data a record or bitstream was made with, from what is said of its source: by a person, or unasked."""
    from prequential.data.sources import completed, open_source

    options = {name: value for name, value in source.items() if name not in ("name", "num_labels")}
    order = "given" if order_seed is None else None
    return completed(open_source(source["name"], order, order_seed, data_dir, options, unasked=unasked), source)
