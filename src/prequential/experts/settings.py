"""What the experts of a run are, and how they are mixed: the model of a run that is several."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from prequential.errors import PreqError, require_count, require_flag, require_number, whole_seed
from prequential.experts.codes import SimpleCodes
from prequential.learn.recipe import Recipe
from prequential.libraries import prefix_of
from prequential.methods import Method
from prequential.methods.joint import Joint, method_settings
from prequential.methods.several import for_inputs
from prequential.mixers import Mixer, mixer_from_settings
from prequential.models import ModelFactory, name_of
from prequential.rng import derive
from prequential.settings import settings_of

MOST_EXPERTS = 1024
"""That are believed in what a file says."""


@dataclass(frozen=True)
class Expert:
    """One of the experts of a run; what it does not say it takes from the run.

    Args:
        model: a model's name or a factory, as of a run.
        method: who decides what it learns when. Experts with different methods must predict the same spans of labels.
        recipe: the settings of its training.
        width: scales its layers.
        seed: of initialisation, dropout, augmentation and perturbation. Default: the run's for the first expert with a
            model, and for the next ones with the same model seeds that are derived from it.
        averages: step sizes of several averages (EMA) of its weights: it is trained once, and each average is an expert
            with a temperature of its own. Given all inputs, the first says what those without labels are taken for.
            Default: one average, the recipe's.

    Example:
        >>> Expert("lenet", averages=(0.01, 0.003)).averages
        (0.01, 0.003)
    """

    model: str | ModelFactory
    method: Method | None = None
    recipe: Recipe | None = None
    width: float | None = None
    seed: int | None = None
    averages: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.model, Expert | Experts) or not (isinstance(self.model, str) or callable(self.model)):
            raise PreqError(f"the model of an expert must be a name or a factory, got {type(self.model).__name__}")
        if self.recipe is not None and not isinstance(self.recipe, Recipe):
            raise PreqError(f"the recipe of an expert must be a Recipe(...), got {type(self.recipe).__name__}")
        if self.width is not None:
            require_number("width", self.width, above=0)
        if self.seed is not None:
            object.__setattr__(self, "seed", whole_seed("seed", self.seed))
        given: Any = self.averages
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise PreqError(f"averages must be several step sizes in a tuple, got {given!r}")
        for step_size in self.averages:
            require_number("averages", step_size, above=0, at_most=1)
        object.__setattr__(self, "averages", tuple(map(float, self.averages)))
        if prefix_of(self.model) is not None and self.averages:
            raise PreqError(f"'{name_of(self.model)}' is no network: it has no weights to average; leave averages out")
        if len(set(self.averages)) < len(self.averages):
            raise PreqError(f"averages must differ from each other, got {self.averages}; leave out what is twice")

    @property
    def known(self) -> "Known":
        """Its settings, all of which must be known."""
        assert self.method is not None
        assert self.recipe is not None
        assert self.width is not None
        assert self.seed is not None
        return Known(self.method, self.recipe, self.width, self.seed)

    def facts(self) -> dict[str, Any]:
        """As a record or bitstream holds it."""
        method, recipe, width, seed = self.known
        told = {"model": name_of(self.model), "width": float(width), "seed": seed, "averages": list(self.averages)}
        return told | {"method": method_settings(method), "recipe": settings_of(recipe)}


class Known(NamedTuple):
    """The settings of an expert, its own or those of the run."""

    method: Method
    recipe: Recipe
    width: float
    seed: int


@dataclass(frozen=True)
class Experts:
    """A model that is several: wherever a run takes a model it takes experts too.

    Their predictions are mixed label by label into one, which is charged and encoded; what a label reveals moves the
    weights for the next one, also inside a span that is predicted at once.

    Args:
        experts: names, factories or `Expert`s.
        mixer: "bayes", "switching", "logistic", or one with settings, such as `Switching(rate=0.01)`.
        simple_codes: whether the uniform code, the frequencies of the labels and what followed the label before are
            experts too; they are updated label by label.

    Example:
        >>> Experts(["lenet", "lenet", "mlp2"], mixer="bayes").name
        '2 × lenet + mlp2'
    """

    experts: Sequence[Expert | str | ModelFactory]
    mixer: Mixer | str = "logistic"
    simple_codes: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.experts, str) or not isinstance(self.experts, Sequence) or not self.experts:
            raise PreqError(f"experts must be a list of at least one model, got {self.experts!r}")
        require_flag("simple_codes", self.simple_codes)
        made = tuple(each if isinstance(each, Expert) else Expert(each) for each in self.experts)
        object.__setattr__(self, "experts", made)
        if isinstance(self.mixer, str):
            object.__setattr__(self, "mixer", mixer_from_settings(self.mixer))
        elif isinstance(self.mixer, type) or not callable(getattr(self.mixer, "begin", None)):
            raise PreqError(f"the mixer must be a name or one such as Switching(...), got {self.mixer!r}")

    @classmethod
    def of_seeds(
        cls,
        model: str | ModelFactory,
        number: int,
        *,
        mixer: Mixer | str = "logistic",
        simple_codes: bool = False,
        **settings: Any,
    ) -> "Experts":
        """So many times the same model, each with a seed of its own.

        Args:
            model: a model's name or a factory.
            number: of experts.
            mixer: as of `Experts`.
            simple_codes: as of `Experts`.
            settings: those of each `Expert`.

        Example:
            >>> Experts.of_seeds("lenet", 4, mixer="bayes").name
            '4 × lenet'
        """
        require_count("the number of experts", number, at_most=MOST_EXPERTS)
        return cls([Expert(model, **settings)] * number, mixer, simple_codes)

    @property
    def each(self) -> tuple[Expert, ...]:
        """The experts, apart from simple codes."""
        return self.experts  # type: ignore[return-value]  # made so when it was checked

    @property
    def name(self) -> str:
        """What tables call it."""
        counts = Counter(name_of(expert.model) for expert in self.each)
        parts = [f"{number} × {name}" if number > 1 else name for name, number in counts.items()]
        return " + ".join(parts + ["simple codes"] * self.simple_codes)

    @property
    def names(self) -> list[str]:
        """Of each prediction that is mixed: experts that are the same are numbered, averages told by their step size.

        Example:
            >>> Experts(["lenet", Expert("mlp1", averages=(0.1, 0.01))], mixer="bayes", simple_codes=True).names
            ['lenet', 'mlp1, average 0.1', 'mlp1, average 0.01', 'uniform', 'frequencies', 'previous label']
        """
        models = [name_of(expert.model) for expert in self.each]
        totals, seen, names = Counter(models), Counter[str](), list[str]()
        for expert, model in zip(self.each, models, strict=True):
            seen[model] += 1
            own = f"{model} {seen[model]}" if totals[model] > 1 else model
            written = [f"{step_size:g}" for step_size in expert.averages]
            told = written if len(set(written)) == len(written) else map(repr, expert.averages)  # nearly alike
            names += [f"{own}, average {step_size}" for step_size in told] or [own]
        return names + list(SimpleCodes.names) * self.simple_codes

    def completed(self, method: Method, recipe: Recipe, width: float, seed: int, num_inputs: int = 0) -> "Experts":
        """The same, each expert with all of its settings: its own, or those of the run, for so many inputs.

        Raises:
            PreqError: where a method has no code, or methods predict different spans.
        """
        made, seen = [], Counter[tuple[str, float]]()
        for expert in self.each:
            own_width = width if expert.width is None and prefix_of(expert.model) is None else expert.width or 1.0
            same = name_of(expert.model), float(own_width)
            found = derive(seed, "expert", seen[same]) if seen[same] else seed
            seen[same] += 1
            filled = replace(
                expert,
                method=for_inputs(expert.method or method, num_inputs),
                recipe=expert.recipe or (recipe if prefix_of(expert.model) is None else Recipe()),
                width=own_width,
                seed=found if expert.seed is None else expert.seed,
            )
            made.append(filled)
        return replace(self, experts=made)

    @property
    def method(self) -> Method:
        """Of the whole run, when all settings are known: that of all, or a joint one."""
        return Joint.of([expert.known.method for expert in self.each])

    def facts(self) -> dict[str, Any]:
        """As a record or bitstream holds it; every setting must be known."""
        told = {"experts": [expert.facts() for expert in self.each], "mixer": settings_of(self.mixer)}
        return told | {"simple_codes": self.simple_codes, "expert_names": self.names}


AnyModel = str | ModelFactory | Experts
"""What a run takes as its model."""
