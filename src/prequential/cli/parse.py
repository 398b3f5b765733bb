"""Arguments through tyro, its help in groups, its errors on one line.

A command is a frozen dataclass of flags, a flag's help the docstring below its field. A class with a `GROUP` puts the
flags it defines under that heading; the flags of a class stand before those it inherits.
"""

import contextlib
import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from prequential.errors import PreqError
from prequential.settings import meanings

Parsed = TypeVar("Parsed")
DESCRIPTION = "DESCRIPTION"
"""Where the description goes in a help text: tyro would join its lines."""
GROUPS = ("", "data", "model", "method", "training", "sweep", "output", "machine")
"""The headings of a help text, in order; flags without one come first."""
GIVEN = "given"
"""The field that holds which of a command's generated flags were given."""
Generated = tuple[str, Any, Any]
"""A flag that no class defines: its name, its type as tyro takes it, and its default."""
WIDEST = 100
"""Columns beyond which a line of text is hard to read, however wide the terminal is."""


def _value(kind: type[int] | type[float] | type[str], metavar: str) -> PrimitiveConstructorSpec[Any]:
    def read(texts: list[str]) -> int | float | str:
        try:
            return kind(texts[0])
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise ValueError(f"{wanted} is needed, got '{texts[0]}'") from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, int | float | str),
        str_from_instance=lambda value: [f"{value}"],
    )


def _read_positions(texts: list[str]) -> tuple[int, ...]:
    parts = [part for text in texts for part in text.split(",") if part]
    for part in parts:
        if not part.isdigit():
            raise ValueError(f"whole numbers are needed, got '{part}'")
    return tuple(map(int, parts))


Whole = Annotated[int, _value(int, "N")]
Real = Annotated[float, _value(float, "X")]
Text = Annotated[str, _value(str, "NAME")]
Count = Annotated[int | None, _value(int, "N")]
Number = Annotated[float | None, _value(float, "X")]
Word = Annotated[str | None, _value(str, "NAME")]
Positions = Annotated[
    tuple[int, ...] | None,
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="N ...",
        instance_from_str=_read_positions,
        is_instance=lambda value: value is None or isinstance(value, tuple),
        str_from_instance=lambda value: [f"{item}" for item in value or ()],
    ),
]
Words = Annotated[
    tuple[str, ...] | None,
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="NAME ...",
        instance_from_str=lambda texts: tuple(texts),
        is_instance=lambda value: value is None or isinstance(value, tuple),
        str_from_instance=lambda value: list(value or ()),
    ),
]
PathText = Annotated[str | None, _value(str, "PATH")]


def default(value: object) -> Any:
    """The hint behind a flag whose default is decided elsewhere.

    Example:
        >>> default(0.003).help_behavior_hint
        '(default: 0.003)'
    """
    return tyro.conf.arg(help_behavior_hint=f"(default: {value})")


UNSET = tyro.conf.arg(help_behavior_hint="")


