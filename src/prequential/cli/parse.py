"""Arguments through tyro, its help in groups, its errors on one line.

A command is a class of flags (`flag_group`), a flag's help the docstring below its field. The flags of a class stand
under its heading, before those of the same heading that it inherits.
"""

import contextlib
import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from prequential.errors import PreqError
from prequential.settings import Described, described, meanings
from prequential.terminal import in_json, tell

Parsed = TypeVar("Parsed")
DESCRIPTION = "DESCRIPTION"
"""Where the description goes in a help text: tyro would join its lines."""
GROUPS = ("", "data", "model", "method", "training", "all inputs", "sweep", "output", "machine")
"""The headings of a help text, in order; flags without one come first."""
GIVEN = "given"
"""The field that holds which of a command's generated flags were given."""
NEEDED = dict.fromkeys(("runs", "directories"), "run; name its directory") | {"networks": "network; name it"}
"""Fields that must not be empty, and what is missing where they are."""
Generated = tuple[str, Any, Any]
"""A flag that no class defines: its name, its type as tyro takes it, and its default."""
ByGroup = Mapping[str, Sequence[Generated]]
"""Such flags, by heading."""
CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
"""No flag has another to switch it off, nor a name with that of its group before it."""
WIDEST = 100
"""Columns beyond which a line of text is hard to read, however wide the terminal is."""


def _type(read: Callable[[list[str]], Any], metavar: str) -> PrimitiveConstructorSpec[Any]:
    several = metavar.endswith("...")
    return PrimitiveConstructorSpec(
        nargs="*" if several else 1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, int | float | str | tuple),
        str_from_instance=lambda value: [f"{item}" for item in (value or () if several else (value,))],
    )


def _number(kind: type[int] | type[float], texts: list[str]) -> float:
    try:
        return kind(texts[0])
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{wanted} is needed, got '{texts[0]}'") from None


def _positions(texts: list[str]) -> tuple[int, ...]:
    parts = [part for text in texts for part in text.split(",") if part]
    for part in parts:
        if not part.isdigit():
            raise ValueError(f"whole numbers are needed, got '{part}'")
    return tuple(map(int, parts))


