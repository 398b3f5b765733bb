"""Which method goes with which model, and what has no meaning for a model that is no network."""

from collections.abc import Sequence

from prequential.errors import PreqError
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.libraries import prefix_of
from prequential.methods import METHODS, Method, Online, ReplayStreams
from prequential.methods.all_inputs import given_all_inputs
from prequential.models import ModelFactory, name_of


def default_method(make_model: object) -> Method:
    """The method of a model for which none was named.

    Example:
        >>> default_method("lenet").name, default_method("river:forest.ARFClassifier").name
        ('mi-rs', 'online')
    """
    experts = [expert.model for expert in getattr(make_model, "each", ())]
    return Online() if all(prefix_of(model) is not None for model in experts or [make_model]) else ReplayStreams()


def require_trainable(make_model: str | ModelFactory, method: Method) -> None:
    """Refuse to let a network predict that is never trained."""
    if isinstance(method, Online) and prefix_of(make_model) is None:
        raise PreqError(
            f"online has no training steps, so that the network '{name_of(make_model)}' would learn nothing; "
            "take another method, or a model that learns by itself (sklearn:…, river:…)"
        )


def require_network_for_inputs(models: Sequence[str | ModelFactory], method: Method) -> None:
    """Refuse to give all inputs where nobody makes anything of them."""
    if given_all_inputs(method) is not None and all(prefix_of(model) is not None for model in models):
        raise PreqError(
            f"all inputs are given to networks, and '{name_of(models[0])}' is none; leave them out (no AllInputs, no "
            "--all-inputs)"
        )


def require_meaningful(
    name: str,
    method: Method,
    recipes: Sequence[Recipe],
    width: float,
    device: str,
    execution: Execution | None,
    *,
    stacked: bool,
) -> None:
    """Refuse settings that mean nothing for a classifier that is no network."""
    other, how = name_of(name), execution or Execution()
    if stacked:
        raise PreqError(f"a stack trains networks together, and '{other}' is none; run it alone")
    require_network_for_inputs([name], method)
    if method.name in METHODS and not isinstance(method, Online):
        raise PreqError(
            f"'{other}' learns from the labels as they are revealed, {method.name} trains networks; "
            "take --method online, or none"
        )
    if any(recipe != Recipe() for recipe in recipes):
        raise PreqError(f"a recipe is about training a network, and '{other}' is none; leave it out")
    if width != 1.0:
        raise PreqError(f"the model '{other}' has no width to scale, got width {width:g}; leave it out")
    if device != "cpu":
        raise PreqError(f"'{other}' computes on the CPU, got device '{device}'; leave it out")
    if how.engine not in ("auto", "eager") or how.precision not in ("auto", "fp32") or how.compiled:
        raise PreqError(f"engine, precision and compiling are about networks, and '{other}' is none; leave them out")
