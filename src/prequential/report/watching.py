"""Many runs at one moment: which there are, and how far each is behind the best at the same position."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prequential.errors import PreqError
from prequential.report.names import shortest
from prequential.report.runs import find_work, require_runs
from prequential.report.standings import Row, RunReader, Sums
from prequential.runs.live import DIED
from prequential.terminal import printable

RESUMABLE = (DIED, "stopped", "failed")
"""The statuses of runs that go on with --resume."""


@dataclass(frozen=True)
class Snapshot:
    """Where all runs stand."""

    groups: list[list[Row]]
    """Runs about the same labels, which can be compared: those that run first, then the best."""
    unreadable: dict[str, str]
    """Short names of runs that cannot be read, and why."""
    locked: int
    """Directories where something is at work that has not written a run yet: a sweep between trials, a stack."""

    @property
    def rows(self) -> list[tuple[str, Row]]:
        """All runs, with their short names."""
        return [(row.name, row) for group in self.groups for row in group]

    @property
    def is_over(self) -> bool:
        """Whether nothing is at work any more."""
        return not self.locked and not any(row.is_going for _, row in self.rows)

    def counts(self) -> Counter[str]:
        """How many runs have which status."""
        return Counter([row.status for _, row in self.rows] + ["unreadable"] * len(self.unreadable))


class Watcher:
    """Looks at runs, and at folders of runs where new ones may appear."""

    def __init__(self, directories: Sequence[str | Path]) -> None:
        self._directories = [Path(directory) for directory in directories]
        self._readers: dict[Path, RunReader] = {}
        for directory in self._directories:
            runs, locked = find_work([directory])
            require_runs(directory, runs + locked)

    def snapshot(self) -> Snapshot:
        """Where the runs stand now."""
        paths, locked = find_work(self._directories)
        names = dict(zip(paths, shortest([str(path) for path in paths]), strict=True))
        self._readers = {path: self._readers.get(path) or RunReader(path) for path in paths}
        unreadable: dict[str, str] = {}
        groups: dict[object, list[Row]] = {}
        for path, reader in self._readers.items():
            try:
                row = reader.read()
                row = replace(row, name=printable(str(row.facts.get("name") or "")) or names[path])
                groups.setdefault(row.sequence, []).append(row)
            except (PreqError, KeyError, TypeError, ValueError, AttributeError) as error:
                unreadable[names[path]] = str(error) if isinstance(error, PreqError) else f"{path} is damaged"
        found = [sorted(self._with_regret(rows), key=_rank) for rows in groups.values()]
        found.sort(key=lambda group: not any(row.is_going for row in group))
        return Snapshot(found, unreadable, len(locked))

    def _with_regret(self, rows: list[Row]) -> list[Row]:
        coded = [row for row in rows if row.nats is not None]
        found = regrets([(row.position, self._readers[row.path].sums) for row in coded])
        by_path = {row.path: regret for row, regret in zip(coded, found, strict=True)}
        return [replace(row, regret=by_path.get(row.path)) for row in rows]


def regrets(runs: Sequence[tuple[int, Sums]]) -> list[float | None]:
    """How many nats each run is behind the best at the same position, given how far each has come.

    That is the run's own position; for one that is further than all others, the last position that another has
    reached. None where there is no other.
    """
    if len(runs) < 2:
        return [None] * len(runs)
    found: list[float | None] = []
    second = sorted(position for position, _ in runs)[-2]
    for position, sums in runs:
        shared = min(position, second)
        own = sums.at(shared)
        best = min(other.at(shared) for reached, other in runs if reached >= shared)
        found.append(own - best if math.isfinite(best) else 0.0 if own == best else math.inf)
    return found


def _rank(row: Row) -> tuple[object, ...]:
    if row.is_going:
        return 0, 0, 0.0, row.name
    regret = math.inf if row.regret is None else row.regret
    return 1, row.status != "finished", regret, row.nats or 0.0, row.name
