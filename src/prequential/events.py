"""The events a plan is made of. Positions are 0-based, spans half-open.

A plan says *what* happens, in order; a learner decides how. No event looks at a label
that an earlier Predict has not revealed: `Plan.check` proves it.

The kinds of events are those in `Event`, and nobody skips one of another kind: `known` refuses it. To add a kind, write
its class, list it in `Event` and give `Learning` a method for it; the type checker then names every place that must say
what it does with it. A kind that only one method and one learner need derives from `OwnEvent` instead.
"""

import numbers
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Never, cast, get_args

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Predict:
    """Code the labels of positions start … stop−1, then reveal them.

    With `uniform`, every class gets probability 1/C and no model is asked.
    """

    start: int
    stop: int
    uniform: bool = False

    def __post_init__(self) -> None:
        ends: tuple[object, ...] = (self.start, self.stop)
        if not all(isinstance(end, numbers.Integral) for end in ends):
            raise PreqError(f"Predict is about whole numbers, got [{self.start}, {self.stop}); use // to halve")


def _require_positions(event: object, positions: Any) -> None:
    """Refuse what is no vector of whole numbers: a mask, or numbers of another type, would mean something else."""
    if isinstance(positions, np.ndarray) and positions.ndim == 1 and positions.dtype in (np.int64, np.int32):
        return
    is_array = isinstance(positions, np.ndarray)
    got = f"{positions.dtype} of shape {positions.shape}" if is_array else f"a {type(positions).__name__}"
    raise PreqError(
        f"the positions of {type(event).__name__} must be a one-dimensional array of int64, got {got}; "
        "use np.arange, or np.flatnonzero of a mask"
    )


class _SameIfEncodedSo:
    """Events that are equal where their fingerprints are made of the same."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and encoded(cast(Event, other)) == encoded(cast(Event, self))

    def __hash__(self) -> int:
        return hash(encoded(cast(Event, self)))


@dataclass(frozen=True, slots=True, eq=False)
class _AtPositions(_SameIfEncodedSo):
    indices: Indices

    def __post_init__(self) -> None:
        _require_positions(self, self.indices)


class OnExamples(_AtPositions):
    """An event that uses the examples at `indices`, which are already revealed."""

    __slots__ = ()


class Calibrate(OnExamples):
    """One gradient step on the temperature."""

    __slots__ = ()


class Train(OnExamples):
    """One gradient step on the weights, on the whole batch."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class TrainBeside(Train):
    """A training step with inputs `beside` the labelled ones: of these no label is looked at, so they may lie anywhere.

    A kind of Train to whoever asks what is learned from labels; a learner that does not know it refuses it.
    """

    beside: Indices

    def __post_init__(self) -> None:
        _require_positions(self, self.indices)
        _require_positions(self, self.beside)


class Study(_AtPositions):
    """One step on the inputs at `indices`, which may lie anywhere: no label is looked at."""

    __slots__ = ()


class EndStudy(_AtPositions):
    """What was studied is kept, rounded to half precision, with statistics of the inputs at `indices`; what only the
    study needed goes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reinit:
    """Fresh weights, optimizer, EMA and temperature."""


@dataclass(frozen=True, slots=True)
class ShrinkPerturb:
    """θ ← shrink·θ + perturb·(fresh initialisation) for every parameter."""

    shrink: float
    perturb: float


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Measure loss and error on the held-out data. Never charged, never used to choose."""


class OwnEvent(_SameIfEncodedSo):
    """The base of events that a method of your own gives to a learner of your own.

    Derive a frozen dataclass (with `eq=False` where it holds arrays). A plan counts it among the others, and its work
    is not in the FLOPs. If it looks at inputs past the frontier, the method says so by `conditioned_on`.
    """

    __slots__ = ()

    @property
    def learns_from(self) -> Indices:
        """The positions whose labels it is given; all of them must be revealed."""
        return np.empty(0, np.int64)

    def execute(self, learner: Any, labels: Any, number: int) -> None:
        """Called by the loop: have the learner do it, or refuse a learner that cannot.

        Args:
            learner: who executes the plan.
            labels: those of `learns_from`, None if there are none.
            number: of the event; what is random is derived from it, so that a resumed run does the same.
        """
        raise PreqError(f"{type(self).__name__} does not say what it does; give it a method execute")


