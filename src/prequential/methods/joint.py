"""Methods side by side: one plan for experts that each learn by their own. No torch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from prequential.conditioning import INPUTS_SO_FAR, widest
from prequential.errors import PreqError
from prequential.events import (
    Calibrate,
    EndStudy,
    Evaluate,
    Event,
    Indices,
    OwnEvent,
    Predict,
    Reinit,
    ShrinkPerturb,
    Study,
    Train,
    TrainBeside,
)
from prequential.methods.all_inputs import AllInputs
from prequential.methods.method import Method, MethodDefaults, Work
from prequential.settings import settings_of
from prequential.walks import blocks

TRAINED_TOGETHER = 8
"""Training steps of one method that make one event: few enough to stop between, enough for an engine."""


@dataclass(frozen=True, eq=False)
class ForExperts(OwnEvent):
    """Events of one of several methods, for the experts that follow it. Its number there is what randomness comes from,
    so that an expert learns what it would learn alone."""

    method: int
    """Which of the methods."""
    number: int
    """Of the first of the events, in the plan of that method."""
    kind: str
    """Train, TrainBeside, Calibrate, Study, EndStudy, Reinit or ShrinkPerturb."""
    indices: Indices = field(default_factory=lambda: np.empty((0, 0), np.int64))
    """Positions, a row for each event; where inputs stand beside labelled ones, these come first."""
    values: tuple[float, ...] = ()
    """Shrink and perturb; of TrainBeside, how many positions of a row have labels."""

    @property
    def labelled(self) -> Indices:
        """The positions whose labels it is given, a row for each event."""
        if self.kind in ("Study", "EndStudy"):
            return self.indices[:, :0]
        return self.indices[:, : int(self.values[0])] if self.kind == "TrainBeside" else self.indices

    @property
    def learns_from(self) -> Indices:
        """The positions of all its labelled examples."""
        return self.labelled.reshape(-1)

    @property
    def num_events(self) -> int:
        """Events of its method that it stands for."""
        return max(len(self.indices), 1)

    @property
    def num_trained(self) -> int:
        """Labelled examples that it trains on."""
        return self.labelled.size if self.kind in ("Train", "TrainBeside") else 0

    def execute(self, learner: Any, labels: Any, number: int) -> None:
        """Hand it to the experts that follow the method."""
        if not hasattr(learner, "execute_for"):
            raise PreqError("a joint plan is for experts; give the run several of them with pq.Experts")
        learner.execute_for(self, labels)


@dataclass(frozen=True)
class Joint(MethodDefaults):
    """The plans of several methods in step: all predict the same spans, and between two each has its own events.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> both = Joint((ReplayStreams(num_streams=1, batch_size=4), ReplayStreams(num_streams=2, batch_size=4)))
        >>> [getattr(event, "kind", "Predict") for event in both.events(8, seed=0)][:5]
        ['Predict', 'Calibrate', 'Train', 'Calibrate', 'Train']
    """

    name: ClassVar[str] = "joint"
    title: ClassVar[str] = "joint"

    methods: tuple[Method, ...]
    """At least two, all different."""

    def __post_init__(self) -> None:
        for method in self.methods:
            if not method.prequential:
                raise PreqError(f"{method.name} is not prequential: it has no code to mix; leave it out of the experts")

    @staticmethod
    def of(methods: Sequence[Method]) -> Method:
        """The method of all, if they are the same, else a joint one; one without a code is refused."""
        different = [method for number, method in enumerate(methods) if number_of(method, methods) == number]
        joint: Method = Joint(tuple(different))
        return joint if len(different) > 1 else different[0]

    @property
    def titles(self) -> str:
        """Those of all."""
        return " + ".join(dict.fromkeys(getattr(method, "titles", method.title) for method in self.methods))

    @property
    def conditioned_on(self) -> str:
        """The widest of all."""
        return widest(*(getattr(method, "conditioned_on", INPUTS_SO_FAR) for method in self.methods))

    def events(self, length: int, seed: int) -> Iterator[Event]:
        walks = [_Walk(number, method, length, seed) for number, method in enumerate(self.methods)]
        while True:
            for walk in walks:
                yield from walk.until_prediction()
            spans = [walk.prediction for walk in walks]
            if all(span is None for span in spans):
                return
            yield self._shared(spans)

    def _shared(self, spans: Sequence[Predict | None]) -> Predict:
        """The span that all predict next; refused where they differ."""
        first = spans[0]
        for span, method in zip(spans, self.methods, strict=True):
            if span is None or first is None or (span.start, span.stop) != (first.start, first.stop):
                raise PreqError(
                    f"experts must predict the same spans of labels, but {self.methods[0].name} predicts "
                    f"{_words(first)} and {method.name} {_words(span)}; give their methods the same batch size and the "
                    "same first block (or the same split points)"
                )
            if span.uniform != first.uniform:
                raise PreqError(
                    f"experts must predict the same spans of labels, but one of {self.methods[0].name} and "
                    f"{method.name} codes {_words(first)} uniformly; give their methods the same split points"
                )
        assert first is not None
        return first

    def closing(self, length: int, seed: int) -> Iterator[Event]:
        for number, method in enumerate(self.methods):
            num_before = sum(1 for _ in method.events(length, seed))
            own = (event for event in method.closing(length, seed) if not isinstance(event, Evaluate))
            yield from _together(number, num_before, own, method)
        yield Evaluate()

    def most_work(self, length: int) -> Work | None:
        """Of all of them together."""
        works = [getattr(method, "most_work", lambda _: None)(length) for method in self.methods]
        if any(work is None for work in works):
            return None
        return Work(*(sum(part) for part in zip(*works, strict=True)))

    def reached(self, events: Iterable[Event], num_events: int | None) -> list[int]:
        """How many events of each method are among the first of a plan (None: all)."""
        reached = [0] * len(self.methods)
        for event in islice(events, num_events):
            if isinstance(event, ForExperts):
                reached[event.method] = event.number + event.num_events
            else:
                reached = [number + 1 for number in reached]
        return reached


def method_settings(method: Method) -> dict[str, Any]:
    """The settings of a method as plain values; of a joint one those of each."""
    if isinstance(method, Joint):
        return {"name": method.name, "methods": [method_settings(each) for each in method.methods]}
    if isinstance(method, AllInputs):
        return settings_of(method) | {"method": method_settings(method.method)}
    return settings_of(method)


def number_of(method: Method, methods: Sequence[Method]) -> int:
    """Which of the methods it is, by its settings; the first that is."""
    told = type(method), method_settings(method)
    return next(number for number, each in enumerate(methods) if (type(each), method_settings(each)) == told)


class _Walk:
    """The plan of one method, on its way from prediction to prediction."""

    def __init__(self, number: int, method: Method, length: int, seed: int) -> None:
        self._which, self._method, self._events = number, method, method.events(length, seed)
        self._number = 0
        self.prediction: Predict | None = None
        """Where it has come to; None at its end."""

    def until_prediction(self) -> Iterator[ForExperts]:
        """What comes before the next prediction."""
        for event in _together(self._which, self._number, self._before_prediction(), self._method):
            self._number += event.num_events
            yield event
        self._number += 1

    def _before_prediction(self) -> Iterator[Event]:
        for event in self._events:
            if isinstance(event, Predict):
                self.prediction = event
                return
            yield event
        self.prediction = None


def _together(which: int, number: int, events: Iterable[Event], method: Method) -> Iterator[ForExperts]:
    """Events of a method, the first of which has that number, as events for its experts."""
    for first, event, batches in blocks(events, number, TRAINED_TOGETHER):
        kind = type(event).__name__
        match event:
            case TrainBeside(indices):
                yield ForExperts(which, first, kind, np.stack(batches), (len(indices),))
            case Train() | Study():
                yield ForExperts(which, first, kind, np.stack(batches))
            case Calibrate(indices) | EndStudy(indices):
                yield ForExperts(which, first, kind, indices[None])
            case ShrinkPerturb(shrink, perturb):
                yield ForExperts(which, first, kind, values=(shrink, perturb))
            case Reinit():
                yield ForExperts(which, first, kind)
            case other:
                raise PreqError(
                    f"{method.name} has events of its own ({type(other).__name__}); all experts of a run must have "
                    "that method then"
                )


def _words(span: Predict | None) -> str:
    return "nothing more" if span is None else f"[{span.start}, {span.stop})"
