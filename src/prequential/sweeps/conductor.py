"""Who conducts a sweep: takes outcomes as they come, writes them down and tells of them."""

import contextlib
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prequential.errors import PreqError
from prequential.runs.signals import StopRequest
from prequential.sweeps.claims import Outcome
from prequential.sweeps.execute import Executor
from prequential.sweeps.pruning import REGRET, note_best, trial_path
from prequential.sweeps.study import Trials
from prequential.sweeps.summary import summarise
from prequential.sweeps.trials import Work


@dataclass(frozen=True)
class SweepProgress:
    """Where a sweep stands."""

    done: int
    """Trials that have come to an end, in this sweep or one it goes on with."""
    trials: int
    best: float | None
    """The shortest codelength so far."""
    outcome: Outcome | None = None
    """What has just come to an end."""


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM: the trials that were running have saved their state."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("the sweep was stopped; resume goes on")
        self.signal_number = signal_number


class Conductor:
    """Takes outcomes as they come."""

    def __init__(self, work: Work, claims: Trials, limit: int, listeners: list[Callable[[Any], object]]) -> None:
        self._work, self._claims, self._limit, self._listeners = work, claims, limit, listeners
        for number in claims.of_others():
            set_aside(work.directory, number)
        so_far = [each for each in summarise(work.directory, work.storage).trials if each.number < limit]
        self._done = sum(each.is_over for each in so_far)
        self._any_ended = any(each.is_over and each.path is not None for each in so_far)
        finished = [each for each in so_far if each.status == "finished" and each.codelength is not None]
        self._best = min((each.codelength for each in finished if each.codelength is not None), default=None)
        self._best_here = math.inf
        for each in finished:
            if each.path is not None:
                self._compare_with(each.number, each.codelength)

    def go(self, executor: Executor, stop: StopRequest) -> None:
        """Have every trial executed that nobody else runs, and what others leave undone."""
        self._tell(None)
        signal_number, is_more = 0, True
        while is_more:
            with contextlib.closing(executor.run(self._work, self._claims.take, stop)) as outcomes:
                for outcome in outcomes:
                    signal_number = signal_number or outcome.signal_number
                    self._take_note(outcome)
            is_more = not signal_number and self._claims.wait(stop)
        if stop.requested or signal_number:
            raise SweepInterrupted(stop.signal_number or signal_number)

    def _take_note(self, outcome: Outcome) -> None:
        if outcome.is_mistake and not self._any_ended:
            # what is wrong for the first trial here is wrong for all: it stays open, and no failure of its own counts
            raise PreqError(str(outcome.error))
        if not self._claims.settle(outcome):
            set_aside(self._work.directory, outcome.number)
            return
        if outcome.status in ("finished", "diverged", "pruned"):
            self._done += 1
            self._any_ended = True
        if outcome.status == "finished" and outcome.value is not None:
            self._best = outcome.value if self._best is None else min(self._best, outcome.value)
            self._compare_with(outcome.number, outcome.value)
        if outcome.status != "stopped":
            self._tell(outcome)

    def _compare_with(self, number: int, codelength: float | None) -> None:
        """Let the trials here be pruned by this one, if none that finished here is shorter."""
        if self._work.prune is None or self._work.prune.name != REGRET:
            return
        if codelength is not None and codelength < self._best_here:
            self._best_here = codelength
            note_best(self._work.directory, number)

    def _tell(self, outcome: Outcome | None) -> None:
        for listener in self._listeners:
            listener(SweepProgress(self._done, self._limit, self._best, outcome))


def set_aside(directory: Path, number: int) -> None:
    """Hide the run of a trial that another directory has taken over, so that no run counts twice."""
    path = trial_path(directory, number)
    if path.exists():
        hidden = path.with_name(f".{path.name}.taken-over")
        shutil.rmtree(hidden, ignore_errors=True)
        path.rename(hidden)
