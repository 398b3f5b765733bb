"""How much work a list of events is. No torch."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from prequential.events import Calibrate, EndStudy, Evaluate, Event, Predict, Study, Train, TrainBeside
from prequential.methods.joint import ForExperts
from prequential.walks import with_reads


@dataclass
class Counts:
    """How much work a list of events is: events by kind, and the examples they touch."""

    events: int = 0
    predicts: int = 0
    calibrates: int = 0
    trains: int = 0
    evaluates: int = 0
    others: int = 0
    """Reinit, ShrinkPerturb, EndStudy and events of a method's own."""
    predicted_examples: int = 0
    uniform_examples: int = 0
    calibrated_examples: int = 0
    recomputed_examples: int = 0
    """Calibrated examples whose logits are not at hand from the prediction just made."""
    trained_examples: int = 0
    """With their labels."""
    beside_examples: int = 0
    """Trained on beside them, without labels."""
    studies: int = 0
    studied_examples: int = 0
    measured_examples: int = 0
    """Of which statistics are taken at the end of a study."""

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(**{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)})


def count(events: Iterable[Event]) -> Counts:
    """Events and examples.

    Example:
        >>> import numpy as np
        >>> count([Predict(0, 2), Train(np.arange(2)), Study(np.arange(4))]).studied_examples
        4
    """
    counts = Counts()
    for _, event, read in with_reads(events):
        counts.events += 1
        match event:
            case Predict(start, stop):
                counts.predicts += 1
                counts.predicted_examples += len(read)
                counts.uniform_examples += stop - start - len(read)
            case Calibrate(indices):
                counts.calibrates += 1
                counts.calibrated_examples += len(indices)
                counts.recomputed_examples += len(read)
            case Train(indices):
                counts.trains += 1
                counts.trained_examples += len(indices)
                counts.beside_examples += len(event.beside) if isinstance(event, TrainBeside) else 0
            case Study(indices):
                counts.studies += 1
                counts.studied_examples += len(indices)
            case EndStudy(indices):
                counts.others += 1
                counts.measured_examples += len(indices)
            case Evaluate():
                counts.evaluates += 1
            case ForExperts():
                _count_for_experts(event, counts)
            case _:
                counts.others += 1
    return counts


def _count_for_experts(event: ForExperts, counts: Counts) -> None:
    match event.kind:
        case "Train" | "TrainBeside":
            counts.trains += event.num_events
            counts.trained_examples += event.num_trained
            counts.beside_examples += event.indices.size - event.num_trained
        case "Calibrate":
            counts.calibrates += 1
            counts.calibrated_examples += event.indices.size
        case "Study":
            counts.studies += event.num_events
            counts.studied_examples += event.indices.size
        case _:
            counts.others += 1
            counts.measured_examples += event.indices.size if event.kind == "EndStudy" else 0
