"""Who runs which trial, and what became of it: an Optuna study that machines may share. No torch.

Every trial is announced in the study before it is run. Taking one is atomic there, and it then carries the mark of the
sweep directory that took it: whoever resumes in that directory goes on with it. A failed trial stays open in
the study, so that it can be run again, until it has failed too often.
"""

import time
from collections import deque
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.files import digest_of
from prequential.record import finite_or_none
from prequential.sweep.claims import Claim, Outcome
from prequential.sweep.sampling import ask_for_settings, make_sampler, run_seed
from prequential.sweep.spaces import Resolved, Space
from prequential.sweep.stacking import stacks
from prequential.sweep.storage import close_study, open_study, reopen_trial

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

MOST_FAILURES = 3
SECONDS_TO_MARK = 60.0
"""A trial taken so long ago without a mark belongs to nobody: its taker was killed in between."""


class Trials:
    """The trials of a sweep, as one directory sees them."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        space: Space,
        seed: int,
        sampler: str,
        mark: str,
        is_shared: bool,
        limit: int,
        pruner: Any = None,
        stack: tuple[int, Resolved] | None = None,
    ) -> None:
        self._space, self._seed, self._sampler, self._limit = space, seed, sampler, limit
        self._mark, self._is_shared, self._stack = mark, is_shared, stack
        self._study = open_study(url, name, create=True, sampler=make_sampler(sampler, space, seed, 0), pruner=pruner)
        self._open: dict[int, Trial] = {}
        self._lots: deque[tuple[Claim, ...]] | None = None
        self._announce()
        self._left_behind = deque(frozen for frozen in self._frozen() if self._is_ours_to_resume(frozen))

    def _frozen(self) -> list["FrozenTrial"]:
        return [frozen for frozen in self._study.get_trials(deepcopy=False) if frozen.number < self._limit]

    def _announce(self) -> None:
        """Add what is missing up to the limit. Two machines that do so at once add too many, which does no harm."""
        from optuna.trial import TrialState, create_trial

        missing = self._limit - len(self._frozen())
        self._study.add_trials([create_trial(state=TrialState.WAITING) for _ in range(missing)])

    def _is_ours_to_resume(self, frozen: "FrozenTrial") -> bool:
        if frozen.state.name != "RUNNING":
            return False
        mark = frozen.user_attrs.get("directory")
        if mark is not None or not self._is_shared:
            return mark in (None, self._mark)
        begun = frozen.datetime_start or datetime.now()
        return (datetime.now() - begun).total_seconds() > SECONDS_TO_MARK

    def take(self) -> tuple[Claim, ...] | None:
        """The next trial, or the next stack of trials; None when nothing is left that nobody runs."""
        if self._stack is None:
            claimed = self._take_one()
            return None if claimed is None else (claimed,)
        if self._lots is None:
            self._lots = self._stacked(list(iter(self._take_one, None)))
        if not self._lots:
            self._lots = self._again()
        return self._lots.popleft() if self._lots else None

    def _stacked(self, claims: list[Claim]) -> deque[tuple[Claim, ...]]:
        assert self._stack is not None
        size, base = self._stack
        return deque(stacks(claims, base, size))

    def _again(self) -> deque[tuple[Claim, ...]]:
        """Trials whose process died: together, as they were, which goes on from their checkpoint; and where that died
        as well, each by itself: they may be too many for the memory."""
        together: list[Claim] = []
        alone: list[Claim] = []
        for frozen in iter(self._next_left_behind, None):
            trial = reopen_trial(self._study, frozen)
            (together if trial.user_attrs.get("failures", 0) < 2 else alone).append(self._claim(trial))
        return self._stacked(together) + deque((claimed,) for claimed in alone)

    def _next_left_behind(self) -> "FrozenTrial | None":
        return self._left_behind.popleft() if self._left_behind else None

    def _take_one(self) -> Claim | None:
        if (frozen := self._next_left_behind()) is not None:
            return self._claim(reopen_trial(self._study, frozen))
        trials = self._frozen()
        if not any(frozen.state.name == "WAITING" for frozen in trials):
            return None
        num_begun = sum(frozen.state.name != "WAITING" for frozen in trials)
        self._study.sampler = make_sampler(self._sampler, self._space, self._seed, num_begun)
        trial = self._study.ask()
        if trial.number >= self._limit:  # others took the last ones just now: it waits for a sweep of more trials
            trial.set_user_attr("directory", self._mark)
            return None
        return self._claim(trial)

    def _claim(self, trial: "Trial") -> Claim:
        if trial.user_attrs.get("directory") != self._mark:
            trial.set_user_attr("directory", self._mark)
        self._open[trial.number] = trial
        return Claim(trial.number, ask_for_settings(trial, self._space), run_seed(self._seed, trial.number))

    def settle(self, outcome: Outcome) -> None:
        """Write down what became of a trial that was taken."""
        from optuna.trial import TrialState

        trial = self._open.pop(outcome.number)
        if outcome.status == "stopped":
            return
        if outcome.status == "failed":
            self._fail(trial, outcome)
            return
        result = asdict(outcome) | {"value": finite_or_none(outcome.value)}
        trial.set_user_attr("result", {name: value for name, value in result.items() if value is not None})
        if outcome.status == "pruned":
            self._study.tell(trial.number, state=TrialState.PRUNED, skip_if_finished=True)
        elif outcome.value is None:
            self._study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        else:
            self._study.tell(trial.number, outcome.value, skip_if_finished=True)

    def _fail(self, trial: "Trial", outcome: Outcome) -> None:
        from optuna.trial import TrialState

        failures = trial.user_attrs.get("failures", 0) + 1
        trial.set_user_attr("failures", failures)
        trial.set_user_attr("error", outcome.error)
        if failures >= MOST_FAILURES:
            self._study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        elif outcome.died:
            self._left_behind.append(self._study.get_trials(deepcopy=False)[trial.number])

    def close(self) -> None:
        """Let go of the storage."""
        close_study(self._study)


def new_mark(directory: Path) -> str:
    """A mark that no other directory has."""
    return digest_of(f"{directory.absolute()} {time.time_ns()}".encode())[:16]
