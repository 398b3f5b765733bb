"""The course of a sweep: take a trial or a stack of them, have it run somewhere, settle what became of it, and again.

The ledger knows which trials there are and who runs which (`ledger.py`, an Optuna study). An executor runs them: this
process, worker processes (`execute.py`) or Ray's (`ray_executor.py`). Whoever conducts hands trials from one to the
other, writes down the outcomes as they come and tells of them. A sweep that is resumed is one whose ledger already
knows something: nothing else is different.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

from prequential.errors import PreqError
from prequential.runs.record import OVER, finite_or_none
from prequential.runs.signals import StopRequest
from prequential.sweeps.directory import note_begun, set_aside
from prequential.sweeps.execute import Executor
from prequential.sweeps.ledger import Ledger
from prequential.sweeps.pruning import REGRET, note_best
from prequential.sweeps.summary import summarise
from prequential.sweeps.trials import Outcome, Trial, Work


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


SweepListener = Callable[[SweepProgress], object]


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM: the trials that were running have saved their state."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("the sweep was stopped; resume goes on")
        self.signal_number = signal_number


class Conductor:
    """Hands trials to an executor, and takes outcomes as they come."""

    def __init__(self, work: Work, ledger: Ledger, storage: str | None, listeners: Iterable[SweepListener]) -> None:
        self._ledger, self._listeners = ledger, list(listeners)
        for number in ledger.taken_by_others():
            set_aside(work.directory, number)
        over = [trial for trial in summarise(work.directory, storage).over if trial.number < ledger.num_trials]
        self._elsewhere: list[Outcome] = [trial for trial in over if trial.path is None]
        self._here: list[Outcome] = [trial for trial in over if trial.path is not None]
        self._work = replace(work, known=next((trial for trial in over if trial.data is not None), None))
        self._note_best()

    def go(self, executor: Executor, stop: StopRequest) -> None:
        """Have every trial run that nobody else runs, and what others leave undone."""
        self._tell(None)
        signal_number, is_more = 0, True
        while is_more:
            with contextlib.closing(executor.run(self._work, self._take, stop)) as outcomes:
                for outcome in outcomes:
                    signal_number = signal_number or outcome.signal_number
                    self._settle(outcome)
            is_more = not signal_number and self._ledger.wait(stop)
        if stop.requested or signal_number:
            raise SweepInterrupted(stop.signal_number or signal_number)

    def _take(self) -> tuple[Trial, ...] | None:
        trials = self._ledger.take()
        note_begun(self._work.directory, self._ledger.num_begun())  # at the end too, of those that others have begun
        return trials

    def _settle(self, outcome: Outcome) -> None:
        if outcome.is_for_all or (outcome.is_mistake and not self._here):
            # what is wrong for the first trial here is wrong for all: it stays open, and no failure of its own counts
            raise PreqError(str(outcome.error))
        if not self._ledger.settle(outcome):
            set_aside(self._work.directory, outcome.number)
            return
        if outcome.status in OVER:
            self._here.append(outcome)
            self._note_best()
        if outcome.status != "stopped":
            self._tell(outcome)

    def _note_best(self) -> None:
        """Trials here are pruned by the shortest that finished here."""
        finished = [trial for trial in self._here if trial.status == "finished"]
        if finished and self._work.prune is not None and self._work.prune.name == REGRET:
            note_best(self._work.directory, min(finished, key=attrgetter("value")).number)

    def _tell(self, outcome: Outcome | None) -> None:
        over = [*self._elsewhere, *self._here]
        values = [trial.value for trial in over if trial.status == "finished" and trial.value is not None]
        best = finite_or_none(min(values, default=None))
        for listener in self._listeners:
            listener(SweepProgress(len(over), self._ledger.num_trials, best, outcome))
