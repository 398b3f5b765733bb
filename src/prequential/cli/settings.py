"""Flags of methods and recipe, made from their settings, and the way from flags to a method and a recipe."""

import argparse
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any

import tyro

from prequential.cli.parse import TYPES, UNSET, Generated, Parsed, default, flag_group, parse
from prequential.errors import PreqError
from prequential.learn.recipe import Recipe
from prequential.methods import METHODS, Method
from prequential.methods.rebuild import OWN, find_method
from prequential.presets import Preset
from prequential.settings import Described, described, meanings, without_none

DEFAULT = next(iter(METHODS))
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


@dataclass(frozen=True)
class SettingFlag:
    """A flag, and the setting it is in each class that has it."""

    name: str
    homes: tuple[Home, ...]

    @property
    def as_typed(self) -> str:
        """As it is written on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def rank(self) -> int:
        """Those that people look at come first."""
        terms = self.homes[0].setting.terms
        return 0 if terms.role else 1 if terms.short else 2

    def home(self, owner: type) -> Home | None:
        """The setting it is in a class, if any."""
        return next((home for home in self.homes if home.owner is owner), None)

    def for_tyro(self, num_owners: int) -> Generated:
        """As it is parsed, with its default and its meaning; both say whose they are where classes differ."""
        first, meant = self.homes[0], {home.meaning: "" for home in self.homes}
        for text in meant:
            names = [home.name for home in self.homes if home.meaning == text]
            lowered = f"{text[:1].lower()}{text[1:]}" if text[1:2].islower() else text
            meant[text] = text if len(names) == num_owners else f"{', '.join(names)}: {lowered}"
        others = [f"{home.name} {home.hint}" for home in self.homes if home.hint != first.hint]
        hint = default(", ".join([first.hint, *others])) if first.hint else UNSET
        kind = bool if first.kind is bool else TYPES[first.kind]
        told = tyro.conf.arg(help=" ".join(meant.values()))
        return self.name, Annotated[kind, hint, told], False if kind is bool else None


@cache
def setting_flags(*owners: type) -> dict[str, SettingFlag]:
    """The flags of classes of settings, by name; a setting of a type that no flag can give has none.

    Example:
        >>> [(home.name, home.setting.name) for home in setting_flags(*METHODS.values())["streams"].homes]
        [('mi-rs', 'num_streams'), ('mi-rb', 'num_replays')]
    """
    homes: dict[str, list[Home]] = {}
    for owner in owners:
        for each in described(owner).values():
            flag, terms = (each.terms.flag or each.name).replace("-", "_"), each.terms
            text = " ".join(meanings(owner).get(each.name, "").split("\n\n")[0].split())
            for part, (parameter, meaning) in terms.parts.items():
                made_of = inspect.signature(terms.make or dict).parameters[parameter]
                home = Home(owner, each, without_none(made_of.annotation), _hint(made_of.default), meaning, parameter)
                homes.setdefault(part, []).append(home)
            if each.kind is bool:
                name, meaning = (f"no_{flag}", terms.off or f"Without: {text}") if each.default else (flag, text)
                homes.setdefault(name, []).append(Home(owner, each, bool, "", meaning))
            elif each.kind in TYPES:
                homes.setdefault(flag, []).append(Home(owner, each, each.kind, terms.hint or _hint(each.default), text))
    flags = [SettingFlag(name, tuple(found)) for name, found in homes.items()]
    return {flag.name: flag for flag in sorted(flags, key=lambda flag: flag.rank)}


def _hint(default: Any) -> str:
    return "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)


def given_settings(given: Mapping[str, Any], owner: Any, flags: Mapping[str, SettingFlag]) -> dict[str, Any]:
    """What the flags that were given mean for a class; one that it does not have is a mistake."""
    settings: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if name not in flags:
            continue
        if (home := flags[name].home(owner)) is None:
            belongs = ", ".join(home.name for home in flags[name].homes)
            raise PreqError(f"{flags[name].as_typed} has no meaning for {owner.name}; it belongs to {belongs}")
        if home.parameter:
            parts.setdefault(home.setting.name, {})[home.parameter] = value
        else:
            settings[home.setting.name] = not home.setting.default if home.setting.kind is bool else value
    for name, arguments in parts.items():
        make = described(owner)[name].terms.make
        assert make is not None
        settings[name] = make(**arguments)
    return settings


@flag_group("method")
class SettingFlags:
    """What decides a plan and training: a method, a preset, and what was given of their settings."""

    method: Annotated[str, tyro.conf.arg(metavar="NAME", help=f"{_METHODS}, or your own as {OWN}.")] = DEFAULT
    preset: str = "default"
    """Settings that belong together (see preq presets). They go before the defaults named here, flags before both."""
    plan_seed: int = 0
    """The seed of the plan."""
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def of_method(self) -> dict[str, Any]:
        """The settings of the method that were given; a flag that the method does not have is a mistake."""
        kind = find_method(self.method)
        return given_settings(self.given, kind, setting_flags(*_kinds(self.method)))

    @property
    def of_recipe(self) -> dict[str, Any]:
        """The settings of the recipe that were given."""
        return given_settings(self.given, Recipe, setting_flags(Recipe))

    def chosen(self, preset: Preset) -> tuple[Method, Recipe]:
        """The preset's method and recipe with what the flags change."""
        return preset.method(self.method, self.of_method), replace(preset.recipe, **self.of_recipe)


def _kinds(method: str | None) -> tuple[Any, ...]:
    """The methods there are; a user's own comes first."""
    return (*([find_method(method)] if method and ":" in method else []), *METHODS.values())


def parse_settings(kind: type[Parsed], command: str, arguments: list[str]) -> Parsed:
    """Arguments with the flags of every method, of the user's own too if the arguments name one, and of the recipe."""
    method = _asked(arguments)
    kinds = _kinds(method)
    flags = {"method": setting_flags(*kinds), "training": setting_flags(Recipe)}
    _require_apart(method, flags["method"], [*flags["training"], *(each.name for each in fields(kind))])  # type: ignore[arg-type]
    generated = {
        "method": [flag.for_tyro(len(kinds)) for flag in flags["method"].values()],
        "training": [flag.for_tyro(1) for flag in flags["training"].values()],
    }
    return parse(kind, command, arguments, generated)


def _asked(arguments: list[str]) -> str | None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--method", nargs="?")
    method: str | None = parser.parse_known_args(arguments)[0].method
    return method


def _require_apart(method: str | None, flags: Mapping[str, SettingFlag], taken: Iterable[str]) -> None:
    for name in taken:
        if name in flags:
            raise PreqError(
                f"the flag {flags[name].as_typed} of the method '{method}' has a meaning already; "
                "name another with setting(..., flag=...)"
            )
