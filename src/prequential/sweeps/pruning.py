"""Stopping a trial that cannot win. A prequential codelength can be compared at every prefix. No torch.

By regret: a trial is stopped at position t when

    codelength(t) > best(t) + factor · (best(T) − best(t)),

where best is the shortest finished trial. With factor 1 it can never win, since nats are never negative.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, require_number, unknown_name
from prequential.files import read_array, write_atomically
from prequential.formats import BEST
from prequential.plain import parsed, read_bytes, require_shape
from prequential.runs.progress import Listener, Progress, Pruned
from prequential.sweeps.directory import trial_path

REGRET = "regret"
_OPTUNAS = {
    "median": "MedianPruner",
    "percentile": "PercentilePruner",
    "hyperband": "HyperbandPruner",
    "successive-halving": "SuccessiveHalvingPruner",
}
_NEED_NUMBER = {"percentile": "25"}
PRUNERS = (REGRET, *_OPTUNAS)
NUM_REPORTS = 32
"""Prefixes at which Optuna's pruners compare trials."""


@dataclass(frozen=True)
class Rule:
    """When trials are stopped: `name`, and the number behind its colon."""

    name: str
    number: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """The rule a person wrote.

        Example:
            >>> Rule.parse("regret:0.5"), Rule.parse("median")
            (Rule(name='regret', number=0.5), Rule(name='median', number=None))
        """
        name, colon, number = text.partition(":")
        if name not in PRUNERS:
            raise unknown_name("way to prune", name, PRUNERS)
        if bool(colon) != (name in _NEED_NUMBER) and name != REGRET:
            wanted = f"{name}:{_NEED_NUMBER[name]}" if name in _NEED_NUMBER else name
            raise PreqError(f"prune by '{wanted}', got '{text}'")
        try:
            value = float(number) if colon else None
        except ValueError:
            raise PreqError(f"a number must follow the colon of '{text}', such as {name}:0.5") from None
        if value is not None:
            require_number(f"the number of --prune {name}", value, at_least=0)
        return cls(name, value)

    def pruner(self) -> Any:
        """Optuna's, or None."""
        if self.name == REGRET:
            return None
        import optuna

        return getattr(optuna.pruners, _OPTUNAS[self.name])(*([] if self.number is None else [self.number]))


def is_hopeless(nats: float, position: int, best: NDArray[np.float64], factor: float = 1.0) -> bool:
    """Whether a trial that has spent `nats` on `position` labels should be stopped.

    Args:
        nats: its codelength so far.
        position: labels coded so far, at least 1.
        best: the codelength of the shortest finished trial after each label.
        factor: the share of what the best still had to spend that a trial may be behind.

    Example:
        >>> best = np.array([2.0, 3.0, 4.0])
        >>> is_hopeless(3.9, 1, best), is_hopeless(4.1, 1, best), is_hopeless(3.1, 1, best, factor=0.5)
        (False, True, True)
    """
    so_far = float(best[position - 1])
    return nats > so_far + factor * (float(best[-1]) - so_far)


def note_best(directory: Path, number: int) -> None:
    """Tell the trials that are running which finished one is the shortest."""
    write_atomically(directory / "best.json", json.dumps({"number": number}).encode())


def best_noted(directory: Path) -> int | None:
    """The number that was noted last; None where there is none, or none that makes sense."""
    with suppress(ValueError):
        require_shape(noted := parsed(read_bytes(directory / "best.json")), BEST)
        return int(noted["number"])
    return None


class ByRegret:
    """A listener that stops its run by regret against the best trial in the sweep's directory, as it is by now."""

    def __init__(self, directory: Path, factor: float) -> None:
        self._directory, self._factor, self._number = directory, factor, -1
        self._best = np.zeros(0)

    def __call__(self, progress: Progress) -> None:
        if not 0 < progress.position < progress.length or (number := best_noted(self._directory)) is None:
            return
        if number != self._number:
            nats = read_array(trial_path(self._directory, number) / "nats.npy", progress.length)
            self._best, self._number = np.cumsum(nats), number
        if is_hopeless(progress.nats, progress.position, self._best, self._factor):
            raise Pruned


class ByOptuna:
    """A listener that reports the codelength at fixed prefixes to a study, and stops where its pruner says so.

    It reads the prefix from the run's own file: listeners hear of positions that differ from run to run. What goes on
    from a checkpoint is another attempt to the study, and is reported from its beginning.
    """

    def __init__(self, attempt: Any, nats_file: Path) -> None:
        self._attempt, self._nats_file, self._reported = attempt, nats_file, set[int]()

    def __call__(self, progress: Progress) -> None:
        points = {progress.length * part // NUM_REPORTS for part in range(1, NUM_REPORTS)} - {0} - self._reported
        due = sorted(point for point in points if point <= progress.position)
        if not due:
            return
        codelengths = np.cumsum(read_array(self._nats_file, due[-1]))
        for point in due:
            self._attempt.report(float(codelengths[point - 1]), step=point)
            self._reported.add(point)
            if progress.position < progress.length and self._attempt.should_prune():
                raise Pruned


def make_listener(rule: Rule, directory: Path, number: int, attempt: Any) -> Listener:
    """What stops the trial of that number by the rule."""
    if rule.name == REGRET:
        return ByRegret(directory, 1.0 if rule.number is None else rule.number)
    return ByOptuna(attempt, trial_path(directory, number) / "nats.npy")
