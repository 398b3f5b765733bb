"""The loop: plan × learner × labels → what a recorder keeps. One model or a whole stack, scored, encoded or decoded."""

from collections.abc import Callable

import numpy as np

from prequential.coding.labels import Labels
from prequential.data.optional import capabilities
from prequential.events import (
    Calibrate,
    EndStudy,
    Evaluate,
    Event,
    OwnEvent,
    Predict,
    Reinit,
    ShrinkPerturb,
    Study,
    Train,
    TrainBeside,
    unknown_event,
)
from prequential.experts.learner import MixedLearner
from prequential.learn.learning import Learning, given_inputs
from prequential.methods.joint import ForExperts
from prequential.plan import Plan
from prequential.runs.recorder import Recorder
from prequential.runs.signals import StopRequest
from prequential.runs.studies import Studies
from prequential.walks import blocks


def execute(
    plan: Plan,
    learner: Learning,
    labels: Labels,
    recorder: Recorder,
    pause: Callable[[], object] = lambda: None,
    stop: StopRequest | None = None,
    studies: Studies | None = None,
) -> None:
    """Walk through the plan, from the event the recorder has reached, up to its end, to where no member goes on (at a
    label without a finite codelength), or to a request to stop. A few times a second, between events, `pause` is
    called; `studies` hears of each study that has come to its end."""
    recorder.start_clock()
    upcoming = learner.inputs.reads(plan.events(recorder.num_events), recorder.num_events)
    capabilities(learner.data).read_ahead(upcoming)
    for number, event, batches in blocks(plan.events(recorder.num_events), recorder.num_events, learner.steps_at_once):
        match event:
            case TrainBeside(indices):
                positions = np.stack(batches)
                labelled = positions[:, : len(indices)]
                found = labels.of(labelled.reshape(-1)).view(labelled.shape)
                given_inputs(learner).train_beside_steps(positions, found, number)
            case Study():
                given_inputs(learner).study_steps(np.stack(batches), number)
            case EndStudy(indices):
                given_inputs(learner).end_study(indices)
            case Train():
                positions = np.concatenate(batches)
                indices = positions.reshape(len(batches), -1)
                learner.train_steps(indices, labels.of(positions).view(indices.shape), number)
            case Predict(start, end, uniform):
                prediction = (learner.predict_uniformly if uniform else learner.predict)(start, end)
                found = labels.reveal(start, end, prediction)
                recorder.add(start, prediction, found)
                learner.observe(start, end, found)
                _tell_left_out(learner)
            case Calibrate(indices):
                learner.calibrate(indices, labels.of(indices))
            case Reinit():
                learner.reinit(number)
            case ShrinkPerturb(shrink, perturb):
                learner.shrink_perturb(shrink, perturb, number)
            case Evaluate():
                recorder.fetch()
                recorder.note_heldout(learner.evaluate(), learner.finite())
            case OwnEvent():
                used = event.learns_from
                event.execute(learner, labels.of(used) if len(used) else None, number)
            case _:
                raise unknown_event(event, f"event {number}")
        kind = event.kind if isinstance(event, ForExperts) else type(event).__name__
        recorder.advance(number + max(len(batches), 1), *_counted(event, kind, len(batches)))
        if kind == "EndStudy":
            (studies or Studies()).ended(learner, recorder)
        if recorder.pause_is_due():
            pause()
        if not recorder.going or (stop is not None and stop.requested):
            recorder.finish("stopped")
            break
    else:
        recorder.finish("finished")
    _tell_left_out(learner)  # behind a device the last labels are mixed only now


def _tell_left_out(learner: Learning) -> None:
    if isinstance(learner, MixedLearner):
        learner.tell_left_out()


def _counted(event: Event, kind: str, num_steps: int) -> tuple[int, int]:
    """Labelled examples that were trained on, and steps of a study, where so many steps came together."""
    if kind == "Study":
        return 0, num_steps or getattr(event, "num_events", 0)
    return (num_steps * len(event.indices) if isinstance(event, Train) else getattr(event, "num_trained", 0)), 0
