"""Labels given all inputs: any method, after a study of the inputs, with inputs beside its training. No torch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from prequential.augmentations import require_augmentations
from prequential.conditioning import ALL_INPUTS, INPUTS_SO_FAR
from prequential.errors import PreqError
from prequential.events import EndStudy, Event, Indices, Study, Train, TrainBeside
from prequential.methods.method import Method, MethodDefaults, Work
from prequential.rng import derive, integers_below, permutation
from prequential.settings import setting

MOST_MEASURED = 10_000
"""Inputs whose statistics are taken at the end of a study."""
THRESHOLDS = ("fixed", "relative", "adaptive")
STUDY_OPTIMIZERS = ("adamw", "sgd")
VIEWS_OF_A_STUDY = 2


@dataclass(frozen=True, kw_only=True)
class AllInputs(MethodDefaults):
    """A method whose learner holds every input from the start, as both ends of a code of labels do.

    Before the first label it *studies*: steps on inputs alone, by momentum contrast of two views. Then the method's own
    events follow, and each training step has inputs from anywhere beside it, which are trained on what the averaged
    network takes them for where it is sure. Labels stay causal: none is looked at before it was predicted.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> method = AllInputs(method=ReplayStreams(num_streams=1, batch_size=4), num_inputs=8, study_steps=1, beside=1)
        >>> [type(event).__name__ for event in method.events(4, seed=0)]
        ['Study', 'EndStudy', 'Predict', 'Calibrate', 'TrainBeside', 'TrainBeside']
    """

    name: ClassVar[str] = "all-inputs"
    title: ClassVar[str] = "all inputs"

    method: Method
    """Who decides what is learned from labels, and when."""
    num_inputs: int = setting(0, at_least=0, by_data=True)
    """Inputs that there are. A run puts in those of its data."""
    study_steps: int = setting(0, at_least=0, short="study")
    """Steps of the study, before the first label; 0: none."""
    study_batch_size: int = setting(512, at_least=2)
    """Inputs of a step of the study."""
    study_seed: int = setting(0, at_least=0)
    """The study: its order, its views and the weights it begins with. Runs that share it share one study."""
    study_optimizer: str = setting("adamw", choices=STUDY_OPTIMIZERS)
    """adamw, or sgd for networks with normalisation in every layer."""
    study_learning_rate: float = setting(1e-3, above=0)
    """Learning rate of the study, which warms up and then falls to 0 as a cosine."""
    study_weight_decay: float = setting(1e-2, at_least=0)
    """Weight decay of the study, decoupled."""
    study_temperature: float = setting(0.2, above=0)
    """Of the contrast: similarities are divided by it."""
    study_views: tuple[str, ...] = setting((), check=require_augmentations, hint="those of training")
    """Augmentations that make the views of the study."""
    beside: int = setting(3, at_least=0, at_most=1 << 10, short="beside")
    """Inputs without labels beside each labelled one of a training step; 0: none."""
    beside_weight: float = setting(1.0, above=0)
    """Weight of the loss on inputs without labels."""
    threshold: float = setting(0.9, at_least=0, at_most=1)
    """How sure the averaged network must be of an input for it to be trained on."""
    threshold_kind: str = setting("fixed", choices=THRESHOLDS, called="kind of threshold")
    """fixed: the threshold is a probability; relative: a share of the mean confidence on labelled inputs (AdaMatch);
    adaptive: of the mean confidence so far, for each class by how often it is predicted (FreeMatch)."""
    weak_views: tuple[str, ...] = setting((), check=require_augmentations, hint="none")
    """Augmentations of inputs without labels, of which the averaged network says what they are."""
    strong_views: tuple[str, ...] = setting((), check=require_augmentations, hint="those of training")
    """Augmentations of inputs without labels that are trained on."""
    body_rate: float = setting(1.0, above=0)
    """Learning rate below the last layer, in units of that of the last layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.method, AllInputs):
            raise PreqError("all inputs are given already; wrap the method once")
        if not callable(getattr(self.method, "events", None)) or isinstance(self.method, type):
            raise PreqError(f"all inputs are given to a method such as ReplayStreams(...), got {self.method!r}")
        if not self.method.prequential:
            raise PreqError(f"{self.method.name} has no code of labels that inputs could shorten; leave all inputs out")

    @property
    def titles(self) -> str:
        """That of the method, with what it is given."""
        return f"{self.method.title} given all inputs"

    @property
    def calibration_rate_factor(self) -> float:
        return self.method.calibration_rate_factor

    @property
    def conditioned_on(self) -> str:
        if self.study_steps or self.beside:
            return ALL_INPUTS
        return getattr(self.method, "conditioned_on", INPUTS_SO_FAR)

    @property
    def views(self) -> tuple[str, ...]:
        """The augmentations that its events ask for, besides those of training."""
        of_study = self.study_views if self.study_steps else ()
        return (*of_study, *((*self.weak_views, *self.strong_views) if self.beside else ()))

    @property
    def batch_size(self) -> int:
        """That of the method."""
        return getattr(self.method, "batch_size", 32)

    def of(self, num_inputs: int) -> "AllInputs":
        """The same for data with so many inputs; one that was made for another number is refused."""
        if self.num_inputs not in (0, num_inputs):
            raise PreqError(f"the plan is about {self.num_inputs} inputs, the data has {num_inputs}")
        return replace(self, num_inputs=num_inputs)

    def events(self, length: int, seed: int) -> Iterator[Event]:
        return self.enter(length, seed, 0)[0]

    def closing(self, length: int, seed: int) -> Iterator[Event]:
        num_before = sum(1 for _ in self.method.events(length, seed))
        return self._with_inputs_beside(self.method.closing(length, seed), num_before, length, seed)

    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        num_studying = self.study_steps + 1 if self.study_steps else 0
        own, reached = self.method.enter(length, seed, max(start - num_studying, 0))
        learning = self._with_inputs_beside(own, reached, length, seed)
        if start >= num_studying:
            return learning, num_studying + reached
        return chain(self._study(start, self._number(length)), learning), start

    def most_work(self, length: int) -> Work | None:
        work = getattr(self.method, "most_work", lambda _: None)(length)
        if work is None:
            return None
        studied = VIEWS_OF_A_STUDY * self.study_steps * self._size(self._number(length))
        measured = min(self._number(length), MOST_MEASURED) if self.study_steps else 0
        beside, events = self.beside * work.trained, self.study_steps + bool(self.study_steps)
        return Work(work.events + events, work.evaluated + beside + studied + measured, work.trained + beside + studied)

    def _number(self, length: int) -> int:
        return max(self.num_inputs, length)

    def _size(self, num_inputs: int) -> int:
        return min(self.study_batch_size, num_inputs)

    def _study(self, start: int, num_inputs: int) -> Iterator[Event]:
        """From step `start` on: the inputs in another order each time, those of an incomplete batch left out."""
        size = self._size(num_inputs)
        per_round, last, order = num_inputs // size, -1, np.empty(0, np.int64)
        for step in range(start, self.study_steps):
            number, batch = divmod(step, per_round)
            if number != last:
                last, order = number, permutation(derive(self.study_seed, "study", number), num_inputs)
            yield Study(order[batch * size : (batch + 1) * size])
        measured = permutation(derive(self.study_seed, "measured"), num_inputs)[:MOST_MEASURED]
        yield EndStudy(np.sort(measured))

    def _with_inputs_beside(self, events: Iterable[Event], first: int, length: int, seed: int) -> Iterator[Event]:
        """The events of the method, the first of which has that number there."""
        num_inputs = self._number(length)
        for number, event in enumerate(events, first):
            if type(event) is Train and self.beside:
                yield TrainBeside(event.indices, _anywhere(len(event.indices) * self.beside, num_inputs, seed, number))
            else:
                yield event


def _anywhere(count: int, num_inputs: int, seed: int, number: int) -> Indices:
    return integers_below(num_inputs, derive(seed, "beside", number), np.arange(count))


def given_all_inputs(method: Any) -> AllInputs | None:
    """The settings of a method that is given all inputs, None of another."""
    return method if isinstance(method, AllInputs) else None
