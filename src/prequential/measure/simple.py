"""The codes that look at labels alone, by the names that tables, pictures and flags have for them. No torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.targets.simple_codes import frequency_code, previous_label_code, uniform_code


@dataclass(frozen=True)
class SimpleCode:
    """A code without a model."""

    title: str
    """How a table calls it."""
    phrase: str
    """How a sentence does, behind "the"."""
    nats: Callable[[NDArray[Any], int], NDArray[np.float64]]
    """−ln p of each label, given the labels and the number of classes."""


SIMPLE_CODES = {
    "uniform": SimpleCode("uniform code", "uniform code", uniform_code),
    "frequencies": SimpleCode("label frequencies", "code of label frequencies", frequency_code),
    "previous": SimpleCode("previous label", "code of the previous label", previous_label_code),
}
