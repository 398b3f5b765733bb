"""Learners that are given all inputs: they study before the first label, and train with inputs beside labelled ones."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from prequential.data.augment import draws_for, parse
from prequential.errors import PreqError
from prequential.events import Indices
from prequential.learn.beside import Beside
from prequential.learn.inputs import channels_last
from prequential.learn.last_layer import find_last_layer, last_layer_of
from prequential.learn.optimizers import InGroups, make_optimizer
from prequential.learn.randomness import seeded
from prequential.learn.studying import Studying
from prequential.models import name_of
from prequential.targets import Classes

BESIDE = "beside"
"""What its tensors are called besides those of a learner that studies."""


class FromAllInputs(Studying):
    """A learner that is given all inputs.

    Args:
        given: the settings of the study, and of inputs beside labelled ones.
        arguments, settings: those of a Learner.
    """

    def _build(self, calibration_rate_factor: float) -> None:
        if not isinstance(self.target, Classes):
            raise PreqError(f"all inputs are given to codes of classes, and the data has {self.target}; leave them out")
        super()._build(calibration_rate_factor)
        given, recipe = self.given, self.recipe
        self._strong = parse(given.strong_views or recipe.augment)
        self._weak = parse(given.weak_views)
        self._beside = Beside(given, self.target.num_classes, self.device)
        if given.body_rate != 1:
            last = {id(p) for p in self._last_parameters()}
            body, top = ([p for p in self.parameters if (id(p) in last) is is_last] for is_last in (False, True))
            self.parameters = body + top
            rates = (given.body_rate, 1.0)
            made = [
                make_optimizer(recipe, [p.detach() for p in part], rate_factor=rate, with_last=part is top)
                for part, rate in zip((body, top), rates, strict=True)
            ]
            self.optimizer = InGroups(made, rates)

    def _last_parameters(self) -> list[nn.Parameter]:
        if self._studies:
            return list(last_layer_of(self.model).parameters())
        return list(find_last_layer(self.model, self.target.output_size, name_of(self.factory))[1].parameters())

    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        self._beside.observe(labels)

    def train_beside_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps, a row each: as many positions as there are labels, then those beside them."""
        for number, (positions, known) in enumerate(zip(batches, labels, strict=True), event):
            self._forget()
            with seeded(self.seed, "train", number, self.device, self.drew_on) if self.drew_on else nullcontext():
                inputs = self.inputs.training_view(positions, number)
                num_draws = self.num_draws_beside
                draws = draws_for(self.seed, number, len(inputs), num_draws, self.device) if num_draws else None
                outputs, gradient = self.beside_outputs_and_gradient(inputs, draws, known)
                gradients = torch.autograd.grad(outputs, self.parameters, gradient, materialize_grads=True)
                self._step(list(gradients))

    @property
    def beta_of_teacher(self) -> Tensor:
        """What the temperature is made of at which the averaged network says what inputs are taken for."""
        return self.beta

    @property
    def num_draws_beside(self) -> int:
        """Uniform numbers that each input of such a step needs."""
        weak, strong = (0 if views is None else views.num_draws for views in (self._weak, self._strong))
        augmentation = self.inputs.augmentation
        return max(0 if augmentation is None else augmentation.num_draws, weak + strong)

    def beside_outputs_and_gradient(
        self, inputs: Tensor, draws: Tensor | None, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What the network gives for a step's views, and the gradient of the loss there."""
        number, strong, weak = len(labels), inputs[len(labels) :], inputs[len(labels) :]
        labelled = seen = inputs[:number]
        if draws is not None:
            labelled = _viewed(self.inputs.augmentation, labelled, draws[:number])
            num_weak = 0 if self._weak is None else self._weak.num_draws
            weak = _viewed(self._weak, weak, draws[number:])
            strong = _viewed(self._strong, strong, draws[number:, num_weak:])
        is_relative = self.given.threshold_kind == "relative"
        with torch.no_grad(), self.computing():
            said = self.averaged(_together(seen, weak) if is_relative else _together(weak)).to(self.dtype)
        of_labelled, said = (said[:number], said[number:]) if is_relative else (None, said)
        with torch.no_grad():
            classes, sure = self._beside.taken_for(said, self.beta_of_teacher, of_labelled)
        with self.computing():
            outputs = self.model(_together(labelled, strong)).to(self.dtype)
        known, unknown = outputs.detach().split([number, len(strong)])
        gradient = self.kind.loss_gradient(known, labels, self.recipe.label_smoothing)
        return outputs, torch.cat([gradient, self._beside.loss_gradient(unknown, classes, sure)])

    def tensors(self) -> dict[str, list[Tensor]]:
        return super().tensors() | {BESIDE: self._beside.tensors()}


def _viewed(views: Any, inputs: Tensor, draws: Tensor) -> Tensor:
    return inputs if views is None else views(inputs, draws[:, : views.num_draws])


def _together(*parts: Tensor) -> Tensor:
    return channels_last(torch.cat(parts) if len(parts) > 1 else parts[0])
