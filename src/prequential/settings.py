"""Settings: what each one means, what it may be and what it is called, said once, beside its field. No torch.

A field of a method or of the recipe is written as `setting(default, …)`, with its meaning in a docstring below it. The
check of its value, its flag and the help of it, its short name in tables, what a space may call it and whether it may
differ within a stack all come from there. A plain field is a setting too: of its type, and with a flag of its name.
"""

import ast
import inspect
import numbers
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

from prequential.errors import BOUNDS, PreqError, require_count, require_flag, require_known, require_number

_KEY = "prequential"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What `setting` was told of a field."""

    bounds: Mapping[str, Any] = field(default_factory=dict)
    """As `require_count` and `require_number` take them."""
    choices: Sequence[str] = ()
    called: str = ""
    """What the choices are choices of, in errors."""
    check: Callable[[Any], object] | None = None
    """Refuses what bounds and choices cannot tell."""
    flag: str = ""
    """Its flag, where that is not the field's name."""
    hint: str = ""
    """What the help says of the default, where that is not the value."""
    by_data: bool = False
    """Whether the data says it, so that it has no flag."""
    off: str = ""
    """What its flag does where it is on by default: that one is called no-… and switches it off."""
    short: str = ""
    """What it is called where there is little room; settings that have one are looked at first."""
    role: str = ""
    """What a preset or a space may call it, whatever the field's name is."""
    stack: str = "shared"
    """Whether it must be "shared" within a stack, or may be a "vector" along it."""
    make: Callable[..., Any] | None = None
    """Makes the value of what `parts` name, for settings that are more than a number or a word."""
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """For each flag the parameter of `make` it is, and its meaning."""
    later: bool = False
    """Whether files of before have none: then those of now have it where it is not the default, and else are alike."""


def setting(default: Any, **terms: Any) -> Any:
    """A field of a method or of the recipe.

    Args:
        default: its value where nothing is said.
        terms: what is known of it besides its type and the docstring below it: `above`, `at_least`, `at_most` and
            `below` are the bounds of a number, `choices` the words it may be; for more see `Terms`.

    Example:
        >>> @dataclass(frozen=True)
        ... class Mine:
        ...     every: int = setting(4, at_least=1, flag="each")
        ...     def __post_init__(self):
        ...         check_settings(self)
        >>> Mine(every=0)
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: every must be a whole number of at least 1, got 0
    """
    bounds = {name: terms.pop(name) for name in BOUNDS if name in terms}
    return field(default=default, metadata={_KEY: Terms(bounds=bounds, **terms)})


@dataclass(frozen=True)
class Described:
    """A setting as its field tells it."""

    name: str
    kind: Any
    """int, float, bool, str, `tuple[int, …]`, `tuple[str, …]` or a class; without the None it may be."""
    optional: bool
    """Whether it may be None."""
    default: Any
    terms: Terms


@cache
def described(kind: type) -> dict[str, Described]:
    """The settings of a class of settings, by name.

    Example:
        >>> from prequential.methods import ReplayBuffer
        >>> described(ReplayBuffer)["capacity"].optional
        True
    """
    try:
        hints = get_type_hints(kind)
    except NameError:  # a class inside a function, of which only the names of types are known
        hints = {each.name: each.type for each in fields(kind)}
    found = {}
    for each in fields(kind):
        value_kind = without_none(hints[each.name])
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        terms = each.metadata.get(_KEY, Terms())
        found[each.name] = Described(each.name, value_kind, value_kind is not hints[each.name], default, terms)
    return found


def without_none(hint: Any) -> Any:
    """A type without the None it may be.

    Example:
        >>> without_none(int | None), without_none(str)
        (<class 'int'>, <class 'str'>)
    """
    options = [option for option in get_args(hint) if option is not type(None)]
    return options[0] if type(None) in get_args(hint) and len(options) == 1 else hint


@cache
def meanings(kind: type) -> dict[str, str]:
    """What each field of a class means: the docstring below it, where the source is at hand.

    Example:
        >>> from prequential.methods import FullDataset
        >>> meanings(FullDataset)["batch_size"]
        'Examples per training step.'
    """
    found: dict[str, str] = {}
    for each in filter(is_dataclass, reversed(kind.__mro__)):
        try:
            source = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        except (OSError, TypeError, SyntaxError):
            continue
        for line, below in pairwise(getattr(source, "body", ())):
            match line, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text)
    return found


