"""Methods by name, the package's and the user's own, and from the plain values that a record or bitstream holds."""

import copyreg
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, cast

from prequential.errors import PreqError, unknown_name
from prequential.methods import METHODS, Method
from prequential.methods.all_inputs import AllInputs
from prequential.methods.joint import Joint
from prequential.settings import from_plain
from prequential.users_own import find_own

OWN = "file.py:Class"
MEMBERS = ("name", "title", "prequential", "calibration_rate_factor", "events", "closing", "enter")
"""What a class must have to be a method, besides its settings."""


def find_method(name: str) -> type[Method]:
    """The method of that name: one of METHODS, or a user's own, `file.py:Class` or `package.module:Class`.

    Example:
        >>> find_method("ci-fs").title
        'CI/FS'
    """
    if ":" not in name:
        if name not in METHODS:
            raise unknown_name("method", name, [*METHODS, OWN])
        return METHODS[name]
    found = find_own(name, "method")
    if not isinstance(found, type) or not is_dataclass(found):
        raise PreqError(f"'{name}' is no class of settings; a method is a frozen dataclass with the members of Method")
    if missing := [member for member in MEMBERS if not hasattr(found, member)]:
        raise PreqError(f"the method '{name}' has no {missing[0]}; derive it from prequential.MethodDefaults")
    kind = cast(type[Method], found)
    if kind.name in METHODS:
        raise PreqError(f"the method '{name}' is called {kind.name}, as one of the package is; give it another name")
    if ".py:" in name:  # no import finds its class in another process: it goes there by the name of its file
        path = str(Path(name).absolute())
        copyreg.pickle(kind, lambda method: (_blank, (path,), vars(method)))
    return kind


def _blank(name: str) -> Method:
    """A method without its settings, which whoever unpickles it puts in."""
    return object.__new__(find_method(name))


def method_from_settings(settings: Mapping[str, Any], own: str | type[Method] | None = None) -> Method:
    """The method with these settings.

    Args:
        settings: as a record or bitstream holds them, with the name of the method.
        own: the method where it is not one of the package, which alone are found by their names: the class, or
            `file.py:Class`. No code is run because a file names it.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> from prequential.settings import settings_of
        >>> method_from_settings(settings_of(ReplayStreams(num_streams=3))) == ReplayStreams(num_streams=3)
        True
    """
    name = settings.get("name") if isinstance(settings, Mapping) else None
    if name == Joint.name and isinstance(settings.get("methods"), list):
        return Joint(tuple(method_from_settings(each) for each in settings["methods"]))
    if name == AllInputs.name and isinstance(settings.get("method"), Mapping):
        values = {key: value for key, value in settings.items() if key not in ("name", "method")}
        given: Method = from_plain(AllInputs, values, name, method=method_from_settings(settings["method"], own))
        return given
    kind: Any = find_method(own) if isinstance(own, str) else own
    if kind is not None and kind.name != name:
        raise PreqError(f"this was made with the method '{name}', got '{kind.name}'; give the same")
    if kind is None and (not isinstance(name, str) or name not in METHODS):
        raise PreqError(
            f"the method '{name}' is not one of the package ({', '.join(METHODS)}); give it again (--method {OWN})"
        )
    values = {key: value for key, value in settings.items() if key != "name"}
    method: Method = from_plain(kind or METHODS[str(name)], values, str(name))
    return method
