"""Whole runs by name: settings that belong together, for the data and models they are meant for. No torch."""

from collections.abc import Mapping
from typing import Any

from prequential.errors import PreqError, unknown_name
from prequential.learn.recipe import Recipe
from prequential.presets.ours import OURS
from prequential.presets.paper import PAPER
from prequential.presets.preset import Preset, Reached
from prequential.settings import from_plain

__all__ = ["PRESETS", "Preset", "Reached", "find_preset", "recipe_from_settings"]

PRESETS = (*OURS, *PAPER)
"""The first that has the name and fits data and model is taken."""


def find_preset(name: str, data: str = "", model: str = "") -> Preset:
    """The preset of that name for this data and model.

    Example:
        >>> find_preset("paper").recipe.ema_warmup, find_preset("paper", "cifar10", "vggpp").recipe.augment
        (False, ('flip', 'shift:4'))
    """
    named = [preset for preset in PRESETS if preset.name == name]
    if not named:
        raise unknown_name("preset", name, dict.fromkeys(preset.name for preset in PRESETS))
    found = next((preset for preset in named if preset.fits(data, model)), None)
    if found is None:
        known = ", ".join(pattern for preset in named for pattern in preset.data)
        raise PreqError(f"there is no preset '{name}' for {data or 'no data'} with {model}; it is for: {known}")
    return found


def recipe_from_settings(settings: Mapping[str, Any]) -> Recipe:
    """The recipe with these settings, as a record or bitstream holds them."""
    recipe: Recipe = from_plain(Recipe, settings, "a recipe")
    return recipe
