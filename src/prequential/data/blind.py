"""A sequence as a decoder has it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.optional import SequenceDefaults, capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.scaling import Scale
from prequential.targets import Target


@dataclass(frozen=True, repr=False)
class InputsOnly:
    """A sequence without its labels: everything else is that of the data."""

    data: DataSequence
    target: Target
    scale: Scale | None = None
    heldout: None = None
    __repr__ = SequenceDefaults.__repr__

    def __getattr__(self, name: str) -> Any:
        return getattr(capabilities(self.data) if hasattr(SequenceDefaults, name) else self.data, name)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def num_classes(self) -> int:
        return self.target.num_symbols

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        raise PreqError("a decoder has no labels")