def with_setting(kind: type, **wanted: str | bool) -> tuple[str, ...]:
    """The names of the settings of a class whose terms are these.

    Example:
        >>> from prequential.methods import ChunksFromScratch
        >>> with_setting(ChunksFromScratch, role="passes")
        ('epochs',)
    """
    return tuple(name for name, each in described(kind).items() if wanted.items() <= vars(each.terms).items())


def check_settings(settings: Any) -> None:
    """Refuse a value that its field does not allow. NumPy's numbers become Python's, which every format can hold."""
    kind: type = type(settings)
    for each in described(kind).values():
        value = getattr(settings, each.name)
        if isinstance(value, numbers.Number) and not isinstance(value, bool | int | float):
            object.__setattr__(settings, each.name, value := plain_value(value))
        if value is None and each.optional:
            continue
        if each.kind is bool:
            require_flag(each.name, value)
        elif each.kind is int:
            require_count(each.name, value, **({"at_least": -sys.maxsize} | dict(each.terms.bounds)))
        elif each.kind is float:
            require_number(each.name, value, **each.terms.bounds)
        elif each.terms.choices:
            require_known(each.terms.called or each.name, value, each.terms.choices)
        if each.terms.check is not None:
            each.terms.check(value)
        if get_origin(each.kind) is tuple:
            if isinstance(value, str) or not isinstance(value, Iterable):
                raise PreqError(f"{each.name} must be several values in a tuple, got {value!r}")
            object.__setattr__(settings, each.name, tuple(map(plain_value, value)))


def settings_of(settings: object) -> dict[str, Any]:
    """The settings of a method or recipe as plain values, with its name where it has one.

    Example:
        >>> from prequential.methods import Pareto, ReplayStreams
        >>> settings_of(ReplayStreams(age_law=Pareto(180.0)))["age_law"]
        {'name': 'pareto', 'scale': 180.0}
        >>> "early_labels" in settings_of(ReplayStreams()), settings_of(ReplayStreams(early_labels=9))["early_labels"]
        (False, 9)
    """
    name = getattr(settings, "name", None)
    named = {"name": name} if isinstance(name, str) else {}
    return named | {key: plain_value(value) for key, value in _attributes(settings).items()}


def _attributes(settings: object) -> dict[str, Any]:
    if is_dataclass(settings):
        values = {f.name: getattr(settings, f.name) for f in fields(settings)}
        return {name: value for name, value in values.items() if not _goes_without_saying(settings, name, value)}
    return dict(getattr(settings, "__dict__", {}))


def _goes_without_saying(settings: object, name: str, value: object) -> bool:
    kind: type = type(settings)
    each = described(kind)[name]
    return each.terms.later and bool(value == each.default)


def plain_value(value: object) -> object:
    """What JSON can hold of a setting."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    name = getattr(type(value), "name_in_files", type(value).__name__.lower())
    return {"name": name, **{k: plain_value(v) for k, v in _attributes(value).items()}}


def from_plain(kind: type, values: Mapping[str, Any], who: str, **more: Any) -> Any:
    """The settings of which a file holds these plain values; those that the class does not have are refused. What is
    not plain is given as it is (`more`).

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> from_plain(ReplayStreams, {"num_streams": 3}, "mi-rs").num_streams
        3
    """
    known = described(kind)
    if unknown := sorted(set(values) - set(known)):
        raise PreqError(f"{who} has no setting {', '.join(unknown)}; was it made by another version?")
    made = {}
    for name, value in values.items():
        each = known[name]
        if each.terms.make is not None and isinstance(value, dict):
            takes = [parameter for parameter, _ in each.terms.parts.values()]
            if set(value) - {*takes}:
                raise PreqError(f"{who}: {name} takes {' and '.join(takes)}, got {value}")
            value = each.terms.make(**value)
        made[name] = tuple(value) if get_origin(each.kind) is tuple and isinstance(value, list) else value
    return kind(**made, **more)
