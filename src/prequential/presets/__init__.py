"""Whole runs by name: settings that belong together, for the data and models they are meant for. No torch.

The presets themselves are in `presets.toml`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from prequential.catalogue import own_name
from prequential.errors import PreqError, require_known
from prequential.learn.recipe import Recipe
from prequential.methods import AllInputs, Method, age_law
from prequential.methods.rebuild import find_method
from prequential.presets.listed import Listed, listed, require_all_inputs
from prequential.settings import from_plain


@dataclass(frozen=True, kw_only=True)
class Reached:
    """A codelength that a preset has reached, and how to reach it again."""

    nats: float
    seeds: int
    """The mean over this many seeds, from 0."""
    where: str
    """Machine and version of torch."""
    when: str
    command: str
    standard_error: float | None = None
    """Of the mean, where there are several seeds."""
    tried: int | None = None
    """Settings that `experiments/tuning.txt` lists as compared, by codelength alone, before these were taken: ln of
    it is what that choice costs."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A recipe, and the settings of the methods that have them."""

    name: str
    description: str
    data: tuple[str, ...] = ("*",)
    """Patterns of the data it is meant for …"""
    model: tuple[str, ...] = ("*",)
    """… and of the models."""
    recipe: Recipe = field(default_factory=Recipe)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of methods, by name or role; a method takes those that it has."""
    reached: tuple[Reached, ...] = ()
    all_inputs: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `AllInputs`, where a run is given all inputs."""
    listed: Listed | None = None
    """Experts and their mixer, where it names them: then the run needs no model."""

    def fits(self, data: str, model: str) -> bool:
        """Whether it is meant for this data and this model."""
        return any(fnmatchcase(data, p) for p in self.data) and any(fnmatchcase(model, p) for p in self.model)

    def method(self, name: str, given: Mapping[str, Any]) -> Method:
        """The method of that name; what the user gave goes before what the preset says.

        Example:
            >>> Preset(name="", description="", settings={"passes": 4}).method("ci-cf", {"batch_size": 8}).epochs
            4
        """
        kind: Any = find_method(name)
        named = {own_name(key, kind): value for key, value in self.settings.items()}
        method: Method = kind(**{key: value for key, value in named.items() if key is not None} | dict(given))
        return method

    def with_all_inputs(self, method: Method, given: Mapping[str, Any]) -> Method:
        """The method given all inputs; what the user gave goes before what the preset says.

        Example:
            >>> from prequential.methods import ReplayStreams
            >>> Preset(name="", description="").with_all_inputs(ReplayStreams(), {"study_steps": 100}).titles
            'MI/RS given all inputs'
        """
        made: Method = from_plain(AllInputs, {**self.all_inputs, **given}, "all inputs", method=method)
        return made


def recipe_from_settings(settings: Mapping[str, Any]) -> Recipe:
    """The recipe with these settings, as a record or bitstream holds them."""
    recipe: Recipe = from_plain(Recipe, settings, "a recipe")
    return recipe


def _presets(told: Mapping[str, Any]) -> tuple[Preset, ...]:
    """The presets of a file."""

    def recipe(own: Mapping[str, Any]) -> dict[str, Any]:
        base = recipe(told["recipes"][own["like"]]) if "like" in own else {}
        return base | {name: value for name, value in own.items() if name != "like"}

    def preset(name: str, description: str, **own: Any) -> Preset:
        patterns = [told["patterns"].get(each.removeprefix("@"), [each]) for each in own.get("data", ["*"])]
        settings = own.get("settings", {})
        return Preset(
            name=name,
            description=description,
            data=tuple(pattern for group in patterns for pattern in group),
            model=tuple(own.get("model", ["*"])),
            recipe=recipe_from_settings(recipe(own.get("recipe", {}))),
            settings={key: age_law(**value) if isinstance(value, dict) else value for key, value in settings.items()},
            all_inputs=require_all_inputs(own.get("all_inputs", {})),
            reached=tuple(Reached(**each) for each in own.get("reached", ())),
            listed=listed(own["experts"], own.get("mixer"), own.get("simple_codes", False))
            if "experts" in own
            else None,
        )

    return tuple(preset(**each) for each in told["preset"])


DEFAULT, GIVEN_ALL = "default", "all-inputs"
PRESETS = _presets(tomllib.loads(Path(__file__).with_name("presets.toml").read_text(encoding="utf-8")))
"""The first that has the name and fits data and model is taken."""


def find_preset(name: str, data: str = "", model: str = "", *, all_inputs: bool = False) -> Preset:
    """The preset of that name for this data and model; where all inputs are given, `default` is one made for that.

    Example:
        >>> find_preset("paper").recipe.ema_warmup, find_preset("paper", "cifar10", "vggpp").recipe.augment
        (False, ('flip', 'shift:4'))
    """
    require_known("preset", name, dict.fromkeys(preset.name for preset in PRESETS))
    if all_inputs and name == DEFAULT and any(each.name == GIVEN_ALL and each.fits(data, model) for each in PRESETS):
        name = GIVEN_ALL
    named = [preset for preset in PRESETS if preset.name == name]
    found = next((preset for preset in named if preset.fits(data, model)), None)
    if found is None:
        known = ", ".join(pattern for preset in named for pattern in preset.data)
        model = f" with {model}" if model else ""
        raise PreqError(f"there is no preset '{name}' for {data or 'no data'}{model}; it is for: {known}")
    return found
