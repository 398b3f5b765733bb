"""Data: the ordered sequence, and where sequences come from.

Names are resolved on first use: a worker that decodes images imports no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prequential.data.arrays import from_arrays, from_dataset
    from prequential.data.sequence import ArraySequence, DataSequence, to_network_input
    from prequential.data.sources import SOURCES, load

_HOMES = {
    "SOURCES": "sources",
    "ArraySequence": "sequence",
    "DataSequence": "sequence",
    "from_arrays": "arrays",
    "from_dataset": "arrays",
    "load": "sources",
    "to_network_input": "sequence",
}

__all__ = [
    "SOURCES",
    "ArraySequence",
    "DataSequence",
    "from_arrays",
    "from_dataset",
    "load",
    "to_network_input",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'prequential.data' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"prequential.data.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
