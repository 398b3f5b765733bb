"""Short names for runs, the same in every table, plot and page."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from prequential.runs.record import Record


def short_names(records: Sequence[Record]) -> list[str]:
    """A name for each run: its own, or as much of the end of its directory as tells it from the others.

    A record that was never written is called by its model. Names that would still be equal get a number.

    Example:
        >>> shortest(["runs/a/lenet", "runs/b/lenet", "runs/a/mlp"])
        ['a/lenet', 'b/lenet', 'mlp']
    """
    paths = [record.model["name"] if record.path is None else str(record.path) for record in records]
    names = shortest(paths, [record.name for record in records])
    used: Counter[str] = Counter()
    doubled = {name for name, times in Counter(names).items() if times > 1}
    found = []
    for name in names:
        used[name] += 1
        found.append(f"{name} ({used[name]})" if name in doubled else name)
    return found


def printable(text: str) -> str:
    """Text with escapes for what is no letter: line breaks and commands to terminals, bytes that are no UTF-8.

    Example:
        >>> print(printable("mlp\\n\\x1b[31m"), printable("数据 [bold] <b>"))
        mlp\\n\\x1b[31m 数据 [bold] <b>
    """
    unseen = ("Cc", "Cs", "Zl", "Zp")
    return "".join(
        letter.encode("unicode_escape").decode() if unicodedata.category(letter) in unseen else letter
        for letter in text
    )


def shortest(paths: Sequence[str], given: Sequence[str | None] | None = None) -> list[str]:
    """Each path without the folders that are not needed to tell it from the others; names that were given stay.

    Example:
        >>> shortest(["runs/a/lenet", "runs/b/lenet"], [None, "the best"])
        ['lenet', 'the best']
    """
    named = zip(paths, given or [None] * len(paths), strict=True)
    parts = [(name,) if name else PurePath(path).parts or (path,) for path, name in named]
    depths = [1] * len(parts)
    while True:
        names = ["/".join(part[-depth:]) for part, depth in zip(parts, depths, strict=True)]
        times = Counter(names)
        longer = [
            min(depth + (times[name] > 1), len(part)) for part, depth, name in zip(parts, depths, names, strict=True)
        ]
        if longer == depths:
            return [printable(name) for name in names]
        depths = longer
