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
from prequential.methods import METHODS, AllInputs, Method
from prequential.methods.all_inputs import given_all_inputs
from prequential.presets import find_preset
from prequential.settings import described
from prequential.sweeps.sampling import Between, Choice, LogUniform, Space, draw_settings, drawn
from prequential.users_own import find_own


def _paper(data: str, **drawn: Any) -> Space:
    """The paper's fixed settings for some data (each of them, so that no preset shines through), and what is drawn."""
    preset = find_preset("paper", data)
    fixed = {name: getattr(preset.recipe, name) for name in OF_THE_RECIPE}
    common = {"num_streams": LogUniform(25, 100, whole=True), "learning_rate": LogUniform(1e-4, 3e-3)}
    return {**fixed, **common, "batch_size": preset.settings["batch_size"], **drawn}


_EPS = LogUniform(1e-4, 1.0)
_BASIC = {
    "mnist": _paper("mnist", eps=_EPS, ema_step_size=LogUniform(1e-3, 1e-1), weight_decay=LogUniform(1e-4, 1.0)),
    "cifar": _paper(
        "cifar10", eps=_EPS, ema_step_size=LogUniform(1e-3, 1e-1), weight_decay=LogUniform(1e-4, 1e-1),
        batch_size=Choice((32, 64, 128)),
    ),
    "imagenet": _paper("imagenet", eps=_EPS, ema_step_size=LogUniform(1e-3, 1e-2), weight_decay=LogUniform(1e-4, 1.0)),
    "cloc": _paper("cloc", num_streams=LogUniform(10, 25, whole=True), ema_step_size=LogUniform(1e-3, 1e-2)),
}  # fmt: skip

_PARETO = {"num_streams": LogUniform(10, 100, whole=True), "width": LogUniform(0.25, 4.0)}
"""The paper scales the width in all its Pareto sweeps and names an interval for ImageNet alone: it is taken for all."""

SPACES = _BASIC | {f"{name}-pareto": {**_BASIC[name], **_PARETO} for name in ("mnist", "cifar", "imagenet")}
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
        raise PreqError("the space draws nothing: every value is fixed; give a distribution, as LogUniform(1e-4, 1)")


def on_grid(space: Space, method: Method, size: int) -> dict[str, Any]:
    """The space with what decides plan and shapes drawn from a few values, so that trials can be stacked.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> on_grid(SPACES["mnist"], ReplayStreams(), 5)["num_streams"]
        Choice(values=(25, 35, 50, 71, 100))
    """
    shapes = [name for name in drawn(space) if name == "width" or own_name(name, method) is not None]
    return {**space, **{name: space[name].grid(size) for name in shapes if isinstance(space[name], Between)}}


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
    method = _changed(base.method, own)
    width, seed = float(settings.get("width", base.width)), int(settings.get("seed", base.seed))
    return Resolved(method, replace(base.recipe, **recipe), width, seed)


def _changed(method: Any, own: Mapping[str, Any]) -> Method:
    """The method with these settings, which of one that is given all inputs may be those of what it wraps."""
    if (given := given_all_inputs(method)) is not None:
        outer = {name: value for name, value in own.items() if name in described(AllInputs)}
        inner = {name: value for name, value in own.items() if name not in outer}
        own = outer | {"method": _changed(given.method, inner)}
    made: Method = replace(method, **own)
    return made


def require_draws(space: Space, seed: int, num_trials: int, base: Resolved) -> None:
    """Refuse a space of which one of so many trials would draw what method or recipe do not take.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> base = Resolved(ReplayStreams(), Recipe(), 1.0, 0)
        >>> require_draws({"batch_size": LogUniform(8, 64, whole=True)}, 0, 50, base)
        >>> require_draws({"batch_size": LogUniform(8, 64)}, 0, 50, base)
        Traceback (most recent call last):
        prequential.errors.PreqError: the space cannot be used: batch_size must be a whole number of at least 1, got ...
    """
    for number in range(num_trials):
        try:
            resolve(draw_settings(space, seed, number), base)
        except PreqError as error:
            raise PreqError(f"the space cannot be used: {error}; so trial {number} would draw it") from None
