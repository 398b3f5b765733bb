"""Everything a run needs, of one member or of many, built and checked before any work is done."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from torch import Tensor

from prequential.data.augment import require_fits
from prequential.data.optional import capabilities
from prequential.data.scale import scale_of
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, whole_seed
from prequential.estimators import learner_kind
from prequential.estimators.fitting import (
    default_method,
    require_meaningful,
    require_network_for_inputs,
    require_trainable,
)
from prequential.events import Train
from prequential.experts.build import build
from prequential.experts.learner import MixedLearner
from prequential.experts.settings import AnyModel, Experts
from prequential.learn.environment import environment, find_device, find_num_threads, num_threads, repeatable
from prequential.learn.estimate import flops_of
from prequential.learn.execution import Execution
from prequential.learn.learning import Learning
from prequential.learn.memory import freed_memory_kept
from prequential.learn.randomness import seeded
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.methods.all_inputs import given_all_inputs
from prequential.methods.joint import ForExperts
from prequential.methods.several import for_inputs
from prequential.plan import Plan
from prequential.runs.beginning import facts_of
from prequential.runs.facts import Facts
from prequential.runs.record import OVER
from prequential.runs.recorder import Recorder
from prequential.runs.studies import told_of_studies
from prequential.stack.engines import Engines
from prequential.stack.learner import StackedLearner
from prequential.targets import Classes

LearnerFactory = Callable[..., Learning]
"""Makes a learner: called as the class `Learner` is, by its own arguments."""


@dataclass(frozen=True)
class Session:
    """A plan, a learner that fits it, and what is known of each member."""

    plan: Plan
    learner: Learning
    recipes: Sequence[Recipe]
    seeds: Sequence[int]
    facts: Sequence[Facts]
    _learner_of: Callable[[Sequence[Recipe], Sequence[int]], Learning]

    def learner_of(self, numbers: Sequence[int]) -> Learning:
        """The learner of these members alone."""
        if list(numbers) == list(range(len(self.seeds))):
            return self.learner
        return self._learner_of([self.recipes[n] for n in numbers], [self.seeds[n] for n in numbers])

    @contextmanager
    def at_work(self, learner: Learning, threads: int | str | None) -> Iterator[None]:
        """Inside, a learner of this session can execute events: with its threads, its memory, its determinism, and a
        generator that nothing outside disturbs. Afterwards it lets go of what only speed needed."""
        with (
            freed_memory_kept(),
            closing(learner),
            num_threads(find_num_threads(threads, learner)),
            seeded(self.seeds[0], "run", 0, learner.device),
            repeatable(learner),
        ):
            yield

    def results(self, numbers: Sequence[int], learner: Learning, recorder: Recorder) -> list[dict[str, Any]]:
        """What the record of each of these members says of its settings and of how the run went."""
        flops = cache(partial(flops_of, self.plan, learner))  # counting takes long, and most members did the same
        made = environment(learner) | ({"members": len(numbers)} if learner.engine == StackedLearner.engine else {})
        return [
            self.facts[number].facts()
            | {"status": member.status, "heldout": member.heldout, "environment": made}
            | ({"left_out": learner.left_out} if isinstance(learner, MixedLearner) and learner.left_out else {})
            | told_of_studies(recorder)
            | {"flops": flops(member.num_events) if member.status in OVER else None, "seconds": member.seconds}
            for number, member in zip(numbers, recorder.members, strict=True)
        ]


def make_session(
    make_model: AnyModel,
    data: DataSequence,
    method: Method | None,
    recipes: Sequence[Recipe | None],
    seeds: Sequence[int],
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    execution: Execution | None = None,
    *,
    evaluate: bool = True,
    stacked: bool = False,
    learner: LearnerFactory | None = None,
) -> Session:
    """Check what was given and build plan and learner.

    Args:
        recipes, seeds: one for each member; there is one, or the members are `stacked`.
        evaluate: whether held-out data, where there is any, is evaluated at the end.
        stacked: whether the stacked learner does the tensor work.
        make_model, data, method, plan_seed, width, device, execution, learner: as in `run`.

    Raises:
        PreqError: for any mistake; nothing was written.
    """
    if not isinstance(execution, Execution | None):
        raise PreqError(f"the execution must be an Execution(...), got {type(execution).__name__}")
    if learner is not None and not callable(learner):
        raise PreqError(f"the learner must be a class or function that makes one, got {type(learner).__name__}")
    chosen, num_inputs = [recipe or Recipe() for recipe in recipes], capabilities(data).num_inputs
    method = for_inputs(method or default_method(make_model), num_inputs)
    seeds = [whole_seed("seed", seed) for seed in seeds]
    _require_fitting(data, method, chosen)
    if isinstance(make_model, Experts):
        if stacked or learner is not None:
            raise PreqError("experts have learners of their own; run them one by one, and leave learner= out")
        make_model = make_model.completed(method, chosen[0], width, seeds[0], num_inputs)
        for expert in make_model.each:
            _require_fitting(data, expert.known.method, [expert.known.recipe])
        method = make_model.method
        require_network_for_inputs([expert.model for expert in make_model.each], make_model.each[0].known.method)
    elif learner is None:
        require_trainable(make_model, method)
        if (learner := learner_kind(make_model)) is not None:
            require_meaningful(str(make_model), method, chosen, width, device, execution, stacked=stacked)
    scale = scale_of(data)
    plan = Plan(method, len(data), whole_seed("plan_seed", plan_seed), heldout=evaluate and data.heldout is not None)
    place, execution = find_device(device), execution or Execution()

    def make(recipes: Sequence[Recipe], seeds: Sequence[int]) -> Learning:
        """The engine that suits the device, the plan and the number of members."""
        if isinstance(make_model, Experts):
            return build(make_model, data, plan, place, execution)
        engines = Engines(data, plan, place, execution)
        if stacked:
            return engines.stack(make_model, recipes, seeds, width)
        (recipe,), (seed,) = recipes, seeds
        if learner is not None:
            return learner(make_model, data, recipe, seed=seed, width=width, **engines.settings)
        return engines.one(make_model, recipe, seed, width)

    made = make(chosen, seeds)
    batches = (event.indices for event in plan.events() if isinstance(event, Train | ForExperts) and event.indices.size)
    made.probe(np.shape(next(batches, [0, 0]))[-1])
    return Session(plan, made, chosen, seeds, facts_of(plan, made, make_model, chosen, seeds, scale), make)


def _require_fitting(data: DataSequence, method: Method, recipes: Sequence[Recipe]) -> None:
    """Refuse parts that are no such parts at all, and data that recipe or method cannot use."""
    data_words = "the data must be a sequence, from from_arrays, from_dataset or load_data"
    method_words = "the method must be one such as ReplayStreams(...)"
    for part, wanted, members in ((data, data_words, "inputs labels"), (method, method_words, "events closing")):
        if isinstance(part, type):
            raise PreqError(f"{wanted}, got the class {part.__name__}; make an instance")
        if not all(callable(getattr(part, name, None)) for name in members.split()):
            raise PreqError(f"{wanted}, got {type(part).__name__}")
    if (given := given_all_inputs(method)) is not None:
        _require_inputs_apart(data)
        require_fits(given.views, data.input_shape)
    for recipe in recipes:
        if not isinstance(recipe, Recipe):
            raise PreqError(f"the recipe must be a Recipe(...), got {type(recipe).__name__}")
        require_fits([*recipe.augment, *(["flip"] if recipe.average_flips else [])], data.input_shape)
    if not isinstance(one := data.inputs(np.zeros(1, np.int64)), Tensor):
        raise PreqError(f"inputs of '{data.name}' must be read as a tensor, got {type(one).__name__}; use from_numpy")
    if data.heldout is not None:
        if not len(data.heldout) or tuple(data.heldout.input_shape) != tuple(data.input_shape):
            told = f"{len(data.heldout)} of shape {data.heldout.input_shape}"
            raise PreqError(f"held-out inputs must be some of shape {data.input_shape}, got {told}; make them alike")
        capabilities(data).target.require(data.heldout.labels(np.arange(len(data.heldout))).numpy())
    if not method.prequential and data.heldout is None:
        raise PreqError(f"{method.name} measures only held-out data, and there is none; give heldout=(inputs, labels)")


def _require_inputs_apart(data: DataSequence) -> None:
    """Refuse to give all inputs where they would tell targets, or where targets are no classes."""
    optional = capabilities(data)
    if not isinstance(optional.target, Classes):
        raise PreqError(
            f"all inputs are given to codes of classes, and '{data.name}' has {optional.target}; leave them out"
        )
    if optional.inputs_contain_targets:
        raise PreqError(f"the inputs of '{data.name}' contain its targets, so that all of them may not be given")
