"""What the stacked engine records: a training step of all members, and a prediction with its calibration.

As in `prequential.learn.programs`, a program owns the tensors that differ from one replay to the next.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from prequential.data.augment import DeviceDraws, augmentation_key
from prequential.data.device import send_to
from prequential.events import Indices
from prequential.learn.capture import Captured, Tape, compiled
from prequential.learn.feed import Slot
from prequential.learn.prediction import Prediction
from prequential.stack.dropout import dropout_keys
from prequential.stack.models import StackedModels


class TrainProgram:
    """Training steps of a stack on batches of one size."""

    def __init__(self, models: StackedModels, slot: Slot, size: int, most_steps: int) -> None:
        self._models, self._seeds, self._slot, self._device = models, models.seeds, slot, models.device
        self._num_dropouts = len(models.structure.dropouts)
        augmentation = models.inputs.augmentation
        self._draws = None if augmentation is None else DeviceDraws(size, augmentation.num_draws, self._device)

        def queue(*shape: int) -> Tensor:
            return torch.zeros(most_steps, *shape, dtype=torch.int64, device=self._device)

        self._positions, self._labels = queue(size), queue(size)
        self._augmenting, self._dropping = queue(len(models)), queue(len(models), self._num_dropouts)
        self._row = torch.zeros(1, dtype=torch.int64, device=self._device)
        self._count = torch.zeros(1, dtype=torch.float64, device=self._device)
        self._forward, self._begin, self._move = self._logits_and_gradient, models.begin_move, models.move
        self._replay: Callable[[], None] = self._one_step

    def compile(self) -> None:
        """From now on the kernels are fused; whoever calls puts back what a first step changes."""
        self._one_step()  # layers make what they keep outside of torch.compile
        self._forward = compiled(self._forward)
        self._begin, self._move = compiled(self._begin), compiled(self._move)
        self._row.zero_()
        self._one_step()

    def record(self, tape: Tape) -> None:
        """From now on replay a recording; whoever calls puts back what it changes."""
        self._row.zero_()
        self._replay = Captured(self._one_step, tape).replay

    def run(self, batches: Indices, labels: Tensor, event: int, num_steps_before: int) -> None:
        """A step for each row; `event` is the number of the first."""
        num_steps = len(batches)
        self._positions[:num_steps].copy_(send_to(self._device, batches))
        self._labels[:num_steps].copy_(labels)
        if self._draws is not None:
            keys = [[augmentation_key(seed, event + step) for seed in self._seeds] for step in range(num_steps)]
            self._augmenting[:num_steps].copy_(send_to(self._device, np.array(keys, np.uint64).view(np.int64)))
        if self._num_dropouts:
            drawn = dropout_keys(self._seeds, event, num_steps, self._num_dropouts)
            self._dropping[:num_steps].copy_(send_to(self._device, drawn))
        self._row.zero_()
        self._count.fill_(num_steps_before)
        for number, indices in enumerate(batches, event):
            self._slot.place(indices, self._models.inputs.crop_key(number))
            self._replay()

    def _one_step(self) -> None:
        before = self._models.statistics()
        logits, loss_gradient = self._forward()
        leaves = list(self._models.leaves.values())
        gradients = torch.autograd.grad(logits, leaves, loss_gradient, materialize_grads=True)
        with torch.no_grad():
            self._models.move_statistics(before)
            self._count.add_(1)
            self._begin(self._count)
            self._move(list(gradients))
            self._row.add_(1)

    def _logits_and_gradient(self) -> tuple[Tensor, Tensor]:
        positions, labels, dropping = (
            queue.index_select(0, self._row)[0] for queue in (self._positions, self._labels, self._dropping)
        )
        inputs = self._slot.take(positions)
        if self._draws is not None:
            inputs = self._augmented(inputs, self._augmenting.index_select(0, self._row)[0])
        return self._models.trained(inputs, labels, dropping, shared=self._draws is None)

    def _augmented(self, inputs: Tensor, keys: Tensor) -> Tensor:
        """A version of the batch for each member, all made at once: an image's depends on its own draws alone."""
        assert self._draws is not None
        num_members, shape = len(keys), inputs.shape
        draws = self._draws(keys[:, None, None]).flatten(0, 1)
        images = inputs.expand(num_members, *shape).flatten(0, 1)
        return self._models.inputs.augmented(images, draws).view(num_members, *shape)


class PredictProgram:
    """Predictions at `size` positions, and a step of the temperatures on them."""

    def __init__(self, models: StackedModels, slot: Slot, size: int) -> None:
        self._models, self._slot, self._device = models, slot, models.device
        self._positions = torch.zeros(size, dtype=torch.int64, device=self._device)
        self._labels = torch.zeros_like(self._positions)
        self._replay: Callable[[], tuple[Tensor, Prediction]] = self._predict
        self._replay_calibration: Callable[[], None] = self._calibrate
        self._logits: Tensor | None = None

    def record(self, tape: Tape) -> None:
        """From now on replay recordings; whoever calls puts back what they change."""
        self._replay = Captured(self._predict, tape).replay
        self._logits, _ = self._replay()
        self._replay_calibration = Captured(self._calibrate, tape).replay

    def predict(self, positions: Indices) -> Prediction:
        """At these positions; every tensor has the members first."""
        self._slot.place(positions, None)
        self._positions.copy_(send_to(self._device, positions))
        self._logits, found = self._replay()
        return found.copied()

    def calibrate(self, labels: Tensor) -> None:
        """On what was predicted last."""
        self._labels.copy_(labels)
        self._replay_calibration()

    @torch.no_grad()
    def _predict(self) -> tuple[Tensor, Prediction]:
        logits = self._models.logits(self._slot.take(self._positions))
        return logits, self._models.kind.prediction(logits, self._models.beta)

    def _calibrate(self) -> None:
        assert self._logits is not None
        self._models.calibrate_on(self._logits, self._labels)
