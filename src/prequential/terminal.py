"""The one way to a terminal: what files, names and other people's errors hold is shown there and never obeyed.

Commands print by `tell`; tables, sentences and live lines (`report.table`, `cli.show`, `cli.watch`), the text of every
`PreqError` and `PreqWarning`, pages and pictures pass what they were given through `printable`. No torch.
"""

import json
import math
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Kinds of letters with no form of their own: commands to terminals, line breaks, what turns the direction of writing
round or hides, and halves of letters."""
JOINERS = "\u200c\u200d"
"""Of these, what some scripts are written with."""


def printable(text: str) -> str:
    """Text on one line, with escapes for what is no letter: line breaks and commands to terminals, what turns the
    direction of writing round, bytes that are no UTF-8.

    Example:
        >>> print(printable("mlp\\n\\x1b[31m"), printable("invoice\\u202egpj.exe"), printable("数据 [bold] <b>"))
        mlp\\n\\x1b[31m invoice\\u202egpj.exe 数据 [bold] <b>
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(letter: str) -> str:
    is_unseen = unicodedata.category(letter) in UNSEEN and letter not in JOINERS
    return letter.encode("unicode_escape").decode() if is_unseen else letter


def tell(*lines: object, error: bool = False) -> None:
    """Print lines, each of which stays one whatever it holds; on standard error, if they are about the work.

    Example:
        >>> tell("data: a\\nfinished", "record: runs/a")
        data: a\\nfinished
        record: runs/a
    """
    for line in lines:
        print(printable(str(line)), file=sys.stderr if error else sys.stdout)


def note(message: Warning | str, *_: object, **__: object) -> None:
    """A warning in one line, for `warnings.showwarning`."""
    tell(f"preq: note: {message}", error=True)


def in_json(facts: object) -> str:
    """Facts as JSON, which knows no infinity: a number that is none is null there.

    Example:
        >>> print(in_json({"nats": [1.5, float("inf")], "names": ("a", None)}))
        {"nats": [1.5, null], "names": ["a", null]}
    """

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [plain(each) for each in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(facts), allow_nan=False)
