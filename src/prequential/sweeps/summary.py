"""What a sweep has found: the best trials, what the choice costs, which settings mattered. Reads only. No torch."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError
from prequential.measure.choosing import Candidates
from prequential.measure.choosing import num_begun as noted
from prequential.measure.importance import importance
from prequential.methods import METHODS
from prequential.runs.live import DIED, is_locked, status_of
from prequential.runs.record import OVER, Record, finite_or_none, load
from prequential.sweeps.address import sqlite_file, storage_url, without_password
from prequential.sweeps.damage import undamaged
from prequential.sweeps.directory import SweepFile, trial_path
from prequential.sweeps.ledger import attempts_that_count, is_free, num_begun
from prequential.sweeps.storage import open_study
from prequential.sweeps.trials import Outcome

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

KEPT = ("value", "heldout", "positions", "seconds", "flops", "trained_share", "data")
"""What a result says as its outcome said it."""
STATUSES = ("finished", "diverged", "pruned", "failed", "running", "waiting")


@dataclass(frozen=True)
class TrialResult(Outcome):
    """What became of a trial: one of STATUSES. A failed one is run again when the sweep is resumed, a few times."""

    value: float = math.inf
    """What trials are ordered by; infinite where there is nothing (yet)."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What was drawn."""
    codelength: float | None = None
    """Nats, infinite where it diverged, None where there is none (yet). Of a pruned trial: of its prefix."""
    path: Path | None = None
    """Its run directory, where that is on this machine."""

    def facts(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "number": self.number,
            "status": self.status,
            "settings": dict(self.settings),
            "codelength_nats": finite_or_none(self.codelength),
            **{name: getattr(self, name) for name in ("heldout", "positions", "flops", "seconds")},
            "record": None if self.path is None else str(self.path),
        } | ({} if self.error is None else {"error": self.error})


