"""Models of the library timm."""

import difflib
import importlib
from functools import partial
from typing import Any

from torch import nn

from prequential.errors import PreqError, in_one_line
from prequential.models.shapes import Shape, require_image

TIMM = "timm:"


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


def known_to_timm(architecture: str) -> str:
    """The same name, if timm has such a model."""
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
        reason = in_one_line(error)
        raise PreqError(f"timm cannot be imported ({reason}); do torch and torchvision fit each other?") from error
