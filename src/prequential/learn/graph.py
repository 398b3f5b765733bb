"""The graph engine: training, prediction and calibration recorded once and replayed."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from prequential.errors import PreqWarning
from prequential.events import Indices
from prequential.learn.capture import shared_pool
from prequential.learn.feed import Slot, make_feed
from prequential.learn.learner import Learner
from prequential.learn.prediction import Prediction
from prequential.learn.programs import PredictProgram, TrainProgram
from prequential.learn.shapes import Shapes
from prequential.plan import is_span

Program = TypeVar("Program")


class GraphLearner(Learner):
    """A learner that hands a GPU whole steps instead of single operations.

    Inputs live on the device or stream to it. Training steps come in blocks, whose positions are copied once.
    Spans of several lengths share one recording. What is rare, and what cannot be recorded, is done as the eager
    engine does it. On a CPU the same programs run without being recorded.

    Args:
        shapes: what is worth recording. Default: everything.
        compiled: whether torch.compile fuses the kernels of a training step.
        arguments, settings: those of a Learner.
    """

    engine = "graph"
    steps_at_once = 64

    def __init__(self, *arguments: Any, shapes: Shapes | None = None, compiled: bool = False, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._shapes, self.compiled = shapes, compiled
        if compiled:
            self.optimizer.fused = False
        self._feed = make_feed(self.inputs)
        self._pool = shared_pool(self.device)
        self._training: dict[int, TrainProgram] = {}
        self._predicting: dict[int, PredictProgram] = {}
        self._last: tuple[tuple[int, int], PredictProgram] | None = None
        self._recordable = True

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        size = batches.shape[1]
        worth_it = self._shapes is None or size in self._shapes.batches
        program = self._program(self._training, size, self._train_program) if worth_it else None
        if program is None:
            super().train_steps(batches, labels, event)
        else:
            self._forget()
            program.run(batches, labels, event)

    def _train_program(self, slot: Slot, size: int) -> TrainProgram:
        try:
            return TrainProgram(self, slot, size, self.steps_at_once, self._pool)
        except Exception as error:
            if not self.compiled:
                raise
            warnings.warn(f"the network cannot be compiled ({_reason(error)}); going on without", PreqWarning, 4)
            self.compiled, self.optimizer.fused = False, True
            return TrainProgram(self, slot, size, self.steps_at_once, self._pool)

    def _predict_program(self, slot: Slot, size: int) -> PredictProgram:
        return PredictProgram(self, slot, size, self._pool)

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        length = stop - start
        size = length if self._shapes is None else self._shapes.spans.get(length)
        program = None if size is None else self._program(self._predicting, size, self._predict_program)
        if program is None:
            return super().predict(start, stop)
        self._forget()
        self._last = (start, stop), program
        return program.predict(start, stop)

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        if self._last is not None and is_span(indices, self._last[0]):
            self._last[1].calibrate(labels)
        else:
            super().calibrate(indices, labels)

    def _program(self, known: dict[int, Program], size: int, make: Callable[[Slot, int], Program]) -> Program | None:
        """The program for a size, recorded when it is first needed; None: do it eagerly."""
        if size in known or not self._recordable:
            return known.get(size)
        before = self.state()
        try:
            known[size] = make(self._feed.slot(size), size)
        except Exception as error:
            self._recordable = False
            self.restore(before)
            known.clear()
            warnings.warn(f"the model cannot be recorded ({_reason(error)}); going on eagerly", PreqWarning, 3)
        return known.get(size)

    def _forget(self) -> None:
        super()._forget()
        self._last = None


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
