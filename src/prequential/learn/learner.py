"""The learner: weights, optimizer, EMA and temperature. It executes events and sees no future label."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from prequential.events import Indices
from prequential.learn import functional
from prequential.learn.base import BaseLearner, fingerprint_of
from prequential.learn.optimizers import make_optimizer
from prequential.learn.prediction import Prediction
from prequential.learn.randomness import generators, seeded
from prequential.learn.recipe import Recipe
from prequential.plan import is_span


@dataclass(frozen=True)
class EmaTensors:
    """The tensors of a model, sharing memory with it: those that the EMA averages, and the others, which it copies."""

    averaged: list[Tensor]
    others: list[Tensor]

    @staticmethod
    def of(model: nn.Module, recipe: Recipe) -> "EmaTensors":
        """Parameters and floating buffers are averaged; buffers that count are not, nor those that shall be raw."""
        found = EmaTensors([], [])
        for tensors, follow in ((model.parameters(), True), (model.buffers(), recipe.batch_statistics != "raw")):
            for tensor in tensors:
                (found.averaged if follow and tensor.is_floating_point() else found.others).append(tensor.detach())
        return found

    @property
    def all(self) -> list[Tensor]:
        """Both, the averaged ones first."""
        return self.averaged + self.others


class Learner(BaseLearner):
    """The eager engine: plain torch, one event at a time, on CPU or GPU.

    Everything random is derived from `seed` and the number of the event, so a learner is a pure
    function of its arguments, which are those of a `BaseLearner`, and the events it was given.
    """

    engine = "eager"
    steps_at_once = 1

    def _build(self, calibration_rate_factor: float) -> None:
        recipe = self.recipe
        self.model = self._fresh_model(-1, recipe, self.seed).train()
        self.averaged = copy.deepcopy(self.model).eval().requires_grad_(False)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.raw_tensors, self.ema_tensors = (EmaTensors.of(m, recipe) for m in (self.model, self.averaged))
        self.beta = torch.tensor(functional.INITIAL_BETA, dtype=torch.float64, device=self.device)
        self.optimizer = make_optimizer(recipe, [p.detach() for p in self.parameters])
        self.beta_optimizer = make_optimizer(recipe, [self.beta], rate_factor=calibration_rate_factor, decay=False)
        self._at_hand: tuple[tuple[int, int], Tensor] | None = None
        self.generators = generators(self.device)

    def fingerprints(self) -> list[str]:
        """Of the model as it stands."""
        return [fingerprint_of(self.model)]

    def finite(self) -> list[bool]:
        """Whether every averaged weight is a finite number."""
        return [all(bool(tensor.isfinite().all()) for tensor in self.ema_tensors.averaged)]

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        """Averaged weights, eval mode, clean input."""
        logits = self.logits(self.inputs.clean(np.arange(start, stop)))
        self._at_hand = (start, stop), logits
        return self.kind.prediction(logits, self.beta)

    def logits(self, inputs: Tensor) -> Tensor:
        """What the averaged weights make of clean inputs; averaged with those of the mirrored ones if asked."""
        with self.computing():
            return self.inputs.logits(self.averaged, inputs)

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """As one who knows nothing."""
        return self.kind.uniform(stop - start, self.device)

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        """One gradient step on β; the logits of the prediction just made are used again."""
        if self._at_hand is not None and is_span(indices, self._at_hand[0]):
            logits = self._at_hand[1]
        else:
            logits = self.logits(self.inputs.clean(indices))
        self.calibrate_on(logits, labels)

    def calibrate_on(self, logits: Tensor, labels: Tensor, count: Tensor | None = None) -> None:
        self.beta_optimizer.step([self.kind.calibration_gradient(logits, labels, self.beta, count)])

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps one after the other, a row of both arguments each; `event` is the number of the first."""
        for number, indices in enumerate(batches):
            self.train(indices, labels[number], event + number)

    def train(self, indices: Indices, labels: Tensor, event: int) -> None:
        """One gradient step on the raw weights, then one step of the average towards them."""
        self._forget()
        if self.drew_on:
            with seeded(self.seed, "train", event, self.device):
                self._train(indices, labels, event)
        else:
            self._train(indices, labels, event)

    def _train(self, indices: Indices, labels: Tensor, event: int) -> None:
        inputs = self.inputs.training(indices, event)
        with self.computing():
            logits = self.model(inputs).to(self.dtype)
        loss_gradient = self.kind.loss_gradient(logits.detach(), labels, self.recipe.label_smoothing)
        gradients = torch.autograd.grad(logits, self.parameters, loss_gradient, materialize_grads=True)
        self.num_steps += 1
        recipe, raw, ema = self.recipe, self.raw_tensors, self.ema_tensors
        step_size = functional.ema_step_size(recipe.ema_step_size, self.num_steps, warmup=recipe.ema_warmup)
        rate = functional.learning_rate(recipe.learning_rate, self.num_steps, full_steps=recipe.full_rate_steps)
        with torch.no_grad():
            self.optimizer.step(list(gradients), rate)
            torch._foreach_lerp_(ema.averaged, raw.averaged, step_size)
            if raw.others:
                torch._foreach_copy_(ema.others, raw.others)

    def _begin_anew(self, event: int) -> None:
        fresh = EmaTensors.of(self._fresh_model(event, self.recipe, self.seed), self.recipe)
        for mine in (self.raw_tensors, self.ema_tensors):
            for target, source in zip(mine.all, fresh.all, strict=True):
                target.copy_(source)

    @torch.no_grad()
    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None:
        """θ ← shrink·θ + perturb·fresh; β and batch statistics stay, everything else starts anew."""
        fresh = self._fresh_model(event, self.recipe, self.seed)
        models = (self.model, self.averaged, fresh)
        for raw, averaged, new in zip(*(model.parameters() for model in models), strict=True):
            raw.mul_(shrink).add_(new, alpha=perturb)
            averaged.copy_(raw)
        self._restart()

    def _in_place(self) -> dict[str, list[Tensor]]:
        tensors = {"raw": self.raw_tensors.all, "averaged": self.ema_tensors.all, "beta": [self.beta]}
        for owner, optimizer in (("weights", self.optimizer), ("beta", self.beta_optimizer)):
            tensors |= {f"{owner} {name}": values for name, values in optimizer.state.items()}
        return tensors

    def _forget(self) -> None:
        self._at_hand = None

    def close(self) -> None:
        """Nothing is held that only speed needed."""
