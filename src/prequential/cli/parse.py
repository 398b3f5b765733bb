"""Arguments through tyro, its errors on one line."""

import contextlib
import inspect
import io
import re
import shutil
import sys
import textwrap
from typing import Annotated, Any, TypeVar

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from prequential.errors import PreqError

Parsed = TypeVar("Parsed")
DESCRIPTION = "DESCRIPTION"
"""Where the description goes in a help text: tyro would join its lines."""
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


def parse(kind: type[Parsed], command: str, arguments: list[str]) -> Parsed:
    """The arguments as an instance of a settings class; a mistake is one line, not a box."""
    mistake, shown = io.StringIO(), _Held()
    try:
        with contextlib.redirect_stderr(mistake), contextlib.redirect_stdout(shown):
            return tyro.cli(
                kind,
                args=arguments,
                prog=f"preq {command}",
                description=DESCRIPTION,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            text = described(kind.__doc__ or "", shutil.get_terminal_size().columns)
            print(shown.text().replace(DESCRIPTION, text), end="", flush=True)
            raise
        raise PreqError(one_line(mistake.getvalue(), command)) from None


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

    def fill(words: str, first: str = "", later: str = "") -> str:
        return textwrap.fill(
            " ".join(words.split()), width, initial_indent=first, subsequent_indent=later,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip

    if re.fullmatch("`[^`]*`", paragraph):
        return f"  {paragraph.strip('`')}"
    if paragraph.startswith("- "):
        return "\n".join(fill(item, "  ", "      ") for item in re.split(r"(?:^|\n)- ", paragraph)[1:])
    return fill(paragraph)


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
