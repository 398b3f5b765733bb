"""Models by name, and the user's own through a factory.

A factory is any callable that returns a fresh `nn.Module`. It is called with those of the keywords
`input_shape`, `output_size` (also as `num_classes`, which it is where classes are coded) and `width` that it has
parameters for; a class is a factory too.
A model that looks at inputs past the label it predicts says so: it, a part of it or its factory has an attribute
`conditioned_on`, "all inputs".
To add a model, write such a function and list it in MODELS.
"""

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import nn

from prequential.conditioning import INPUTS_SO_FAR, widest
from prequential.errors import PreqError, in_one_line, require_number, unknown_name
from prequential.libraries import LIBRARIES, Classifier, prefix_of
from prequential.models.deit import deit_s, deit_tiny
from prequential.models.from_timm import TIMM, known_to_timm, timm_model
from prequential.models.lenet import lenet
from prequential.models.mlp import mlp
from prequential.models.mnistnet import mnistnet
from prequential.models.resnet import BLOCKS as RESNETS
from prequential.models.resnet import resnet
from prequential.models.shapes import Shape
from prequential.models.simplecnn import CHANNELS as SIMPLE_CNNS
from prequential.models.simplecnn import simplecnn
from prequential.models.smallconv import smallconv
from prequential.models.vgg import CONVOLUTIONS as VGGS
from prequential.models.vgg import vgg, vgg_bn, vggpp
from prequential.models.weight_standardisation import CONVOLUTIONS, standardise_weights
from prequential.models.wide_resnet import nearest_depth, wide_resnet
from prequential.users_own import find_own

ModelFactory = Callable[..., nn.Module]

MODELS: dict[str, ModelFactory] = {
    **{f"mlp{number}": partial(mlp, num_hidden=number) for number in (1, 2, 3)},
    "lenet": lenet,
    "smallconv": smallconv,
    "mnistnet": mnistnet,
    **{f"simplecnn{side}": partial(simplecnn, kernel_size=side) for side in SIMPLE_CNNS},
    **{f"vgg{depth}": partial(vgg, depth=depth) for depth in VGGS},
    **{f"vgg{depth}-bn": partial(vgg_bn, depth=depth) for depth in VGGS},
    "vggpp": vggpp,
    **{f"vggpp-{depth}": partial(vggpp, depth=depth) for depth in VGGS if depth != 16},
    "wrn-16-1": partial(wide_resnet, depth=16, widening=1),
    "wrn-28-10": partial(wide_resnet, depth=28, widening=10),
    **{f"resnet{depth}": partial(resnet, depth=depth) for depth in RESNETS},
    "deit-s": deit_s,
    "deit-tiny": deit_tiny,
}

STANDARDISED = "-ws"
WIDE_RESNET = re.compile(r"wrn-([1-9]\d{0,3})-([1-9]\d{0,3})")
"""At most four digits, so that a file that names a model cannot ask for one that takes hours to build."""
OTHER_NAMES = ("wrn-DEPTH-WIDENING", "MODEL-ws", "timm:MODEL", "package.module:factory", *LIBRARIES)


class NamedFactory(partial[nn.Module]):
    """A factory made from a name, which it remembers."""

    name: str


def find_factory(name: str) -> ModelFactory:
    """The model of that name.

    Beside the names in MODELS there are `wrn-DEPTH-WIDENING`; any of these followed by `-ws`, with standardised
    weights; `timm:MODEL`; and your own, `package.module:factory` or `file.py:factory`. Classifiers of other libraries
    (`sklearn:`, `river:`) are no networks: what they give here only says so when it is called.

    Example:
        >>> find_factory("lenet") is lenet
        True
        >>> name_of(find_factory("wrn-22-4-ws"))
        'wrn-22-4-ws'
    """
    if prefix_of(name) is not None:
        return _named(name_of(name), no_network, name_of(name))
    if name.startswith(TIMM):
        return _named(name, timm_model, known_to_timm(name.removeprefix(TIMM)))
    if ":" not in name:
        factory = _find_package_model(base := name.removesuffix(STANDARDISED))
        return factory if base == name else _named(name, standardised_model, factory)
    own: ModelFactory = find_own(name, "model")
    if not callable(own):
        raise PreqError(f"'{name}' is a {type(own).__name__}; name a function or class that returns an nn.Module")
    return own


