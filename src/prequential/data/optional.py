"""What a sequence may have beyond what is required, with defaults. Nobody else asks whether a member is there."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import INPUTS_SO_FAR
from prequential.scaling import Scale
from prequential.targets import Classes, Target
from prequential.terminal import printable

if TYPE_CHECKING:
    from prequential.data.sequence import DataSequence
    from prequential.data.tables.schema import Schema

Read = tuple[NDArray[np.int64], int | None]
"""Positions that will be read: for prediction, or for training with this key."""


class SequenceDefaults:
    """What a sequence may have beyond `DataSequence`, and what holds of one that does not say.

    The sequences of the package derive from it, and yours may; one that does not is asked through `capabilities`.
    Like all reading, each member is deterministic, may be used twice and from several threads.
    `prequential.testing.check_data` checks them.
    """

    def __repr__(self) -> str:
        data = cast("DataSequence", self)
        what = f"{data.name}, {len(data):,} examples of {self.target}"
        more = f", and {self.num_inputs - len(data):,} without labels" if self.num_inputs > len(data) else ""
        return printable(f"<{type(self).__name__}: {what}, inputs of shape {data.input_shape}{more}>")

    @abstractmethod
    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        """See `DataSequence`."""

    @property
    def target(self) -> Target:
        """What is coded at each position. Default: one of its `num_classes`."""
        return Classes(self.num_classes)  # type: ignore[attr-defined]  # see `DataSequence`

    @property
    def num_inputs(self) -> int:
        """How many inputs can be read: positions from the length on have an input and no label, and are never coded.

        `inputs`, `training_inputs` and `read` take all positions below it, `labels` only those below the length; the
        fingerprint of the inputs is of all of them. Default: every input has a label.
        """
        return len(cast("DataSequence", self))

    @property
    def inputs_contain_targets(self) -> bool:
        """Whether inputs are made of targets, as those of text are: then no input may be given before its time."""
        return False

    @property
    def num_left_out(self) -> int:
        """Inputs without labels that were left out because held-out ones equal them."""
        return 0

    @property
    def source(self) -> Mapping[str, Any] | None:
        """What `load_data` was asked for, as JSON can hold it, so that it can be asked again; None if it was not."""
        return None

    @property
    def origin(self) -> str | None:
        """The name of the data that it is a copy of; None if it is no copy."""
        return None

    @property
    def conditioned_on(self) -> str:
        """What was looked at to make an input: one of `prequential.conditioning.ORDER`."""
        return INPUTS_SO_FAR

    @property
    def scale(self) -> Scale | None:
        """What uint8 inputs are out of, which is brought to 1 (and 0 to −1), or "none" where they reach the network as
        they are. Default: None, and the rule of `prequential.data.scale.scale_of` decides."""
        return None

    def require_intact(self) -> None:
        """Refuse stored data that is no longer what its fingerprints say. Default: nothing is stored.

        It is asked before a code is written or a run gone on with; it may read everything.
        """

    @property
    def training_view(self) -> str | None:
        """What training sees, in words, where that is not what prediction sees."""
        return None

    def training_inputs(self, positions: NDArray[np.int64], key: int) -> torch.Tensor:
        """Inputs as they are trained on, such as random crops: a pure function of its arguments, of the shape and type
        of `inputs`."""
        return self.inputs(positions)

    @property
    def training_differs(self) -> bool:
        """Whether training sees something else than prediction, in each run its own.

        Default: whether it has `training_inputs` of its own and does not say that its `training_view` is None.
        """
        return is_own(self, "training_inputs") and not (is_own(self, "training_view") and self.training_view is None)

    def read_ahead(self, reads: Iterator[Read]) -> None:
        """Hear what will be read, in order, so that slow reading can go on in the background.

        It only makes reading faster: reads may come that were not told, and told ones may never come. What was told
        before is forgotten. The iterator may be long, and may be walked from another thread.
        """

    @property
    def reads_slowly(self) -> bool:
        """Whether reading takes work each time, such as decoding, or gives something else for training.

        Default: whether it has `read_ahead` or `training_inputs` of its own.
        """
        return is_own(self, "read_ahead") or is_own(self, "training_inputs")

    def read(self, positions: NDArray[np.int64]) -> tuple[NDArray[Any], list[tuple[int, str]]]:
        """The inputs at these positions, and the rows among them that are broken, with the reason."""
        return self.inputs(positions).numpy(), []

    def without_broken(self) -> Self:
        """The examples that can be read, in the same order."""
        return self

    @property
    def listing(self) -> str:
        """A fingerprint of the names of the files that it is read from; empty where there are none."""
        return ""

    @property
    def schema(self) -> "Schema | None":
        """What became of the columns of a table; None where there was none."""
        return None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """What the classes are called, in the order of their numbers; None where they have no names."""
        return None

    def describe(self, row: int) -> str | None:
        """What a person calls a row of the source, such as the path of an image; None where only its number tells."""
        return None

    @property
    def num_rows(self) -> int | None:
        """The rows of the source, of which `source_rows` are some; None where that is not known."""
        return None

    @property
    def source_rows(self) -> torch.Tensor | None:
        """For each position its place in the order of the source; None where that is not known."""
        return None


def capabilities(data: "DataSequence") -> SequenceDefaults:
    """Everything a sequence may have: its own members, and for those it lacks the defaults.

    Example:
        >>> class Plain:  # a sequence of your own that derives from nothing
        ...     training_view = "mirror images"
        >>> capabilities(Plain()).training_view, capabilities(Plain()).conditioned_on
        ('mirror images', 'inputs up to the label')
    """
    return data if isinstance(data, SequenceDefaults) else cast(SequenceDefaults, _Filled(data))


class _Filled:
    """A sequence that derives from nothing, with the defaults for what it lacks."""

    def __init__(self, data: "DataSequence") -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._data, name, None)
        return vars(SequenceDefaults)[name].__get__(self._data) if own is None else own


def is_own(data: object, name: str) -> bool:
    """Whether a sequence has that member itself, not by default."""
    return hasattr(data, name) and getattr(type(data), name, None) is not vars(SequenceDefaults)[name]


def is_sequence(value: object) -> bool:
    """Whether something can be read as a sequence."""
    return all(callable(getattr(value, name, None)) for name in ("inputs", "labels", "digests"))
