"""Laws 1, 2, 3 and 5 of plans: causal, complete, prefix-stable, resumable; and what every batch obeys."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prequential.errors import PreqError
from prequential.events import Calibrate, Event, Predict, Train
from prequential.methods import ChunksFineTuned, Method, MethodDefaults, ReplayBuffer, ReplayStreams
from prequential.plan import Plan
from prequential.testing import check_method, check_prefix_stable

from .strategies import lengths, methods, minibatch_methods, prequential_methods, seeds


@given(methods(), lengths, seeds, st.booleans())
def test_every_plan_is_causal_and_complete(method: Method, length: int, seed: int, heldout: bool) -> None:
    Plan(method, length, seed, heldout).check()


@given(methods(), lengths, seeds)
def test_causality_holds_without_trusting_check(method: Method, length: int, seed: int) -> None:
    revealed = np.full(length, not method.prequential)
    for event in Plan(method, length, seed, heldout=True).events():
        if isinstance(event, Predict):
            assert not revealed[event.start : event.stop].any()
            assert revealed[: event.start].all()
            revealed[event.start : event.stop] = True
        elif isinstance(event, Calibrate | Train):
            assert revealed[event.indices].all()
    assert revealed.all()


@given(prequential_methods(), lengths, lengths, seeds)
def test_a_prefix_does_not_depend_on_what_follows(method: Method, one: int, other: int, seed: int) -> None:
    check_prefix_stable(method, min(one, other), max(one, other), seed)


@given(methods(), lengths, seeds, st.integers(0, 500))
def test_a_plan_can_be_entered_at_any_event(method: Method, length: int, seed: int, start: int) -> None:
    plan = Plan(method, length, seed, heldout=True)
    assert list(plan.events(start)) == list(islice(plan.events(), start, None))


@given(methods(), lengths, seeds)
def test_no_batch_has_a_single_example_unless_asked(method: Method, length: int, seed: int) -> None:
    batch_size = vars(method)["batch_size"]
    sizes = [len(e.indices) for e in Plan(method, length, seed, heldout=True).events() if isinstance(e, Train)]
    assert all(size <= batch_size + 1 for size in sizes)
    assert batch_size == 1 or all(size > 1 for size in sizes)


@given(minibatch_methods(), lengths, seeds)
def test_a_time_step_trains_on_new_labels_first_and_on_each_exactly_as_often_as_it_says(
    method: ReplayStreams | ReplayBuffer, length: int, seed: int
) -> None:
    events = list(Plan(method, length, seed).events())
    trained = sum(len(e.indices) for e in events if isinstance(e, Train))
    wanted = length * (method.replays_per_label + 1)
    extra_steps = bool(method.min_steps or method.early_labels)
    assert trained >= wanted if extra_steps else trained == wanted
    step: Predict | None = None
    for event in events:
        if isinstance(event, Predict):
            step = event
        elif isinstance(event, Train) and step is not None and not extra_steps:
            new = np.arange(step.start, step.stop)
            assert np.array_equal(event.indices[: len(new)], new)
            step = None


@given(lengths, seeds)
def test_what_is_held_back_never_trains(length: int, seed: int) -> None:
    method = ChunksFineTuned(batch_size=8, epochs=2)
    trains: set[int] = set()
    calibrates: set[int] = set()
    for event in Plan(method, length, seed, heldout=True).events():
        if isinstance(event, Train):
            trains.update(event.indices.tolist())
        elif isinstance(event, Calibrate):
            calibrates.update(event.indices.tolist())
    assert not trains & calibrates
    assert trains | calibrates == set(range(length))


def test_growing_blocks_follow_their_formula() -> None:
    method = ReplayStreams(batch_size=32, first_block=4, min_steps=8)
    for start, stop in method.time_steps(5000):
        if stop < 5000:
            assert stop - start == 4 * min(max(start // 32, 1), 8)


@given(minibatch_methods(), lengths, seeds)
def test_early_labels_have_a_training_step_each_and_later_ones_none_more(
    method: ReplayStreams | ReplayBuffer, length: int, seed: int
) -> None:
    without = replace(method, early_labels=0, min_steps=0)
    early, plain = (Plan(each, length, seed).events() for each in (replace(method, min_steps=0), without))
    steps, fewest = (_steps_after_each_span(events) for events in (early, plain))
    assert list(steps) == list(fewest)
    for (start, stop), num_steps in steps.items():
        if stop <= method.num_early and stop < length:
            assert num_steps == max(stop - start, fewest[start, stop])
        else:
            assert num_steps == fewest[start, stop]


def _steps_after_each_span(events: Iterator[Event]) -> dict[tuple[int, int], int]:
    steps: dict[tuple[int, int], int] = {}
    for event in events:
        if isinstance(event, Predict):
            steps[event.start, event.stop] = 0
        elif isinstance(event, Train):
            steps[next(reversed(steps))] += 1
    return steps


def test_early_steps_read_nothing_that_a_buffer_does_not_hold() -> None:
    method, frontier = ReplayBuffer(num_replays=1, capacity=40, batch_size=8, early_labels=1000), 0
    for event in Plan(method, 400).events():
        frontier = event.stop if isinstance(event, Predict) else frontier
        if isinstance(event, Train):
            assert event.indices.min() >= frontier - 48  # what waits for a batch may be a block older


class Cheat(MethodDefaults):
    name: ClassVar[str] = "cheat"
    title: ClassVar[str] = "Cheat"

    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def events(self, length: int, seed: int) -> Iterator[Event]:
        yield from self._events


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ([Train(np.array([0])), Predict(0, 2)], "uses position 0, but only"),
        ([Predict(0, 2), Train(np.array([2]))], "uses position 2, but only"),
        ([Predict(0, 1), Calibrate(np.array([1])), Predict(1, 2)], "event 1 .Calibrate. uses position 1"),
        ([Predict(0, 2), Train(np.array([-1]))], "uses position -1"),
        ([Predict(0, 1)], "ends at label 1 of 2"),
        ([Predict(0, 1), Predict(0, 2)], "the next label to predict is 1"),
        ([Predict(0, 3)], "predict every position once"),
        ([Predict(0, 2), Train(np.array([], np.int64))], "has no examples"),
    ],
)
def test_a_plan_that_cheats_is_named(events: list[Event], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        Plan(Cheat(events), 2).check()


class Peeking(ReplayStreams):
    """Depends on the length: not prefix-stable."""

    def events(self, length: int, seed: int) -> Iterator[Event]:
        return super().events(length, seed + length)


def test_the_public_check_catches_a_method_that_depends_on_the_future() -> None:
    check_method(ReplayStreams(num_streams=3, batch_size=8))
    with pytest.raises(AssertionError, match="event"):
        check_method(Peeking(num_streams=3, batch_size=8))


class Skipping(ReplayStreams):
    """Goes on somewhere else than it was asked to: a resumed run would leave events out."""

    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        return islice(self.events(length, seed), start, None), 0


class Ahead(ReplayStreams):
    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        return islice(self.events(length, seed), start + 1, None), start + 1


class OneArray(ReplayStreams):
    """Gives all batches in one array, which changes while several of them are collected."""

    def events(self, length: int, seed: int) -> Iterator[Event]:
        kept = np.zeros(self.batch_size, np.int64)
        for event in super().events(length, seed):
            if isinstance(event, Train) and len(event.indices) == len(kept):
                kept[:] = event.indices
                yield Train(kept)
            else:
                yield event


def test_the_public_check_enters_a_plan_and_keeps_its_arrays() -> None:
    with pytest.raises(AssertionError, match=r"entered at event \d+ of \d+, the plan goes on differently"):
        check_method(Skipping(num_streams=3, batch_size=8))
    with pytest.raises(AssertionError, match=r"the array of event \d+ is changed after it was given"):
        check_method(OneArray(num_streams=3, batch_size=8))
    with pytest.raises(PreqError, match=r"enter\(\) of the method 'mi-rs' gave the events from 1 on, asked for 0"):
        check_method(Ahead(num_streams=3, batch_size=8))
