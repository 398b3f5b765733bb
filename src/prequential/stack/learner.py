"""The stacked engine: many models of one architecture learn from the same events in one process."""

import gc
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from prequential.data.device import send_to
from prequential.errors import PreqWarning
from prequential.events import Indices
from prequential.learn.capture import Tape, compiled
from prequential.learn.inputs import Slot, make_feed
from prequential.learn.prediction import Prediction
from prequential.learn.probe import first_line
from prequential.learn.programs import SpanProgram, StepProgram
from prequential.learn.shapes import RARE
from prequential.plan import is_span
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


Program = TypeVar("Program", StackedProgram, SpanProgram)


class StackedLearner(StackedModels):
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
        self._feed, self._tape = make_feed(self.inputs), Tape.on(self.device)
        self._programs: dict[tuple[type, int], Any] = {}
        self._uses: Counter[tuple[type, int]] = Counter()
        self._last: tuple[tuple[int, int], SpanProgram] | None = None
        self._recordable, self._compiles = True, self.compiled

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps one after the other, a row of both arguments each; `event` is the number of the first."""
        self._forget()
        program = self._program(StackedProgram, batches.shape[1], len(batches))
        program.run(batches, labels, event)

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        """Averaged weights, eval mode, clean input; every tensor has the members first."""
        program = self._program(SpanProgram, stop - start, 1)
        self._last = (start, stop), program
        return program.predict(np.arange(start, stop))

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """As one who knows nothing, by every member."""
        return self.kind.uniform(stop - start, self.device).of_members(len(self))

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        """One gradient step on every β; the logits of the prediction just made are used again."""
        if self._last is None or not is_span(indices, self._last[0]):
            program = self._program(SpanProgram, len(indices), 1)
            program.predict(indices)
            self._last = None
        else:
            program = self._last[1]
        program.calibrate(labels)

    def _forget(self) -> None:
        self._last = None

    def close(self) -> None:
        """Let go of what only speed needed."""
        self._programs.clear()
        self._forget()
        if self.device.type == "cuda":
            gc.collect()  # a program and its recording know each other, and the next stack needs the memory

    def _program(self, kind: type[Program], size: int, num_uses: int) -> Program:
        """The program of that kind for a size; recorded where it is used often and the device can."""

        def make() -> Program:
            return kind(self, self._feed(size), size)

        use = kind, size
        program: Program = self._programs.get(use) or make()
        before, self._uses[use] = self._uses[use], self._uses[use] + num_uses
        if before <= RARE < self._uses[use]:
            if self._compiles and isinstance(program, StackedProgram):
                self._compiles = self._can_be("compiled", program.compile, "without")
                program = program if self._compiles else make()
            if self._recordable:
                self._recordable = self._can_be("recorded", partial(program.record, self._tape), "eagerly")
                program = program if self._recordable else make()
        self._programs[use] = program
        return program

    def _can_be(self, done: str, change: Callable[[], None], goes_on: str) -> bool:
        """Try to make a program faster, and put back what that did to the models."""
        state = self.state()
        try:
            change()
        except Exception as error:
            self.fallback = f"not {done}: {first_line(error)}"
            warnings.warn(f"the stack cannot be {done} ({first_line(error)}); going on {goes_on}", PreqWarning, 5)
            return False
        finally:
            self.restore(state)
        return True
