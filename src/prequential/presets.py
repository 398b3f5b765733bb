"""Whole runs by name: settings that belong together. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from prequential.errors import PreqError, unknown_name
from prequential.learn.recipe import Recipe
from prequential.methods import METHODS, Method


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A recipe, and the settings of the methods that have them."""

    description: str
    recipe: Recipe = field(default_factory=Recipe)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def method(self, name: str, given: Mapping[str, Any]) -> Method:
        """The method of that name; what the user gave goes before what the preset says."""
        if name not in METHODS:
            raise unknown_name("method", name, METHODS)
        kind: Any = METHODS[name]
        known = {f.name for f in fields(kind)}
        method: Method = kind(**{k: v for k, v in self.settings.items() if k in known} | dict(given))
        return method


PRESETS = {
    "default": Preset(description="few replays, fast steps, EMA warm-up: good codes in minutes on a CPU"),
    "paper": Preset(
        description="the paper to the letter: no EMA warm-up; the centre of every interval it samples for MNIST",
        recipe=Recipe(
            learning_rate=5.5e-4,
            eps=1e-2,
            weight_decay=1e-2,
            ema_step_size=1e-2,
            ema_warmup=False,
            label_smoothing=1e-3,
        ),
        settings={"num_streams": 50, "num_replays": 50, "epochs": 50, "batch_size": 32},
    ),
}


def find_preset(name: str) -> Preset:
    """The preset of that name.

    Example:
        >>> find_preset("paper").recipe.ema_warmup
        False
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


def recipe_from_settings(settings: Mapping[str, Any]) -> Recipe:
    """The recipe with these settings, as a record or bitstream holds them."""
    unknown = set(settings) - {f.name for f in fields(Recipe)}
    if unknown:
        raise PreqError(f"a recipe has no setting {', '.join(sorted(unknown))}; was it made by another version?")
    return Recipe(**settings)
