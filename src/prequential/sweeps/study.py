"""Who runs which trial, and what became of it: an Optuna study that machines may share. No torch.

Every trial is announced in the study before it is run. Taking one is atomic there, and it then carries the mark of the
sweep directory that took it: whoever resumes in that directory goes on with it. Directories that share a study give
signs of life; the trials of one that has fallen silent are taken over by the others. A failed trial stays open in
the study, so that its directory can run it again, until it has failed too often.
"""

from collections import deque
from dataclasses import asdict
from pathlib import Path
from time import sleep, time_ns
from typing import TYPE_CHECKING, Any

from prequential.files import digest_of
from prequential.runs.record import finite_or_none
from prequential.sweeps.claims import Claim, Outcome
from prequential.sweeps.pulse import Pulse
from prequential.sweeps.sampling import ask_for_settings, make_sampler, run_seed
from prequential.sweeps.spaces import Resolved, Space
from prequential.sweeps.stacking import stacks
from prequential.sweeps.storage import close_study, hand_back, open_study, reopen_trial, swap_attribute

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

    from prequential.runs.signals import StopRequest

MOST_FAILURES = 3
OWNER = "directory"
"""The attribute of a trial that holds the mark of the directory that took it."""


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
        limit: int,
        grace_seconds: float | None = None,
        pruner: Any = None,
        stack: tuple[int, Resolved] | None = None,
    ) -> None:
        self._space, self._seed, self._sampler, self._limit = space, seed, sampler, limit
        self._mark, self._stack = mark, stack
        self._study = open_study(url, name, create=True, sampler=make_sampler(sampler, space, seed, 0), pruner=pruner)
        self._open: dict[int, Trial] = {}
        self._lots: deque[tuple[Claim, ...]] | None = None
        self._announce()
        self._pulse = None if grace_seconds is None else Pulse(self._study, mark, grace_seconds)
        self._left_behind = deque(frozen for frozen in self._running() if self._is_ours_to_resume(frozen))

    def _frozen(self) -> list["FrozenTrial"]:
        return [frozen for frozen in self._study.get_trials(deepcopy=False) if frozen.number < self._limit]

    def _announce(self) -> None:
        """Add what is missing up to the limit. Two machines that do so at once add too many, which does no harm."""
        from optuna.trial import TrialState, create_trial

        missing = self._limit - len(self._frozen())
        self._study.add_trials([create_trial(state=TrialState.WAITING) for _ in range(missing)])

    def _running(self) -> list["FrozenTrial"]:
        return [frozen for frozen in self._frozen() if frozen.state.name == "RUNNING"]

    def _is_ours_to_resume(self, frozen: "FrozenTrial") -> bool:
        """A trial without a mark was taken by one who was killed at that moment: ours, if nobody else is there."""
        return frozen.user_attrs.get(OWNER) in ((self._mark, None) if self._pulse is None else (self._mark,))

    def of_others(self) -> list[int]:
        """The numbers of trials that other directories have taken, be they over or not."""
        return [each.number for each in self._frozen() if each.user_attrs.get(OWNER) not in (None, self._mark)]

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
        while True:
            if (frozen := self._next_left_behind()) is not None:
                return self._claim(reopen_trial(self._study, frozen))
            trials = self._frozen()
            if not any(frozen.state.name == "WAITING" for frozen in trials):
                if not self._take_over(trials):
                    return None
                continue
            num_begun = sum(frozen.state.name != "WAITING" for frozen in trials)
            self._study.sampler = make_sampler(self._sampler, self._space, self._seed, num_begun)
            trial = self._study.ask()
            if trial.number >= self._limit:  # others took the last ones just now: it waits for a sweep of more trials
                hand_back(self._study, trial)
            elif self._mark_as_ours(trial, None):
                return self._claim(trial)

    def _take_over(self, trials: list["FrozenTrial"]) -> bool:
        """Whether directories have died whose trials are now ours to run."""
        for frozen in self._of_others(trials):
            owner = frozen.user_attrs.get(OWNER)
            assert self._pulse is not None
            if self._pulse.is_silent(owner or f"the taker of {frozen.number}") and self._mark_as_ours(frozen, owner):
                now = self._study.get_trials(deepcopy=False)[frozen.number]
                if now.state.name == "RUNNING":
                    self._left_behind.append(now)
        return bool(self._left_behind)

    def _of_others(self, trials: list["FrozenTrial"]) -> list["FrozenTrial"]:
        """Those of the trials that other directories run, or ran when they died."""
        if self._pulse is None:
            return []
        running = (each for each in trials if each.state.name == "RUNNING" and not each.user_attrs.get("error"))
        return [each for each in running if each.user_attrs.get(OWNER) != self._mark]

    def _mark_as_ours(self, trial: "FrozenTrial | Trial", owner: str | None) -> bool:
        return swap_attribute(self._study, trial, OWNER, owner, self._mark)

    def wait(self, stop: "StopRequest") -> bool:
        """When nothing is left to take: wait for what others run. True as soon as there is something again."""
        while not stop.requested:
            trials = self._frozen()
            if self._take_over(trials) or any(frozen.state.name == "WAITING" for frozen in trials):
                self._lots = None  # they may go together as stacks
                return True
            if self._pulse is None or not self._of_others(trials):
                return False
            sleep(min(self._pulse.seconds, 1.0))
        return False

    def _claim(self, trial: "Trial") -> Claim:
        if trial.user_attrs.get(OWNER) != self._mark:
            trial.set_user_attr(OWNER, self._mark)
        if trial.user_attrs.get("error"):
            trial.set_user_attr("error", None)
        self._open[trial.number] = trial
        return Claim(trial.number, ask_for_settings(trial, self._space), run_seed(self._seed, trial.number))

    def settle(self, outcome: Outcome) -> bool:
        """Write down what became of a trial that was taken. False if others have taken it over meanwhile."""
        from optuna.trial import TrialState

        trial = self._open.pop(outcome.number)
        now = self._study.get_trials(deepcopy=False)[outcome.number]
        if now.user_attrs.get(OWNER) != self._mark or now.state.is_finished():
            return False
        if outcome.status == "stopped":
            return True
        if outcome.status == "failed":
            self._fail(trial, outcome)
            return True
        result = asdict(outcome) | {"value": finite_or_none(outcome.value)}
        trial.set_user_attr("result", {name: value for name, value in result.items() if value is not None})
        if outcome.status == "pruned":
            self._study.tell(trial.number, state=TrialState.PRUNED, skip_if_finished=True)
        elif outcome.value is None:
            self._study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        else:
            self._study.tell(trial.number, outcome.value, skip_if_finished=True)
        return True

    def _fail(self, trial: "Trial", outcome: Outcome) -> None:
        from optuna.trial import TrialState

        failures = trial.user_attrs.get("failures", 0) + 1
        trial.set_user_attr("failures", failures)
        if outcome.died and failures < MOST_FAILURES:
            self._left_behind.append(self._study.get_trials(deepcopy=False)[trial.number])
            return
        trial.set_user_attr("error", outcome.error)
        if failures >= MOST_FAILURES:
            self._study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)

    def close(self) -> None:
        """Let go of the storage."""
        if self._pulse is not None:
            self._pulse.close()
        close_study(self._study)


def new_mark(directory: Path) -> str:
    """A mark that no other directory has."""
    return digest_of(f"{directory.absolute()} {time_ns()}".encode())[:16]
