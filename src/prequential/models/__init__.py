"""Models by name, and the user's own through a factory.

A factory is any callable that returns a fresh `nn.Module`. It is called with those of the keywords
`input_shape`, `output_size` (also as `num_classes`, which it is where classes are coded) and `width` that it has
parameters for; a class is a factory too.
A model that looks at inputs past the label it predicts says so: it, a part of it or its factory has an attribute
`conditioned_on`, "all inputs".
To add a model, write such a function and list it in MODELS.
"""

import inspect
from functools import partial
from typing import Any

import torch
from torch import nn

from prequential.conditioning import INPUTS_SO_FAR, widest
from prequential.errors import PreqError, require_number
from prequential.models.registry import MODELS, ModelFactory, find_factory, is_package_model, name_of, summary_of
from prequential.models.shapes import Shape
from prequential.models.weight_standardisation import standardise_weights

__all__ = [
    "MODELS",
    "ModelFactory",
    "build",
    "conditioning_of",
    "count_parameters",
    "find_factory",
    "is_package_model",
    "name_of",
    "standardise_weights",
    "summary_of",
]


def build(factory: str | ModelFactory, input_shape: Shape, output_size: int, *, width: float = 1.0) -> nn.Module:
    """A fresh model for inputs of that shape that gives so many numbers.

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
    offered: dict[str, Any] = {"input_shape": input_shape, "output_size": output_size, "width": width}
    offered["num_classes"] = output_size  # what factories of classes call it
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


def conditioning_of(factory: str | ModelFactory, model: nn.Module) -> str:
    """The widest of what a factory, the model it made and the parts of that declare by `conditioned_on`.

    Example:
        >>> conditioning_of("lenet", build("lenet", (1, 28, 28), 10))
        'inputs up to the label'
    """
    made = find_factory(factory) if isinstance(factory, str) else factory
    asked: list[object] = [made, *model.modules()]
    while isinstance(made, partial):
        made = made.func
        asked.append(made)
    return widest(*(getattr(each, "conditioned_on", INPUTS_SO_FAR) for each in asked))


def count_parameters(factory: str | ModelFactory, input_shape: Shape, output_size: int, *, width: float = 1.0) -> int:
    """How many numbers such a model has; no memory is given to them.

    Example:
        >>> count_parameters("lenet", (1, 28, 28), 10)
        61706
    """
    with torch.device("meta"):
        model = build(factory, input_shape, output_size, width=width)
    return sum(parameter.numel() for parameter in model.parameters())


def _parameters(factory: ModelFactory) -> set[str]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
