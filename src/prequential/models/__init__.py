"""Models by name, and the user's own through a factory.

A factory is any callable that returns a fresh `nn.Module`. It is called with those of the keywords
`input_shape`, `num_classes` and `width` that it has parameters for; a class is a factory too.
To add a model, write such a function and list it in MODELS.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from prequential.errors import PreqError, require_number, unknown_name
from prequential.models.lenet import lenet
from prequential.models.mlp import mlp
from prequential.models.mnistnet import mnistnet

ModelFactory = Callable[..., nn.Module]

MODELS: dict[str, ModelFactory] = {
    "mlp1": partial(mlp, num_hidden=1),
    "mlp2": partial(mlp, num_hidden=2),
    "mlp3": partial(mlp, num_hidden=3),
    "lenet": lenet,
    "mnistnet": mnistnet,
}


def find_factory(name: str) -> ModelFactory:
    """The model of that name, or the user's factory written `package.module:factory`.

    Example:
        >>> find_factory("lenet") is lenet
        True
    """
    if ":" not in name:
        if name not in MODELS:
            raise unknown_name("model", name, [*MODELS, "package.module:factory"])
        return MODELS[name]
    module_name, _, attribute = name.partition(":")
    module = _import(module_name, name)
    if not hasattr(module, attribute):
        raise PreqError(f"module '{module_name}' has no '{attribute}'; write package.module:factory")
    factory = getattr(module, attribute)
    if not callable(factory):
        raise PreqError(f"'{name}' is a {type(factory).__name__}; name a function or class that returns an nn.Module")
    found: ModelFactory = factory
    return found


def _import(module_name: str, name: str) -> ModuleType:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        if not module_name.endswith(".py"):
            return importlib.import_module(module_name)
        spec = importlib.util.spec_from_file_location(Path(module_name).stem, module_name)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # the user's code may fail in any way
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise PreqError(f"cannot import '{module_name}' for the model '{name}' ({reason})") from error


def name_of(factory: str | ModelFactory) -> str:
    """What a record calls the model."""
    if isinstance(factory, str):
        return factory
    for name, known in MODELS.items():
        if factory is known:
            return name
    module, qualified = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", "")
    return f"{module}:{qualified}" if qualified else type(factory).__name__


def summary_of(name: str) -> str:
    """The first line of a model's documentation.

    Example:
        >>> summary_of("mlp1")
        'Hidden layers of 512 ReLU units, each followed by dropout.'
    """
    factory = MODELS[name]
    documented = factory.func if isinstance(factory, partial) else factory
    return (inspect.getdoc(documented) or "").splitlines()[0]


def build(
    factory: str | ModelFactory, input_shape: tuple[int, ...], num_classes: int, *, width: float = 1.0
) -> nn.Module:
    """A fresh model for inputs of that shape and that many classes.

    Example:
        >>> build("lenet", (1, 28, 28), 10)[-1]
        Linear(in_features=84, out_features=10, bias=True)
    """
    require_number("width", width, above=0)
    name = name_of(factory)
    if isinstance(factory, nn.Module):
        raise PreqError(f"give a factory, not a {type(factory).__name__}: a run starts from fresh weights")
    if isinstance(factory, str):
        factory = find_factory(factory)
    if not callable(factory):
        raise PreqError(f"a model must be a name or a factory, got {type(factory).__name__}")
    offered: dict[str, Any] = {"input_shape": input_shape, "num_classes": num_classes, "width": width}
    wanted = _parameters(factory)
    if width != 1.0 and "width" not in wanted:
        raise PreqError(f"the model '{name}' has no width to scale, got width {width:g}; leave it out")
    try:
        model = factory(**{key: value for key, value in offered.items() if key in wanted})
    except PreqError:
        raise
    except Exception as error:  # the user's code may fail in any way
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise PreqError(f"the model '{name}' could not be built ({reason})") from error
    if not isinstance(model, nn.Module):
        raise PreqError(f"the model '{name}' returned a {type(model).__name__}, not an nn.Module")
    return model


def _parameters(factory: ModelFactory) -> set[str]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
