"""Which learner does the tensor work: what suits the device, the plan and the number of members."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.execution import Execution
from prequential.learn.graph import GraphLearner
from prequential.learn.graph_all_inputs import GraphFromAllInputs
from prequential.learn.learner import Learner
from prequential.learn.learning import Learning
from prequential.learn.recipe import Recipe
from prequential.learn.shapes import Shapes
from prequential.methods.all_inputs import given_all_inputs
from prequential.models import ModelFactory
from prequential.plan import Plan
from prequential.stack.learner import StackedLearner


class Engines:
    """Makes learners for a plan.

    Args:
        data: what they learn from.
        plan: what they execute.
        device: where.
        execution: what was asked for.
    """

    def __init__(self, data: DataSequence, plan: Plan, device: torch.device, execution: Execution) -> None:
        self._data, self._device = data, device
        bfloat16 = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
        found = partial(execution.on, device.type, bfloat16=bfloat16)
        self._shapes = None if found(num_steps=0).engine == "eager" else Shapes.of(plan)
        chosen = found(num_steps=0 if self._shapes is None else self._shapes.most_steps)
        self._compiled = bool(chosen.compiled)
        self._given = given_all_inputs(plan.method)
        self.settings: dict[str, Any] = {
            "calibration_rate_factor": plan.method.calibration_rate_factor,
            "device": device,
            "precision": chosen.precision,
            "deterministic": chosen.deterministic,
        }

    def one(self, model: str | ModelFactory, recipe: Recipe, seed: int, width: float) -> Learning:
        """Of one model."""
        settings = self.settings | {"seed": seed, "width": width}
        is_eager = self._shapes is None
        settings |= {} if is_eager else {"shapes": self._shapes, "compiled": self._compiled}
        if self._given is not None:
            given = FromAllInputs if is_eager else GraphFromAllInputs
            return given(model, self._data, recipe, given=self._given, **settings)
        return (Learner if is_eager else GraphLearner)(model, self._data, recipe, **settings)

    def stack(
        self, model: str | ModelFactory, recipes: Sequence[Recipe], seeds: Sequence[int], width: float
    ) -> StackedLearner:
        """Of many models of one architecture."""
        if self._given is not None:
            raise PreqError("networks that are given all inputs are not stacked; run them one by one")
        settings = self.settings | {"seeds": seeds, "width": width, "compiled": self._compiled}
        return StackedLearner(model, self._data, recipes, **settings)