def is_package_model(name: str) -> bool:
    """Whether the package alone knows what the name means: no model of timm, none of the user.

    Example:
        >>> [is_package_model(name) for name in ("vggpp", "wrn-40-2", "lenet-ws", "wrn-41-2", "timm:vgg16")]
        [True, True, True, False, False]
    """
    with suppress(PreqError):
        return callable(_find_package_model(name.removesuffix(STANDARDISED)))
    return False


def name_of(factory: str | ModelFactory) -> str:
    """What a record calls the model."""
    if isinstance(factory, str):
        return factory if prefix_of(factory) is None else Classifier.of(factory).name
    if isinstance(factory, NamedFactory):
        return factory.name
    module, qualified = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", "")
    own = f"{module}:{qualified}" if qualified else type(factory).__name__
    return next((name for name, known in MODELS.items() if known is factory), own)


def summary_of(name: str) -> str:
    """The first line of a model's documentation.

    Example:
        >>> summary_of("mlp1")
        'Hidden layers of 512 ReLU units, each followed by dropout.'
    """
    factory = find_factory(name)
    documented = factory.func if isinstance(factory, partial) else factory
    return (inspect.getdoc(documented) or "").splitlines()[0]


def standardised_model(make: ModelFactory, input_shape: Shape, output_size: int, *, width: float = 1.0) -> nn.Module:
    """The model of that name without `-ws`, with standardised weights in its convolutions."""
    model = make(input_shape, output_size, width=width)
    if not any(isinstance(layer, CONVOLUTIONS) for layer in model.modules()):
        raise PreqError(f"the model '{name_of(make)}' has no convolution to standardise; leave out {STANDARDISED}")
    return standardise_weights(model)


def no_network(name: str) -> nn.Module:
    """A classifier of another library, where a network is wanted."""
    raise PreqError(f"'{name}' is no network, and this needs one")


def _named(name: str, function: ModelFactory, *arguments: Any, **settings: Any) -> NamedFactory:
    factory = NamedFactory(function, *arguments, **settings)
    factory.name = name
    return factory


def _find_package_model(name: str) -> ModelFactory:
    if name in MODELS:
        return MODELS[name]
    if not name.startswith("wrn-"):
        raise unknown_name("model", name, [*MODELS, *OTHER_NAMES])
    found = WIDE_RESNET.fullmatch(name)
    depth, widening = map(int, found.groups()) if found else (28, 10)
    nearest = nearest_depth(min(depth, 9994))
    if not found or depth != nearest:
        raise PreqError(
            f"a wide residual network is called wrn-DEPTH-WIDENING with a depth of 6n + 4, got '{name}'; "
            f"did you mean 'wrn-{nearest}-{widening}'?"
        )
    return _named(name, wide_resnet, depth=depth, widening=widening)


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
        raise PreqError(f"a model must be a name or a factory, got {type(factory).__name__}{_how_several(factory)}")
    offered: dict[str, Any] = {"input_shape": input_shape, "output_size": output_size, "width": width}
    offered["num_classes"] = output_size  # what factories of classes call it
    try:
        wanted = inspect.signature(factory).parameters
        if width != 1.0 and "width" not in wanted:
            raise PreqError(f"the model '{name}' has no width to scale, got width {width:g}; leave it out")
        model = factory(**{key: value for key, value in offered.items() if key in wanted})
    except PreqError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may fail in any way
        raise PreqError(f"the model '{name}' could not be built ({in_one_line(error)})") from error
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


def _how_several(given: object) -> str:
    return "; give several as Experts([...])" if isinstance(given, list | tuple) else ""
