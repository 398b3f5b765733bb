"""Flags of methods and recipe, made from their settings, and the way from flags to a method and a recipe."""

import argparse
import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar

import tyro

from prequential.cli.parse import TYPES, UNSET, Generated, Parsed, default, flag_group, parse
from prequential.errors import PreqError
from prequential.learn.recipe import Recipe
from prequential.libraries import LIBRARIES, prefix_of
from prequential.methods import METHODS, Method, Online
from prequential.methods.rebuild import OWN, find_method
from prequential.presets import Preset
from prequential.settings import Described, described, meanings, without_none

DEFAULT, ONLINE = next(iter(METHODS)), Online.name
_DEFAULTS = f"{DEFAULT}; {ONLINE} with {' and '.join(LIBRARIES)}"
_METHODS = ", ".join(f"{name} ({getattr(kind, 'about', kind.title)})" for name, kind in METHODS.items())


@dataclass(frozen=True)
class Home:
    """A setting that a flag gives, or a part of one."""

    owner: Any
    """The class that has it."""
    setting: Described
    kind: Any
    hint: str
    """Of its default."""
    meaning: str
    parameter: str = ""
    """What of `make` it is, where the setting has parts."""

    @property
    def name(self) -> str:
        """What the owner is called."""
        return getattr(self.owner, "name", "recipe")


Flags = dict[str, dict[Any, Home]]
"""By the name of a flag, the setting it is in each class that has it."""


def for_tyro(name: str, homes: Iterable[Home], num_owners: int) -> Generated:
    """A flag as it is parsed, with its default and its meaning; both say whose they are where classes differ."""
    first, *others = homes
    named: dict[str, list[str]] = {}
    for home in (first, *others):
        named.setdefault(home.meaning, []).append(home.name)
    meant = []
    for text, names in named.items():
        lowered = f"{text[:1].lower()}{text[1:]}" if text[1:2].islower() else text
        meant.append(text if len(names) == num_owners else f"{', '.join(names)}: {lowered}")
    hints = [first.hint, *(f"{home.name} {home.hint}" for home in others if home.hint != first.hint)]
    hint = default(", ".join(hints)) if first.hint else UNSET
    kind = bool if first.kind is bool else TYPES[first.kind]
    return name, Annotated[kind, hint, tyro.conf.arg(help=" ".join(meant))], False if kind is bool else None


@cache
def setting_flags(*owners: type) -> Flags:
    """The flags of classes of settings, those that people look at first; one of a type that no flag can give has none.

    Example:
        >>> [(home.name, home.setting.name) for home in setting_flags(*METHODS.values())["streams"].values()]
        [('mi-rs', 'num_streams'), ('mi-rb', 'num_replays')]
    """
    found: Flags = defaultdict(dict)
    for owner in owners:
        for each in (each for each in described(owner).values() if not each.terms.by_data):
            flag, terms = (each.terms.flag or each.name).replace("-", "_"), each.terms
            text = " ".join(meanings(owner).get(each.name, "").split("\n\n")[0].split())
            for part, (parameter, meaning) in terms.parts.items():
                made_of = inspect.signature(terms.make or dict).parameters[parameter]
                kind, hint = without_none(made_of.annotation), _hint(made_of.default)
                found[part][owner] = Home(owner, each, kind, hint, meaning, parameter)
            if each.kind is bool:
                name, meaning = (f"no_{flag}", terms.off or f"Without: {text}") if each.default else (flag, text)
                found[name][owner] = Home(owner, each, bool, "", meaning)
            elif each.kind in TYPES:
                found[flag][owner] = Home(owner, each, each.kind, terms.hint or _hint(each.default), text)
    first = {name: next(iter(homes.values())).setting.terms for name, homes in found.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: (not first[name].role, not first[name].short))}


def _hint(default: Any) -> str:
    return "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)


