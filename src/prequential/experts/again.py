"""The experts of which a record or bitstream tells."""

from collections.abc import Mapping, Sequence
from typing import Any

from prequential.errors import PreqError
from prequential.experts.settings import MOST_EXPERTS, Expert, Experts
from prequential.methods import Method
from prequential.methods.rebuild import find_method, method_from_settings
from prequential.mixers import MIXERS, Mixer, mixer_from_settings
from prequential.models import ModelFactory
from prequential.presets import recipe_from_settings
from prequential.settings import settings_of


def experts_from_facts(
    model: Mapping[str, Any],
    models: Sequence[str | ModelFactory],
    own: str | type[Method] | None = None,
    own_mixer: Mixer | str | None = None,
) -> Experts:
    """The experts of which a record or bitstream tells, with these models in place of their names, and a method and a
    mixer that are not of the package."""
    kind: Any = find_method(own) if isinstance(own, str) else own
    if not 0 < len(model["experts"]) <= MOST_EXPERTS:
        raise PreqError(
            f"a file tells of {len(model['experts'])} experts; there are at least 1 and at most {MOST_EXPERTS}"
        )
    made = [
        Expert(
            factory,
            method=method_from_settings(told["method"], kind if kind and kind.name == told["method"]["name"] else None),
            recipe=recipe_from_settings(told["recipe"]),
            width=float(told["width"]),
            seed=told["seed"],
            averages=tuple(told["averages"]),
        )
        for told, factory in zip(model["experts"], models, strict=True)
    ]
    return Experts(made, _mixer_again(model["mixer"], own_mixer), bool(model["simple_codes"]))


def _mixer_again(told: Any, own: Mixer | str | None) -> Mixer:
    """The mixer of which a file tells: of the package, or one's own that is given again."""
    name = told.get("name") if isinstance(told, Mapping) else told
    if name in MIXERS or not isinstance(name, str):
        return mixer_from_settings(told)
    if own is None or isinstance(own, str) or own.name != name:
        raise PreqError(f"the mixer '{name}' is not one of the package; give the experts again, with it")
    if (given := settings_of(own)) != told:
        raise PreqError(f"the mixer '{name}' had the settings {told}, got {given}; give the same")
    return own
