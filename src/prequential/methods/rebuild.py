"""A method or recipe from the plain values that a record or bitstream holds."""

from dataclasses import fields
from typing import Any

from prequential.errors import PreqError
from prequential.methods import AGE_LAWS, METHODS, Method, age_law


def method_from_settings(settings: dict[str, Any]) -> Method:
    """The method with these settings; only methods of the package are built.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> from prequential.settings import settings_of
        >>> method_from_settings(settings_of(ReplayStreams(num_streams=3))) == ReplayStreams(num_streams=3)
        True
    """
    name = settings.get("name") if isinstance(settings, dict) else None
    if not isinstance(name, str) or name not in METHODS:
        raise PreqError(f"the method '{name}' is not one of the package ({', '.join(METHODS)}); give it again")
    kind: Any = METHODS[name]
    values = {key: value for key, value in settings.items() if key != "name"}
    _require_known(kind, values)
    if isinstance(law := values.get("age_law"), dict):
        arguments = {key: value for key, value in law.items() if key != "name"}
        if law.get("name") not in list(AGE_LAWS) or set(arguments) - {"scale"}:
            raise PreqError(f"the age law {law} is not one of the package ({', '.join(AGE_LAWS)})")
        values["age_law"] = age_law(law["name"], arguments.get("scale"))
    if isinstance(values.get("split_points"), list):
        values["split_points"] = tuple(values["split_points"])
    method: Method = kind(**values)
    return method


def _require_known(kind: Any, values: dict[str, Any]) -> None:
    unknown = set(values) - {f.name for f in fields(kind)}
    if unknown:
        raise PreqError(f"{kind.name} has no setting {', '.join(sorted(unknown))}; was it made by another version?")
