"""Who runs which trial, and what became of it: an Optuna study that machines may share. No torch.

A trial of ours is a number; an *attempt* at it is what Optuna calls a trial. To take a trial, a directory queues an
attempt at it and asks the study for one: Optuna gives each to one asker alone, who signs it with the mark of his
directory. If two queue the same number at once, the first attempt counts and the other is given up, which is Optuna's
state FAIL. Whoever resumes in a directory gives up what it had signed and attempts the same again, with the same
settings. Directories that share a study give signs of life; the attempts of one that has fallen silent are given up by
the others, and its trials are free again. A failed trial keeps its attempt open, so that its directory alone runs it
again, until it has failed too often. Nothing of this needs more than the study's own methods.
"""

import math
from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import KW_ONLY, asdict, dataclass
from time import sleep
from typing import TYPE_CHECKING, Any

from prequential.runs.record import finite_or_none
from prequential.sweeps.sampling import RANDOM, Space, ask_for_settings, draw_labels, make_sampler, run_seed
from prequential.sweeps.spaces import Resolved
from prequential.sweeps.storage import Pulse, open_study, turns
from prequential.sweeps.trials import Outcome, Trial, stacks

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial
    from optuna.trial import Trial as Attempt

    from prequential.runs.signals import StopRequest

MOST_FAILURES = 3
OWNER, NUMBER, FAILURES = "directory", "number", "failures"
"""Attributes of an attempt: the mark of the directory that took it, the trial, and how often that has failed."""


def attempts_that_count(study: "Study", num_trials: int) -> dict[int, "FrozenTrial"]:
    """By trial: its first attempt that was not given up, else the last that had drawn settings. An attempt that names
    no trial is of a version before, in which every trial was announced and had one attempt."""
    found: dict[int, FrozenTrial] = {}
    for attempt in study.get_trials(deepcopy=False):
        number = attempt.user_attrs.get(NUMBER, attempt.number)
        if number < num_trials and is_free(found.get(number)) and (attempt.params or not is_free(attempt)):
            found[number] = attempt
    return found


def num_begun(attempts: Mapping[int, "FrozenTrial"]) -> int:
    """How many trials were begun, whatever became of them."""
    return sum(attempt.state.name != "WAITING" for attempt in attempts.values())


def is_free(attempt: "FrozenTrial | None") -> bool:
    """Whether a trial with this last attempt may be taken by anybody."""
    if attempt is None:
        return True
    if attempt.state.name == "FAIL":
        return bool(attempt.user_attrs.get(FAILURES, 0) < MOST_FAILURES)
    return attempt.state.name == "WAITING" and NUMBER not in attempt.user_attrs