def given_settings(given: Mapping[str, Any], owner: Any, flags: Flags) -> dict[str, Any]:
    """What the flags that were given mean for a class; one that it does not have is a mistake."""
    settings: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in given.items():
        if name not in flags:
            continue
        if (home := flags[name].get(owner)) is None:
            belongs = ", ".join(home.name for home in flags[name].values())
            raise PreqError(f"--{name.replace('_', '-')} has no meaning for {owner.name}; it belongs to {belongs}")
        if home.parameter:
            parts[home.setting.name][home.parameter] = value
        else:
            settings[home.setting.name] = not home.setting.default if home.setting.kind is bool else value
    made = {name: (described(owner)[name].terms.make or dict)(**arguments) for name, arguments in parts.items()}
    return settings | made


@flag_group("method")
class SettingFlags:
    """What decides a plan and training: a method, a preset, and what was given of their settings."""

    method: Annotated[
        str | None, tyro.conf.arg(metavar="NAME", help=f"{_METHODS}, or your own as {OWN}."), default(_DEFAULTS)
    ] = None
    preset: str = "default"
    """Settings that belong together (see preq presets). They go before the defaults named here, flags before both."""
    plan_seed: int = 0
    """The seed of the plan."""
    given: dict[str, Any] = field(default_factory=dict)
    MORE: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Classes of settings that a command has flags for besides methods and recipe, by heading."""

    @property
    def of_method(self) -> dict[str, Any]:
        """The settings of the method that were given; a flag that the method does not have is a mistake."""
        return self._of_method(self.method or DEFAULT)

    def _of_method(self, name: str) -> dict[str, Any]:
        return given_settings(self.given, find_method(name), setting_flags(*_kinds(name)))

    @property
    def of_recipe(self) -> dict[str, Any]:
        """The settings of the recipe that were given."""
        return given_settings(self.given, Recipe, setting_flags(Recipe))

    def chosen(self, preset: Preset, model: str = "") -> tuple[Method, Recipe]:
        """The preset's method and recipe with what the flags change. A model that is no network has no recipe, and
        another default."""
        if prefix_of(model) is None:
            return preset.method(self.method or DEFAULT, self.of_method), replace(preset.recipe, **self.of_recipe)
        name = self.method or ONLINE
        if unfit := [flag for flag in self.given if flag in setting_flags(Recipe)]:
            flag = unfit[0].replace("_", "-")
            raise PreqError(f"--{flag} is about training a network, and '{model}' is none; leave it out")
        return preset.method(name, self._of_method(name)), Recipe()


def flags_of(method: str) -> set[str]:
    """The flags that mean something with this method: its own, and those of training."""
    kind = find_method(method)
    own = {name for name, homes in setting_flags(*_kinds(method)).items() if kind in homes}
    return own | set(setting_flags(Recipe))


def _kinds(method: str | None) -> tuple[Any, ...]:
    """The methods there are; a user's own comes first."""
    return (*([find_method(method)] if method and ":" in method else []), *METHODS.values())


def parse_settings(kind: type[Parsed], command: str, arguments: list[str]) -> Parsed:
    """Arguments, where the class takes settings with the flags of every method, of the user's own too if the arguments
    name one, and of the recipe."""
    if not issubclass(kind, SettingFlags):
        return parse(kind, command, arguments)
    asked = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    asked.add_argument("--method", nargs="?")
    method: str | None = asked.parse_known_args(arguments)[0].method
    owners = {"method": _kinds(method), "training": (Recipe,), **kind.MORE}
    flags = {group: setting_flags(*kinds) for group, kinds in owners.items()}
    others = [name for group, those in flags.items() if group != "method" for name in those]
    for name in (*others, *(each.name for each in fields(kind))):
        if name in flags["method"]:
            raise PreqError(
                f"the flag --{name.replace('_', '-')} of the method '{method}' has a meaning already; "
                "name another with setting(..., flag=...)"
            )
    generated = {
        group: [for_tyro(name, homes.values(), len(owners[group])) for name, homes in those.items()]
        for group, those in flags.items()
    }
    return parse(kind, command, arguments, generated)
