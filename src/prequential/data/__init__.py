"""Data: the ordered sequence, and where sequences come from.

Names are resolved on first use: a worker that decodes images imports no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prequential.data.arrays import from_arrays as from_arrays
    from prequential.data.arrays import from_dataset as from_dataset
    from prequential.data.sequence import ArraySequence as ArraySequence
    from prequential.data.sequence import DataSequence as DataSequence
    from prequential.data.sequence import to_network_input as to_network_input
    from prequential.data.sources import SOURCES as SOURCES
    from prequential.data.sources import load as load

_HOMES = {
    "arrays": ("from_arrays", "from_dataset"),
    "sequence": ("ArraySequence", "DataSequence", "to_network_input"),
    "sources": ("SOURCES", "load"),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"prequential.data.{module}"), name)
    raise AttributeError(f"module 'prequential.data' has no attribute '{name}'")
