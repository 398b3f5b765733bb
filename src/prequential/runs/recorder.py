"""Collects what a run measures of each of its members, position by position, and notices when one diverges."""

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prequential.experts.behind import MixingBehind
from prequential.experts.prediction import MixedPrediction
from prequential.learn.prediction import Predicted
from prequential.plan import Plan
from prequential.runs.measured import Measured
from prequential.runs.progress import Listener, Progress, Pruned
from prequential.runs.studied import HERE
from prequential.targets import Target

SECONDS_BETWEEN_PAUSES = 0.1
FETCHED_AT_ONCE = 256
SECONDS_BETWEEN_FETCHES = 0.5
"""Predictions stay on a GPU until there are so many, or so much time has passed: then they are fetched together."""


class Recorder:
    """What was measured of one member or of many. A member that has diverged is told nothing more; the others go on.

    Results stay on a GPU until a few have come together, so that it never waits for them, and one transfer fetches
    those of all members.

    Args:
        plan: what is executed.
        target: what is coded.
        paths: for each member where its arrays are, or None: in memory.
        create: whether the arrays are new.
        num_experts: whose predictions were mixed, if any were.
    """

    def __init__(
        self,
        plan: Plan,
        target: Target,
        paths: Sequence[Path | None] = (None,),
        *,
        create: bool = True,
        num_experts: int = 0,
    ) -> None:
        with ExitStack() as opened:
            more: dict[str, Any] = {"create": create, "num_experts": num_experts}
            self.members = [Measured(plan, target, path, opened, **more) for path in paths]
            self._opened = opened.pop_all()
        self._mixing: MixingBehind | None = None
        self._plan = plan
        self._waiting: list[tuple[int, Tensor, Tensor]] = []
        self._earlier = self._next_pause = self._next_fetch = 0.0
        self._started: float | None = None
        self.studies: list[dict[str, Any]] = []
        """What is known of each study that has come to its end."""

    @property
    def going(self) -> dict[int, Measured]:
        """Members that have not come to an end, by their numbers."""
        return {number: member for number, member in enumerate(self.members) if member.status == "running"}

    @property
    def num_events(self) -> int:
        """Events that the members which are going have behind them."""
        return max(member.num_events for member in self.members)

    @property
    def position(self) -> int:
        """Labels predicted so far, by the members that are going."""
        return max(member.position for member in self.members)

    @property
    def seconds(self) -> float:
        """That all members together took, those before a checkpoint included."""
        return self._earlier + (0.0 if self._started is None else time.perf_counter() - self._started)

    @property
    def study_seconds(self) -> float:
        """That studies took which were done here, and have come to their end."""
        return float(sum(study["seconds"] for study in self.studies if study["from"] == HERE))

    def advance(self, num_events: int, num_trained: int, num_studied: int = 0) -> None:
        """Members that are going have so many events behind them, and were trained on so many examples more; or there
        were so many steps of a study."""
        for member in self.going.values():
            member.num_events = num_events
            member.trained_examples += num_trained
            member.studied_steps += num_studied

    def start_clock(self) -> None:
        """From here on time counts."""
        self._started = time.perf_counter()

    def add(self, start: int, prediction: Predicted, labels: Tensor) -> None:
        """Note a prediction and the labels it was about. Where there are several members, they come first."""
        if isinstance(prediction, MixedPrediction) and not prediction.on_host:
            self._add_behind(start, prediction, labels)
            return
        rows = prediction.measured(labels)
        self._waiting.append((start, rows, prediction.temperature.reshape(-1)))
        is_late = time.perf_counter() >= self._next_fetch
        if rows.device.type == "cpu" or len(self._waiting) >= FETCHED_AT_ONCE or is_late:
            self.fetch()

    def _add_behind(self, start: int, prediction: MixedPrediction, labels: Tensor) -> None:
        """The same for what is mixed on the host, by a thread that waits for the device while this one does not."""
        if self._mixing is None:
            self._mixing = self._opened.enter_context(closing(MixingBehind()))
        self._mixing.add(start, prediction, labels)
        self._take_mixed(self._mixing.done())

    def _take_mixed(self, found: Iterable[tuple[int, NDArray[np.float64]]]) -> None:
        for start, rows in found:
            for member in self.going.values():
                member.take([start], rows, np.ones(1))

    def fetch(self) -> None:
        """Take what is waiting, in one transfer; what is mixed behind the device is waited for."""
        if self._mixing is not None:
            self._take_mixed(self._mixing.all())
        waiting, self._waiting = self._waiting, []
        self._next_fetch = time.perf_counter() + SECONDS_BETWEEN_FETCHES
        if not waiting or not self.going:
            return
        rows = torch.cat([rows for _, rows, _ in waiting], dim=2).cpu().numpy()
        temperatures = torch.stack([temperature for _, _, temperature in waiting]).cpu().numpy()
        starts = [start for start, _, _ in waiting]
        for number, member in self.going.items():
            member.take(starts, rows[number], temperatures[:, number])

    def note_heldout(self, results: Sequence[dict[str, float]] | None, finite: Sequence[bool]) -> None:
        """Keep the held-out results of the members that are going, given whether their weights are finite."""
        for number, member in self.going.items():
            member.note_heldout(None if results is None else results[number], is_finite=finite[number])

    def note_finite(self, finite: Sequence[bool]) -> None:
        """Members whose weights are no numbers any more have diverged."""
        for number, member in self.going.items():
            member.status = "running" if finite[number] else "diverged"

    def pause_is_due(self) -> bool:
        """Whether listeners should hear of it again."""
        return self.seconds >= self._next_pause

    def report(self, of_all: Sequence[Listener], of_each: Sequence[Sequence[Listener]]) -> None:
        """Tell listeners where the run stands: those of all members, and those of each. One of these may raise
        `Pruned` to end its member alone."""
        seconds = self.seconds
        self._next_pause = seconds + SECONDS_BETWEEN_PAUSES
        for listener in of_all:
            listener(self.progress())
        for member, listeners in zip(self.members, of_each, strict=True):
            try:
                for listener in listeners:
                    listener(member.progress(seconds, self.study_seconds))
            except Pruned:
                self.fetch()
                if member.status == "running":
                    member.finish("pruned")

    def progress(self) -> Progress:
        """Where the run stands: nats and errors are means over the members that are going."""
        members = list(self.going.values()) or self.members
        if len(members) == 1:
            return members[0].progress(self.seconds, self.study_seconds)
        nats = sum(member.total_nats for member in members) / len(members)
        errors = round(sum(member.total_errors for member in members) / len(members))
        trained_examples = max(member.trained_examples for member in self.members)
        return Progress(self.position, self._plan.length, nats, errors, trained_examples, self.seconds)

    def finish(self, status: str) -> None:
        """Fetch what is left and say how it ended; those that have come to an end before keep theirs.

        Members share the time, so that sums over records are right.
        """
        self.fetch()
        self._earlier, self._started = self.seconds, None
        for member in self.going.values():
            member.finish(status)
        for member in self.members:
            member.seconds = self.seconds / len(self.members)

    def counters(self) -> dict[str, Any]:
        """Where the run stands, for `go_back_to`."""
        studied = max(member.studied_steps for member in self.members)
        told = {"studied_steps": studied, "studies": self.studies} if studied else {}
        return {"seconds": self.seconds, "members": [member.counters() for member in self.members], **told}

    def go_back_to(self, counters: dict[str, Any]) -> None:
        """Continue from where `counters` were taken, with arrays that are as they were then."""
        self._earlier, self.studies = float(counters["seconds"]), list(counters.get("studies", ()))
        for member, where in zip(self.members, counters["members"], strict=True):
            member.go_back_to(where)
            member.studied_steps = counters.get("studied_steps", 0)

    def close(self) -> None:
        """Let go of the arrays."""
        self._opened.close()
