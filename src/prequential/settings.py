"""Settings as plain values: for records, checkpoints and bitstreams. No torch."""

import numbers
from dataclasses import fields, is_dataclass
from typing import Any


def use_plain_numbers(settings: object) -> None:
    """Turn NumPy's numbers in a settings dataclass into Python's, which every format can hold."""
    for name, value in _attributes(settings).items():
        if isinstance(value, numbers.Number) and not isinstance(value, bool | int | float):
            object.__setattr__(settings, name, plain_value(value))


def settings_of(settings: object) -> dict[str, Any]:
    """The settings of a method or recipe as plain values, with its name where it has one.

    Example:
        >>> from prequential.methods import Pareto, ReplayStreams
        >>> settings_of(ReplayStreams(age_law=Pareto(180.0)))["age_law"]
        {'name': 'pareto', 'scale': 180.0}
    """
    name = getattr(settings, "name", None)
    plain = {key: plain_value(value) for key, value in _attributes(settings).items()}
    return {"name": name, **plain} if isinstance(name, str) else plain


def _attributes(settings: object) -> dict[str, Any]:
    if is_dataclass(settings):
        return {f.name: getattr(settings, f.name) for f in fields(settings)}
    return dict(getattr(settings, "__dict__", {}))


def plain_value(value: object) -> object:
    """What JSON can hold of a setting."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    name = getattr(type(value), "name_in_files", type(value).__name__.lower())
    return {"name": name, **{k: plain_value(v) for k, v in _attributes(value).items()}}