@dataclass(frozen=True)
class Summary:
    """A sweep, as its study and its directory tell it."""

    directory: Path
    facts: Mapping[str, Any]
    """The settings of the sweep."""
    trials: tuple[TrialResult, ...]
    importance: Mapping[str, float] | None
    """The share of the order of the trials that each setting explains alone (`measure.importance`); None if too few
    ran to their end."""
    num_begun: int
    """Trials that were begun, whatever became of them: one of these is the best."""
    has_codelength: bool
    """Whether the method gives codelengths; else trials are ordered by their loss on held-out data."""

    @cached_property
    def ranked(self) -> list[TrialResult]:
        """The trials that finished, the shortest code first (without codelengths: the smallest held-out loss)."""
        return sorted((trial for trial in self.over if trial.status == "finished"), key=attrgetter("value", "number"))

    @cached_property
    def over(self) -> list[TrialResult]:
        """The trials that have come to an end that counts as a result."""
        return [trial for trial in self.trials if trial.status in OVER]

    @property
    def best(self) -> TrialResult | None:
        """The trial with the shortest code."""
        return self.ranked[0] if self.ranked else None

    @property
    def counts(self) -> dict[str, int]:
        """How many trials there are of each status."""
        return {status: sum(trial.status == status for trial in self.trials) for status in STATUSES}

    def standing(self) -> dict[str, int]:
        """The same, as the run directories say it at this moment: of trials that nobody has ended some were stopped, or
        died."""
        is_going = is_locked(self.directory)
        now = Counter(_standing(trial, is_going=is_going) for trial in self.trials)
        return {status: now[status] for status in dict.fromkeys([*STATUSES, *now])}

    @property
    def choice_nats(self) -> float:
        """What it costs to say which of the n trials that were begun was taken: ln n."""
        return Candidates(self.num_begun).nats

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The best of as many trials drawn again from these: bootstrap, 95 %, never below the best found."""
        if self.best is None or self.best.codelength is None:
            return None
        from prequential.measure import bootstrap_best

        lengths = [trial.value if trial.status == "finished" else math.inf for trial in self.over]
        low, high = bootstrap_best(lengths, seed=0)
        return float(low), float(high)

    @property
    def seconds(self) -> float:
        """Seconds that trials took, summed over jobs."""
        return sum(trial.seconds for trial in self.trials)

    @property
    def flops(self) -> float | None:
        """FLOPs that trials took; None where they could not be counted."""
        counted = [trial.flops for trial in self.over]
        return None if any(flops is None for flops in counted) else float(sum(flops or 0.0 for flops in counted))

    @property
    def saved(self) -> dict[str, float]:
        """What pruning saved: `share` of the training of all trials, and the `seconds` and `flops` of it."""
        pruned = [(trial, 1 / trial.trained_share - 1) for trial in self.over if 0 < trial.trained_share < 1]
        seconds = sum(trial.seconds * more for trial, more in pruned)
        whole = sum(trial.seconds for trial in self.over) + seconds
        flops = sum((trial.flops or 0.0) * more for trial, more in pruned)
        return {"share": seconds / whole if whole else 0.0, "seconds": seconds, "flops": flops}

    def records(self) -> list[Record]:
        """The records of the trials that finished here, the best first."""
        return [load(trial.path) for trial in self.ranked if trial.path is not None]

    def as_json(self, top: int) -> dict[str, Any]:
        """The object that `--json` prints."""
        best = self.best
        length = None if best is None else best.codelength
        return {
            "sweep": str(self.directory),
            "trials": len(self.trials),
            **self.standing(),
            "codelength_nats": length,
            "choice_nats": self.choice_nats,
            "total_nats": None if length is None else length + self.choice_nats,
            "interval_nats": None if self.interval is None else [finite_or_none(bound) for bound in self.interval],
            "best": [trial.facts() for trial in self.ranked[:top]],
            "failures": [trial.facts() for trial in self.trials if trial.status == "failed"],
            "importance": self.importance,
            "flops": self.flops,
            "seconds": self.seconds,
            "saved": self.saved,
        }


def summarise(directory: str | Path, storage: str | None = None) -> Summary:
    """What the sweep in a directory has found so far; it may still be running.

    Args:
        directory: of the sweep.
        storage: the address of the study, where it is not in a file.
    """
    path = Path(directory)
    begun = SweepFile.read(path)
    url = storage_url(path, storage or begun.storage)
    file = sqlite_file(url)
    if file is None and storage is None:  # a directory may come from others, and nobody asked for the network
        where = f"{path} has its study at {without_password(url)}"
        raise PreqError(f"{where}, which only you can ask for; add --storage with that address (in Python storage=)")
    if file is not None and not file.is_file():
        raise PreqError(f"{path} has lost its study ({file}); resuming the sweep finds it again")
    with undamaged(file):
        study = open_study(url, begun.study, create=False)
        attempts = attempts_that_count(study, begun.trials)
    prequential = bool(getattr(METHODS.get(begun.settings["method"].get("name")), "prequential", True))
    trials = tuple(_result(number, attempts.get(number), path, prequential) for number in range(begun.trials))
    done = [each for each in trials if each.status == "finished" and math.isfinite(each.value)]
    found = importance([each.settings for each in done], [each.value for each in done])
    return Summary(path, begun.settings, trials, found, max(num_begun(attempts), noted(path)), prequential)


def _standing(trial: TrialResult, *, is_going: bool) -> str:
    """A trial's status, where one whose process is gone without a word has died. While the sweep goes on here, one
    without a record is loading its data, or building its model."""
    if trial.status != "running" or trial.path is None:
        return trial.status
    try:
        return status_of(trial.path, "running")
    except PreqError:  # it has not written a record yet, or that is damaged
        return "running" if is_going else DIED


def _result(number: int, attempt: "FrozenTrial | None", directory: Path, prequential: bool) -> TrialResult:
    place = trial_path(directory, number)
    path = place if place.exists() else None
    if attempt is None or is_free(attempt) or attempt.state.name == "WAITING":
        return TrialResult(number, "waiting", path=path)
    result: dict[str, Any] = attempt.user_attrs.get("result", {})
    error = attempt.user_attrs.get("error")
    is_open = {"RUNNING": "failed" if error else "running", "FAIL": "failed"}
    status = is_open.get(attempt.state.name) or result.get("status", "finished")
    known = {name: result[name] for name in KEPT if name in result} | {"error": error if status == "failed" else None}
    codelength = (math.inf if status == "diverged" else result.get("value")) if prequential else None
    return TrialResult(number, status, settings=dict(attempt.params), codelength=codelength, path=path, **known)
