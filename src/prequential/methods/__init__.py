"""The methods of the paper, each a plan of a page. No torch here: a method only decides.

To add one, write a frozen dataclass with the members of `Method` and list it in METHODS.
"""

from prequential.methods.ages import Exponential, Pareto, Uniform, age_law
from prequential.methods.all_inputs import AllInputs
from prequential.methods.buffer import ReplayBuffer
from prequential.methods.chunks import ChunksFineTuned, ChunksFromScratch, FullDataset
from prequential.methods.method import Method, MethodDefaults, cut_into_batches
from prequential.methods.online import Online
from prequential.methods.streams import ReplayStreams

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (ReplayStreams, ReplayBuffer, ChunksFromScratch, ChunksFineTuned, FullDataset, Online)
}

__all__ = [
    "METHODS",
    "AllInputs",
    "ChunksFineTuned",
    "ChunksFromScratch",
    "Exponential",
    "FullDataset",
    "Method",
    "MethodDefaults",
    "Online",
    "Pareto",
    "ReplayBuffer",
    "ReplayStreams",
    "Uniform",
    "age_law",
    "cut_into_batches",
]
