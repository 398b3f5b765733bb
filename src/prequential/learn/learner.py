"""The learner: weights, optimizer, EMA and temperature. It executes events and sees no future label."""

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from prequential.events import Indices
from prequential.learn import functional
from prequential.learn.base import BaseLearner
from prequential.learn.built import copy_of
from prequential.learn.optimizers import make_optimizer
from prequential.learn.probe import fingerprint_of
from prequential.learn.randomness import generators, seeded
from prequential.learn.recipe import Recipe
from prequential.models import name_of


class EmaTensors:
    """The tensors of a model, sharing memory with it: those that the EMA averages, and the others, which it copies.

    Parameters and floating buffers are averaged; buffers that count are not, nor those that shall be raw.
    """

    def __init__(self, model: nn.Module, recipe: Recipe) -> None:
        self.parameters, buffers = ([t.detach() for t in own] for own in (model.parameters(), model.buffers()))
        self.averaged: list[Tensor] = []
        self.others: list[Tensor] = []
        for tensors, follow in ((self.parameters, True), (buffers, recipe.batch_statistics != "raw")):
            for tensor in tensors:
                (self.averaged if follow and tensor.is_floating_point() else self.others).append(tensor)
        self.all = self.averaged + self.others


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
        self.averaged = copy_of(self.model, name_of(self.factory)).eval().requires_grad_(False)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.raw_tensors, self.ema_tensors = (EmaTensors(m, recipe) for m in (self.model, self.averaged))
        self.tensors_of_models = self.raw_tensors, self.ema_tensors
        self.beta = torch.tensor(functional.INITIAL_BETA, dtype=torch.float64, device=self.device)
        self.optimizer = make_optimizer(recipe, [p.detach() for p in self.parameters])
        self.beta_optimizer = make_optimizer(recipe, [self.beta], rate_factor=calibration_rate_factor, decay=False)
        self.generators = generators(self.device)

    def fingerprints(self) -> list[str]:
        """Of the model as it stands."""
        return [fingerprint_of(self.model)]

    def finite(self) -> list[bool]:
        """Whether every averaged weight is a finite number."""
        return [all(bool(tensor.isfinite().all()) for tensor in self.ema_tensors.averaged)]

    def logits(self, inputs: Tensor) -> Tensor:
        """What the averaged weights make of clean inputs; averaged with those of the mirrored ones if asked."""
        with self.computing():
            return self.inputs.logits(self.averaged, inputs)

    def calibrate_on(self, logits: Tensor, labels: Tensor, count: Tensor | None = None) -> None:
        self.beta_optimizer.step([self.kind.calibration_gradient(logits, labels, self.beta, count)])

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps one after the other, a row of both arguments each; `event` is the number of the first."""
        for number, indices in enumerate(batches):
            self.train(indices, labels[number], event + number)

    def train(self, indices: Indices, labels: Tensor, event: int) -> None:
        """One gradient step on the raw weights, then one step of the average towards them."""
        self._forget()
        with seeded(self.seed, "train", event, self.device, self.drew_on) if self.drew_on else nullcontext():
            self._train(indices, labels, event)

    def _train(self, indices: Indices, labels: Tensor, event: int) -> None:
        inputs = self.inputs.training(indices, event)
        with self.computing():
            logits = self.model(inputs).to(self.dtype)
        loss_gradient = self.kind.loss_gradient(logits.detach(), labels, self.recipe.label_smoothing)
        self._step(list(torch.autograd.grad(logits, self.parameters, loss_gradient, materialize_grads=True)))

    def _step(self, gradients: list[Tensor]) -> None:
        """Move the raw weights against the gradients, and the average after them."""
        self.num_steps += 1
        recipe = self.recipe
        rate = functional.learning_rate(recipe.learning_rate, self.num_steps, full_steps=recipe.full_rate_steps)
        with torch.no_grad():
            self.optimizer.step(gradients, rate)
            self._average(recipe.ema_step_size, self.ema_tensors)

    def _average(self, step_size: float, ema: EmaTensors) -> None:
        """One step of an average towards the raw weights."""
        raw, warmup = self.raw_tensors, self.recipe.ema_warmup
        step_size = functional.ema_step_size(step_size, self.num_steps, warmup=warmup)
        torch._foreach_lerp_(ema.averaged, raw.averaged, step_size)
        if raw.others:
            torch._foreach_copy_(ema.others, raw.others)

    def _fresh_tensors(self, event: int) -> EmaTensors:
        return EmaTensors(self._fresh_model(event, self.recipe, self.seed), self.recipe)
