"""The graph engine: training, prediction and calibration recorded once and replayed."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from prequential.events import Indices
from prequential.learn.capture import Tape
from prequential.learn.learner import Learner
from prequential.learn.prediction import Prediction
from prequential.learn.programs import Recording, Size, SpanProgram, StepProgram, TrainProgram
from prequential.learn.randomness import FOREIGN
from prequential.learn.shapes import Shapes


class Recordable(Protocol):
    """A program."""

    def record(self, tape: Tape) -> Self:
        """From now on replay a recording; whoever calls puts back what it changes."""


Program = TypeVar("Program", bound=Recordable)
Steps = TypeVar("Steps", bound=StepProgram)


def _draws_as_cudnn_does(layer: nn.Module) -> bool:
    """Whether dropout is drawn between its layers by cuDNN, from a state of its own that replays do not seed.

    Example:
        >>> _draws_as_cudnn_does(nn.GRU(2, 2, num_layers=2, dropout=0.5)), _draws_as_cudnn_does(nn.Dropout(0.5))
        (True, False)
    """
    return isinstance(layer, nn.RNNBase) and layer.num_layers > 1 and layer.dropout > 0


class GraphLearner(Recording, Learner):
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
    fills = True

    def __init__(self, *arguments: Any, shapes: Shapes | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._shapes, self._may_fill = shapes, True

    def probe(self, num_examples: int) -> None:
        super().probe(num_examples)
        if outside := sorted(self.drew_on & FOREIGN.keys()):
            self._fall_back("recorded", f"it draws from {' and '.join(outside)}'s generator when it is trained")
        elif self.device.type == "cuda" and "cpu" in self.drew_on:
            self._fall_back("recorded", "it draws random numbers outside the GPU when it is trained")
        elif self.device.type == "cuda" and any(map(_draws_as_cudnn_does, self.model.modules())):
            self._fall_back("recorded", "cuDNN keeps the draws of a recurrent layer's dropout to itself")
        self._may_fill = self._rows_are_apart()

    @torch.no_grad()
    def _rows_are_apart(self) -> bool:
        """Whether the model predicts the same for an input whatever stands beside it."""
        few = np.minimum(np.arange(3), len(self.data) - 1)
        exact, filled = (self.logits(self.inputs.clean(p)).double() for p in (few, np.append(few, few[-1])))
        allowed = 1e-3 if self.precision == "fp32" else 0.05
        return bool((exact - filled[: len(few)]).abs().max() <= allowed * (exact - exact.mean()).abs().max())

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        program = self._step_program(TrainProgram, batches.shape[1])
        if program is None:
            super().train_steps(batches, labels, event)
        else:
            self._forget()
            program.run(batches, labels, event)

    def _predict_at(self, positions: Indices) -> tuple[Prediction, Callable[[Tensor], None]]:
        """By a program, if there is one for so many labels."""
        number = len(positions)
        size = number if self._shapes is None else self._shapes.predictions.get(number)
        size = size if size == number or self._may_fill else None
        program = None if size is None else self._program(SpanProgram, size)
        if program is None:
            return super()._predict_at(positions)
        return program.predict(positions), program.calibrate

    def _step_program(self, kind: type[Steps], size: Size) -> Steps | None:
        """The program for steps of that kind on batches of a size; None where they are rare, too."""
        sizes = {size: 1} if self._shapes is None else kind.sizes_in(self._shapes)
        if size not in sizes:
            return None
        return self._program(kind, size, is_main=size == max(sizes, key=lambda each: sizes[each]))

    def _program(self, kind: type[Program], size: Size, *, is_main: bool = False) -> Program | None:
        """The program of that kind for a size, recorded when it is first needed; None: do it eagerly. Only the main one
        of a kind is compiled."""

        def recorded(**settings: bool) -> Program:
            return self._new(kind, size, **settings).record(self._tape)

        if (kind, size) not in self._programs and self._can_be["recorded"]:
            program: Program | None = None
            if self._can_be["compiled"] and is_main:
                program = self._tried("compiled", partial(recorded, fused_by_compiler=True))
            program = program or self._tried("recorded", recorded)
            if program is None:
                self.close()
            else:
                self._programs[kind, size] = program
        return self._programs.get((kind, size))
