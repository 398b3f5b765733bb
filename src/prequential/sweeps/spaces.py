"""Search spaces: a name for each setting, and what it is drawn from. The paper's own are here. No torch.

A space is a plain dictionary. Its keys are settings of `Recipe`, settings of the method, `width` or `seed`; its
values are distributions, or fixed. What it does not name is as the sweep's method and recipe say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from prequential.catalogue import OF_THE_RECIPE, OF_THE_RUN, own_name
from prequential.errors import PreqError, unknown_name
from prequential.learn.recipe import Recipe
from prequential.methods import METHODS, Method
from prequential.presets import find_preset
from prequential.settings import described
from prequential.sweeps.distributions import Choice, Distribution, LogUniform
from prequential.users_own import find_own

Space = Mapping[str, Any]


def _paper(data: str, **drawn: Any) -> dict[str, Any]:
    """The paper's fixed settings for some data (each of them, so that no preset shines through), and what is drawn."""
    recipe = find_preset("paper", data).recipe
    fixed = {name: getattr(recipe, name) for name in OF_THE_RECIPE}
    common: dict[str, Any] = {
        "num_streams": LogUniform(25, 100, whole=True),
        "learning_rate": LogUniform(1e-4, 3e-3),
        "eps": LogUniform(1e-4, 1.0),
    }
    return {**fixed, **common, **drawn}


_PARETO = {"num_streams": LogUniform(10, 100, whole=True), "width": LogUniform(0.25, 4.0)}
"""The paper scales the width in all its Pareto sweeps and names an interval for ImageNet alone: it is taken for all."""

_MNIST = _paper(
    "mnist", ema_step_size=LogUniform(1e-3, 1e-1), weight_decay=LogUniform(1e-4, 1.0), batch_size=32,
    label_smoothing=0.001,
)  # fmt: skip
_CIFAR = _paper(
    "cifar10", ema_step_size=LogUniform(1e-3, 1e-1), weight_decay=LogUniform(1e-4, 1e-1),
    batch_size=Choice((32, 64, 128)), label_smoothing=0.01,
)  # fmt: skip
_IMAGENET = _paper(
    "imagenet", ema_step_size=LogUniform(1e-3, 1e-2), weight_decay=LogUniform(1e-4, 1.0), batch_size=512,
    label_smoothing=0.01,
)  # fmt: skip
_CLOC = _paper(
    "cloc", num_streams=LogUniform(10, 25, whole=True), eps=find_preset("paper", "cloc").recipe.eps,
    ema_step_size=LogUniform(1e-3, 1e-2), batch_size=128, label_smoothing=0.1,
)  # fmt: skip

SPACES: dict[str, Space] = {
    "mnist": _MNIST,
    "cifar": _CIFAR,
    "imagenet": _IMAGENET,
    "cloc": _CLOC,
    "mnist-pareto": {**_MNIST, **_PARETO},
    "cifar-pareto": {**_CIFAR, **_PARETO},
    "imagenet-pareto": {**_IMAGENET, **_PARETO},
}
"""The paper's spaces (its appendix, Experimental Details), and those of its Pareto fronts."""


def find_space(name: str) -> Space:
    """One of SPACES, or a user's own by `file.py:name`.

    Example:
        >>> find_space("mnist")["batch_size"]
        32
    """
    if ":" not in name and name not in SPACES:
        raise unknown_name("space", name, [*SPACES, "file.py:name"])
    space: Space = find_own(name, "space") if ":" in name else SPACES[name]
    return space


def drawn(space: Space) -> dict[str, Distribution]:
    """The settings that differ between trials.

    Example:
        >>> sorted(drawn(SPACES["cloc"]))
        ['ema_step_size', 'learning_rate', 'num_streams']
    """
    return {name: value for name, value in space.items() if isinstance(value, Distribution)}


def require_space(space: Any, method: Method) -> None:
    """Refuse a space with names that neither recipe nor method have, or without anything to draw."""
    if not isinstance(space, Mapping) or not all(isinstance(name, str) for name in space):
        raise PreqError(f"a space must be a dictionary of settings and distributions, got {type(space).__name__}")
    found: dict[str, str] = {}
    for name, value in space.items():
        if isinstance(value, type):
            raise PreqError(f"the space gives {name} the class {value.__name__}; make an instance")
        if name != "age_law" and callable(getattr(value, "weights", None)):
            raise PreqError(f"the space gives {name} an age law; a distribution is one of Between, LogUniform, Choice")
        if name in (*OF_THE_RECIPE, *OF_THE_RUN):
            continue
        own = own_name(name, method)
        if own is None:
            owners = [other for other, kind in METHODS.items() if name in described(kind)]
            known = ", ".join((*OF_THE_RECIPE, *described(type(method))))
            belongs = f"it belongs to {', '.join(owners)}" if owners else f"known: {known}"
            raise PreqError(f"the space names '{name}', which {method.name} does not have; {belongs}")
        if own in found:
            both = f"{found[own]} and {name}"
            raise PreqError(f"the space names {both}, which are one setting of {method.name}; keep one")
        found[own] = name
    if not drawn(space):
        raise PreqError(
            "the space draws nothing: every value is fixed; give a distribution such as LogUniform(1e-4, 1)"
        )


def on_grid(space: Space, method: Method, size: int) -> dict[str, Any]:
    """The space with what decides plan and shapes drawn from a few values, so that trials can be stacked.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> on_grid(SPACES["mnist"], ReplayStreams(), 5)["num_streams"]
        Choice(values=(25, 35, 50, 71, 100))
    """
    return {
        name: value.grid(size)
        if isinstance(value, Distribution) and (name == "width" or own_name(name, method) is not None)
        else value
        for name, value in space.items()
    }


@dataclass(frozen=True)
class Resolved:
    """What one trial runs with."""

    method: Method
    recipe: Recipe
    width: float
    seed: int


def resolve(settings: Mapping[str, Any], base: Resolved) -> Resolved:
    """The trial with these settings; what they do not name is as in `base`.

    Example:
        >>> from prequential.methods import ChunksFineTuned
        >>> trial = resolve({"num_streams": 30, "eps": 0.1}, Resolved(ChunksFineTuned(), Recipe(), 1.0, 0))
        >>> trial.method.epochs, trial.recipe.eps
        (30, 0.1)
    """
    recipe = {name: value for name, value in settings.items() if name in OF_THE_RECIPE}
    others = {name: value for name, value in settings.items() if name not in (*OF_THE_RECIPE, *OF_THE_RUN)}
    own = {str(own_name(name, base.method)): value for name, value in others.items()}
    return Resolved(
        method=replace(base.method, **own),  # type: ignore[type-var]  # a method with settings is a dataclass
        recipe=replace(base.recipe, **recipe),
        width=float(settings.get("width", base.width)),
        seed=int(settings.get("seed", base.seed)),
    )
