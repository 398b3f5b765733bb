"""The loop: plan × learner × labels → what a recorder keeps. One model or a whole stack, scored, encoded or decoded."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from torch import Tensor

from prequential.coding.labels import Labels
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.events import (
    Calibrate,
    Evaluate,
    Indices,
    OwnEvent,
    Predict,
    Reinit,
    ShrinkPerturb,
    Train,
    unknown_event,
)
from prequential.learn.inputs import Inputs
from prequential.learn.prediction import Prediction
from prequential.plan import Plan, blocks
from prequential.signals import StopRequest

Result = TypeVar("Result")
Found = TypeVar("Found", covariant=True)
Taken = TypeVar("Taken", contravariant=True)


class Learning(Protocol[Found]):
    """Who executes events. It sees no future label, and is a pure function of the events it was given.

    It has a method for each kind of event in `prequential.events.Event`; an `OwnEvent` brings its own.
    """

    @property
    def data(self) -> DataSequence: ...
    @property
    def inputs(self) -> Inputs: ...
    @property
    def steps_at_once(self) -> int: ...
    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None: ...
    def predict(self, start: int, stop: int) -> Prediction: ...
    def predict_uniformly(self, start: int, stop: int) -> Prediction: ...
    def calibrate(self, indices: Indices, labels: Tensor) -> None: ...
    def reinit(self, event: int) -> None: ...
    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None: ...
    def evaluate(self) -> Found: ...


class Recording(Protocol[Taken]):
    """Who takes note of what happens, and knows which event comes next."""

    num_events: int
    trained_examples: int

    @property
    def diverged(self) -> bool: ...
    def start_clock(self) -> None: ...
    def add(self, start: int, prediction: Prediction, labels: Tensor) -> None: ...
    def fetch(self) -> None: ...
    def note_heldout(self, result: Taken) -> None: ...
    def pause_is_due(self) -> bool: ...
    def finish(self, status: str) -> None: ...


def execute(
    plan: Plan,
    learner: Learning[Result],
    labels: Labels,
    recorder: Recording[Result],
    pause: Callable[[], object] = lambda: None,
    stop: StopRequest | None = None,
) -> None:
    """Walk through the plan, from the event the recorder has reached, up to its end, to the first label
    without a finite codelength, or to a request to stop. A few times a second, between events, `pause` is called."""
    recorder.start_clock()
    upcoming = learner.inputs.reads(plan.events(recorder.num_events), recorder.num_events)
    capabilities(learner.data).read_ahead(upcoming)
    for number, event, batches in blocks(plan.events(recorder.num_events), recorder.num_events, learner.steps_at_once):
        match event:
            case Train():
                positions = np.concatenate(batches)
                indices = positions.reshape(len(batches), -1)
                learner.train_steps(indices, labels.of(positions).view(indices.shape), number)
                recorder.trained_examples += len(positions)
            case Predict(start, end, uniform):
                predict = learner.predict_uniformly if uniform else learner.predict
                prediction = predict(start, end)
                recorder.add(start, prediction, labels.reveal(start, end, prediction.log_probabilities))
            case Calibrate(indices):
                learner.calibrate(indices, labels.of(indices))
            case Reinit():
                learner.reinit(number)
            case ShrinkPerturb(shrink, perturb):
                learner.shrink_perturb(shrink, perturb, number)
            case Evaluate():
                recorder.fetch()
                recorder.note_heldout(learner.evaluate())
            case OwnEvent():
                used = event.learns_from
                event.execute(learner, labels.of(used) if len(used) else None, number)
            case _:
                raise unknown_event(event, f"event {number}")
        recorder.num_events = number + max(len(batches), 1)
        if recorder.pause_is_due():
            pause()
        if recorder.diverged or (stop is not None and stop.requested):
            recorder.finish("stopped")
            return
    recorder.finish("finished")
