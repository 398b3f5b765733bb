"""How much a plan is, told before it is walked."""

import pytest
from hypothesis import given

from prequential.events import Event
from prequential.methods import METHODS, Method
from prequential.methods.minibatch import MiniBatches
from prequential.plan import Plan

from .strategies import lengths, methods, seeds


@given(methods(), lengths, seeds)
def test_no_plan_is_more_than_its_method_says(method: Method, length: int, seed: int) -> None:
    plan = Plan(method, length, seed)
    most, counts = plan.most_work(), plan.counts()
    assert most is not None
    evaluated = counts.predicted_examples + counts.recomputed_examples
    assert counts.events <= most.events
    assert evaluated <= most.evaluated
    assert counts.trained_examples <= most.trained
    if isinstance(method, MiniBatches):
        assert most.events == counts.events
        assert most.evaluated == evaluated
        assert most.trained - counts.trained_examples <= 1  # an example all alone makes no batch
    elif getattr(method, "calibrate", False):
        assert counts.trained_examples >= 0.5 * most.trained - 32  # about a tenth calibrates


@pytest.mark.parametrize("name", METHODS)
def test_the_longest_plans_are_told_without_an_event(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> list[Event]:
        raise AssertionError("an event was asked for")

    for part in ("events", "parts", "replay", "stage"):
        if hasattr(METHODS[name], part):
            monkeypatch.setattr(METHODS[name], part, forbidden)
    most = Plan(METHODS[name](), 1 << 39).most_work()
    assert most is not None
    assert most.events >= 1 << 34
