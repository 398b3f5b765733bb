"""Experts as a small file or a preset lists them: a table for each, checked with words. No torch."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from prequential.catalogue import OF_THE_RECIPE, own_name, roles
from prequential.errors import PreqError, require_count, require_flag, require_known, require_number, whole_seed
from prequential.files import reading
from prequential.methods import AllInputs
from prequential.methods.rebuild import find_method
from prequential.mixers import MIXERS, Mixer, mixer_from_settings
from prequential.settings import described, from_plain, settings_of

MOST_BYTES = 1_000_000
"""Of a file that lists experts."""
MOST_MEMBERS = 1024


@dataclass(frozen=True, kw_only=True)
class ListedExpert:
    """An expert as it is listed; what is not said it takes from the run."""

    model: str
    """A model's name."""
    members: int = 1
    """How many there are of it, each with a seed of its own."""
    width: float | None = None
    seed: int | None = None
    averages: tuple[float, ...] = ()
    """Step sizes of several averages of its weights, each of which is an expert, the first of which teaches."""
    preset: str | None = None
    """The preset that its settings come from, where it is not the run's."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its training."""
    method: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its method, by name or role, and `name`, where it is another method."""
    all_inputs: Mapping[str, Any] | Literal[False] | None = None
    """Settings of its own where the run is given all inputs; false: it is not given them."""

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise PreqError(f"model must be the name of one, got {self.model!r}")
        require_count("members", self.members, at_most=MOST_MEMBERS)
        if self.width is not None:
            require_number("width", self.width, above=0)
        if self.seed is not None:
            whole_seed("seed", self.seed)
            if self.members > 1:
                raise PreqError(f"{self.members} members of one seed would all be the same; leave out seed or members")
        if not isinstance(self.averages, list | tuple):
            raise PreqError(f"averages must be a list of step sizes, got {self.averages!r}")
        for step_size in self.averages:
            require_number("averages", step_size, above=0, at_most=1)
        if len(set(self.averages)) < len(self.averages):
            raise PreqError(f"averages must differ from each other, got {list(self.averages)}; leave out what is twice")
        object.__setattr__(self, "averages", tuple(self.averages))
        if self.preset is not None and not isinstance(self.preset, str):
            raise PreqError(f"preset must be the name of one, got {self.preset!r}")
        for part in ("recipe", "method"):
            if not isinstance(getattr(self, part), Mapping):
                raise PreqError(f"{part} must be a table of settings, got {getattr(self, part)!r}")
        if self.averages and "ema_step_size" in self.recipe:
            raise PreqError("averages are step sizes of the EMA, and so is ema_step_size; leave out one of the two")
        for name in self.recipe:
            require_known("setting of the recipe", name, OF_THE_RECIPE)
        if isinstance(self.all_inputs, Mapping):
            require_all_inputs(self.all_inputs)
        elif self.all_inputs is not None and self.all_inputs is not False:
            raise PreqError(f"all_inputs must be a table of settings, or false, got {self.all_inputs!r}")
        if "name" in self.method:
            require_method_settings(str(self.method["name"]), self.method)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What a file or preset says of the experts of a run."""

    experts: tuple[ListedExpert, ...]
    mixer: Mixer | None = None
    simple_codes: bool = False


def require_method_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name or role as the method of that name has them; what it does not have is refused.

    Example:
        >>> require_method_settings("mi-rs", {"name": "mi-rs", "passes": 4})
        {'num_streams': 4}
    """
    kind: Any = find_method(name)
    known = [*described(kind), *dict.fromkeys(each.terms.role for each in described(kind).values() if each.terms.role)]
    made = {}
    for key, value in settings.items():
        if key != "name":
            if (own := own_name(key, kind)) is None or key not in {*known, *roles()}:
                require_known(f"setting of the method {name}", key, known)
            assert own is not None
            made[own] = value
    return made


def require_all_inputs(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings of `AllInputs`; what it does not have is refused, and what the run or the data say.

    Example:
        >>> require_all_inputs({"study_seed": 1})
        {'study_seed': 1}
    """
    known = [each.name for each in described(AllInputs).values() if each.name != "method" and not each.terms.by_data]
    for name in settings:
        require_known("setting of all_inputs", name, known)
    return settings


