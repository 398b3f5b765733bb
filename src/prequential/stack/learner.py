"""The stacked engine: many models of one architecture learn from the same events in one process."""

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.sequence import DataSequence
from prequential.errors import PreqWarning
from prequential.events import Indices
from prequential.learn.base import BaseLearner
from prequential.learn.capture import Tape
from prequential.learn.feed import make_feed
from prequential.learn.fresh import fingerprint_of
from prequential.learn.prediction import Prediction
from prequential.learn.probe import first_line
from prequential.learn.recipe import Recipe
from prequential.learn.shapes import RARE
from prequential.models import ModelFactory, name_of
from prequential.plan import is_span
from prequential.stack.models import StackedModels
from prequential.stack.programs import PredictProgram, TrainProgram
from prequential.stack.recipe import require_alike, require_members
from prequential.stack.state import require_same_shapes

Program = TypeVar("Program", TrainProgram, PredictProgram)
PROBED = 2
"""Examples on which a stack is tried before any work is done."""


class StackedLearner(BaseLearner):
    """N learners in one: the same data and events for all, each with its own recipe and seed.

    A member is initialised, augmented, averaged and calibrated as a `Learner` with its recipe and seed would be, and
    nothing of it depends on the others. Dropout draws by hashing (seed, event, layer), so it draws other numbers than
    a `Learner`, which uses torch's generator. Steps of a shape that comes up often are recorded on a GPU and replayed.

    Args:
        factory, data: those of a `BaseLearner`.
        recipes: one for each member; they may differ in numbers only.
        seeds: one for each member.
        calibration_rate_factor: the method's factor on the learning rate of the temperatures.
        settings: `width`, `device`, `precision`, `compiled`, `deterministic` and `dtype`, as of a `BaseLearner`. What
            is compiled are training steps of a shape that comes up often.
    """

    engine = "stack"

    def __init__(
        self,
        factory: str | ModelFactory,
        data: DataSequence,
        recipes: Sequence[Recipe],
        *,
        seeds: Sequence[int],
        calibration_rate_factor: float = 1.0,
        **settings: Any,
    ) -> None:
        require_members(recipes, seeds, data)
        require_alike(recipes)
        super().__init__(factory, data, recipes[0], seed=seeds[0], **settings)
        self.recipes, self.seeds = recipes, seeds
        fresh = self._fresh_models(event=-1)
        require_same_shapes(fresh)
        self.model, self._fingerprints = fresh[0], [fingerprint_of(model) for model in fresh]
        self.probe(PROBED)
        self.models = StackedModels(
            fresh, recipes, self.inputs, rate_factor=calibration_rate_factor, precision=self.precision
        )
        self.models.probe(fresh, self.inputs.clean(np.zeros(PROBED, np.int64)), name_of(factory))
        self.beta = self.models.beta
        self._feed, self._tape = make_feed(self.inputs), Tape.on(self.device)
        self._training: dict[int, TrainProgram] = {}
        self._predicting: dict[int, PredictProgram] = {}
        self._uses: Counter[tuple[str, int]] = Counter()
        self._last: tuple[tuple[int, int], PredictProgram] | None = None
        self._recordable, self._compiles = True, self.compiled

    def __len__(self) -> int:
        return len(self.seeds)

    def fingerprints(self) -> list[str]:
        """Of the models as they began."""
        return self._fingerprints

    def _fresh_models(self, event: int) -> list[nn.Module]:
        return [self._fresh_model(event, *member) for member in zip(self.recipes, self.seeds, strict=True)]

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps one after the other, a row of both arguments each; `event` is the number of the first."""
        self._last = None
        size = batches.shape[1]
        program = self._program(self._training, size, len(batches), self._train_program)
        program.run(batches, labels, event, self.num_steps)
        self.num_steps += len(batches)

    def _train_program(self, size: int) -> TrainProgram:
        return TrainProgram(self.models, self.seeds, self._feed(size), size, self.steps_at_once)

    def _predict_program(self, size: int) -> PredictProgram:
        return PredictProgram(self.models, self._feed(size), size)

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        """Averaged weights, eval mode, clean input; every tensor has the members first."""
        program = self._program(self._predicting, stop - start, 1, self._predict_program)
        self._last = (start, stop), program
        return program.predict(np.arange(start, stop))

    def logits(self, inputs: Tensor) -> Tensor:
        """What the averaged weights of each member make of clean inputs."""
        return self.models.logits(inputs)

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """As one who knows nothing, by every member."""
        return self.kind.uniform(stop - start, self.device).of_members(len(self))

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        """One gradient step on every β; the logits of the prediction just made are used again."""
        if self._last is None or not is_span(indices, self._last[0]):
            program = self._program(self._predicting, len(indices), 1, self._predict_program)
            program.predict(indices)
            self._last = None
        else:
            program = self._last[1]
        program.calibrate(labels)

    def reinit(self, event: int) -> None:
        """Fresh weights, optimizers, averages and temperatures."""
        self.models.reinit(self._fresh_models(event))
        self.num_steps, self._last = 0, None

    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None:
        """θ ← shrink·θ + perturb·fresh; temperatures and batch statistics stay, everything else starts anew."""
        self.models.shrink_perturb(shrink, perturb, self._fresh_models(event))
        self.num_steps, self._last = 0, None

    def finite(self) -> list[bool]:
        """For each member, whether every averaged weight is a finite number."""
        return [bool(is_finite) for is_finite in self.models.averaged.finite().tolist()]

    def _in_place(self) -> dict[str, list[Tensor]]:
        return self.models.state()

    def _forget(self) -> None:
        self._last = None

    def close(self) -> None:
        """Let go of what only speed needed."""
        self._training.clear()
        self._predicting.clear()
        self._last = None
        if self.device.type == "cuda":
            gc.collect()  # a program and its recording know each other, and the next stack needs the memory

    def _program(self, known: dict[int, Program], size: int, num_uses: int, make: Callable[[int], Program]) -> Program:
        """The program for a size; recorded where it is used often and the device can."""
        if size not in known:
            known[size] = make(size)
        program = known[size]
        use = type(program).__name__, size
        before, self._uses[use] = self._uses[use], self._uses[use] + num_uses
        if before <= RARE < self._uses[use]:
            if self._compiles and isinstance(program, TrainProgram):
                self._compiles = self._can_be("compiled", program.compile, "without")
                program = known[size] = program if self._compiles else make(size)
            if self._recordable:
                self._recordable = self._can_be("recorded", partial(program.record, self._tape), "eagerly")
                known[size] = program if self._recordable else make(size)
        return known[size]

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
