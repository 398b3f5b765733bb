"""Collects what a stack measures: a recorder for each member, and one transfer for all of them."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from prequential.files import ArrayPart
from prequential.learn.prediction import Prediction
from prequential.plan import Plan
from prequential.progress import Listener, Progress
from prequential.record import OVER
from prequential.recorder import (
    FETCHED_AT_ONCE,
    SECONDS_BETWEEN_FETCHES,
    SECONDS_BETWEEN_PAUSES,
    Contents,
    Recorder,
    open_arrays,
)

Waiting = tuple[int, Tensor, Tensor]
"""Where a prediction began, what it measured, and its temperature."""


class MemberRecorder(Recorder):
    """The recorder of one member of a stack. One that has diverged stays so, also where a checkpoint is resumed."""

    def take(self, waiting: list[Waiting]) -> None:
        """Note predictions that were measured together with those of the other members."""
        self._waiting = waiting
        self.fetch()

    def counters(self) -> dict[str, Any]:
        return super().counters() | {"diverged": self.diverged}

    def go_back_to(self, counters: dict[str, Any], contents: Contents) -> None:
        super().go_back_to(counters, contents)
        self.status = "diverged" if counters["diverged"] else "running"


class StackRecorder:
    """One recorder per member. A member that has diverged is told nothing more; the others go on.

    In a directory each array is one file: the numbers of the first member, with room for as many as there are
    positions, then those of the second, and so on.
    """

    def __init__(
        self, plan: Plan, num_classes: int, num_members: int, directory: Path | None = None, *, create: bool = True
    ) -> None:
        self._plan = plan
        self._arrays = open_arrays(num_classes, num_members * plan.length, directory, create=create)
        starts = range(0, num_members * plan.length, plan.length)
        parts = [{name: ArrayPart(whole, start) for name, whole in self._arrays.items()} for start in starts]
        self.members = [MemberRecorder(plan, num_classes, arrays=dict(arrays)) for arrays in parts]
        self._waiting: list[Waiting] = []
        self._earlier = self._started = self._next_pause = self._next_fetch = 0.0

    @property
    def going(self) -> list[MemberRecorder]:
        """Members that have not diverged."""
        return [member for member in self.members if not member.diverged]

    @property
    def diverged(self) -> bool:
        """Whether all members have: there is nothing left to go on for."""
        return not self.going

    @property
    def is_stopped(self) -> bool:
        """Whether there is something left to go on for."""
        return any(member.status not in OVER for member in self.members)

    @property
    def num_events(self) -> int:
        """Events that the members which are going have behind them."""
        return max(member.num_events for member in self.members)

    @num_events.setter
    def num_events(self, number: int) -> None:
        for member in self.going:
            member.num_events = number

    @property
    def trained_examples(self) -> int:
        """Examples that the members which are going were trained on."""
        return max(member.trained_examples for member in self.members)

    @trained_examples.setter
    def trained_examples(self, number: int) -> None:
        for member in self.going:
            member.trained_examples = number

    @property
    def position(self) -> int:
        """Labels predicted so far, by the members that are going."""
        return max(member.position for member in self.members)

    @property
    def seconds(self) -> float:
        """That the whole stack took, those before a checkpoint included."""
        return self._earlier + time.perf_counter() - self._started

    def start_clock(self) -> None:
        """From here on time counts."""
        self._started = time.perf_counter()
        for member in self.members:
            member.start_clock()

    def add(self, start: int, prediction: Prediction, labels: Tensor) -> None:
        """Note a prediction of all members (they come first in every tensor) and the labels it was about."""
        charged = prediction.log_probabilities
        column = labels[None, :, None].expand(len(charged), -1, 1)
        confidence, predicted = charged.max(dim=2)
        rows = [
            -charged.gather(2, column)[:, :, 0],
            -prediction.uncalibrated.gather(2, column)[:, :, 0],
            labels.double().expand(len(charged), -1),
            predicted.double(),
            confidence.exp(),
        ]
        self._waiting.append((start, torch.stack(rows, dim=1), prediction.temperature))
        is_late = time.perf_counter() >= self._next_fetch
        if charged.device.type == "cpu" or len(self._waiting) >= FETCHED_AT_ONCE or is_late:
            self.fetch()

    def fetch(self) -> None:
        """Take what is waiting, in one transfer, and give each member its part."""
        waiting, self._waiting = self._waiting, []
        self._next_fetch = time.perf_counter() + SECONDS_BETWEEN_FETCHES
        if not waiting:
            return
        rows = torch.cat([rows for _, rows, _ in waiting], dim=2).cpu()
        temperatures = torch.stack([temperature for _, _, temperature in waiting]).cpu()
        starts, sizes = [start for start, _, _ in waiting], [rows.shape[2] for _, rows, _ in waiting]
        for number, member in enumerate(self.members):
            if not member.diverged:
                parts = torch.split(rows[number], sizes, dim=1)
                member.take(list(zip(starts, parts, temperatures[:, number].unbind(), strict=True)))

    def note_heldout(self, results: Sequence[dict[str, float]] | None) -> None:
        """Keep the held-out results of the members that are going."""
        for number, member in enumerate(self.members):
            if not member.diverged:
                member.note_heldout(None if results is None else results[number])

    def note_finite(self, finite: Sequence[bool]) -> None:
        """Members whose weights are no numbers any more have diverged."""
        for member, is_finite in zip(self.members, finite, strict=True):
            if not is_finite:
                member.status = "diverged"

    def pause_is_due(self) -> bool:
        """Whether listeners should hear of it again."""
        return self.seconds >= self._next_pause

    def report(self, listeners: Iterable[Listener]) -> None:
        """Tell every listener where the stack stands: nats and errors are means of the members that are going."""
        seconds = self.seconds
        self._next_pause = seconds + SECONDS_BETWEEN_PAUSES
        members = self.going or self.members
        progress = Progress(
            self.position,
            self._plan.length,
            sum(member.total_nats for member in members) / len(members),
            round(sum(member.total_errors for member in members) / len(members)),
            max(member.trained_examples for member in members),
            seconds,
        )
        for listener in listeners:
            listener(progress)

    def finish(self, status: str) -> None:
        """Fetch what is left and say how it ended. Members share the time, so that sums over records are right."""
        self.fetch()
        share = self.seconds / len(self.members)
        for member in self.members:
            if member.status == "running":  # the end of a run may be told twice
                member.finish(status)
            member.seconds = share

    def counters(self) -> dict[str, Any]:
        """Where the stack stands, for `go_back_to`."""
        return {"seconds": self.seconds, "members": [member.counters() for member in self.members]}

    def contents(self) -> list[Contents]:
        """Length and fingerprint of each array, for each member."""
        return [member.contents() for member in self.members]

    def go_back_to(self, counters: dict[str, Any], contents: list[Contents]) -> None:
        """Continue from where `counters` and `contents` were taken; refuse arrays that do not fit them."""
        self._earlier = counters["seconds"]
        for member, where, what in zip(self.members, counters["members"], contents, strict=True):
            member.go_back_to(where, what)

    def sync(self) -> None:
        """Make the arrays durable."""
        for array in self._arrays.values():
            array.sync()

    def close(self) -> None:
        """Let go of the arrays."""
        for array in self._arrays.values():
            array.close()
