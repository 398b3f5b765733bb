"""Experts from flags or a small file: who they are, what each learns by, and how they are mixed."""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from prequential.cli.all_inputs import AllInputsFlags, all_inputs_flags
from prequential.cli.parse import PathText, default, flag_group
from prequential.cli.settings import DEFAULT, ONLINE, Flags, flags_of, given_settings, setting_flags
from prequential.errors import PreqError, require_known
from prequential.learn.recipe import Recipe
from prequential.libraries import prefix_of
from prequential.methods import METHODS, Method
from prequential.methods.joint import Joint, method_settings
from prequential.methods.rebuild import find_method
from prequential.mixers import MIXERS, Mixer
from prequential.presets import Preset, find_preset
from prequential.presets.listed import Listed, ListedExpert, changed, listed, read_listed, require_method_settings
from prequential.settings import setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prequential.experts.settings import AnyModel

DEFAULT_MIXER = "logistic"
_MIXERS = ", ".join(f"{name} ({kind.about})" for name, kind in MIXERS.items())
Models = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="MODEL...", help_behavior_hint="")]
MIXER = tyro.conf.arg(metavar="NAME", help=f"How experts are mixed: {_MIXERS}.")
StepSizes = Annotated[str | None, tyro.conf.arg(metavar="X,X,...", help_behavior_hint="")]


@dataclass(frozen=True)
class Settled:
    """Model, method and recipe of a run, as flags, presets and a file of experts say together."""

    method: Method
    recipe: Recipe
    models: "str | Sequence[tuple[ListedExpert, Method, Recipe | None]]"
    """A model, or several experts with what each learns by (no recipe: it is no network); none for a plan alone."""
    mixer: Mixer | None = None
    simple_codes: bool = False

    @property
    def plan_method(self) -> Method:
        """Of the plan: that of the model, or of all experts together."""
        return self.method if isinstance(self.models, str) else Joint.of([method for _, method, _ in self.models])

    @property
    def without_network(self) -> list[str]:
        """The models that are no networks."""
        names = [self.models] if isinstance(self.models, str) else [told.model for told, _, _ in self.models]
        return [name for name in names if prefix_of(name) is not None]

    def make_model(self) -> "AnyModel":
        """As `run` takes it. An expert says for itself only what differs from the run, so that a sweep can change the
        rest."""
        if isinstance(self.models, str):
            return self.models
        from prequential.experts.settings import Expert, Experts

        made: list[Any] = []
        for told, method, recipe in self.models:
            own = None if _same(method, self.method) else method
            trained = None if recipe == self.recipe else recipe
            expert = Expert(told.model, own, trained, told.width, told.seed, told.averages)
            made += [expert] * told.members
        assert self.mixer is not None
        return Experts(made, self.mixer, self.simple_codes)


def _same(one: Method, other: Method) -> bool:
    return type(one) is type(other) and method_settings(one) == method_settings(other)


