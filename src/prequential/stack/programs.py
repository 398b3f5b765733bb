"""What the stacked engine records of its own: a training step of all members."""

import torch
from torch import Tensor

from prequential.data.device import send_to
from prequential.learn.capture import compiled
from prequential.learn.inputs import Slot
from prequential.learn.programs import StepProgram
from prequential.stack.dropout import dropout_keys
from prequential.stack.models import StackedModels


class StackedProgram(StepProgram):
    """Training steps of a stack on batches of one size."""

    def __init__(self, models: StackedModels, slot: Slot, size: int) -> None:
        super().__init__(models, slot, size, models.seeds)
        self._models, self._num_dropouts = models, len(models.structure.dropouts)
        self._dropping = self._queue(len(models), self._num_dropouts)
        self._forward, self._begin, self._move = self._logits_and_gradient, models.begin_move, models.move

    def compile(self) -> None:
        """From now on the kernels are fused; whoever calls puts back what a first step changes."""
        self._one_step()  # layers make what they keep outside of torch.compile
        self._forward = compiled(self._forward)
        self._begin, self._move = compiled(self._begin), compiled(self._move)
        self._row.zero_()
        self._one_step()

    def _place_keys(self, event: int, num_steps: int) -> None:
        super()._place_keys(event, num_steps)
        if self._num_dropouts:
            drawn = dropout_keys(self._seeds, event, num_steps, self._num_dropouts)
            self._dropping[:num_steps].copy_(send_to(self._device, drawn))

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
            inputs = self._augmented(inputs, self._keys.index_select(0, self._row)[0])
        return self._models.trained(inputs, labels, dropping, shared=self._draws is None)

    def _augmented(self, inputs: Tensor, keys: Tensor) -> Tensor:
        """A version of the batch for each member, all made at once: an image's depends on its own draws alone."""
        assert self._draws is not None
        num_members, shape = len(keys), inputs.shape
        draws = self._draws(keys[:, None, None]).flatten(0, 1)
        images = inputs.expand(num_members, *shape).flatten(0, 1)
        return self._models.inputs.augmented(images, draws).view(num_members, *shape)