@dataclass(eq=False)
class Ledger:
    """The trials of a sweep, as one directory sees them."""

    url: str
    name: str
    _: KW_ONLY
    space: Space
    seed: int
    sampler: str
    mark: str
    """Of the directory, for what it takes."""
    num_trials: int
    grace_seconds: float | None = None
    """How long the others may give no sign of life; None: there are no others."""
    pruner: Any = None
    stack: tuple[int, Resolved] | None = None
    """How many trials are taken at once at most, and what their settings change."""

    def __post_init__(self) -> None:
        sampler = make_sampler(self.sampler, self.seed, 0)
        self._study = open_study(self.url, self.name, create=True, sampler=sampler, pruner=self.pruner)
        self._turn = nullcontext() if self.grace_seconds is None else turns(self.url)
        self._pulse = None if self.grace_seconds is None else Pulse(self._study, self.mark, self.grace_seconds)
        self._open, self._stacks = dict[int, "Attempt"](), deque[tuple[Trial, ...]]()
        self._left_behind = [number for number, attempt in self._attempts().items() if self._is_ours(attempt)]

    def taken_by_others(self) -> list[int]:
        """The numbers of trials that other directories have taken, be they over or not."""
        taken = {number: each for number, each in self._attempts().items() if not is_free(each)}
        return [number for number, each in taken.items() if each.user_attrs.get(OWNER) not in (None, self.mark)]

    def take(self) -> tuple[Trial, ...] | None:
        """The next trial, or the next stack of trials; None when nothing is left that nobody runs."""
        if self.stack is None:
            trial = self._take_one()
            return None if trial is None else (trial,)
        if not self._stacks:
            self._stacks = self._stacked(list(iter(self._take_one, None)), *self.stack)
        return self._stacks.popleft() if self._stacks else None

    def num_begun(self) -> int:
        """How many trials were begun, here or by others."""
        return num_begun(attempts_that_count(self._study, self.num_trials))

    def settle(self, outcome: Outcome) -> bool:
        """Write down what became of a trial that was taken. False if others have taken it over meanwhile."""
        from optuna.exceptions import UpdateFinishedTrialError

        attempt = self._open.pop(outcome.number)
        with suppress(UpdateFinishedTrialError), self._turn:
            if outcome.status == "stopped":
                return self._counts(attempt)
            return (self._write_failure if outcome.status == "failed" else self._write_result)(attempt, outcome)
        return False

    def wait(self, stop: "StopRequest") -> bool:
        """When nothing is left to take: wait for what others run. True as soon as there is something again."""
        while not stop.requested:
            attempts = self._attempts()
            if self._free(attempts):
                return True
            if self._pulse is None or not any(self._is_anothers(each) for each in attempts.values()):
                return False
            sleep(min(self._pulse.seconds, 1.0))
        return False

    def close(self) -> None:
        """Give no more signs of life."""
        if self._pulse is not None:
            self._pulse.close()

    def _attempts(self) -> dict[int, "FrozenTrial"]:
        """The attempts that count, once those of directories that have fallen silent are given up."""
        attempts = attempts_that_count(self._study, self.num_trials)
        silent = [each.number for each in attempts.values() if self._is_silent(each)]
        for number in silent:
            with self._turn:
                self._give_up(number)
        return self._attempts() if silent else attempts

    def _is_ours(self, attempt: "FrozenTrial | None") -> bool:
        """One without a mark was taken by somebody who was killed at that moment: ours, if nobody else is there."""
        marks = (self.mark, None) if self._pulse is None else (self.mark,)
        return attempt is not None and attempt.state.name == "RUNNING" and attempt.user_attrs.get(OWNER) in marks

    def _is_anothers(self, attempt: "FrozenTrial") -> bool:
        """Whether another directory runs it, or ran it when it died. What has failed there is none of our business."""
        is_running = attempt.state.name == "RUNNING" and not attempt.user_attrs.get("error")
        return is_running and not self._is_ours(attempt)

    def _is_silent(self, attempt: "FrozenTrial") -> bool:
        if self._pulse is None or not self._is_anothers(attempt):
            return False
        return self._pulse.is_silent(attempt.user_attrs.get(OWNER) or f"the taker of {attempt.number}")

    def _free(self, attempts: dict[int, "FrozenTrial"]) -> list[int]:
        """Trials that nobody has; if there are none, those that are queued, since who queued them may be dead."""
        free = [number for number in range(self.num_trials) if is_free(attempts.get(number))]
        return free or [number for number, attempt in attempts.items() if attempt.state.name == "WAITING"]

    def _take_one(self) -> Trial | None:
        from optuna.exceptions import UpdateFinishedTrialError

        while True:
            with self._turn:
                attempts = self._attempts()
                ours = [number for number in self._left_behind if self._is_ours(attempts.get(number))]
                numbers = ours or self._free(attempts)
                self._left_behind = ours[1:]
                if not numbers:
                    return None
                attempt = self._attempt(numbers[0], attempts)
            with suppress(UpdateFinishedTrialError):  # others thought us dead before we had begun
                if attempt is not None:
                    return self._begin(attempt)

    def _attempt(self, number: int, attempts: dict[int, "FrozenTrial"]) -> "Attempt | None":
        """An attempt that is ours, at this trial or at one that was queued before; None if others were faster."""
        before = attempts.get(number)
        if is_free(before) or self._is_ours(before):
            known, attributes = dict[str, Any](), {NUMBER: number, FAILURES: 0}
            if before is not None:
                known, attributes[FAILURES] = before.params, before.user_attrs.get(FAILURES, 0)
                self._give_up(before.number)
            if self.sampler == RANDOM:
                known = draw_labels(self.space, self.seed, number)
            self._study.enqueue_trial(known, user_attrs=attributes)  # what is missing the sampler chooses later
        num_begun = sum(not is_free(each) for each in attempts.values())
        self._study.sampler = make_sampler(self.sampler, self.seed, num_begun)
        attempt = self._study.ask()
        if self._counts(attempt):
            return attempt
        self._give_up(attempt.number)
        return None

    def _begin(self, attempt: "Attempt") -> Trial:
        attempt.set_user_attr(OWNER, self.mark)
        number = attempt.user_attrs[NUMBER]
        settings, seed = ask_for_settings(attempt, self.space), run_seed(self.seed, number)
        self._open[number] = attempt
        return Trial(number, settings, seed, None if self.pruner is None else attempt)

    def _counts(self, attempt: "Attempt") -> bool:
        found = attempts_that_count(self._study, self.num_trials).get(attempt.user_attrs.get(NUMBER, -1))
        return found is not None and found.number == attempt.number

    def _give_up(self, number: int) -> None:
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState

        with suppress(UpdateFinishedTrialError):  # at the same moment by another
            self._study.tell(number, state=TrialState.FAIL, skip_if_finished=True)

    def _stacked(self, trials: list[Trial], size: int, base: Resolved) -> deque[tuple[Trial, ...]]:
        """Trials whose process died go together, as they were, which goes on from their checkpoint; where that died as
        well, each goes by itself: they may be too many for the memory."""
        failed = {each.number for each in trials if self._open[each.number].user_attrs[FAILURES] >= MOST_FAILURES - 1}
        together = stacks([each for each in trials if each.number not in failed], base, size)
        return deque([*together, *((each,) for each in trials if each.number in failed)])

    def _write_result(self, attempt: "Attempt", outcome: Outcome) -> bool:
        from optuna.trial import TrialState

        value = finite_or_none(outcome.value)
        result = asdict(outcome) | {"value": value}
        attempt.set_user_attr("result", {name: each for name, each in result.items() if each is not None})
        if outcome.status == "pruned":
            told = self._study.tell(attempt, state=TrialState.PRUNED, skip_if_finished=True)
        else:
            told = self._study.tell(attempt, math.inf if value is None else value, skip_if_finished=True)
        return told.state is not TrialState.FAIL

    def _write_failure(self, attempt: "Attempt", outcome: Outcome) -> bool:
        failures = attempt.user_attrs.get(FAILURES, 0) + 1
        attempt.set_user_attr(FAILURES, failures)
        if outcome.died and failures < MOST_FAILURES:
            self._left_behind.append(outcome.number)
        else:
            attempt.set_user_attr("error", outcome.error)
        if failures >= MOST_FAILURES:
            self._give_up(attempt.number)
        return True
