"""What an engine records: a training step, and the prediction of a span with its calibration.

A program owns the tensors that differ from one replay to the next. It reads and writes those of the learner in
place, so that every other way to execute an event can take turns with it.
"""

import gc
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from prequential.data.augment import DeviceDraws, augmentation_key
from prequential.data.device import send_to
from prequential.errors import PreqWarning
from prequential.events import Indices
from prequential.learn import functional
from prequential.learn.base import BaseLearner
from prequential.learn.capture import Captured, Tape, compiled
from prequential.learn.counters import Counters
from prequential.learn.inputs import Slot, make_feed
from prequential.learn.learner import Learner
from prequential.learn.prediction import Prediction
from prequential.learn.probe import first_line
from prequential.learn.shapes import Shapes
from prequential.rng import derive

Program = TypeVar("Program")
Size = int | tuple[int, int]
"""Of a batch; where inputs stand beside labelled ones, how many of both."""


class Recording(BaseLearner):
    """A learner that makes programs of its work, by kind and size, and makes them faster where that can be."""

    fills = False
    """Whether a program may be given fewer labels than it has room for."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._feed, self._tape = make_feed(self.inputs), Tape(self.device)
        self._programs: dict[tuple[type, Size], Any] = {}
        self._can_be = {"compiled": self.compiled, "recorded": True}

    @property
    def lane(self) -> torch.cuda.Stream | None:  # type: ignore[override]
        """Where it records: two learners that got the same stream, whose libraries then share working memory, take
        turns there."""
        return self._tape.stream if self._can_be["recorded"] else None

    def _new(self, kind: Callable[..., Program], size: Size, **settings: bool) -> Program:
        return kind(self, self._feed(size if isinstance(size, int) else sum(size)), size, **settings)

    def _tried(self, done: str, make: Callable[[], Program]) -> Program | None:
        """A program that was made faster, if it can be; what that did to the models is put back."""
        state = self.state()
        try:
            return make()
        except Exception as error:
            self._tape = Tape(self.device)  # a recording that broke off may have left the old one unusable
            self._fall_back(done, first_line(error))
            return None
        finally:
            self.restore(state)

    def _fall_back(self, done: str, reason: str) -> None:
        self._can_be[done], self.fallback = False, f"not {done}: {reason}"
        goes_on = "eagerly" if done == "recorded" else "without"
        warnings.warn(f"the model cannot be {done} ({reason}); going on {goes_on}", PreqWarning, 5)

    def close(self) -> None:
        super().close()
        self._programs.clear()
        gc.collect()  # a program and its recording know each other, and whoever comes next needs the memory


class StepProgram(ABC):
    """Training steps of any learner on batches of one size. What differs from one to the next waits in queues, a row
    for each step."""

    def __init__(self, learner: BaseLearner, slot: Slot, size: int, seeds: Sequence[int]) -> None:
        self._owner, self._slot, self._seeds, self._device = learner, slot, seeds, learner.device
        self._positions, self._labels, self._keys = self._queue(size), self._queue(size), self._queue(len(seeds))
        self._row = torch.zeros(1, dtype=torch.int64, device=self._device)
        # of one element, because torch.compile loses changes to a scalar
        self._count = torch.zeros(1, dtype=torch.float64, device=self._device)
        augmentation = learner.inputs.augmentation
        self._draws = None if augmentation is None else DeviceDraws(size, augmentation.num_draws, self._device)
        self._generators = learner.generators
        self._replay: Callable[[], None] = self._one_step

    @staticmethod
    def sizes_in(shapes: Shapes) -> Mapping[Any, int]:
        """What is worth recording, and how often it comes up."""
        return shapes.batches

    def _queue(self, *shape: int) -> Tensor:
        return torch.zeros(self._owner.steps_at_once, *shape, dtype=torch.int64, device=self._device)

    def record(self, tape: Tape) -> Self:
        """From now on replay a recording; whoever calls puts back what it changes."""
        self._row.zero_()
        if self._owner.drew_on and self._generators:  # those of a stack draw from keys of their own
            self._generators = (tape.generator,)
        with tape.drawing() if self._owner.drew_on else nullcontext():
            self._replay = Captured(self._one_step, tape).replay
        return self

    def run(self, batches: Indices, labels: Tensor, event: int) -> None:
        """A step for each row; `event` is the number of the first."""
        self._labels[: len(batches)].copy_(labels)
        self._count.fill_(self._owner.num_steps)
        self._replay_on(batches, event)
        self._owner.num_steps += len(batches)

    def _replay_on(self, batches: Indices, event: int) -> None:
        learner, num_steps = self._owner, len(batches)
        self._positions[:num_steps].copy_(send_to(self._device, batches))
        self._place_keys(event, num_steps)
        self._row.zero_()
        for number, indices in enumerate(batches, event):
            self._slot.place(indices, self._crop_key(number))
            if learner.drew_on:
                for generator in self._generators:
                    generator.manual_seed(self._drawing_key(number))
            self._replay()

    def _crop_key(self, event: int) -> int:
        """What decides the sequence's own view of the inputs of a step."""
        return self._owner.inputs.crop_key(event)

    def _drawing_key(self, event: int) -> int:
        """What decides the draws of layers that draw."""
        return derive(self._owner.seed, "train", event)

    def _place_keys(self, event: int, num_steps: int) -> None:
        """Queue what decides the draws of these steps."""
        if self._draws is not None:
            keys = [[augmentation_key(seed, event + step) for seed in self._seeds] for step in range(num_steps)]
            self._keys[:num_steps].copy_(send_to(self._device, np.array(keys, np.uint64).view(np.int64)))

    @abstractmethod
    def _one_step(self) -> None:
        """What is recorded: the step of the current row."""


