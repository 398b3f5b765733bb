"""Laws of events: none is skipped, and fingerprints tell all of them apart."""

import importlib.util
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import prequential as pq
from prequential.data.sequence import ArraySequence
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
    Study,
    Train,
    TrainBeside,
    encoded,
    known,
)
from prequential.learn.inputs import Inputs
from prequential.learn.learner import Learner
from prequential.learn.shapes import Shapes
from prequential.methods import MethodDefaults
from prequential.plan import Plan
from prequential.report.plots.ages import trained_at


@dataclass(frozen=True)
class Sleep:
    """An event that nobody knows."""

    seconds: float = 1.0


class Weighted(Train):
    """A Train that says more than a learner would hear."""


@dataclass(frozen=True, eq=False)
class Note(OwnEvent):
    """An event that some learner knows."""

    indices: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    text: str = ""

    @property
    def learns_from(self) -> Indices:
        return self.indices

    def execute(self, learner: Any, labels: Any, number: int) -> None:
        if not isinstance(learner, Noting):
            raise PreqError(f"{type(learner).__name__} cannot take notes; use Noting")
        learner.notes.append((number, None if labels is None else labels.tolist()))


class Noting(Learner):
    notes: ClassVar[list[Any]] = []


class Listed(MethodDefaults):
    name: ClassVar[str] = "listed"
    title: ClassVar[str] = "Listed"

    def __init__(self, *events: Any) -> None:
        self._events = events

    def events(self, length: int, seed: int) -> Iterator[Event]:
        yield from self._events


def net() -> nn.Module:
    return nn.Linear(3, 2)


def data_of(length: int) -> ArraySequence:
    return pq.from_arrays(np.zeros((length, 3), np.float32), np.arange(length) % 2)


def inputs_of(length: int) -> Inputs:
    return Inputs(data_of(length), pq.Recipe(), seed=0, device=torch.device("cpu"), dtype=torch.float32)


def draw(plan: Plan) -> object:
    path = Path(__file__).parents[2] / "docs/pictures/plans.py"
    spec = importlib.util.spec_from_file_location("pictures_of_plans", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.marks(plan))


USERS: dict[str, Callable[[Plan], object]] = {
    "events": lambda plan: list(plan.events()),
    "check": Plan.check,
    "counts": Plan.counts,
    "digest": Plan.digest,
    "shapes": Shapes.of,
    "reads": lambda plan: list(inputs_of(plan.length).reads(plan.events(), 0)),
    "ages": lambda plan: list(trained_at(plan)),
    "picture": draw,
    "loop": lambda plan: pq.run(net, data_of(plan.length), plan.method, seed=0),
}


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
@pytest.mark.parametrize("event", [Sleep(), Weighted(np.arange(2)), "sleep"], ids=lambda event: type(event).__name__)
def test_an_event_that_nobody_knows_is_refused_by_everybody(user: Callable[[Plan], object], event: Any) -> None:
    plan = Plan(Listed(Predict(0, 2), event, Predict(2, 4)), 4)
    words = rf"event 1 is a {type(event).__name__}, which nobody knows; use Predict, .*Train, .* or Evaluate, or derive"
    with pytest.raises(PreqError, match=words):
        user(plan)


def test_a_plan_entered_later_gives_an_unknown_event_its_own_number() -> None:
    plan = Plan(Listed(Predict(0, 2), Predict(2, 4), Sleep()), 4)
    with pytest.raises(PreqError, match="event 2 is a Sleep"):
        list(plan.events(1))


@pytest.mark.parametrize(
    "use", [lambda events: list(inputs_of(4).reads(events, 7)), lambda events: [*known(events, 7)]]
)
def test_events_that_come_from_no_plan_are_not_skipped_either(use: Callable[[Any], object]) -> None:
    with pytest.raises(PreqError, match="event 7 is a Sleep"):
        use([Sleep()])


@pytest.mark.parametrize("user", [user for name, user in USERS.items() if name != "loop"])
def test_an_own_event_is_known_to_everybody(user: Callable[[Plan], object]) -> None:
    user(Plan(Listed(Predict(0, 2), Note(np.arange(2)), Reinit(), Predict(2, 4), Note(), Evaluate()), 4))


def test_an_own_event_is_executed_by_a_learner_that_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    method = Listed(Note(), Predict(0, 2), Note(np.array([1, 0])), Predict(2, 4))
    with pytest.raises(PreqError, match="Learner cannot take notes; use Noting"):
        pq.run(net, data_of(4), method, seed=0)
    monkeypatch.setattr("prequential.stack.engines.Learner", Noting)
    record = pq.run(net, data_of(4), method, seed=0)
    assert Noting.notes == [(0, None), (2, [1, 0])]
    assert len(record.nats) == 4


def test_an_own_event_learns_from_the_past_alone() -> None:
    plan = Plan(Listed(Predict(0, 2), Note(np.array([0, 2])), Predict(2, 4)), 4)
    with pytest.raises(PreqError, match=r"event 1 \(Note\) uses position 2, but only \[0, 2\) is revealed"):
        plan.check()
    with pytest.raises(PreqError, match=r"only \[0, 2\) is revealed"):
        pq.run(net, data_of(4), plan.method, seed=0)


def test_an_own_event_that_does_nothing_says_so() -> None:
    @dataclass(frozen=True)
    class Idle(OwnEvent):
        pass

    with pytest.raises(PreqError, match="Idle does not say what it does; give it a method execute"):
        pq.run(net, data_of(4), Listed(Idle(), Predict(0, 4)), seed=0)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.binary(max_size=4),
    lambda values: st.lists(values, max_size=3).map(tuple),
    max_leaves=6,
)