class _Held(io.TextIOWrapper):
    """Text that is printed later, in the letters and colours that standard output can show."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding=sys.stdout.encoding or "utf-8", errors="replace", write_through=True)
        self._is_terminal = sys.stdout.isatty()

    def isatty(self) -> bool:
        return self._is_terminal

    def text(self) -> str:
        """What was written."""
        self.seek(0)
        return self.read()


def parse(
    kind: type[Parsed], command: str, arguments: list[str], generated: Mapping[str, Sequence[Generated]] | None = None
) -> Parsed:
    """The arguments as an instance of a class of flags; a mistake is one line, not a box.

    Of `generated` flags, which come by heading, the field `given` of the class gets those that were given.
    """
    mistake, shown = io.StringIO(), _Held()
    try:
        with contextlib.redirect_stderr(mistake), contextlib.redirect_stdout(shown):
            parsed: Any = tyro.cli(
                _grouped(kind, generated or {}),
                args=arguments,
                prog=f"preq {command}",
                description=DESCRIPTION,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            usage, _, rest = shown.text().partition("\n")
            text = described(kind.__doc__ or "", width := shutil.get_terminal_size().columns)
            print(_fill(usage, width, later="  "), rest.replace(DESCRIPTION, text), sep="\n", end="", flush=True)
            raise
        raise PreqError(one_line(mistake.getvalue(), command)) from None
    values = {name: value for group in vars(parsed).values() for name, value in vars(group).items()}
    if generated:
        names = [name for flags in generated.values() for name, *_ in flags]
        asked = {name: values.pop(name) for name in names}
        values[GIVEN] = {name: value for name, value in asked.items() if value is not None and value is not False}
    return kind(**values)


def _grouped(kind: type, generated: Mapping[str, Sequence[Generated]]) -> type:
    """The flags of a class as tyro takes them in groups: a class of classes, one for each heading."""
    hints, help_of = get_type_hints(kind, include_extras=True), meanings(kind)
    left = {each.name: each for each in fields(kind) if each.name != GIVEN}
    groups: dict[str, list[Generated]] = {group: [] for group in GROUPS}
    for owner in kind.__mro__:
        for name in [name for name in vars(owner).get("__annotations__", {}) if name in left]:
            group = vars(owner).get("GROUP", "")
            told = tyro.conf.arg(help=help_of.get(name))
            groups[group].append((name, Annotated[hints[name], told], left.pop(name).default))
    for group, flags in generated.items():
        groups[group] += flags
    return make_dataclass(
        kind.__name__,
        [
            (f"group_{group}", Annotated[_flags_class(flags), tyro.conf.arg(name=group, help="")])
            for group, flags in groups.items()
            if flags
        ],
    )


def _flags_class(flags: Sequence[Generated]) -> Any:
    whole_name = tyro.conf.OmitArgPrefixes
    defaults = [field() if default is MISSING else field(default=default) for _, _, default in flags]
    named = zip(flags, defaults, strict=True)
    return make_dataclass(
        "Flags", [(name, Annotated[hint, whole_name], at) for (name, hint, _), at in named], kw_only=True
    )


def described(text: str, width: int) -> str:
    """A docstring as the top of a help text: as wide as the terminal, lists and examples indented.

    Example:
        >>> print(described("Compare runs.\\n\\n`preq compare runs`\\n\\nRuns must be\\n    of the same data.", 24))
        Compare runs.
        <BLANKLINE>
          preq compare runs
        <BLANKLINE>
        Runs must be of the same
        data.
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(_wrapped(paragraph, min(width, WIDEST)) for paragraph in paragraphs)


def _wrapped(paragraph: str, width: int) -> str:
    """Lines of a width: of plain text, of a list whose items begin with a hyphen, or the one line of an example."""
    if re.fullmatch("`[^`]*`", paragraph):
        return f"  {paragraph.strip('`')}"
    if paragraph.startswith("- "):
        return "\n".join(_fill(item, width, "  ", "      ") for item in re.split(r"(?:^|\n)- ", paragraph)[1:])
    return _fill(paragraph, width)


def _fill(words: str, width: int, first: str = "", later: str = "") -> str:
    return textwrap.fill(
        " ".join(words.split()), width, initial_indent=first, subsequent_indent=later,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def one_line(box: str, command: str) -> str:
    """What a box of tyro's says (drawn with lines or in plain ASCII), without the box.

    Example:
        >>> one_line("╭─ Unrecognized options ─╮\\n│ Unrecognized options: --lrr │", "run")
        'unrecognized options: --lrr; see preq run --help'
        >>> one_line("╭─ Missing ─╮\\n│ Missing from preq run: DATA Some data (required) MODEL One (required) │", "run")
        'missing from preq run: DATA MODEL; see preq run --help'
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│| \t") for line in plain.splitlines()][1:]
    lines = [line for line in lines if line and not line.startswith(("╰", "+"))]
    text = " ".join("\n" if set(line) <= {"─", "-"} else line for line in lines)
    sections = [section.strip() for section in text.split("\n") if section.strip()]
    message = sections[0].rstrip(".") if sections else "arguments not understood"
    message = re.sub(r"(?<=[A-Z]{2}) (?!-|[A-Z]{2}).*?\(required\)", "", message)  # what stands behind each name
    hint = ";"
    for section in sections[1:]:
        if "erhaps you meant" in section and (flag := re.search(r"--[\w-]+", section)):
            hint = f"; did you mean {flag.group()}?"
    return f"{message[:1].lower()}{message[1:]}{hint} see preq {command} --help"
