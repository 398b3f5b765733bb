"""A sequence as a decoder has it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.optional import Read, SequenceDefaults, capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.targets import Target


@dataclass(frozen=True)
class InputsOnly(SequenceDefaults):
    """A sequence without its labels."""

    data: DataSequence
    coded: Target
    heldout: None = None

    @property
    def target(self) -> Target:
        return self.coded

    @property
    def num_classes(self) -> int:
        return self.coded.num_symbols

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
    def source(self) -> Mapping[str, Any] | None:
        return capabilities(self.data).source

    @property
    def conditioned_on(self) -> str:
        return capabilities(self.data).conditioned_on

    @property
    def training_view(self) -> str | None:
        return capabilities(self.data).training_view

    @property
    def training_differs(self) -> bool:
        return capabilities(self.data).training_differs

    def training_inputs(self, positions: NDArray[np.int64], key: int) -> torch.Tensor:
        return capabilities(self.data).training_inputs(positions, key)

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        raise PreqError("a decoder has no labels")

    @property
    def reads_slowly(self) -> bool:
        return capabilities(self.data).reads_slowly

    def read_ahead(self, reads: Iterator[Read]) -> None:
        capabilities(self.data).read_ahead(reads)

    def digests(self) -> dict[str, str]:
        return self.data.digests()
