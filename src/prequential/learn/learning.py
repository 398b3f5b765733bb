"""Who executes events: the protocol that the plain, the recorded and the stacked learner share."""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.events import Indices
from prequential.learn.inputs import Inputs
from prequential.learn.prediction import Predicted


class Learning(Protocol):
    """Who executes events, for one member or for many. It sees no future label, and is a pure function of the events it
    was given. What is said of each member is a list, in the order of the members.

    It has a method for each kind of event in `prequential.events.Event` that needs labels; an `OwnEvent` brings its
    own, and whoever learns from inputs alone is a `LearningFromInputs`.
    """

    factory: Any
    width: float
    device: torch.device
    engine: str
    precision: str
    compiled: bool
    deterministic: bool

    @property
    def fallback(self) -> str | None:
        """What it was asked to do and could not, and why."""

    @property
    def data(self) -> DataSequence: ...
    @property
    def inputs(self) -> Inputs: ...
    @property
    def steps_at_once(self) -> int: ...
    @property
    def model(self) -> nn.Module:
        """The network of a member, to look at: all have the same layers."""

    def probe(self, num_examples: int) -> None:
        """Try the network on a batch of that size before any work is done."""

    def fingerprints(self) -> Sequence[str]: ...
    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None: ...
    def predict(self, start: int, stop: int) -> Predicted: ...
    def predict_uniformly(self, start: int, stop: int) -> Predicted: ...
    def calibrate(self, indices: Indices, labels: Tensor) -> None: ...
    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        """The labels of the span that was just predicted: for one who learns from them at once, not by events. What it
        then remembers is part of `tensors`."""

    def reinit(self, event: int) -> None: ...
    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None: ...
    def evaluate(self) -> Sequence[dict[str, float]] | None: ...
    def finite(self) -> Sequence[bool]:
        """Whether every averaged weight is a finite number."""

    def tensors(self) -> dict[str, list[Tensor]]:
        """Everything the next event depends on, as it is: for one who writes it down at once."""

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Go back to where `tensors` were taken, by a learner with the same settings."""

    def close(self) -> None:
        """Let go of what only speed needed."""


class LearningFromInputs(Learning, Protocol):
    """Who also executes events on inputs without labels: TrainBeside, Study and EndStudy."""

    def train_beside_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps, a row each: as many positions as there are labels, then those beside them."""

    def study_steps(self, batches: Indices, event: int) -> None:
        """Steps of the study, a row each."""

    def end_study(self, indices: Indices) -> None:
        """Keep what was studied, with statistics of the inputs at these positions."""


def given_inputs(learner: Learning) -> LearningFromInputs:
    """The same learner; one that learns from labelled examples alone is refused."""
    if not hasattr(learner, "study_steps"):
        raise PreqError(
            f"{type(learner).__name__} learns from labelled examples alone, and the plan gives it all inputs; leave "
            "them out (no AllInputs, no --all-inputs)"
        )
    return cast(LearningFromInputs, learner)
