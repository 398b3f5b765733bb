"""The stacked engine: many models of one architecture learn from the same events in one process."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from prequential.data.device import send_to
from prequential.events import Indices
from prequential.learn.capture import compiled
from prequential.learn.inputs import Slot
from prequential.learn.prediction import Prediction
from prequential.learn.programs import Recording, SpanProgram, StepProgram
from prequential.learn.shapes import RARE
from prequential.stack.dropout import dropout_keys
from prequential.stack.models import StackedModels


class StackedProgram(StepProgram):
    """Training steps of a stack on batches of one size."""

    def __init__(self, models: StackedModels, slot: Slot, size: int) -> None:
        super().__init__(models, slot, size, models.seeds)
        self._models, self._num_dropouts = models, len(models.structure.dropouts)
        self._dropping = self._queue(len(models), self._num_dropouts)
        self._forward, self._begin, self._move = self._logits_and_gradient, models.begin_move, models.move

    def compile(self) -> Self:
        """From now on the kernels are fused; whoever calls puts back what a first step changes."""
        self._one_step()  # layers make what they keep outside of torch.compile
        self._forward = compiled(self._forward)
        self._begin, self._move = compiled(self._begin), compiled(self._move)
        self._row.zero_()
        self._one_step()
        return self

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
            # a version for each member, all made at once: an image's depends on its own draws alone
            draws = self._draws(self._keys.index_select(0, self._row)[0][:, None, None]).flatten(0, 1)
            images = inputs.expand(len(self._models), *inputs.shape)
            inputs = self._models.inputs.augmented(images.flatten(0, 1), draws).view(images.shape)
        return self._models.trained(inputs, labels, dropping, shared=self._draws is None)


Program = TypeVar("Program", StackedProgram, SpanProgram)


class StackedLearner(Recording, StackedModels):
    """N learners in one: the same data and events for all, each with its own recipe and seed.

    A member is initialised, augmented, averaged and calibrated as a `Learner` with its recipe and seed would be, and
    nothing of it depends on the others. Dropout draws by hashing (seed, event, layer), so it draws other numbers than
    a `Learner`, which uses torch's generator. Steps of a shape that comes up often are recorded on a GPU and replayed.

    Args:
        arguments, settings: those of `StackedModels`.
    """

    engine = "stack"

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._uses: Counter[tuple[type, int]] = Counter()

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps one after the other, a row of both arguments each; `event` is the number of the first."""
        self._forget()
        program = self._program(StackedProgram, batches.shape[1], len(batches))
        program.run(batches, labels, event)

    def _predict_at(self, positions: Indices) -> tuple[Prediction, Callable[[Tensor], None]]:
        program = self._program(SpanProgram, len(positions), 1)
        return program.predict(positions), program.calibrate

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """As one who knows nothing, by every member."""
        return self.kind.uniform(stop - start, self.device).of_members(len(self))

    def _program(self, kind: type[Program], size: int, num_uses: int) -> Program:
        """The program of that kind for a size; recorded where it is used often and the device can."""
        use, make = (kind, size), partial(self._new, kind, size)
        program: Program = self._programs.get(use) or make()
        before, self._uses[use] = self._uses[use], self._uses[use] + num_uses
        if before <= RARE < self._uses[use]:
            if self._can_be["compiled"] and isinstance(program, StackedProgram):
                program = self._tried("compiled", program.compile) or make()
            if self._can_be["recorded"]:
                program = self._tried("recorded", partial(program.record, self._tape)) or make()
        self._programs[use] = program
        return program
