"""Who works beside whom on a GPU, and who waits for whom. With streams that write down what is asked of them; real ones
are in test_cuda.py."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import prequential as pq
from prequential.experts.learner import MixedLearner
from prequential.learn.lanes import side_by_side
from prequential.runs.session import make_session

from ..conftest import blobs
from ..laws.test_experts import small
from ..laws.test_records import tiny


class Stream:
    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told, self.device = name, told, torch.device("cuda")

    def record_event(self) -> str:
        return f"what {self.name} was asked"

    def wait_event(self, event: str) -> None:
        self.told.append(f"{self.name} waits for {event}")

    def wait_stream(self, other: "Stream") -> None:
        self.told.append(f"{self.name} waits for {other.name}")


@dataclass
class Worker:
    name: str
    lane: Stream | None


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    current = [Stream("main", found)]

    @contextmanager
    def on(stream: Stream) -> Any:
        current.append(stream)
        found.append(f"on {stream.name}")
        try:
            yield
        finally:
            current.pop()

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: current[-1])
    monkeypatch.setattr(torch.cuda, "stream", on)
    return found


def workers(told: list[str], *names: str | None) -> list[Worker]:
    return [Worker(name or "none", Stream(name, told) if name else None) for name in names]


BEGIN = ["one waits for what main was asked", "on one", "two waits for what main was asked", "on two"]
JOIN = ["main waits for one", "main waits for two"]


def test_lanes_wait_for_what_was_asked_before_and_are_waited_for(told: list[str]) -> None:
    for each in side_by_side(workers(told, "one", "two")):
        assert torch.cuda.current_stream().name == each.name  # type: ignore[attr-defined]
    assert told == BEGIN + JOIN
    assert torch.cuda.current_stream().name == "main"  # type: ignore[attr-defined]


def test_lanes_are_waited_for_when_one_fails(told: list[str]) -> None:
    def work() -> None:
        for each in side_by_side(workers(told, "one", "two")):
            if each.name == "two":
                raise RuntimeError("two fails")

    with pytest.raises(RuntimeError, match="two fails"):
        work()
    assert told == BEGIN + JOIN
    assert torch.cuda.current_stream().name == "main"  # type: ignore[attr-defined]


@pytest.mark.parametrize("names", [("one", None, "two"), (None, None), ("one",), ()])
def test_where_one_has_no_lane_all_work_one_after_the_other(told: list[str], names: tuple[str | None, ...]) -> None:
    asked = workers(told, *names)
    assert [*side_by_side(asked)] == asked
    assert told == []


def test_on_a_cpu_nobody_has_a_lane() -> None:
    execution = pq.Execution(engine="graph")
    session = make_session(
        pq.Experts([tiny, small]), blobs(60), pq.ReplayStreams(num_streams=1), [pq.Recipe()], [0], execution=execution
    )
    assert isinstance(session.learner, MixedLearner)
    assert [each.lane for each in session.learner.members] == [None, None]  # type: ignore[attr-defined]
