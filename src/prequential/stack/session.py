"""Everything a stack needs, built and checked before any work is done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from prequential.data.sequence import DataSequence
from prequential.learn.environment import find_device
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.learn.shapes import Shapes
from prequential.methods import Method
from prequential.models import ModelFactory
from prequential.session import Session, prepare
from prequential.stack.learner import StackedLearner, require_members
from prequential.stack.recipe import require_alike


@dataclass(frozen=True)
class StackSession:
    """What all members share, and what the record of each says of its settings."""

    alone: Session
    """The first member by itself: the plan, and a learner to count FLOPs on."""
    recipes: list[Recipe]
    facts: list[dict[str, Any]]
    execution: Execution

    def stack(self, numbers: list[int]) -> StackedLearner:
        """The learner of these members."""
        learner = self.alone.learner
        return StackedLearner(
            learner.factory,
            learner.data,
            [self.recipes[number] for number in numbers],
            seeds=[self.facts[number]["seeds"]["seed"] for number in numbers],
            calibration_rate_factor=self.alone.plan.method.calibration_rate_factor,
            width=learner.width,
            device=learner.device,
            precision=self.execution.precision,
            compiled=bool(self.execution.compiled),
        )


def prepare_stack(
    make_model: str | ModelFactory,
    data: DataSequence,
    method: Method | None,
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    execution: Execution,
    settings: dict[str, Any],
) -> StackSession:
    """Check what was given, as `run` does for every member by itself."""
    require_members(recipes, seeds, data)
    device = find_device(settings["device"])
    bfloat16 = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    precision = execution.on(device.type, num_steps=0, bfloat16=bfloat16).precision
    eager = Execution(engine="eager", precision=precision)
    alone, facts = None, []
    for recipe, seed in zip(recipes, seeds, strict=True):
        session = prepare(make_model, data, method, recipe, seed=seed, execution=eager, **settings)
        alone = alone or session
        facts.append(session.facts)
    assert alone is not None
    require_alike(recipes)
    found = execution.on(device.type, num_steps=Shapes.of(alone.plan).main_batch[1], bfloat16=bfloat16)
    environment = {"engine": StackedLearner.engine, "compiled": bool(found.compiled)}
    facts = [fact | {"environment": fact["environment"] | environment} for fact in facts]
    return StackSession(alone, list(recipes), facts, found)
