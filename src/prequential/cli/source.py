"""Flags that say how data is read, shared by every command that reads some."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from prequential.cli.parse import UNSET, Count, PathText, Word, default, flag_group

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence

OPTIONS = ("label", "array", "standardise", "size", "crop", "workers", "skip_broken", "examples", "data_seed")


@flag_group("data")
class PlaceFlags:
    """Where files are."""

    data_dir: Annotated[PathText, default("$PREQ_DATA")] = None
    """Where the publisher's files are; searched first."""


@flag_group("data")
class SourceFlags(PlaceFlags):
    """How data is read."""

    order: Annotated[Word, default("shuffled; given for cloc")] = None
    """shuffled, or given: the order of the source, for streams."""
    order_seed: Annotated[Count, default(0)] = None
    """The seed of the shuffle."""
    label: Annotated[Word, UNSET] = None
    """csv:, npz:, hf: the column (or array) of labels."""
    array: Annotated[Word, UNSET] = None
    """npz: the array of inputs."""
    standardise: Annotated[Word, default("table")] = None
    """csv:, npz:, hf: mean 0 and variance 1 over the whole table, causal (rows up to each one), or none."""
    size: Annotated[Count, default("the first image's, at most 224")] = None
    """Image files: the side in pixels that they are brought to."""
    crop: Annotated[Word, default("random")] = None
    """Image files: train on a random part of each image, or on its centre."""
    workers: Annotated[Count, default("the cores, at most 8")] = None
    """Image files: processes that decode."""
    skip_broken: Annotated[bool, UNSET] = False
    """Image files: leave out those that cannot be decoded, and say how many."""
    examples: Annotated[Count, default("100000")] = None
    """rgb-mnist: how many examples to make."""
    data_seed: Annotated[Count, default(0)] = None
    """rgb-mnist: which digits are put together."""

    def options(self) -> dict[str, Any]:
        """What `load_data` takes besides the name."""
        given = {name: value for name in OPTIONS if (value := getattr(self, name)) is not None and value is not False}
        return {"order": self.order, "order_seed": self.order_seed, "data_dir": self.data_dir, **given}

    def load(self, name: str, length: int | None = None) -> "LoadedSequence":
        """The data of that name, in order, cut to length."""
        from prequential.data.sources import load

        data = load(name, **self.options())
        return data if length is None else data.take(length)


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
            arguments += [flag] if value is True else [flag, str(value)]
    return arguments


def reload(source: dict[str, Any], order_seed: int | None, data_dir: str | None) -> "LoadedSequence":
    """The data a record or bitstream was made with, from what it says of its source."""
    from prequential.data.sources import load

    options = {name: value for name, value in source.items() if name != "name"}
    order = {"order": "given"} if order_seed is None else {"order_seed": order_seed}
    return load(source["name"], **order, data_dir=data_dir, **options)
