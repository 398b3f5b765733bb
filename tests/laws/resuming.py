"""A run that is stopped after any events and goes on from copies of its state, beside one that nobody disturbs."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest
import torch

from prequential.coding.labels import Scorer
from prequential.data.sequence import ArraySequence
from prequential.events import Event
from prequential.learn.learning import Learning
from prequential.plan import Plan
from prequential.runs.loop import execute
from prequential.runs.recorder import Recorder


class StopAfter:
    """A plan that is interrupted after a number of events."""

    def __init__(self, plan: Plan, num_events: int) -> None:
        self._plan, self._num_events, self.length = plan, num_events, plan.length

    def events(self, start: int = 0) -> Iterator[Event]:
        yield from islice(self._plan.events(start), self._num_events - start)
        raise KeyboardInterrupt


def require_same_bits(
    plan: Plan,
    data: ArraySequence,
    make_learner: Callable[[], Learning],
    stops: Sequence[int],
    *,
    num_members: int = 1,
    num_experts: int = 0,
) -> None:
    """Whatever is measured and learned is the same, stopped after so many events and resumed or not."""

    def fresh() -> tuple[Learning, Recorder]:
        return make_learner(), Recorder(plan, data.target, [None] * num_members, num_experts=num_experts)

    def walk(stops: Sequence[int]) -> tuple[Learning, Recorder]:
        learner, recorder = fresh()
        labels = Scorer(data, learner.device)
        for stop in stops:
            if stop > recorder.num_events and recorder.going:
                with pytest.raises(KeyboardInterrupt):
                    execute(StopAfter(plan, stop), learner, labels, recorder)  # type: ignore[arg-type]
                assert recorder.num_events == min(stop, plan.counts().events)
                state = {name: [tensor.clone() for tensor in tensors] for name, tensors in learner.tensors().items()}
                counters, before = recorder.counters(), recorder.members
                learner, recorder = fresh()
                for member, earlier in zip(recorder.members, before, strict=True):
                    member._arrays, member.path = earlier._arrays, Path()  # as files would keep them
                getattr(learner, "expect", lambda names: None)(set(state))
                learner.restore(state)
                recorder.go_back_to(counters)
        execute(plan, learner, labels, recorder)
        return learner, recorder

    (one, whole), (other, parts) = walk([]), walk(stops)
    for mine, theirs in zip(parts.members, whole.members, strict=True):
        for name, values in theirs.arrays().items():
            assert mine.arrays()[name].tobytes() == values.tobytes(), name
        assert (mine.status, mine.heldout, mine.num_events) == (theirs.status, theirs.heldout, theirs.num_events)
        assert mine.trained_examples == theirs.trained_examples
    for name, tensors in one.tensors().items():
        for tensor, same in zip(tensors, other.tensors()[name], strict=True):
            assert torch.equal(tensor.nan_to_num(7.0), same.nan_to_num(7.0)), name
