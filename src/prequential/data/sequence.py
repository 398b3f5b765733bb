"""The ordered sequence: what a run walks through, and the in-memory kind.

Inputs and labels are asked for separately, so that a decoder can hold the one without the other.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.digest import digest_of_rows
from prequential.errors import PreqError, require_count, whole_seed
from prequential.rng import derive, permutation


class DataSequence(Protocol):
    """Labelled examples in a fixed order.

    Reading is deterministic, may be repeated and may happen from several threads. Positions are
    0-based. `prequential.testing.check_data` checks an implementation.
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


def to_network_input(stored: torch.Tensor) -> torch.Tensor:
    """Stored inputs as a network takes them.

    uint8 (images) becomes float in [−1, 1]; floats become float32; other whole numbers (tokens) stay.
    A fixed map, so that the code of a prefix never depends on inputs that come later.

    Example:
        >>> to_network_input(torch.tensor([0, 255], dtype=torch.uint8))
        tensor([-1.,  1.])
    """
    if stored.dtype == torch.uint8:
        return stored.to(torch.float32).mul_(2 / 255).sub_(1)
    if stored.dtype in (torch.float64, torch.float16, torch.bfloat16):
        return stored.to(torch.float32)
    return stored


@dataclass(frozen=True, eq=False)
class ArraySequence:
    """A sequence held in memory. Make one with `prequential.from_arrays`.

    `order` lists the rows of the arrays in sequence order.
    """

    stored_inputs: torch.Tensor
    stored_labels: torch.Tensor
    num_classes: int
    order: torch.Tensor
    name: str = "arrays"
    order_seed: int | None = None
    heldout: "ArraySequence | None" = None

    def __len__(self) -> int:
        return len(self.order)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.stored_inputs.shape[1:])

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        rows = self.order.index_select(0, torch.from_numpy(positions))
        return self.stored_inputs.index_select(0, rows)

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        rows = self.order.index_select(0, torch.from_numpy(positions))
        return self.stored_labels.index_select(0, rows)

    def shuffled(self, seed: int) -> "ArraySequence":
        """The same examples in a random order that only `seed` and their number decide.

        Example:
            >>> from prequential.data import from_arrays
            >>> data = from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1]).shuffled(seed=0)
            >>> sorted(data.order.tolist())
            [0, 1, 2, 3]
        """
        seed = whole_seed("the order seed", seed)
        shuffle = torch.from_numpy(permutation(derive(seed, "order"), len(self)))
        return replace(self, order=self.order[shuffle], order_seed=seed)

    def take(self, length: int) -> "ArraySequence":
        """The first `length` examples."""
        require_count("length", length)
        length = int(length)
        if length > len(self):
            raise PreqError(f"length {length} is more than the {len(self)} examples of '{self.name}'")
        return replace(self, order=self.order[:length])

    def without_heldout(self) -> "ArraySequence":
        """The same sequence with no held-out data."""
        return replace(self, heldout=None)

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {
            "inputs": digest_of_rows(self.stored_inputs, self.order),
            "labels": digest_of_rows(self.stored_labels, self.order, self.num_classes),
        }

    def digests(self) -> dict[str, str]:
        return self._digests
