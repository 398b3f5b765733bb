"""HTML from Python: everything is escaped but what was made here."""

import re
from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Part = str | Markup | None
VOID = ("br", "input")
"""Elements that hold nothing and do not close."""


def tag(name: str, *parts: Part, **attributes: str | float | bool | None) -> Markup:
    """An element. Underscores in names of attributes become hyphens, one at the end is dropped; None leaves one out.

    Example:
        >>> tag("td", "a < b", tag("b", "!"), data_value=1.5, class_="number", hidden=None)
        '<td data-value="1.5" class="number">a &lt; b<b>!</b></td>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{written}>" + ("" if name in VOID else f"{join(parts)}</{name}>"))


def with_powers(text: str) -> Markup:
    """Text whose powers of e are written as such.

    Example:
        >>> with_powers("a < b, odds e^1,204 : 1, e^−3.5")
        'a &lt; b, odds e<sup>1,204</sup> : 1, e<sup>−3.5</sup>'
    """
    return Markup(re.sub(r"\be\^(−?\d[\d,.]*\d|−?\d)", r"e<sup>\1</sup>", escape(text)))


def join(parts: Iterable[Part]) -> Markup:
    """Parts behind each other, escaped where they are no HTML yet."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part or "") for part in parts))


def fill(template: str, values: dict[str, str]) -> str:
    """A template with every {{name}} replaced, in one pass: what is put in is not looked at again.

    Example:
        >>> fill("<p>{{a}} {{b}}</p>", {"a": "{{b}}", "b": "2"})
        '<p>{{b}} 2</p>'
    """
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)
