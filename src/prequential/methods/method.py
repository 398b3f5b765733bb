"""What a method is: settings that turn a length and a seed into events."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from prequential.conditioning import INPUTS_SO_FAR
from prequential.errors import PreqError
from prequential.events import Evaluate, Event, Indices
from prequential.settings import check_settings, setting

PASSES = "passes"
"""The role of the setting that says how often the past is gone through again, whatever a method calls it."""


class Work(NamedTuple):
    """How much a plan is, at most: its events, and the examples that the network is shown."""

    events: int
    evaluated: int
    """Forward only: predictions, and calibrations without logits at hand."""
    trained: int


class Method(Protocol):
    """The contract of a method.

    `events` is a pure function of its arguments and the settings: it may be called twice, from any
    thread, and gives the same events each time. Arrays that it gave stay as they are: several events
    may be collected before they are executed. What it yields for the first n positions must not
    depend on how many follow. `prequential.testing.check_method` checks all of this.

    A method whose events look at inputs past the frontier has an attribute `conditioned_on`, "all inputs".
    """

    name: ClassVar[str]
    """The short name on the command line, such as "mi-rs"."""
    title: ClassVar[str]
    """The paper's name, such as "MI/RS"."""
    prequential: ClassVar[bool]
    """Whether the method predicts every label before it learns from it."""

    @property
    def calibration_rate_factor(self) -> float:
        """The learning rate of the temperature, in units of that of the weights."""

    def events(self, length: int, seed: int) -> Iterator[Event]:
        """Everything the codelength needs."""

    def closing(self, length: int, seed: int) -> Iterator[Event]:
        """What follows when there is held-out data; ends in Evaluate."""

    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        """The events from some event at or before number `start` on, and that event's number.

        It is what makes resuming a long plan fast; going on from event 0 is always right.
        """


class MethodDefaults:
    """What most methods share: they are prequential, calibrate at factor 1 and close with Evaluate.

    Their settings are checked as their fields say (`prequential.settings.setting`).
    """

    prequential: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def calibration_rate_factor(self) -> float:
        return 1.0

    @property
    def conditioned_on(self) -> str:
        """What its plans look at besides earlier labels: one of `prequential.conditioning.ORDER`."""
        return INPUTS_SO_FAR

    @abstractmethod
    def events(self, length: int, seed: int) -> Iterator[Event]:
        """See `Method`."""

    def most_work(self, length: int) -> Work | None:
        """No plan of this length is more than that, by arithmetic alone: `events` is not asked. None: not known."""
        return None

    def closing(self, length: int, seed: int) -> Iterator[Event]:
        yield Evaluate()

    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        return self.events(length, seed), 0


@dataclass(frozen=True, kw_only=True)
class InBatches(MethodDefaults):
    """A method that trains on batches of one size."""

    batch_size: int = setting(32, at_least=1, short="batch")
    """Examples per training step."""

    def require_fits(self, length: int) -> None:
        """Refuse a batch larger than the data."""
        if (size := self.batch_size) > length:
            raise PreqError(f"batch_size {size} is larger than the data ({length} labels); use at most {length}")


def cut_into_batches(indices: Indices, batch_size: int) -> list[Indices]:
    """Batches of `batch_size` in order; a single left-over example joins the batch before it.

    Batch normalisation cannot train on one example, so no batch has one unless the batch size is 1;
    an example that is all alone makes no batch.

    Example:
        >>> [batch.tolist() for batch in cut_into_batches(np.arange(5), 2)]
        [[0, 1], [2, 3, 4]]
    """
    stops = list(range(batch_size, len(indices), batch_size))
    if stops and batch_size > 1 and len(indices) - stops[-1] == 1:
        stops.pop()
    return [batch for batch in np.split(indices, stops) if len(batch) >= min(2, batch_size)]


def num_batches(num_examples: int, batch_size: int) -> int:
    """How many batches `cut_into_batches` makes of that many examples.

    Example:
        >>> num_batches(5, 2), num_batches(6, 2), num_batches(1, 2)
        (2, 3, 0)
    """
    whole, left = divmod(num_examples, batch_size)
    return whole + (left > 1)