Event = Predict | Calibrate | Train | TrainBeside | Study | EndStudy | Reinit | ShrinkPerturb | Evaluate | OwnEvent

_KNOWN = frozenset(get_args(Event)) - {OwnEvent}
_PRINTED = frozenset({Predict, Reinit, ShrinkPerturb, Evaluate})
"""Kinds whose fingerprint is that of their text, as it always was; no other is to be added."""


def known(events: Iterable[Event], first: int = 0) -> Iterator[Event]:
    """The same events, the first of which has number `first`; one that nobody knows is refused.

    A class derived from Predict, Train, … is another kind: what it adds would be ignored.
    """
    for number, event in enumerate(events, first):
        if type(event) not in _KNOWN and not isinstance(event, OwnEvent):
            raise unknown_event(cast(Never, event), f"event {number}")
        yield event


def unknown_event(event: Never, where: str) -> PreqError:
    """The error for an event that nobody knows. `Never` has the type checker prove that a match left no kind out.

    Example:
        >>> print(unknown_event("sleep", "event 3"))
        event 3 is a str, which nobody knows; use Predict, Calibrate, Train, TrainBeside, Study, EndStudy, Reinit, \
ShrinkPerturb or Evaluate, or derive your own from prequential.events.OwnEvent
    """
    *names, last = [kind.__name__ for kind in get_args(Event) if kind is not OwnEvent]
    return PreqError(
        f"{where} is a {type(event).__name__}, which nobody knows; use {', '.join(names)} or {last}, or derive your "
        "own from prequential.events.OwnEvent"
    )


def encoded(event: Event) -> bytes:
    """What fingerprints of plans are made of. Never a printed form for new kinds: that abbreviates long arrays.

    Predict, Reinit, ShrinkPerturb and Evaluate are their text, Calibrate and Train their name and the bytes of their
    indices, as ever. Any other event is a list: the name of its class, then for each field its name and its value. A
    list is `L`, the number of its items and the items; a text `S`, a whole number `I` (decimal), a real number `D`
    (float64), true or false `B`, nothing `N`, bytes `Y`, each with the number of bytes that follow; an array is `A` and
    the list of its dtype, its shape and its bytes, in C order. All of it is little-endian, numbers of bytes and items
    are 8 bytes long.

    Raises:
        PreqError: for an event that is no dataclass, or a field of another type.

    Example:
        >>> encoded(Predict(0, 2))
        b'Predict(start=0, stop=2, uniform=False)'
    """
    if type(event) is Train or type(event) is Calibrate:
        return type(event).__name__.encode() + event.indices.astype("<i8", copy=False).tobytes()
    if type(event) in _PRINTED:
        return repr(event).encode()
    kind = type(event).__name__
    if not is_dataclass(event):
        raise PreqError(f"{kind} has no fields to make a fingerprint of; make it a frozen dataclass")
    parts: list[Any] = [kind]
    for field in fields(event):
        parts += [field.name, getattr(event, field.name)]
    return _encoded_value(parts, kind)


def _encoded_value(value: Any, kind: str) -> bytes:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        little = value.astype(value.dtype.newbyteorder("<"), copy=False)
        return b"A" + _encoded_value([little.dtype.str, value.shape, little.tobytes()], kind)
    if isinstance(value, tuple | list):
        return b"L" + struct.pack("<q", len(value)) + b"".join(_encoded_value(item, kind) for item in value)
    for types, tag, encode in _PLAIN:
        if isinstance(value, types):
            content = encode(value)
            return tag + struct.pack("<q", len(content)) + content
    raise PreqError(
        f"a field of the event {kind} holds a {type(value).__name__}, of which no fingerprint is made; "
        "use numbers, texts, arrays, or tuples of them"
    )


_PLAIN: tuple[tuple[Any, bytes, Callable[[Any], bytes]], ...] = (
    (type(None), b"N", lambda _: b""),
    ((bool, np.bool_), b"B", lambda value: bytes([bool(value)])),
    (numbers.Integral, b"I", lambda value: str(int(value)).encode()),
    (numbers.Real, b"D", lambda value: struct.pack("<d", float(value))),
    (str, b"S", lambda value: value.encode(errors="surrogatepass")),
    (bytes, b"Y", lambda value: value),
)
"""How plain values are written; the first type that fits counts."""
