"""A named recipe for some data and models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from prequential.catalogue import own_name
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.methods.method import PASSES
from prequential.methods.rebuild import find_method


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


def on_h200(nats: float, run: str, *, standard_error: float | None = None, tried: int | None = None) -> Reached:
    """A codelength on an H200 (`experiments/presets.txt`): of one seed, or of three where there is an error."""
    several = standard_error is not None
    return Reached(
        nats=nats,
        seeds=3 if several else 1,
        where=f"H200, torch 2.11, {'graph, bf16' if several else 'eager, fp32'}",
        when="2026-11-16" if several else "2026-11-15",
        command=f"preq run {run} --device cuda",
        standard_error=standard_error,
        tried=tried,
    )


def on_cpu(nats: float, run: str, *, seeds: int = 1) -> Reached:
    """A codelength on two CPU cores; the README's tables name the same commands."""
    return Reached(
        nats=nats, seeds=seeds, where="2 CPU cores, torch 2.13", when="2026-11-15", command=f"preq run {run}"
    )


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

    def fits(self, data: str, model: str) -> bool:
        """Whether it is meant for this data and this model."""
        return any(fnmatchcase(data, p) for p in self.data) and any(fnmatchcase(model, p) for p in self.model)

    def method(self, name: str, given: Mapping[str, Any]) -> Method:
        """The method of that name; what the user gave goes before what the preset says.

        Example:
            >>> Preset(name="", description="", settings=replays(4, 16)).method("ci-cf", {"batch_size": 8}).epochs
            4
        """
        kind: Any = find_method(name)
        named = {own_name(key, kind): value for key, value in self.settings.items()}
        method: Method = kind(**{key: value for key, value in named.items() if key is not None} | dict(given))
        return method


def replays(num_passes: int, batch_size: int) -> dict[str, int]:
    """That many passes over the past, whatever the method calls them."""
    return {PASSES: num_passes, "batch_size": batch_size}


MNISTS = ("mnist", "fashion-mnist", "emnist-*", "rgb-mnist", "rgb-mnist:*")
CIFAR = ("cifar10", "cifar100")
PHOTOGRAPHS = ("imagenet", "folder:*", "list:*")