def changed(settings: Any, values: Mapping[str, Any], who: str) -> Any:
    """Settings with some of them replaced by plain values, as TOML or JSON has them.

    Example:
        >>> from prequential.learn.recipe import Recipe
        >>> changed(Recipe(), {"learning_rate": 0.01}, "a recipe").learning_rate
        0.01
    """
    if not values:
        return settings
    kind: type = type(settings)
    before = {name: value for name, value in settings_of(settings).items() if name in described(kind)}
    return from_plain(kind, before | dict(values), who)


def read_listed(file: str | Path) -> Listed:
    """The experts that a TOML file lists.

    Raises:
        PreqError: naming file, expert and mistake.
    """
    path = Path(file)
    with reading(path), path.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PreqError(f"{path} has more than {MOST_BYTES:,} bytes; a list of experts is a small file")
    try:
        told = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise PreqError(f"{path} cannot be read as TOML: {error}") from None
    require_keys(told, ("expert", "mixer", "simple_codes"), str(path))
    experts = told.get("expert")
    if not isinstance(experts, list) or not experts:
        raise PreqError(f"{path} lists no experts; give each a table, [[expert]] with model = NAME")
    try:
        return listed(experts, told.get("mixer"), told.get("simple_codes", False))
    except PreqError as error:
        raise PreqError(f"{path}: {error}") from None


def listed(
    experts: Iterable[str | Mapping[str, Any]], mixer: str | Mapping[str, Any] | None = None, simple_codes: Any = False
) -> Listed:
    """What a file or preset says, checked.

    Example:
        >>> listed(["lenet", {"model": "mlp2", "averages": [0.01, 0.003]}], "switching").experts[1].averages
        (0.01, 0.003)
    """
    made = tuple(_listed_expert(number, each) for number, each in enumerate(experts, 1))
    require_flag("simple_codes", simple_codes)
    for number, expert in enumerate(made, 1):
        if expert.seed is not None and (first := made.index(expert) + 1) < number:
            raise PreqError(
                f"experts {first} and {number} ({expert.model}) are the same, their seed {expert.seed} too, so that "
                "one would say what the other does; leave out one seed"
            )
    return Listed(experts=made, mixer=None if mixer is None else _mixer(mixer), simple_codes=simple_codes)


def _listed_expert(number: int, told: str | Mapping[str, Any]) -> ListedExpert:
    told = {"model": told} if isinstance(told, str) else told
    if not isinstance(told, Mapping):
        raise PreqError(f"expert {number} must be a table with a model, got {told!r}")
    try:
        require_keys(told, [each.name for each in fields(ListedExpert)], "")
        if "model" not in told:
            raise PreqError("model is missing; name one, such as model = 'lenet' (see preq models)")
        return ListedExpert(**told)
    except PreqError as error:
        raise PreqError(f"expert {number}{_called(told)}: {error}") from None


def _called(told: Mapping[str, Any]) -> str:
    return f" ({told['model']})" if isinstance(told.get("model"), str) else ""


def _mixer(told: str | Mapping[str, Any]) -> Mixer:
    """A mixer by name, or a table with `name` and settings."""
    values = {"name": told} if isinstance(told, str) else told
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise PreqError(f"mixer must be a name or a table with one, got {told!r}; known: {', '.join(MIXERS)}")
    require_known("mixer", values["name"], MIXERS)
    kind: type = MIXERS[values["name"]]
    for name in values:
        require_known(f"setting of the mixer {values['name']}", name, ("name", *described(kind)))
    return mixer_from_settings(values)


def require_keys(told: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse a name that means nothing, with the nearest that does."""
    for name in told:
        try:
            require_known("name", name, known)
        except PreqError as error:
            raise PreqError(f"{where}: {error}" if where else str(error)) from None
