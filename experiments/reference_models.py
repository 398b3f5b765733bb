"""Our models against timm's and torchvision's, same weights: `python experiments/reference_models.py`

Needs timm; torchvision too for VGG. timm wants torchvision only for its data loading, so where torchvision cannot be
imported an empty stand-in takes its place and VGG is left out. Prints the largest difference of the logits in float64.
"""

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from prequential.models import build


class Nothing(type):
    """A class in which every name is found and none does anything."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class StandIn(types.ModuleType):
    """A module of such classes."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(name, (), {})


class Finder:
    """Gives stand-ins for torchvision and everything below it."""

    @staticmethod
    def find_spec(name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, Finder) if name.split(".")[0] == "torchvision" else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandIn(spec.name)

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        """Nothing to do."""


def pairs() -> dict[str, Callable[[], nn.Module]]:
    torchvision: Any
    try:
        torchvision = importlib.import_module("torchvision")
    except (ImportError, RuntimeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]
        torchvision = None
    timm: Any = importlib.import_module("timm")
    print(f"torch {torch.__version__}, timm {timm.__version__}, torchvision {getattr(torchvision, '__version__', '–')}")
    named = {f"resnet{depth}": f"resnet{depth}" for depth in (18, 34, 50, 101)} | {"deit-s": "deit_small_patch16_224"}
    found = {
        ours: (lambda theirs=theirs: timm.create_model(theirs, pretrained=False)) for ours, theirs in named.items()
    }
    if torchvision is not None:
        found |= {"vgg16": torchvision.models.vgg16, "vgg16-bn": torchvision.models.vgg16_bn}
    return found


def main() -> None:
    for name, make in pairs().items():
        torch.manual_seed(0)
        theirs = make().double().eval()
        ours = build(name, (3, 224, 224), 1000).double().eval()
        ours.load_state_dict(theirs.state_dict())
        images = torch.randn(2, 3, 224, 224, dtype=torch.float64)
        with torch.no_grad():
            expected, logits = theirs(images), ours(images)
        size = sum(p.numel() for p in ours.parameters())
        largest, difference = expected.abs().max().item(), (logits - expected).abs().max().item()
        print(f"{name:<10} {size:>11,} parameters, logits up to {largest:.3g}, differ by {difference:.1e}")
        assert difference <= 1e-9 * max(largest, 1.0), name


if __name__ == "__main__":
    main()
