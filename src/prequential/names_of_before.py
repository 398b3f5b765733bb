"""What files of format 1, and imports of before, call by another name than we do now. No torch.

A name that comes to mean something else raises the format, and what it meant goes into a table here. Records,
checkpoints, bitstreams and sweeps are translated where they are read, so that nothing else knows names of before.
"""

import importlib
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from prequential.errors import PreqError

FORMATS = (1, 2)
"""Of records, checkpoints, bitstreams and sweeps: those that are read. The last is written."""

MODELS = {
    "mnistnet": "smallconv",
    "mnistnet-ws": "smallconv-ws",
    "prequential.models.mnistnet:mnistnet": "prequential.models.smallconv:smallconv",
}
"""In format 1 `mnistnet` is our small network; from format 2 on it is that of Blier & Ollivier (2018)."""


def require_format(found: object, where: object) -> None:
    """Refuse a file of a format that this version does not read."""
    if found not in FORMATS:
        raise PreqError(f"{where} has format {found}, this version reads {' and '.join(map(str, FORMATS))}")


def in_names_of_now(facts: Mapping[str, Any], file_format: object) -> dict[str, Any]:
    """A copy of what a file says of a run or a sweep, in the names of now; the given facts stay as they are.

    Args:
        facts: of a record, a checkpoint or a sweep, or the header of a bitstream.
        file_format: of the file.

    Example:
        >>> in_names_of_now({"model": {"name": "mnistnet", "width": 1.0}, "length": 64}, 1)
        {'model': {'name': 'smallconv', 'width': 1.0}, 'length': 64}
        >>> in_names_of_now({"recipe": {"eps": 0.1, "fast_statistics": False}}, 1)
        {'recipe': {'eps': 0.1, 'batch_statistics': 'averaged-twice'}}
        >>> in_names_of_now({"model": "mnistnet"}, 2)
        {'model': 'mnistnet'}
    """
    parts = PARTS if file_format == 1 else {"data": _data}
    return {name: parts[name](value) if name in parts else value for name, value in facts.items()}


def hint(then: object, now: object) -> str:
    """What to add to a difference, where somebody goes on by the old name with what has a new one; else nothing.

    Example:
        >>> hint("smallconv", "mnistnet")
        ' (what was called mnistnet before is smallconv now)'
        >>> hint("lenet", "mnistnet")
        ''
    """
    is_renamed = isinstance(now, str) and now in MODELS and MODELS[now] == then
    return f" (what was called {now} before is {then} now)" if is_renamed else ""


def differences(place: str, then: object, now: object) -> Iterator[str]:
    """In which settings two of them differ, part by part.

    Example:
        >>> list(differences("model", {"name": "smallconv", "width": 1.0}, {"name": "lenet", "width": 1.0}))
        ['model.name smallconv then, lenet now']
    """
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*then, *now]):
            yield from differences(f"{place}.{key}" if place else key, then.get(key), now.get(key))
    elif _are_tables(then) and _are_tables(now):
        if len(then) != len(now):
            yield f"{place} {len(then)} then, {len(now)} now"
        for number, pair in enumerate(zip(then, now, strict=False), 1):
            yield from differences(f"{place}.{number}", *pair)
    elif then != now:
        yield f"{place} {then} then, {now} now{hint(then, now)}"


def _are_tables(value: object) -> TypeGuard[list[dict[str, Any]]]:
    """Whether it is a list of tables, as that of the experts of a run."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def module_of_before(then: str, now: str, renamed: Mapping[str, str]) -> types.ModuleType:
    """A module that gives the names of another, with a warning, so that files with imports of before still work.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True, action="always") as said:
        ...     found = module_of_before("some.old", "prequential.rng", {"seed_for": "derive"}).seed_for
        >>> found.__name__, str(said[0].message)
        ('derive', 'seed_for of some.old is derive of prequential.rng now')
    """

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(importlib.import_module(now), renamed.get(name, name))
        text = f"{name} of {then} is {renamed.get(name, name)} of {now} now"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return found

    module = types.ModuleType(then, f"What {now} was called before.")
    vars(module)["__getattr__"] = find
    return module


def _model(model: Any) -> Any:
    """A sweep gives the name alone, other files an object that has one; anything else is for others to refuse."""
    if isinstance(model, Mapping) and "name" in model:
        return {**model, "name": _model(model["name"])}
    return MODELS.get(model, model) if isinstance(model, str) else model


def _recipe(settings: Any) -> Any:
    """Of a run, or of the space of a sweep, whose values may be anything a file can hold."""
    if not isinstance(settings, Mapping) or not isinstance(settings.get("fast_statistics"), bool):
        return settings
    kind = "averaged" if settings["fast_statistics"] else "averaged-twice"
    return {("batch_statistics" if n == "fast_statistics" else n): (kind if n == "fast_statistics" else v)
            for n, v in settings.items()}  # fmt: skip


def _data(facts: Any) -> Any:
    """Without the fingerprint by which views of the same examples (RGB-MNIST's channels) were known to be such; the
    option of that name, of data that is to be made, stays.

    Example:
        >>> _data({"inputs": "5f", "examples": "3a"}), _data({"name": "rgb-mnist", "examples": 64})
        ({'inputs': '5f'}, {'name': 'rgb-mnist', 'examples': 64})
    """
    if not isinstance(facts, Mapping):
        return facts
    kept = ((name, value) for name, value in facts.items() if name != "examples" or not isinstance(value, str))
    return {name: _data(value) if name == "heldout" else value for name, value in kept}


PARTS: dict[str, Callable[[Any], Any]] = {"data": _data, "model": _model, "recipe": _recipe, "space": _recipe}
"""How each part of the facts of format 1 is translated."""
