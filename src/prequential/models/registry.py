"""Models by name: the package's own, weight-standardised ones, timm's, and the user's."""

import difflib
import importlib
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from prequential.errors import PreqError, unknown_name
from prequential.models.deit import deit_s, deit_tiny
from prequential.models.lenet import lenet
from prequential.models.mlp import mlp
from prequential.models.mnistnet import mnistnet
from prequential.models.resnet import BLOCKS as RESNETS
from prequential.models.resnet import resnet
from prequential.models.shapes import Shape, require_image
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
TIMM = "timm:"
WIDE_RESNET = re.compile(r"wrn-([1-9]\d{0,3})-([1-9]\d{0,3})")
"""At most four digits, so that a file that names a model cannot ask for one that takes hours to build."""
OTHER_NAMES = ("wrn-DEPTH-WIDENING", "MODEL-ws", "timm:MODEL", "package.module:factory")


class NamedFactory(partial[nn.Module]):
    """A factory made from a name, which it remembers."""

    name: str


def find_factory(name: str) -> ModelFactory:
    """The model of that name.

    Beside the names in MODELS there are `wrn-DEPTH-WIDENING`; any of these followed by `-ws`, with standardised
    weights; `timm:MODEL`; and your own, `package.module:factory` or `file.py:factory`.

    Example:
        >>> find_factory("lenet") is lenet
        True
        >>> name_of(find_factory("wrn-22-4-ws"))
        'wrn-22-4-ws'
    """
    if name.startswith(TIMM):
        return _named(name, timm_model, _find_in_timm(name.removeprefix(TIMM)))
    if ":" in name:
        return _find_users_own(name)
    factory = _find_package_model(base := name.removesuffix(STANDARDISED))
    return factory if base == name else _named(name, standardised_model, factory)


def is_package_model(name: str) -> bool:
    """Whether the package alone knows what the name means: no model of timm, none of the user.

    Example:
        >>> [is_package_model(name) for name in ("vggpp", "wrn-40-2", "lenet-ws", "wrn-41-2", "timm:vgg16")]
        [True, True, True, False, False]
    """
    try:
        _find_package_model(name.removesuffix(STANDARDISED))
    except PreqError:
        return False
    return True


def name_of(factory: str | ModelFactory) -> str:
    """What a record calls the model."""
    if isinstance(factory, str):
        return factory
    if isinstance(factory, NamedFactory):
        return factory.name
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
    factory = find_factory(name)
    documented = factory.func if isinstance(factory, partial) else factory
    return (inspect.getdoc(documented) or "").splitlines()[0]


def standardised_model(make: ModelFactory, input_shape: Shape, output_size: int, *, width: float = 1.0) -> nn.Module:
    """The model of that name without `-ws`, with standardised weights in its convolutions."""
    model = make(input_shape, output_size, width=width)
    if not any(isinstance(layer, CONVOLUTIONS) for layer in model.modules()):
        raise PreqError(f"the model '{name_of(make)}' has no convolution to standardise; leave out {STANDARDISED}")
    return standardise_weights(model)


def timm_model(architecture: str, input_shape: Shape, output_size: int) -> nn.Module:
    """A model of the library timm, freshly initialised."""
    require_image(f"{TIMM}{architecture}", input_shape, at_least=1)
    channels, height, breadth = input_shape
    create = partial(_timm().create_model, architecture, pretrained=False, num_classes=output_size, in_chans=channels)
    try:
        model: nn.Module = create(img_size=height if height == breadth else (height, breadth))
    except TypeError as error:
        if "img_size" not in str(error):
            raise
        model = create()  # a network that takes images of any size
    return model


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
    depth, widening = map(int, found.groups()) if found else (0, 0)
    if depth < 10 or depth % 6 != 4:
        given = [int(number[:4]) for number in re.findall(r"\d+", name)]
        depth, widening = (given + [28, 10][len(given) :])[:2]
        meant = f"wrn-{nearest_depth(min(depth, 9994))}-{max(widening, 1)}"
        raise PreqError(
            f"a wide residual network is called wrn-DEPTH-WIDENING with a depth of 6n + 4, got '{name}'; "
            f"did you mean '{meant}'?"
        )
    return _named(name, wide_resnet, depth=depth, widening=widening)


def _find_in_timm(architecture: str) -> str:
    timm = _timm()
    if not timm.is_model(architecture):
        close = difflib.get_close_matches(architecture, timm.list_models(), n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "timm.list_models() names those it has"
        raise PreqError(f"timm has no model '{architecture}'; {hint}")
    return architecture


def _timm() -> Any:
    try:
        return importlib.import_module("timm")
    except Exception as error:  # beside a torch it does not fit, torchvision raises whatever it meets first
        if isinstance(error, ModuleNotFoundError) and error.name == "timm":
            raise PreqError("models of timm need the library; pip install 'prequential[timm]'") from None
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise PreqError(f"timm cannot be imported ({reason}); do torch and torchvision fit each other?") from error


def _find_users_own(name: str) -> ModelFactory:
    factory = find_own(name, "model")
    if not callable(factory):
        raise PreqError(f"'{name}' is a {type(factory).__name__}; name a function or class that returns an nn.Module")
    found: ModelFactory = factory
    return found
