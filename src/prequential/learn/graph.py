"""The graph engine: training, prediction and calibration recorded once and replayed."""

import gc
import warnings
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from prequential.errors import PreqWarning
from prequential.events import Indices
from prequential.learn.capture import Tape
from prequential.learn.inputs import make_feed
from prequential.learn.learner import Learner
from prequential.learn.prediction import Prediction
from prequential.learn.probe import first_line
from prequential.learn.programs import FilledProgram, TrainProgram
from prequential.learn.shapes import Shapes

Program = TypeVar("Program", TrainProgram, FilledProgram)


class GraphLearner(Learner):
    """A learner that hands a GPU whole steps instead of single operations.

    Inputs live on the device or stream to it. Training steps come in blocks, whose positions are copied once.
    Spans of several lengths share one recording. What is rare, and what cannot be recorded, is done as the eager
    engine does it. On a CPU the same programs run without being recorded.

    Args:
        shapes: what is worth recording. Default: everything.
        arguments, settings: those of a Learner, and `compiled`.
    """

    engine = "graph"
    steps_at_once = 64

    def __init__(self, *arguments: Any, shapes: Shapes | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._shapes = shapes
        self._feed, self._tape = make_feed(self.inputs), Tape.on(self.device)
        self._programs: dict[tuple[type, int], Any] = {}
        self._last: tuple[Indices, FilledProgram] | None = None
        self._recordable = self._may_fill = True

    def probe(self, num_examples: int) -> None:
        super().probe(num_examples)
        if self.device.type == "cuda" and "cpu" in self.drew_on:
            self._give_up("it draws random numbers outside the GPU when it is trained")
        self._may_fill = self._rows_are_apart()

    @torch.no_grad()
    def _rows_are_apart(self) -> bool:
        """Whether the model predicts the same for an input whatever stands beside it."""
        few = np.minimum(np.arange(3), len(self.data) - 1)
        exact, filled = (self.logits(self.inputs.clean(p)).double() for p in (few, np.append(few, few[-1])))
        allowed = 1e-3 if self.precision == "fp32" else 0.05
        return bool((exact - filled[: len(few)]).abs().max() <= allowed * (exact - exact.mean()).abs().max())

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        size = batches.shape[1]
        worth_it = self._shapes is None or size in self._shapes.batches
        program = self._program(TrainProgram, size) if worth_it else None
        if program is None:
            super().train_steps(batches, labels, event)
        else:
            self._forget()
            program.run(batches, labels, event)

    def _train_program(self, size: int) -> TrainProgram:
        if self.compiled and (self._shapes is None or size == self._shapes.main_batch[0]):
            try:
                return self._recorded(TrainProgram, size, fused_by_compiler=True)
            except Exception as error:
                self.fallback = f"not compiled: {first_line(error)}"
                self.restore(self._before)
                warnings.warn(f"the network cannot be compiled ({first_line(error)}); going on without", PreqWarning, 4)
        return self._recorded(TrainProgram, size, fused_by_compiler=False)

    def _recorded(self, kind: type[Program], size: int, **settings: bool) -> Program:
        program = kind(self, self._feed(size), size, **settings)
        program.record(self._tape)
        return program

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        found = self._predict_recorded(np.arange(start, stop))
        return super().predict(start, stop) if found is None else found

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        is_at_hand = self._last is not None and np.array_equal(indices, self._last[0])
        if not is_at_hand and self._predict_recorded(indices) is None:
            super().calibrate(indices, labels)
        elif self._last is not None:
            self._last[1].calibrate(labels)

    def _predict_recorded(self, positions: Indices) -> Prediction | None:
        """Predict by a program, if there is one for so many labels."""
        number = len(positions)
        size = number if self._shapes is None else self._shapes.predictions.get(number)
        if size is None or (size != number and not self._may_fill):
            return None
        program = self._program(FilledProgram, size)
        if program is None:
            return None
        self._forget()
        self._last = positions, program
        return program.predict(positions)

    def _program(self, kind: type[Program], size: int) -> Program | None:
        """The program of that kind for a size, recorded when it is first needed; None: do it eagerly."""
        known: Program | None = self._programs.get((kind, size))
        if known is not None or not self._recordable:
            return known
        self._before = self.state()
        try:
            made = self._train_program(size) if kind is TrainProgram else self._recorded(kind, size)
            self._programs[kind, size] = made
        except Exception as error:
            self._give_up(first_line(error))
        finally:
            self.restore(self._before)
            del self._before
        return self._programs.get((kind, size))

    def _give_up(self, reason: str) -> None:
        self._recordable, self.fallback = False, f"not recorded: {reason}"
        self.close()
        warnings.warn(f"the model cannot be recorded ({reason}); going on eagerly", PreqWarning, 4)

    def close(self) -> None:
        self._programs.clear()
        self._forget()
        gc.collect()  # a program and its recording know each other

    def _forget(self) -> None:
        super()._forget()
        self._last = None
