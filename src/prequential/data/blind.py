"""A sequence as a decoder has it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.optional import SequenceDefaults, capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.targets import Target


def _of_data(name: str) -> Any:
    """A member of the sequence that is looked at."""
    return property(lambda blind: getattr(capabilities(blind.data), name))


@dataclass(frozen=True, repr=False)
class InputsOnly(SequenceDefaults):
    """A sequence without its labels."""

    data: DataSequence
    coded: Target
    heldout: None = None

    name = _of_data("name")
    input_shape = _of_data("input_shape")
    order_seed = _of_data("order_seed")
    inputs = _of_data("inputs")
    digests = _of_data("digests")
    source = _of_data("source")
    conditioned_on = _of_data("conditioned_on")
    training_view = _of_data("training_view")
    training_differs = _of_data("training_differs")
    training_inputs = _of_data("training_inputs")
    reads_slowly = _of_data("reads_slowly")
    read_ahead = _of_data("read_ahead")

    def __len__(self) -> int:
        return len(self.data)

    @property
    def target(self) -> Target:
        return self.coded

    @property
    def num_classes(self) -> int:
        return self.coded.num_symbols

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        raise PreqError("a decoder has no labels")
