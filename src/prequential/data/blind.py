"""A sequence as a decoder has it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.sequence import DataSequence, Read, read_ahead, reads_slowly, training_inputs
from prequential.errors import PreqError


@dataclass(frozen=True)
class InputsOnly:
    """A sequence without its labels."""

    data: DataSequence
    num_classes: int
    heldout: None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.data.input_shape

    @property
    def order_seed(self) -> int | None:
        return self.data.order_seed

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return self.data.inputs(positions)

    @property
    def training_view(self) -> str | None:
        return getattr(self.data, "training_view", None)

    def training_inputs(self, positions: NDArray[np.int64], key: int) -> torch.Tensor:
        return training_inputs(self.data, positions, key)

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        raise PreqError("a decoder has no labels")

    @property
    def reads_slowly(self) -> bool:
        return reads_slowly(self.data)

    def read_ahead(self, reads: Iterator[Read]) -> None:
        read_ahead(self.data, reads)

    def digests(self) -> dict[str, str]:
        return self.data.digests()
