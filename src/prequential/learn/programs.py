"""What a graph engine records: a training step, and the prediction of a span with its calibration.

A program owns the tensors that differ from one replay to the next. It reads and writes those of the learner in
place, so that every other way to execute an event can take turns with it.
"""

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.augment import DeviceDraws, augmentation_key
from prequential.data.device import send_to
from prequential.events import Indices
from prequential.learn import functional
from prequential.learn.capture import Captured, Tape, compiled
from prequential.learn.feed import Slot
from prequential.learn.learner import Learner
from prequential.learn.prediction import Prediction
from prequential.rng import derive


class TrainProgram:
    """Training steps on batches of one size: gather, augment, forward, backward, optimizer, EMA."""

    def __init__(self, learner: Learner, slot: Slot, batch_size: int, tape: Tape, *, fused_by_compiler: bool) -> None:
        self._learner, self._slot, device = learner, slot, learner.device
        most_steps = learner.steps_at_once
        self._positions = torch.zeros(most_steps, batch_size, dtype=torch.int64, device=device)
        self._labels = torch.zeros_like(self._positions)
        self._keys = torch.zeros(most_steps, dtype=torch.int64, device=device)
        self._row = torch.zeros(1, dtype=torch.int64, device=device)
        self._count = torch.zeros(1, dtype=torch.float64, device=device)  # torch.compile loses changes to a scalar
        augmentation = learner.inputs.augmentation
        self._draws = None if augmentation is None else DeviceDraws(batch_size, augmentation.num_draws, device)
        self._counters = _step_counters(learner.model)
        self._forward = compiled(self._logits_and_gradient) if fused_by_compiler else self._logits_and_gradient
        self._update = compiled(self._move) if fused_by_compiler else self._move
        self._in_pieces = fused_by_compiler
        self._step = Captured(self._one_step, tape)

    def run(self, batches: Indices, labels: Tensor, event: int) -> None:
        """A step for each row; `event` is the number of the first."""
        learner, num_steps = self._learner, len(batches)
        self._positions[:num_steps].copy_(send_to(learner.device, batches))
        self._labels[:num_steps].copy_(labels)
        if self._draws is not None:
            keys = np.array([augmentation_key(learner.seed, event + i) for i in range(num_steps)], np.uint64)
            self._keys[:num_steps].copy_(send_to(learner.device, keys.view(np.int64)))
        self._row.zero_()
        self._count.fill_(learner.num_steps)
        for number, indices in enumerate(batches, event):
            self._slot.place(indices, learner.inputs.crop_key(number))
            if learner.drew_on:
                for generator in learner.generators:
                    generator.manual_seed(derive(learner.seed, "train", number))
            self._step.replay()
        learner.num_steps += num_steps

    def _one_step(self) -> None:
        with _not_counting(self._learner.model):
            logits, loss_gradient = self._forward()
        gradients = torch.autograd.grad(logits, self._learner.parameters, loss_gradient, materialize_grads=True)
        self._update(list(gradients))

    def _logits_and_gradient(self) -> tuple[Tensor, Tensor]:
        learner = self._learner
        inputs = self._slot.take(self._positions.index_select(0, self._row)[0])
        if self._draws is not None:
            inputs = learner.inputs.augmented(inputs, self._draws(self._keys.index_select(0, self._row)))
        with learner.computing():
            logits = learner.model(inputs).to(learner.dtype)
        labels = self._labels.index_select(0, self._row)[0]
        return logits, learner.kind.loss_gradient(logits.detach(), labels, learner.recipe.label_smoothing)

    def _move(self, gradients: list[Tensor]) -> None:
        with torch.no_grad():  # torch.compile keeps few variants of what a decorator returns
            self._moved(gradients)

    def _moved(self, gradients: list[Tensor]) -> None:
        learner, recipe = self._learner, self._learner.recipe
        self._row.add_(1)
        self._count.add_(1)
        rate: Tensor | None = None
        if recipe.full_rate_steps:
            rates = functional.learning_rate(recipe.learning_rate, self._count, full_steps=recipe.full_rate_steps)
            rate = rates[0].to(learner.dtype)
        learner.optimizer.step(gradients, rate, in_pieces=self._in_pieces)
        constant = torch.full_like(self._count, recipe.ema_step_size)
        step_size = functional.ema_step_size(constant, self._count, warmup=recipe.ema_warmup)
        raw, ema = learner.raw_tensors, learner.ema_tensors
        functional.average(ema.averaged, raw.averaged, step_size[0].to(learner.dtype))
        if self._counters:
            torch._foreach_add_(self._counters, 1)
        if raw.others:
            torch._foreach_copy_(ema.others, raw.others)


class PredictProgram:
    """Predictions of up to `size` labels, and a step of the temperature on them.

    Where there are fewer, what is computed for the rest (of the last position, again and again) is left out.
    """

    def __init__(self, learner: Learner, slot: Slot, size: int, tape: Tape) -> None:
        self._learner, self._slot, self._size, device = learner, slot, size, learner.device
        self._positions = torch.zeros(size, dtype=torch.int64, device=device)
        self._labels = torch.zeros(size, dtype=torch.int64, device=device)
        self._num_labels = torch.zeros((), dtype=torch.int64, device=device)
        self._prediction = Captured(self._predict, tape)
        self._logits, _ = self._prediction.replay()
        self._calibration = Captured(self._calibrate, tape)

    def predict(self, positions: Indices) -> Prediction:
        """Of the labels at these positions."""
        filling = np.full(self._size - len(positions), positions[-1])
        self._positions.copy_(send_to(self._learner.device, np.concatenate([positions, filling])))
        self._slot.place(positions, None)
        self._logits, found = self._prediction.replay()
        return found.copied(len(positions))

    def calibrate(self, labels: Tensor) -> None:
        """On what was predicted last."""
        self._num_labels.fill_(len(labels))
        self._labels[: len(labels)].copy_(labels)
        self._calibration.replay()

    @torch.no_grad()
    def _predict(self) -> tuple[Tensor, Prediction]:
        logits = self._learner.logits(self._slot.take(self._positions))
        return logits, self._learner.kind.prediction(logits, self._learner.beta)

    @torch.no_grad()
    def _calibrate(self) -> None:
        learner = self._learner
        gradient = learner.kind.calibration_gradient(self._logits, self._labels, learner.beta, self._num_labels)
        learner.beta_optimizer.step([gradient])


def _normalisations(model: nn.Module) -> Iterator[nn.modules.batchnorm._BatchNorm]:
    """Those that count batches and do not use the count."""
    for layer in model.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is not None:
            yield layer


def _step_counters(model: nn.Module) -> list[Tensor]:
    counters = [layer.num_batches_tracked for layer in _normalisations(model)]
    return [counter for counter in counters if counter is not None]


@contextlib.contextmanager
def _not_counting(model: nn.Module) -> Iterator[None]:
    """Inside, batch normalisations do not count batches: all counters are moved by one kernel afterwards."""
    layers = list(_normalisations(model))
    counters = [layer.num_batches_tracked for layer in layers]
    for layer in layers:
        layer.num_batches_tracked = None
    try:
        yield
    finally:
        for layer, counter in zip(layers, counters, strict=True):
            layer.num_batches_tracked = counter
