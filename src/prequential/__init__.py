"""The description length of labelled data under neural networks, by sequential learning.

A learner walks through a sequence once and predicts each label before it learns from it. The sum of
−ln p(label) is the length of a code for the labels given the inputs: the shorter, the better the
model explains the data. No validation split is needed.
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prequential.data.arrays import from_arrays, from_dataset
    from prequential.data.prepare import prepare
    from prequential.data.sources import load as load_data
    from prequential.errors import PreqError
    from prequential.learn.execution import Execution
    from prequential.learn.recipe import Recipe
    from prequential.measure import mixture, pareto_front, regret
    from prequential.methods import (
        ChunksFineTuned,
        ChunksFromScratch,
        Exponential,
        FullDataset,
        Pareto,
        ReplayBuffer,
        ReplayStreams,
        Uniform,
    )
    from prequential.plan import Plan
    from prequential.report.comparison import compare
    from prequential.report.page import write_report
    from prequential.report.plots import plot
    from prequential.runs.codec import decode, encode
    from prequential.runs.record import Record, load
    from prequential.runs.run import Interrupted, run
    from prequential.sweep import SPACES, sweep
    from prequential.trackers import track

__version__ = "0.1.0"

_HOMES = {
    "SPACES": "prequential.sweep",
    "ChunksFineTuned": "prequential.methods",
    "ChunksFromScratch": "prequential.methods",
    "Execution": "prequential.learn.execution",
    "Exponential": "prequential.methods",
    "FullDataset": "prequential.methods",
    "Interrupted": "prequential.runs.run",
    "Pareto": "prequential.methods",
    "Plan": "prequential.plan",
    "PreqError": "prequential.errors",
    "Recipe": "prequential.learn.recipe",
    "Record": "prequential.runs.record",
    "ReplayBuffer": "prequential.methods",
    "ReplayStreams": "prequential.methods",
    "Uniform": "prequential.methods",
    "compare": "prequential.report.comparison",
    "decode": "prequential.runs.codec",
    "encode": "prequential.runs.codec",
    "from_arrays": "prequential.data.arrays",
    "from_dataset": "prequential.data.arrays",
    "load": "prequential.runs.record",
    "load_data": "prequential.data.sources:load",
    "mixture": "prequential.measure",
    "pareto_front": "prequential.measure",
    "plot": "prequential.report.plots",
    "prepare": "prequential.data.prepare",
    "regret": "prequential.measure",
    "run": "prequential.runs.run",
    "sweep": "prequential.sweep",
    "write_report": "prequential.report.page",
    "track": "prequential.trackers",
}

__all__ = [
    "SPACES",
    "ChunksFineTuned",
    "ChunksFromScratch",
    "Execution",
    "Exponential",
    "FullDataset",
    "Interrupted",
    "Pareto",
    "Plan",
    "PreqError",
    "Recipe",
    "Record",
    "ReplayBuffer",
    "ReplayStreams",
    "Uniform",
    "compare",
    "decode",
    "encode",
    "from_arrays",
    "from_dataset",
    "load",
    "load_data",
    "mixture",
    "pareto_front",
    "plot",
    "prepare",
    "regret",
    "run",
    "sweep",
    "track",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Resolve public names on first use: importing the package alone imports no torch."""
    if name == "testing":
        return importlib.import_module("prequential.testing")
    if name not in _HOMES:
        raise AttributeError(f"module 'prequential' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(types.ModuleType):
    """Keeps `prequential.runs.run` the function: importing the submodule would put the module in its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