MAYBE = PrimitiveConstructorSpec(
    nargs=(0, 1),
    metavar="[COLUMN=VALUE]",
    instance_from_str="".join,
    is_instance=lambda value: value is None or isinstance(value, str),
    str_from_instance=lambda value: [value] if value else [],
)
"""A flag that may stand alone: then it is an empty text."""
Word = Annotated[str | None, _type("".join, "NAME")]
PathText = Annotated[str | None, _type("".join, "PATH")]
Runs = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="")]
SameInputs = Annotated[
    bool,
    tyro.conf.arg(help="Refuse runs whose inputs differ; without it, that they do is said.", help_behavior_hint=""),
]
TYPES: dict[Any, Any] = {
    int: Annotated[int | None, _type(partial(_number, int), "N")],
    float: Annotated[float | None, _type(partial(_number, float), "X")],
    str: Word,
    tuple[int, ...]: Annotated[tuple[int, ...] | None, _type(_positions, "N ...")],
    tuple[str, ...]: Annotated[tuple[str, ...] | None, _type(tuple, "NAME ...")],
}
"""What a flag of that type is parsed as; it may be None, where it is not given."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def flag_group(group: str = "") -> Callable[[type[Parsed]], type[Parsed]]:
    """Make a class of flags, which stand under that heading."""

    def made(kind: type[Parsed]) -> type[Parsed]:
        kind.GROUP = group  # type: ignore[attr-defined]
        return dataclass(frozen=True, kw_only=True)(kind)

    return made


def default(value: object) -> Any:
    """The hint behind a flag whose default is decided elsewhere.

    Example:
        >>> default(0.003).help_behavior_hint
        '(default: 0.003)'
    """
    return tyro.conf.arg(help_behavior_hint=f"(default: {value})")


UNSET = tyro.conf.arg(help_behavior_hint="")


@flag_group("output")
class JsonFlag:
    """For programs that read what a command prints."""

    json: bool = False
    """Print one JSON object and nothing else."""

    def result(self, facts: Callable[[], Mapping[str, Any]], show: Callable[[], object]) -> None:
        """Print the result: facts for a program, null where a number is none, or what `show` prints for a person."""
        if self.json:
            tell(in_json(facts()))
        else:
            show()

    def tell(self, line: str) -> None:
        """Say something beside the result: on standard error, where standard output is for a program."""
        tell(line, error=self.json)


def parse(kind: type[Parsed], command: str, arguments: list[str], generated: ByGroup | None = None) -> Parsed:
    """The arguments as an instance of a class of flags; a mistake is one line, not a box. Of `generated` flags, which
    come by heading, the field `given` of the class gets those that were given."""
    mistake, grouped, program = io.StringIO(), _grouped(kind, generated or {}), f"preq {command}"
    shown = io.TextIOWrapper(io.BytesIO(), sys.stdout.encoding or "utf-8", "replace")  # drawn in letters that it has
    try:
        with contextlib.redirect_stderr(mistake), contextlib.redirect_stdout(shown):
            parsed: Any = tyro.cli(grouped, args=arguments, prog=program, description=DESCRIPTION, config=CONFIG)
    except SystemExit as stop:
        if not stop.code:
            shown.seek(0)
            usage, _, rest = shown.read().partition("\n")
            text = help_top(kind.__doc__ or "", width := shutil.get_terminal_size().columns)
            print(_fill(usage, width, later="  "), rest.replace(DESCRIPTION, text), sep="\n", end="", flush=True)
            raise
        raise PreqError(one_line(mistake.getvalue(), command)) from None
    values = {name: value for group in vars(parsed).values() for name, value in vars(group).items()}
    if generated:
        asked = {name: values.pop(name) for those in generated.values() for name, *_ in those}
        values[GIVEN] = {name: value for name, value in asked.items() if value is not None and value is not False}
    made = kind(**values)
    if empty := next((wanted for name, wanted in NEEDED.items() if values.get(name) == ()), None):
        raise PreqError(f"{program} needs at least one {empty}, see {program} --help")
    return made


def _grouped(kind: type, generated: ByGroup) -> type:
    """The flags of a class as tyro takes them in groups: a class of classes, one for each heading."""
    hints, help_of = get_type_hints(kind, include_extras=True), meanings(kind)
    left = {name: each for name, each in described(kind).items() if name != GIVEN}
    groups: dict[str, list[Generated]] = {group: [] for group in GROUPS}
    group = ""
    for owner in kind.__mro__:
        group = vars(owner).get("GROUP", group)  # plain settings stand where the flags do that take them in
        for name in [name for name in inspect.get_annotations(owner) if name in left]:
            each, told = left.pop(name), tyro.conf.arg(help=help_of.get(name))
            groups[group].append((name, Annotated[_typed(hints[name], each), told], each.default))
    for group, more in generated.items():
        groups[group] += more
    made = []
    for group, those in groups.items():
        # a default that is missing makes a flag that is required
        flags = [(name, hint, field(default=value)) for name, hint, value in those]
        grouped: Any = make_dataclass("Flags", flags, kw_only=True)
        place = f"group_{group}".replace(" ", "_")
        made += [(place, Annotated[grouped, tyro.conf.arg(name=group, help="")])] if those else []
    return make_dataclass(kind.__name__, made)


def _typed(hint: Any, setting: Described) -> Any:
    """The type of a flag as tyro takes it: a plain one gets a parser, and a default that is nothing is not told."""
    metadata = getattr(hint, "__metadata__", ())
    if any(isinstance(each, type(UNSET)) for each in metadata):
        return hint
    kind = hint if metadata else TYPES.get(setting.kind, hint)
    if setting.terms.hint:
        return Annotated[kind, default(setting.terms.hint)]
    return Annotated[kind, UNSET] if setting.default is None or setting.default is False else kind


def help_top(text: str, width: int) -> str:
    """A docstring as the top of a help text: as wide as the terminal, lists and examples indented.

    Example:
        >>> print(help_top("Compare runs.\\n\\n`preq compare runs`\\n\\nRuns must be\\n    of the same data.", 24))
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
    wrapper = textwrap.TextWrapper(width, first, later, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(" ".join(words.split()))


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
    meant = re.search(r"erhaps you meant.*?(--[\w-]+)", " ".join(sections[1:]))
    hint = f"; did you mean {meant[1]}?" if meant else ";"
    return f"{message[:1].lower()}{message[1:]}{hint} see preq {command} --help"
