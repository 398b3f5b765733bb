"""Events, handed to each of several learners."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from prequential.events import Indices
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.lanes import side_by_side
from prequential.learn.learning import Learning, given_inputs
from prequential.learn.shared_studies import share_study, who_study
from prequential.methods.joint import ForExperts


@dataclass(frozen=True)
class Member:
    """A learner and the experts it is."""

    learner: Learning
    columns: Sequence[int]
    """Which of the experts: several of a stack, or of one network with several averages."""
    follows: int
    """Which of the methods of a joint plan."""
    num_networks: int = 1
    """That it trains."""


class Executing:
    """The half of a learner over others that executes events: each goes to all of them. Of those who do the same study,
    the first does it for all. On a GPU their training steps run at the same time."""

    each: Sequence[Member]
    members: Sequence[Learning]

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        for each in side_by_side(self.members):
            each.train_steps(batches, labels, event)

    def train_beside_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        for each in side_by_side(self.members):
            given_inputs(each).train_beside_steps(batches, labels, event)

    def study_steps(self, batches: Indices, event: int) -> None:
        for each in who_study(self.members):
            each.study_steps(batches, event)

    def end_study(self, indices: Indices) -> None:
        for each in who_study(self.members):
            each.end_study(indices)
            share_study(each, self.members)

    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        for each in self.members:
            each.calibrate(indices, labels)

    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        for each in self.members:
            each.observe(start, stop, labels.to(each.device))

    def reinit(self, event: int) -> None:
        for each in self.members:
            each.reinit(event)

    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None:
        for each in self.members:
            each.shrink_perturb(shrink, perturb, event)

    def execute_for(self, event: ForExperts, labels: Tensor | None) -> None:
        """Events of a joint plan, for those who follow one of its methods."""
        followers = [member.learner for member in self.each if member.follows == event.method]
        trains = event.kind in ("Train", "TrainBeside")
        for learner in side_by_side(followers) if trains else followers:
            match event.kind:
                case "Train":
                    assert labels is not None
                    learner.train_steps(event.indices, labels.view(event.indices.shape), event.number)
                case "TrainBeside":
                    assert labels is not None
                    given_inputs(learner).train_beside_steps(
                        event.indices, labels.view(event.labelled.shape), event.number
                    )
                case "Study" if learner in who_study(self.members):
                    given_inputs(learner).study_steps(event.indices, event.number)
                case "EndStudy" if isinstance(learner, FromAllInputs) and learner in who_study(self.members):
                    learner.end_study(event.indices[0])
                    share_study(learner, self.members)
                case "Study" | "EndStudy":
                    pass
                case "Calibrate":
                    assert labels is not None
                    learner.calibrate(event.indices[0], labels)
                case "Reinit":
                    learner.reinit(event.number)
                case _:
                    shrink, perturb = event.values
                    learner.shrink_perturb(shrink, perturb, event.number)
