"""What predictions may look at besides earlier labels. No torch.

A code of labels is a code *given inputs*. Plan, data preparation and model each look at some; what the code is
conditioned on is the widest of them.
"""

from collections.abc import Iterable

from prequential.errors import PreqError

INPUTS_SO_FAR, ALL_INPUTS = "inputs up to the label", "all inputs"
ORDER = (INPUTS_SO_FAR, ALL_INPUTS)
"""From the narrowest to the widest; each is part of the next."""
NAMED = 3
"""Names that a note lists."""


def widest(*parts: str) -> str:
    """What is conditioned on these parts is conditioned on; the narrowest of all where there is none.

    Raises:
        PreqError: for a part that is not in ORDER.

    Example:
        >>> widest(), widest("inputs up to the label", "all inputs")
        ('inputs up to the label', 'all inputs')
    """
    for part in parts:
        if part not in ORDER:
            wanted = " or ".join(f"'{known}'" for known in ORDER)
            raise PreqError(f"conditioned_on must be {wanted}, got {part!r}; name the widest that is looked at")
    return max(parts, key=ORDER.index, default=INPUTS_SO_FAR)


def difference(given: Iterable[tuple[str, str]]) -> str:
    """One line about codes, each a name and what it is conditioned on, where these differ; else nothing.

    Such codes may be compared, each is a code of the same labels. But the wider one was told more, so it is said
    wherever they stand beside each other.

    Example:
        >>> print(difference([("a", "all inputs"), ("b", "inputs up to the label"), ("c", "all inputs")]))
        the codes are given different inputs (inputs up to the label: b; all inputs: a, c)
        >>> difference([("a", "all inputs"), ("b", "all inputs")])
        ''
    """
    names: dict[str, list[str]] = {}
    for name, looked_at in given:
        names.setdefault(looked_at, []).append(name)
    if len(names) < 2:
        return ""
    ordered = sorted(names, key=lambda each: (ORDER.index(each) if each in ORDER else len(ORDER), each))
    told = [f"{each}: {', '.join(names[each]) if len(names[each]) <= NAMED else len(names[each])}" for each in ordered]
    return f"the codes are given different inputs ({'; '.join(told)})"