@flag_group("model")
class ExpertFlags(AllInputsFlags):
    """Several models whose predictions are mixed, label by label, into one code."""

    members: int | None = setting(None, hint="1")
    """So many of each model, each with a seed of its own, as experts whose predictions are mixed into one code."""
    mixer: Annotated[str | None, MIXER, default(DEFAULT_MIXER)] = None
    averages: StepSizes = None
    """Several averages (EMA) of each network as experts, by their step sizes, such as 1e-2,3e-3,1e-3: one training.
    Given all inputs, the first says what those without labels are taken for."""
    with_simple_codes: bool = False
    """Have codes that look at labels alone as experts too: uniform, frequencies, what followed the previous label."""
    experts: PathText = None
    """A file (TOML) that lists the experts instead of MODEL, each with settings of its own; see docs/experts.md."""
    MORE: ClassVar[Mapping[str, tuple[Any, ...]]] = {**AllInputsFlags.MORE, "model": tuple(MIXERS.values())}

    def settled(self, models: Sequence[str], data: str) -> Settled:
        """What is run: the models that were named, the experts of a file, or those of the preset."""
        preset = find_preset(self.preset, data, models[0] if models else "", all_inputs=self.all_inputs)
        if (found := self._listed(models, preset)) is None:
            return Settled(*self.chosen(preset, models[0]), models[0])
        first = next((told for told in found.experts if prefix_of(told.model) is None), found.experts[0])
        method, recipe = self._learns_by(first, found, data)
        each: list[tuple[ListedExpert, Method, Recipe | None]] = []
        for told in found.experts:
            if prefix_of(told.model) is not None:
                each.append((told, self._predicts_by(told, found, data, method), None))
            else:
                each.append((told, *self._learns_by(told, found, data)))
        self._require_followed(found)
        simple_codes = self.with_simple_codes or found.simple_codes
        return Settled(method, recipe, each, self._mixer(found.mixer), simple_codes)

    def _listed(self, models: Sequence[str], preset: Preset) -> Listed | None:
        """The experts that are asked for; None where there is one model and nothing to mix."""
        told = None if self.experts is None else read_listed(self.experts)
        if told is not None or preset.listed is not None:
            who = f"the file {self.experts} lists" if told is not None else f"the preset '{preset.name}' names"
            asked = {"MODEL": models, "--members": self.members, "--averages": self.averages}
            if given := [name for name, value in asked.items() if value]:
                raise PreqError(f"{who} the experts, and {given[0]} was given too; leave one of them out")
            return told or preset.listed
        if not models:
            raise PreqError(
                "a model is missing; name one or more (see preq models), or list experts with --experts FILE"
            )
        if len(models) == 1 and not self.asks_for_experts:
            return None
        members, averages = 1 if self.members is None else self.members, step_sizes(self.averages)
        if averages and all(prefix_of(model) is not None for model in models):
            raise PreqError("--averages is about the weights of networks, and no model is one; leave it out")
        if averages and "ema" in self.given:
            raise PreqError("--averages are step sizes of the EMA, and so is --ema; leave out one of the two")
        own = [{"averages": averages} if prefix_of(model) is None else {} for model in models]
        return listed([{"model": model, "members": members, **each} for model, each in zip(models, own, strict=True)])

    @property
    def asks_for_experts(self) -> bool:
        """Whether a flag was given that is about experts."""
        asked = self.members, self.mixer, self.averages, self.experts, self.with_simple_codes or None
        return any(value is not None for value in asked) or bool({*self.given} & {*self._mixer_flags})

    @property
    def _mixer_flags(self) -> Flags:
        return setting_flags(*self.MORE["model"])

    def _mixer(self, told: Mixer | None) -> Mixer:
        """By name, else the one that is told, with the settings that were given."""
        if self.mixer is not None or told is None:
            name = self.mixer or DEFAULT_MIXER
            require_known("mixer", name, MIXERS)
            told = MIXERS[name]()
        mixer: Any = told
        try:
            changed_mixer: Mixer = replace(mixer, **given_settings(self.given, type(mixer), self._mixer_flags))
        except PreqError as error:  # a learning rate is one of the networks, too
            raise error if str(error).startswith("--") else PreqError(f"mixer {mixer.name}: {error}") from None
        return changed_mixer

    def _learns_by(self, told: ListedExpert, found: Listed, data: str) -> tuple[Method, Recipe]:
        """The method and recipe of an expert: its preset's, with what the flags change, with what is listed for it."""
        with _about(told, found):
            given_all = self.all_inputs and told.all_inputs is not False
            preset = find_preset(told.preset or self.preset, data, told.model, all_inputs=given_all)
            usual, name = self._methods_of(told)
            if told.all_inputs and not self.all_inputs and self.experts is not None:
                raise PreqError("it has settings of all_inputs, and the run is not given all inputs; add --all-inputs")
            flags, meant = self.given_inputs_so_far() if told.all_inputs is False else self, flags_of(name)
            if name != usual:
                own_flags = {k: v for k, v in flags.given.items() if k in meant or k in all_inputs_flags()}
                flags = replace(flags, given=own_flags)
            method, recipe = replace(flags, method=name).chosen(preset, told.model, told.all_inputs or {})
            own = require_method_settings(name, told.method)
            return changed(method, own, name), changed(recipe, told.recipe, "a recipe")

    def _methods_of(self, told: ListedExpert) -> tuple[str, str]:
        """The names of the method that an expert would follow if nothing were listed for it, and of its own."""
        usual = self.method or (DEFAULT if prefix_of(told.model) is None else ONLINE)
        return usual, str(told.method.get("name", usual))

    def _require_followed(self, found: Listed) -> None:
        """Refuse a method, settings of methods, and all inputs, where each expert has another or none of it."""
        names = list(dict.fromkeys(self._methods_of(told)[1] for told in found.experts))
        if self.method is not None and self.method not in names:
            raise PreqError(f"no expert follows --method {self.method}: each has its own listed; leave it out")
        if self.all_inputs and all(told.all_inputs is False or prefix_of(told.model) for told in found.experts):
            raise PreqError("no expert is given all inputs: each has all_inputs = false; leave --all-inputs out")
        for flag, value in self.given.items():
            if not any(flag in flags_of(name) for name in names):
                given_settings({flag: value}, find_method(names[0]), setting_flags(*METHODS.values()))

    def _predicts_by(self, told: ListedExpert, found: Listed, data: str, method: Method) -> Method:
        """The method of an expert that is no network: it learns from labels as they are revealed, whatever trains the
        others."""
        with _about(told, found):
            if told.recipe:
                raise PreqError("a recipe is about training a network, and this is none; leave it out")
        if not told.method and told.preset is None:
            return method
        flags = self.given_inputs_so_far()
        without = {flag: value for flag, value in flags.given.items() if flag not in setting_flags(Recipe)}
        return replace(flags, given=without)._learns_by(told, found, data)[0]


@contextmanager
def _about(told: ListedExpert, found: Listed) -> "Iterator[None]":
    """Inside, a mistake names the expert, where it is about what is listed for it."""
    try:
        yield
    except PreqError as error:
        if not (told.preset or told.method or told.recipe or told.all_inputs):
            raise
        raise PreqError(f"expert {found.experts.index(told) + 1} ({told.model}): {error}") from None


def step_sizes(text: str | None) -> tuple[float, ...]:
    """Several numbers with commas between.

    Example:
        >>> step_sizes("1e-2,3e-3")
        (0.01, 0.003)
    """
    try:
        return () if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise PreqError(f"--averages must be step sizes with commas between, such as 1e-2,3e-3, got '{text}'") from None
