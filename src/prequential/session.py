"""Everything a run needs, built and checked before any work is done."""

import json
from dataclasses import dataclass
from typing import Any

import torch

from prequential.conditioning import widest
from prequential.data.augment import require_fits
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, whole_seed
from prequential.events import Train
from prequential.learn.environment import environment, find_device
from prequential.learn.estimate import flops_of
from prequential.learn.execution import Execution
from prequential.learn.graph import GraphLearner
from prequential.learn.learner import Learner
from prequential.learn.recipe import Recipe
from prequential.learn.shapes import Shapes
from prequential.methods import Method, ReplayStreams
from prequential.models import ModelFactory, conditioning_of, name_of
from prequential.plan import Plan
from prequential.record import OVER
from prequential.recorder import Recorder
from prequential.settings import settings_of


@dataclass(frozen=True)
class Session:
    """A plan and a learner that fit each other."""

    plan: Plan
    learner: Learner
    facts: dict[str, Any]
    """What a record says of the settings."""

    def result(self, recorder: Recorder) -> dict[str, Any]:
        """What a record says of the settings and of how the run went."""
        is_over = recorder.status in OVER
        return self.facts | {
            "status": recorder.status,
            "heldout": recorder.heldout,
            "flops": flops_of(self.plan, self.learner, recorder.num_events) if is_over else None,
            "seconds": recorder.seconds,
            "environment": environment(self.learner),
        }


def prepare(
    make_model: str | ModelFactory,
    data: DataSequence,
    method: Method | None = None,
    recipe: Recipe | None = None,
    *,
    seed: int,
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    execution: Execution | None = None,
    evaluate: bool = True,
) -> Session:
    """Check what was given and build plan and learner.

    Raises:
        PreqError: for any mistake; nothing was written.
    """
    method, recipe = method or ReplayStreams(), recipe or Recipe()
    _require_kinds(data, method, recipe)
    plan = Plan(method, len(data), whole_seed("plan_seed", plan_seed), heldout=evaluate and data.heldout is not None)
    require_fits([*recipe.augment, *(["flip"] if recipe.average_flips else [])], data.input_shape)
    if not method.prequential and data.heldout is None:
        raise PreqError(f"{method.name} measures only held-out data, and there is none; give heldout=(inputs, labels)")
    learner = _make_learner(
        plan,
        execution or Execution(),
        find_device(device),
        make_model,
        data,
        recipe,
        seed=whole_seed("seed", seed),
        calibration_rate_factor=method.calibration_rate_factor,
        width=width,
    )
    first_batch = next((event.indices for event in plan.events() if isinstance(event, Train)), [0, 0])
    learner.probe(len(first_batch))
    facts = _facts(plan, learner)
    json.dumps(facts, allow_nan=False)  # whatever cannot be written is noticed now
    return Session(plan, learner, facts)


def _make_learner(plan: Plan, execution: Execution, device: torch.device, *parts: Any, **settings: Any) -> Learner:
    """The engine that suits the device and the plan."""
    bfloat16 = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    found = execution.on(device.type, num_steps=0, bfloat16=bfloat16)
    shapes = None if found.engine == "eager" else Shapes.of(plan)
    if shapes is not None:
        found = execution.on(device.type, num_steps=shapes.main_batch[1], bfloat16=bfloat16)
    settings |= {"device": device, "precision": found.precision, "deterministic": found.deterministic}
    if shapes is None:
        return Learner(*parts, **settings)
    return GraphLearner(*parts, **settings, shapes=shapes, compiled=bool(found.compiled))


def _facts(plan: Plan, learner: Learner) -> dict[str, Any]:
    data = learner.data
    return {
        "method": settings_of(plan.method),
        "recipe": settings_of(learner.recipe),
        "model": {
            "name": name_of(learner.factory),
            "width": float(learner.width),
            "num_parameters": sum(p.numel() for p in learner.model.parameters()),
            "fingerprint": learner.fingerprint(),
        },
        "data": {
            "name": data.name,
            "input_shape": list(data.input_shape),
            "training_view": capabilities(data).training_view,
            **data.digests(),
            "heldout": None if data.heldout is None else data.heldout.digests(),
        },
        "seeds": {"seed": learner.seed, "order_seed": data.order_seed, "plan_seed": plan.seed},
        "length": plan.length,
        "num_classes": data.num_classes,
        "prequential": plan.method.prequential,
        "environment": environment(learner),
        "conditioned_on": widest(
            plan.conditioned_on, capabilities(data).conditioned_on, conditioning_of(learner.factory, learner.model)
        ),
        "source": capabilities(data).source,
    }


def _require_kinds(data: DataSequence, method: Method, recipe: Recipe) -> None:
    parts: list[tuple[object, str, tuple[str, ...]]] = [
        (data, "the data must be a sequence, from from_arrays, from_dataset or load_data", ("inputs", "labels")),
        (method, "the method must be one such as ReplayStreams(...)", ("events", "closing")),
    ]
    for value, wanted, members in parts:
        if isinstance(value, type):
            raise PreqError(f"{wanted}, got the class {value.__name__}; make an instance")
        if not all(callable(getattr(value, name, None)) for name in members):
            raise PreqError(f"{wanted}, got {type(value).__name__}")
    if not isinstance(recipe, Recipe):
        raise PreqError(f"the recipe must be a Recipe(...), got {type(recipe).__name__}")
