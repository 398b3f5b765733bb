"""The graph engine of learners that are given all inputs: steps of a study, and steps with inputs beside labelled ones,
recorded once and replayed."""

import gc
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from prequential.data.augment import DeviceDraws
from prequential.events import Indices
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.capture import Tape, compiled
from prequential.learn.counters import Counters
from prequential.learn.graph import GraphLearner
from prequential.learn.inputs import Slot
from prequential.learn.last_layer import last_layer_of
from prequential.learn.programs import Program, StepProgram, TrainProgram
from prequential.learn.shapes import Shapes
from prequential.learn.study import Study
from prequential.rng import derive


class StudyProgram(StepProgram):
    """Steps of a study: gather, two views, forward of network and average, contrast, backward, optimizer, average.

    Everything random comes from the study's seed and the number of the step.
    """

    def __init__(
        self, learner: "GraphFromAllInputs", slot: Slot, size: int, *, fused_by_compiler: bool = False
    ) -> None:
        seed = learner.given.study_seed
        super().__init__(learner, slot, size, [seed])
        self._seed, self._study = seed, learner.study_under_way
        num_draws = self._study.num_draws
        self._draws = DeviceDraws(size, num_draws, self._device) if num_draws else None
        self._own_keys, self._counters = self._keys[:, 0], Counters(self._study.layers())
        self._forward = compiled(self._loss) if fused_by_compiler else self._loss
        self._update = compiled(self._move) if fused_by_compiler else self._move

    @staticmethod
    def sizes_in(shapes: Shapes) -> Mapping[Any, int]:
        return shapes.studied

    def study(self, batches: Indices, step: int) -> None:
        """A step for each row; `step` is the number of the first."""
        self._replay_on(batches, step)

    def _crop_key(self, event: int) -> int:
        return self._owner.inputs.study_crop_key(self._seed, event)

    def _drawing_key(self, event: int) -> int:
        return derive(self._seed, "study", event)

    def _one_step(self) -> None:
        # what layers are told to do is told outside of what is compiled
        with self._counters.put_aside(), self._study.giving_features():
            loss = self._forward()
        self._update(list(torch.autograd.grad(loss, self._study.parameters)))

    def _loss(self) -> Tensor:
        inputs = self._slot.take(self._positions.index_select(0, self._row)[0])
        draws = None if self._draws is None else self._draws(self._own_keys.index_select(0, self._row))
        return self._study.loss(inputs, draws, self._owner.computing)

    def _move(self, gradients: list[Tensor]) -> None:
        with torch.no_grad():
            self._row.add_(1)
            self._study.move(gradients)
            self._counters.move()


class BesideProgram(TrainProgram):
    """Training steps with inputs beside labelled ones: gather both, views, what the averaged network takes those
    without a label for, and then what every training step does."""

    def __init__(
        self, learner: FromAllInputs, slot: Slot, size: tuple[int, int], *, fused_by_compiler: bool = False
    ) -> None:
        super().__init__(learner, slot, sum(size), fused_by_compiler=fused_by_compiler)
        self._from_inputs, self._labels = learner, self._queue(size[0])
        num_draws = learner.num_draws_beside
        self._draws = DeviceDraws(sum(size), num_draws, self._device) if num_draws else None

    @staticmethod
    def sizes_in(shapes: Shapes) -> Mapping[Any, int]:
        return shapes.beside

    def _logits_and_gradient(self) -> tuple[Tensor, Tensor]:
        inputs = self._slot.take(self._positions.index_select(0, self._row)[0])
        draws = None if self._draws is None else self._draws(self._own_keys.index_select(0, self._row))
        labels = self._labels.index_select(0, self._row)[0]
        return self._from_inputs.beside_outputs_and_gradient(inputs, draws, labels)


class GraphFromAllInputs(FromAllInputs, GraphLearner):
    """A learner that is given all inputs and hands a GPU whole steps, of its study too.

    Args:
        arguments, settings: those of a `FromAllInputs`, and `shapes` and `compiled` of a `GraphLearner`.
    """

    _num_studied: int | None = None
    """Steps of the study so far, known without waiting for the device; None: ask it."""

    @property
    def study_under_way(self) -> Study:
        """The study, while there is one."""
        assert self._study is not None
        return self._study

    def _rows_are_apart(self) -> bool:
        if not self._studies:
            return super()._rows_are_apart()
        with last_layer_of(self.averaged).giving_features():  # its outputs are all 0 before anything was learned
            return super()._rows_are_apart()

    def study_steps(self, batches: Indices, event: int) -> None:
        program = self._step_program(StudyProgram, batches.shape[1]) if self.is_studying else None
        if program is None:
            self._num_studied = None
            super().study_steps(batches, event)
            return
        self._forget()
        step = int(self.study_under_way.count) if self._num_studied is None else self._num_studied
        program.study(batches, step)
        self._num_studied = step + len(batches)

    def train_beside_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        num_labelled = labels.shape[1]
        program = self._step_program(BesideProgram, (num_labelled, batches.shape[1] - num_labelled))
        if program is None:
            super().train_beside_steps(batches, labels, event)
        else:
            self._forget()
            program.run(batches, labels, event)

    def take_study(self, studied: list[Tensor]) -> None:
        super().take_study(studied)
        self._let_go_of_study()

    def expect(self, names: set[str]) -> None:
        super().expect(names)
        if not self.is_studying:
            self._let_go_of_study()

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        super().restore(state)
        self._num_studied = None

    def _tried(self, done: str, make: Callable[[], Program]) -> Program | None:
        """What making a program did is put back, so the step of the study is what it was."""
        known = self._num_studied
        try:
            return super()._tried(done, make)
        finally:
            self._num_studied = known

    def _let_go_of_study(self) -> None:
        """Its programs, and the memory of their recordings."""
        kept = {(kind, size): each for (kind, size), each in self._programs.items() if kind is not StudyProgram}
        if len(kept) < len(self._programs):
            self._programs = kept
            self._tape = Tape(self.device)  # torch does not take memory again whose recordings are all gone
            gc.collect()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
