"""A sequence as a decoder has it."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.sequence import DataSequence
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

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        raise PreqError("a decoder has no labels")

    def digests(self) -> dict[str, str]:
        return self.data.digests()