@dataclass(frozen=True)
class Any2(OwnEvent):
    first: Any
    second: Any


def shown(value: Any) -> str:
    """Tells apart what == does not: 1, 1.0 and True, 0.0 and −0.0."""
    return repr(value)


@given(VALUES, VALUES, VALUES, VALUES)
def test_fields_hash_alike_only_if_they_are_alike(a: Any, b: Any, c: Any, d: Any) -> None:
    same = (shown(a), shown(b)) == (shown(c), shown(d))
    assert (encoded(Any2(a, b)) == encoded(Any2(c, d))) == same


@given(
    st.lists(st.integers(0, 3), max_size=4).map(lambda values: np.array(values, np.int64)),
    st.sampled_from(["<i8", ">i8", "<i4", "<u8", "<f8", "|b1"]),
    st.sampled_from(["<i8", ">i8", "<i4", "<u8", "<f8", "|b1"]),
)
def test_arrays_hash_by_type_shape_and_content(values: Indices, one: str, other: str) -> None:
    first, second = values.astype(one), values.astype(other)
    same = np.dtype(one).newbyteorder("<") == np.dtype(other).newbyteorder("<")
    assert (encoded(Any2(first, 0)) == encoded(Any2(second, 0))) == same
    assert encoded(Any2(first, 0)) != encoded(Any2(first[None], 0))
    assert encoded(Any2(first, 0)) == encoded(Any2(np.repeat(first, 2)[::2], 0)), "strides are no content"


def test_a_change_in_the_middle_of_a_long_array_changes_the_fingerprint() -> None:
    one, other = np.arange(5_000), np.arange(5_000)
    other[2_500] += 1
    assert repr(one) == repr(other), "a printed form would not tell"
    digests = [Plan(Listed(Predict(0, 9), Note(values)), 9).digest() for values in (one, other, one)]
    assert digests[0] == digests[2] != digests[1]
    assert Note(one) == Note(one.copy()) != Note(other)
    assert len({Note(one), Note(one.copy()), Note(other)}) == 2


def test_the_fingerprint_of_an_own_event_is_as_documented() -> None:
    def part(tag: bytes, content: bytes) -> bytes:
        return tag + struct.pack("<q", len(content)) + content

    array = (
        b"A" + b"L" + struct.pack("<q", 3)
        + part(b"S", b"<i8") + b"L" + struct.pack("<q", 1) + part(b"I", b"2") + part(b"Y", struct.pack("<2q", 3, 7))
    )  # fmt: skip
    names = part(b"S", b"Note"), part(b"S", b"indices"), part(b"S", b"text")
    whole = b"L" + struct.pack("<q", 5) + names[0] + names[1] + array + names[2] + part(b"S", "é".encode())
    assert encoded(Note(np.array([3, 7]), "é")) == whole


@pytest.mark.parametrize("value", [{}, object(), np.array([{}]), 1j], ids=lambda value: type(value).__name__)
def test_a_field_without_a_fingerprint_is_refused(value: object) -> None:
    with pytest.raises(PreqError, match=r"a field of the event Any2 holds a .*, of which no fingerprint is made"):
        encoded(Any2(value, 0))


def test_an_own_event_must_be_a_dataclass_to_have_a_fingerprint() -> None:
    class Bare(OwnEvent):
        pass

    with pytest.raises(PreqError, match="Bare has no fields to make a fingerprint of"):
        encoded(Bare())


def test_a_kind_that_is_added_later_hashes_by_its_fields() -> None:
    assert encoded(cast(Event, Sleep(2.0))).startswith(b"L" + struct.pack("<q", 3) + b"S" + struct.pack("<q", 5))


def test_events_of_before_hash_as_they_did() -> None:
    events = [Predict(0, 2), Train(np.array([1, 0])), Reinit(), Evaluate()]
    assert [encoded(event) for event in cast(list[Event], events)] == [
        b"Predict(start=0, stop=2, uniform=False)",
        b"Train" + struct.pack("<2q", 1, 0),
        b"Reinit()",
        b"Evaluate()",
    ]


@pytest.mark.parametrize(
    "kind", [Train, Calibrate, Study, EndStudy, lambda positions: TrainBeside(np.arange(2), positions)]
)
@pytest.mark.parametrize(
    ("positions", "got"),
    [
        (np.arange(4.0), r"float64 of shape \(4,\)"),
        (np.ones(4, bool), r"bool of shape \(4,\)"),
        (np.arange(4, dtype=np.uint64), r"uint64 of shape \(4,\)"),
        (np.arange(4).reshape(2, 2), r"int64 of shape \(2, 2\)"),
        ([0, 1], "a list"),
    ],
)
def test_positions_are_a_vector_of_whole_numbers(kind: Callable[[Any], Event], positions: Any, got: str) -> None:
    with pytest.raises(PreqError, match=rf"must be a one-dimensional array of int64, got {got}; use np\.arange"):
        kind(positions)


@pytest.mark.parametrize("span", [(0, 8.0), (0.5, 8), (0, "8")])
def test_a_span_is_between_whole_numbers(span: Any) -> None:
    with pytest.raises(PreqError, match=r"Predict is about whole numbers, got \[.*\); use // to halve"):
        Predict(*span)


@pytest.mark.parametrize("kind", ["int8", "int16", ">i8"])
def test_positions_are_of_a_type_that_torch_takes(kind: str) -> None:
    with pytest.raises(PreqError, match="must be a one-dimensional array of int64, got"):
        pq.Train(np.arange(3).astype(kind))
