"""The ordered sequence: what a run walks through, and the in-memory kind.

Inputs and labels are asked for separately, so that a decoder can hold the one without the other.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import INPUTS_SO_FAR
from prequential.data.fingerprints import FingerprintedSequence, bits_of, type_told
from prequential.errors import PreqError, require_count, whole_seed
from prequential.rng import derive, permutation
from prequential.scaling import INTENSITY, UNSCALED, Scale

if TYPE_CHECKING:
    from prequential.data.unlabelled import PartlyLabelled


class DataSequence(Protocol):
    """Labelled examples in a fixed order.

    Reading is deterministic, may be repeated and may happen from several threads. Positions are
    0-based. This much is required; what a sequence may have besides is in `SequenceDefaults`.
    `prequential.testing.check_data` checks an implementation.
    """

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def num_classes(self) -> int:
        """Labels are whole numbers below this."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input."""

    @property
    def order_seed(self) -> int | None:
        """The seed of the shuffle; None where the order is the given one."""

    @property
    def heldout(self) -> "DataSequence | None":
        """Held-out examples: evaluated at the end, never charged."""

    def __len__(self) -> int: ...

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        """The stored inputs at these positions, one row each."""

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        """The labels at these positions, int64."""

    def digests(self) -> dict[str, str]:
        """Fingerprints of `inputs` and `labels` in sequence order: equal only if the content is."""


class LoadedSequence(FingerprintedSequence):
    """What `load_data` gives: a sequence that can be shortened, and says where it is from. A dataclass."""

    name: str
    num_classes: int
    order_seed: int | None
    heldout: "LoadedSequence | None"

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """See `DataSequence`."""

    @abstractmethod
    def take(self, length: int) -> Self:
        """The first `length` examples."""

    def without_heldout(self) -> Self:
        """The same sequence with no held-out data."""
        return cast(Self, replace(cast(Any, self), heldout=None))

    def with_scale(self, scale: Scale) -> Self:
        """The same sequence, its uint8 inputs out of that, see `from_arrays`; others are not scaled."""
        is_scaled = self.inputs(np.zeros(1, np.int64)).dtype == torch.uint8
        return cast(Self, replace(cast(Any, self), scale=scale)) if is_scaled else self

    def with_num_labels(self, num_labels: int) -> "PartlyLabelled":
        """The first labels alone, given all inputs: those behind them stay, without their labels.

        Labels and their order are those of `take`, so that the two can be compared. Inputs that equal held-out ones
        do not stay.

        Example:
            >>> from prequential.data.arrays import from_arrays
            >>> data = from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1]).with_num_labels(3)
            >>> len(data), data.num_inputs, data.inputs(np.array([3])).item()
            (3, 4, 3.0)
        """
        from prequential.data.unlabelled import with_num_labels

        return with_num_labels(self, num_labels)

    def with_unlabelled(self, inputs: Any) -> "PartlyLabelled":
        """The same labels, given more inputs: these come behind those with labels, and are never coded.

        Inputs that equal held-out ones are left out and counted.

        Args:
            inputs: an array or tensor of inputs, alike in shape and type as this sequence has them (those of a table
                encoded as its are), or a sequence, of which no label is read.

        Example:
            >>> from prequential.data.arrays import from_arrays
            >>> data = from_arrays(np.zeros((2, 1)), [0, 1]).with_unlabelled(np.ones((3, 1)))
            >>> len(data), data.num_inputs
            (2, 5)
        """
        from prequential.data.unlabelled import with_unlabelled

        return with_unlabelled(self, inputs)


class ReorderableSequence(LoadedSequence):
    """A sequence that can be shuffled: `order` lists the rows of what is stored in sequence order."""

    stored_labels: torch.Tensor
    order: torch.Tensor

    def __len__(self) -> int:
        return len(self.order)

    @property
    def source_rows(self) -> torch.Tensor:
        return self.order

    @property
    def num_rows(self) -> int | None:
        return len(self.stored_labels)

    def rows(self, positions: NDArray[np.int64]) -> torch.Tensor:
        """The stored rows at these positions."""
        return self.order.index_select(0, torch.from_numpy(positions))

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return self.stored_labels.index_select(0, self.rows(positions))

    def shuffled(self, seed: int) -> Self:
        """The same examples in a random order that only `seed` and their number decide.

        Example:
            >>> from prequential.data.arrays import from_arrays
            >>> data = from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1]).shuffled(seed=0)
            >>> sorted(data.order.tolist())
            [0, 1, 2, 3]
        """
        seed = whole_seed("the order seed", seed)
        shuffle = torch.from_numpy(permutation(derive(seed, "order"), len(self)))
        return self._reordered(self.order[shuffle], order_seed=seed)

    def take(self, length: int) -> Self:
        return self._reordered(self.order[: shorter(self, length)])

    def _reordered(self, order: torch.Tensor, **changes: Any) -> Self:
        return cast(Self, replace(cast(Any, self), order=order, **changes))


def shorter(data: DataSequence, length: int) -> int:
    """The length of a prefix, checked."""
    require_count("length", length)
    if length > len(data):
        raise PreqError(f"length {length} is more than the {len(data)} examples of '{data.name}'")
    return int(length)


def to_network_input(stored: torch.Tensor, scale: Scale | None = INTENSITY) -> torch.Tensor:
    """Stored inputs as a network takes them.

    uint8 becomes float: 0 to the scale (255: images) brought to [−1, 1], or as it is ("none"). Floats become float32;
    other whole numbers (tokens) stay. A fixed map: the code of a prefix never depends on inputs that come later.

    Example:
        >>> to_network_input(torch.tensor([0, 255], dtype=torch.uint8))
        tensor([-1.,  1.])
    """
    if stored.dtype == torch.uint8:
        values = stored.to(torch.float32)
        return values if scale == UNSCALED else values.mul_(2 / int(scale or INTENSITY)).sub_(1)
    if stored.dtype in (torch.float64, torch.float16, torch.bfloat16):
        return stored.to(torch.float32)
    return stored


@dataclass(frozen=True, eq=False, repr=False)
class ArraySequence(ReorderableSequence):
    """A sequence held in memory. Make one with `prequential.from_arrays`.

    Example:
        >>> from prequential.data.arrays import from_arrays
        >>> from_arrays(np.zeros((4, 3)), [0, 1, 0, 1], name="points")
        <ArraySequence: points, 4 examples of Classes(num_classes=2), inputs of shape (3,)>
    """

    stored_inputs: torch.Tensor
    stored_labels: torch.Tensor
    num_classes: int
    order: torch.Tensor
    name: str = "arrays"
    order_seed: int | None = None
    heldout: "ArraySequence | None" = None
    source: Mapping[str, Any] | None = None
    conditioned_on: str = INPUTS_SO_FAR
    scale: Scale | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.stored_inputs.shape[1:])

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(self.hashed(positions)).view(self.stored_inputs.dtype)

    def hashed(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Rows taken by NumPy, ten times faster than torch where they are large."""
        return bits_of(self.stored_inputs).take(self.rows(positions).numpy(), axis=0)

    @property
    def hashed_as(self) -> tuple[object, ...]:
        return type_told(self.stored_inputs)
