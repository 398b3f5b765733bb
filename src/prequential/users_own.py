"""Python of the user's own, named as `file.py:name` or `package.module:name`: a model, a method, a space. No torch."""

import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from prequential.errors import PreqError, in_one_line


def find_own(spec: str, what: str) -> Any:
    """What a file or module of the user calls by that name.

    Files are run once as long as they do not change. Only what the user names on the command line or in a call comes
    here, never what a record or bitstream names.

    Args:
        spec: `file.py:name` or `package.module:name`.
        what: what it shall be, for errors, such as "model".

    Example:
        >>> find_own("math:pi", "model")
        3.141592653589793
    """
    module_name, _, attribute = spec.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        if module_name.endswith(".py"):
            status = Path(module_name).stat()
            module = _run(str(Path(module_name).resolve()), status.st_mtime_ns, status.st_size)
        else:
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's code may fail in any way, or end the program
        raise PreqError(f"cannot import '{module_name}' for the {what} '{spec}' ({in_one_line(error)})") from error
    if not hasattr(module, attribute):
        kind = "file" if module_name.endswith(".py") else "module"
        raise PreqError(f"{kind} '{module_name}' has no '{attribute}'; write file.py:name or package.module:name")
    return getattr(module, attribute)


class _AsWritten(SourceFileLoader):
    """Never takes the compiled code that Python keeps: its stamp does not tell two files of one second apart."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


@cache
def _run(path: str, *stamp: int) -> ModuleType:
    """The module in a file, known by its path, which no import can mean."""
    spec = importlib.util.spec_from_file_location(path, loader=_AsWritten(path, path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path] = module  # where dataclasses look up the types of their fields
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path]
        raise
    return module
