"""Data: the ordered sequence, and where sequences come from."""

from prequential.data.arrays import from_arrays, from_dataset
from prequential.data.sequence import ArraySequence, DataSequence, to_network_input
from prequential.data.sources import SOURCES, load

__all__ = [
    "SOURCES",
    "ArraySequence",
    "DataSequence",
    "from_arrays",
    "from_dataset",
    "load",
    "to_network_input",
]