class TrainProgram(StepProgram):
    """Training steps of one model: gather, augment, forward, backward, optimizer, EMA."""

    def __init__(self, learner: Learner, slot: Slot, size: int, *, fused_by_compiler: bool = False) -> None:
        super().__init__(learner, slot, size, [learner.seed])
        self._learner, self._in_pieces, self._own_keys = learner, fused_by_compiler, self._keys[:, 0]
        self._counters = Counters(learner.model.modules())
        self._forward = compiled(self._logits_and_gradient) if fused_by_compiler else self._logits_and_gradient
        self._update = compiled(self._move) if fused_by_compiler else self._move

    def _one_step(self) -> None:
        with self._counters.put_aside():
            logits, loss_gradient = self._forward()
        gradients = torch.autograd.grad(logits, self._learner.parameters, loss_gradient, materialize_grads=True)
        self._update(list(gradients))

    def _logits_and_gradient(self) -> tuple[Tensor, Tensor]:
        learner = self._learner
        inputs = self._slot.take(self._positions.index_select(0, self._row)[0])
        if self._draws is not None:
            inputs = learner.inputs.augmented(inputs, self._draws(self._own_keys.index_select(0, self._row)))
        with learner.computing():
            logits = learner.model(inputs).to(learner.dtype)
        labels = self._labels.index_select(0, self._row)[0]
        return logits, learner.kind.loss_gradient(logits.detach(), labels, learner.recipe.label_smoothing)

    def _move(self, gradients: list[Tensor]) -> None:
        with torch.no_grad():  # torch.compile keeps few variants of what a decorator returns
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
            self._counters.move()
            if raw.others:
                torch._foreach_copy_(ema.others, raw.others)


class SpanProgram:
    """Predictions of any learner at `size` positions, and a step of the temperature on them.

    Where a learner fills programs up there may be fewer: what is computed for the rest (of the last position, again and
    again) is left out.
    """

    def __init__(self, learner: Recording, slot: Slot, size: int) -> None:
        self._owner, self._slot, self._device = learner, slot, learner.device
        self._positions = torch.zeros(size, dtype=torch.int64, device=self._device)
        self._labels = torch.zeros_like(self._positions)
        self._num_labels = torch.zeros((), dtype=torch.int64, device=self._device) if learner.fills else None
        self._replay: Callable[[], tuple[Tensor, Prediction]] = self._predict
        self._replay_calibration: Callable[[], None] = self._calibrate
        self._logits: Tensor

    def record(self, tape: Tape) -> Self:
        """From now on replay recordings; whoever calls puts back what they change."""
        self._replay = Captured(self._predict, tape).replay
        self._logits, _ = self._replay()
        self._replay_calibration = Captured(self._calibrate, tape).replay
        return self

    def predict(self, positions: Indices) -> Prediction:
        """At these positions; where there are members, every tensor has them first."""
        self._slot.place(positions, None)
        filling = np.full(len(self._positions) - len(positions), positions[-1])
        self._positions.copy_(send_to(self._device, np.concatenate([positions, filling])))
        self._logits, found = self._replay()
        return found.copied(len(positions))

    def calibrate(self, labels: Tensor) -> None:
        """On what was predicted last."""
        if self._num_labels is not None:
            self._num_labels.fill_(len(labels))
        self._labels[: len(labels)].copy_(labels)
        self._replay_calibration()

    @torch.no_grad()
    def _predict(self) -> tuple[Tensor, Prediction]:
        logits = self._owner.logits(self._slot.take(self._positions))
        return logits, self._owner.kind.prediction(logits, self._owner.beta)

    @torch.no_grad()
    def _calibrate(self) -> None:
        self._owner.calibrate_on(self._logits, self._labels, self._num_labels)
