"""What it costs to choose: ln of how many there were to choose from. No torch."""

import json
import math
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SWEEP_FILE = "sweep.json"
"""What tells the directory of a sweep; `begun` in it is the number of its trials that were begun, anywhere."""


@dataclass(frozen=True)
class Candidates:
    """Those that one was chosen from, whatever became of them.

    Example:
        >>> from_both = Candidates(trials=50, others=2)
        >>> f"{from_both.told('setting')}: {from_both.nats:.2f} nats"
        '2 settings and 50 begun trials: 3.95 nats'
        >>> Candidates(trials=20, others=1).told("setting")
        '1 setting and 20 begun trials'
    """

    trials: int
    """Of sweeps, all that were begun: what was pruned, failed or diverged could have been chosen as well."""
    others: int = 0

    @property
    def number(self) -> int:
        """How many they are."""
        return self.trials + self.others

    @property
    def nats(self) -> float:
        """What it costs to say which of them was taken."""
        return math.log(max(self.number, 1))

    def told(self, others: str) -> str:
        """Their number in words; `others` is what one is called that belongs to no sweep."""
        parts = [(self.others, others), (self.trials, "begun trial")]
        return " and ".join(f"{number:,} {what}{'s' * (number != 1)}" for number, what in parts if number)


def candidates(runs: Iterable[tuple[Path | None, Hashable]]) -> Candidates:
    """Those that some runs, or the best of them, were chosen from: all begun trials of every sweep that a run is of,
    and of the other runs those that differ.

    Args:
        runs: for each its directory, if it has one, and what tells it from others.
    """
    sweeps, others = set[Path](), set[Hashable]()
    for path, which in runs:
        sweep = None if path is None else path.resolve().parent.parent
        if sweep is not None and (sweep / SWEEP_FILE).is_file():
            sweeps.add(sweep)
        else:
            others.add(which)
    begun: dict[Hashable, int] = {}
    for sweep in sweeps:
        study = _study_of(sweep)
        begun[study] = max(num_begun(sweep), begun.get(study, 0))
    return Candidates(sum(begun.values()), len(others))


def _study_of(sweep: Path) -> Hashable:
    """What tells the trials of a sweep from those of others: directories that share a study have the same ones."""
    storage, study = _noted(sweep, "storage"), _noted(sweep, "study")
    return (storage, study) if isinstance(storage, str) and isinstance(study, str) else sweep


def _noted(sweep: Path, name: str) -> object:
    """What the file of a sweep says; nothing where that cannot be read."""
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        return json.loads((sweep / SWEEP_FILE).read_bytes())[name]
    return None


def num_begun(sweep: Path) -> int:
    """The trials of a sweep that were begun: as many as it has noted, and no fewer than have left a directory."""
    noted = _noted(sweep, "begun")
    left = sum(path.name.isdecimal() for path in (sweep / "trials").glob("*/"))
    return max(noted, left) if type(noted) is int else left
