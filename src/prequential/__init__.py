"""The description length of labelled data under neural networks, by sequential learning.

A learner walks through a sequence once and predicts each label before it learns from it. The sum of
−ln p(label) is the length of a code for the labels given the inputs: the shorter, the better the
model explains the data. No validation split is needed.
"""

import ast
import importlib
import sys
import types
from pathlib import Path
from typing import Any

from prequential.names_of_before import module_of_before
from prequential.version import VERSION

__version__ = VERSION

_HOMES = {
    each.asname or each.name: (f"{statement.module}", each.name)
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(statement, ast.ImportFrom)
    for each in statement.names
}
"""Where each public name lives: `__init__.pyi` says it, to type checkers as well."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Resolve public names on first use: importing the package alone imports no torch."""
    if name == "testing":
        return importlib.import_module("prequential.testing")
    if name not in _HOMES:
        raise AttributeError(f"module 'prequential' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    value = getattr(importlib.import_module(module), attribute)
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
sys.modules["prequential.sweep"] = module_of_before("prequential.sweep", "prequential.sweeps", {"Uniform": "Between"})
