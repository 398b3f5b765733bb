"""Flags of runs that are given all inputs, made from the settings of `AllInputs`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from prequential.cli.parse import PathText, flag_group
from prequential.cli.settings import Flags, SettingFlags, given_settings, setting_flags
from prequential.errors import PreqError
from prequential.learn.recipe import Recipe
from prequential.libraries import prefix_of
from prequential.methods import AllInputs, Method
from prequential.presets import Preset
from prequential.settings import setting

GROUP = "all inputs"


def all_inputs_flags() -> Flags:
    """The flags, those first that people look at first.

    Example:
        >>> list(all_inputs_flags())[:3]
        ['study_steps', 'beside', 'study_batch_size']
    """
    return setting_flags(AllInputs)


@flag_group(GROUP)
class AllInputsFlags(SettingFlags):
    """Whether a network is given all inputs, and what it makes of them."""

    all_inputs: bool = False
    """Give the network all inputs from the start: to study before the first label, and beside labelled ones."""
    MORE: ClassVar[Mapping[str, tuple[Any, ...]]] = {GROUP: (AllInputs,)}

    @property
    def of_all_inputs(self) -> dict[str, Any]:
        """The settings that were given."""
        return given_settings(self.given, AllInputs, all_inputs_flags())

    def given_inputs_so_far(self) -> Self:
        """The same flags for a model that is not given all inputs beside others that are."""
        given = {name: value for name, value in self.given.items() if name not in all_inputs_flags()}
        return replace(self, all_inputs=False, given=given)

    def chosen(self, preset: Preset, model: str = "", own: Mapping[str, Any] | None = None) -> tuple[Method, Recipe]:
        """The preset's method and recipe with what the flags change; the method given all inputs where that is asked
        for.

        Args:
            preset: where settings come from.
            model: its name.
            own: settings that are listed for this model.
        """
        method, recipe = super().chosen(preset, model)
        if not self.all_inputs:
            if unfit := [name for name in self.given if name in all_inputs_flags()]:
                flag = unfit[0].replace("_", "-")
                raise PreqError(
                    f"--{flag} is about inputs without labels, and only labelled ones are given to the "
                    "network; add --all-inputs, or leave it out"
                )
            return method, recipe
        if prefix_of(model) is not None:
            raise PreqError(f"--all-inputs is about networks, and '{model}' is none; leave it out")
        return preset.with_all_inputs(method, self.of_all_inputs | dict(own or {})), recipe


@flag_group(GROUP)
class StudyFlags:
    """Where what was studied is kept."""

    study_dir: PathText = setting(None, hint="the package's cache, where a run with --out keeps it")
    """Where what was studied is kept, to be used again by runs with the same inputs and settings on such a machine."""


@flag_group(GROUP)
class TrustFlags:
    """Whether a study is believed that somebody else has done."""

    trust_study: PathText = None
    """Use what was studied from this directory (--study-dir) instead of studying again. It must have the digest that is
    told; a file of its size can hold every label, so what is printed says that the study was not recomputed."""
