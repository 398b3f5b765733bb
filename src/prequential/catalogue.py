"""Every setting that a run has: those of the methods, of the recipe, and of the run itself. No torch."""

from collections.abc import Collection
from dataclasses import fields, is_dataclass
from functools import cache

from prequential.learn.recipe import Recipe
from prequential.methods import METHODS, AllInputs
from prequential.methods.all_inputs import given_all_inputs
from prequential.settings import described

OF_THE_RUN = ("width", "seed")
"""Settings that belong to neither method nor recipe."""
OF_THE_RECIPE = tuple(field.name for field in fields(Recipe))


@cache
def roles() -> dict[str, str]:
    """What presets and spaces may call a setting whatever its method calls it, by name of the setting.

    Example:
        >>> roles()
        {'num_streams': 'passes', 'num_replays': 'passes', 'epochs': 'passes'}
    """
    return _of_methods("role")


@cache
def short_names() -> dict[str, str]:
    """The settings that people look at first, and what they are called where there is little room.

    Example:
        >>> list(short_names().items())[:3]
        [('num_streams', 'streams'), ('num_replays', 'replays'), ('epochs', 'epochs')]
    """
    of_methods = _of_methods("short")
    passes = {name: of_methods[name] for name in roles()}
    of_recipe = {each.name: each.terms.short for each in described(Recipe).values() if each.terms.short}
    return passes | of_methods | of_recipe | {name: name for name in OF_THE_RUN}


def _of_methods(term: str) -> dict[str, str]:
    kinds = METHODS.values()
    told = [(each.name, getattr(each.terms, term)) for kind in kinds for each in described(kind).values()]
    return {name: value for name, value in told if value}


def own_name(name: str, method: object) -> str | None:
    """What a method calls a setting that is named by its role, or by another method's name for it.

    Args:
        name: a setting of some method, or a role such as "passes".
        method: a method, its class, or the names of its settings.

    Returns:
        The name, or None where the method has no such setting.

    Example:
        >>> [own_name(name, ("epochs", "batch_size")) for name in ("num_streams", "batch_size", "capacity")]
        ['epochs', 'batch_size', None]
    """
    if (given := given_all_inputs(method)) is not None:
        return name if name in described(AllInputs) else own_name(name, given.method)
    if is_dataclass(method):
        told = described(method if isinstance(method, type) else type(method))
        known = {each.name: each.terms.role for each in told.values()}
    else:
        assert isinstance(method, Collection)
        known = {each: roles().get(each, "") for each in method}
    if name in known:
        return name
    role = roles().get(name, name)
    return next((each for each, its in known.items() if its == role), None)
