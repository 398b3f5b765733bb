"""Many models of one architecture that learn together: the arithmetic of a training step and of a prediction."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, PreqWarning
from prequential.learn import functional
from prequential.learn.base import BaseLearner
from prequential.learn.probe import fingerprint_of
from prequential.learn.randomness import FOREIGN
from prequential.learn.recipe import Recipe
from prequential.models import ModelFactory, name_of
from prequential.stack.optimizers import make_stacked_optimizer
from prequential.stack.recipe import Vectors, require_alike, require_members
from prequential.stack.stackable import Structure, bound, require_stackable
from prequential.stack.state import StackedState, require_same_shapes

PROBED = 2
"""Examples on which a stack is tried before any work is done."""


class StackedModels(BaseLearner):
    """Weights, averages, optimizers and temperatures of N models, and what happens to them in place.

    Args:
        factory, data: those of a `BaseLearner`.
        recipes: one for each member; they may differ in numbers only.
        seeds: one for each member.
        settings: `calibration_rate_factor`, `width`, `device`, `precision`, `compiled`, `deterministic` and `dtype`, as
            of a `BaseLearner`. What is compiled are training steps of a shape that comes up often.
    """

    def __init__(
        self,
        factory: str | ModelFactory,
        data: DataSequence,
        recipes: Sequence[Recipe],
        *,
        seeds: Sequence[int],
        **settings: Any,
    ) -> None:
        require_members(recipes, seeds, data)
        require_alike(recipes)
        self.recipes, self.seeds = recipes, seeds
        super().__init__(factory, data, recipes[0], seed=seeds[0], **settings)

    def _build(self, calibration_rate_factor: float) -> None:
        fresh = self._fresh_models(event=-1)
        require_same_shapes(fresh)
        self.model, self._fingerprints = fresh[0], [fingerprint_of(model) for model in fresh]
        with warnings.catch_warnings(action="ignore", category=PreqWarning):  # whoever probes again is told
            self.probe(PROBED)
        if outside := sorted(self.drew_on & FOREIGN.keys()):
            raise PreqError(
                f"the model '{name_of(self.factory)}' cannot be stacked: it draws from {' and '.join(outside)}'s "
                "generator when it is trained, which all members share; draw from torch's, or run its trials one by one"
            )
        self.settings, self.structure = Vectors(self.recipes, self.device), Structure(fresh)
        self.raw, self.averaged = self.tensors_of_models = StackedState(fresh), StackedState(fresh)
        self.leaves = {name: view.detach().requires_grad_() for name, view in self.raw.weights.items()}
        self.beta = torch.full((len(fresh),), functional.INITIAL_BETA, dtype=torch.float64, device=self.device)
        self._ema_step_sizes = torch.zeros_like(self.beta)
        matrices = self.raw.hidden_matrices
        self.optimizer = make_stacked_optimizer(self.settings, self.raw.flat, matrices=matrices)
        self.beta_optimizer = make_stacked_optimizer(self.settings, self.beta, calibration_rate_factor, decay=False)
        self._counters = [self.raw.others[name] for name in self.structure.counted if name in self.raw.others]
        inputs = self.inputs.clean(np.zeros(PROBED, np.int64))
        require_stackable(self.structure, fresh, self.raw.weights | self.raw.others, inputs, name_of(self.factory))

    def __len__(self) -> int:
        return len(self.seeds)

    def fingerprints(self) -> list[str]:
        """Of the models as they began."""
        return self._fingerprints

    def finite(self) -> list[bool]:
        """For each member, whether every averaged weight is a finite number."""
        return [bool(is_finite) for is_finite in self.averaged.finite().tolist()]

    def _fresh_models(self, event: int) -> list[nn.Module]:
        return [self._fresh_model(event, *member) for member in zip(self.recipes, self.seeds, strict=True)]

    def statistics(self) -> dict[str, Tensor]:
        """Copies of the batch statistics that members move by different amounts."""
        return {name: self.raw.others[name].clone() for name in self.structure.momenta}

    def trained(self, inputs: Tensor, labels: Tensor, keys: Tensor, *, shared: bool) -> tuple[Tensor, Tensor]:
        """Logits in train mode and the gradient of the loss there; for `inputs` and `keys` see `Structure.train`."""
        with self.computing():
            logits = self.structure.train(self.leaves | self.raw.others, keys, inputs, shared=shared)
        logits = logits.to(self.raw.flat.dtype)
        return logits, self.kind.loss_gradient(logits.detach(), labels, self.settings.label_smoothing)

    def move_statistics(self, before: dict[str, Tensor]) -> None:
        """Batch statistics from where they were before a step to where each member takes them."""
        for name, old in before.items():
            new = self.raw.others[name]
            new.copy_(old.lerp(new, functional.per_member(self.structure.momenta[name], new)))
        if self._counters:
            torch._foreach_add_(self._counters, 1)
        if self.raw.integers:
            torch._foreach_copy_(self.averaged.integers, self.raw.integers)

    def begin_move(self, num_steps: Tensor) -> None:
        """Find how far each member's weights and averages go in step n."""
        self.optimizer.begin(self.settings.rates(num_steps))
        self._ema_step_sizes.copy_(self.settings.ema_step_sizes(num_steps))

    def move(self, gradients: Sequence[Tensor]) -> None:
        """Weights against their gradients, then averages towards the weights."""
        self.optimizer.step(self.raw.joined(gradients))
        raw, averaged = [self.raw.flat, *self.raw.floats], [self.averaged.flat, *self.averaged.floats]
        are_raw = self.settings.common.batch_statistics == "raw"
        for number, (mine, theirs) in enumerate(zip(averaged, raw, strict=True)):
            mine.copy_(theirs) if number and are_raw else mine.lerp_(
                theirs, functional.per_member(self._ema_step_sizes, mine)
            )

    @torch.no_grad()
    def logits(self, inputs: Tensor) -> Tensor:
        """What the averaged weights of each member make of clean inputs, averaged over views if asked."""
        tensors = self.structure.used(self.averaged.weights | self.averaged.others)
        with self.computing():
            predict = torch.vmap(lambda tensors: self.inputs.logits(bound(self.structure.predicting, tensors), inputs))
            logits: Tensor = predict(tensors)
        return logits

    def calibrate_on(self, logits: Tensor, labels: Tensor, count: Tensor | None = None) -> None:
        gradient = torch.vmap(self.kind.calibration_gradient, (0, None, 0, None))(logits, labels, self.beta, count)
        self.beta_optimizer.begin()
        self.beta_optimizer.step(gradient)

    def _fresh_tensors(self, event: int) -> StackedState:
        return StackedState(self._fresh_models(event))
