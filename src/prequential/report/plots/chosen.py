"""The runs of a picture: read one at a time, so that memory holds a single one, and grouped by setting."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prequential.errors import PreqError, PreqWarning
from prequential.measure import require_same_sequence
from prequential.report.comparable import KEPT_NOTHING
from prequential.report.names import short_names
from prequential.report.runs import find_runs
from prequential.report.seeds import group_names, grouped
from prequential.runs.record import ARRAYS, RECORD_FILE, Record, load

NAMED = 3
"""Directories that a note names."""


@dataclass(frozen=True)
class Run:
    """A run without the weight of its arrays."""

    name: str
    outline: Record
    """The record with arrays of the right lengths that hold nothing."""
    codelength: float
    source: Record | Path
    """The whole record, or where it is."""

    def load(self) -> Record:
        """The whole record; read again each time where it is on disk."""
        return read(self.source)


@dataclass(frozen=True)
class Setting:
    """One line of a picture: a run, or runs that differ in nothing but the seed."""

    name: str
    runs: tuple[Run, ...]

    @property
    def codelength(self) -> float:
        """The mean of the runs, in nats."""
        return float(np.mean([run.codelength for run in self.runs]))

    @property
    def outline(self) -> Record:
        """What all of its runs share, and the seed of the first."""
        return self.runs[0].outline

    def records(self) -> Iterator[Record]:
        """Its records, one after the other."""
        return (run.load() for run in self.runs)


def choose(runs: Sequence[Record | str | Path]) -> list[Run]:
    """Records, run directories and folders of runs as runs that have a codelength, in that order.

    A run that is named must be drawable. From a folder those that are not finished, have no codelength or cannot be
    read are left out, with a note.

    Raises:
        PreqError: for a run that cannot be read or has no codelength, or if nothing is left.
    """
    found: list[tuple[Record, float, Record | Path]] = []
    left_out: dict[str, list[str]] = {}
    for source, is_named in _sources(runs):
        reason = None
        try:
            record = read(source)
            if (reason := _why_not(record, is_named=is_named)) is None:
                found.append((_outline(record), float(record.nats.sum()), source))
        except PreqError as error:
            if is_named:
                raise
            reason = f"that cannot be read ({error})"
        if reason is not None:
            left_out.setdefault(reason, []).append(str(source))
    if not found:
        told = "; ".join(f"{len(paths)} {reason}" for reason, paths in left_out.items())
        raise PreqError(f"there is no run to draw: {told or 'none was named'}")
    for reason, paths in left_out.items():
        warnings.warn(f"left out {_named(paths)} {reason}", PreqWarning, stacklevel=3)
    names = short_names([outline for outline, _, _ in found])
    return [Run(name, *each) for name, each in zip(names, found, strict=True)]


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
    return f"{len(paths):,} run{'s' * (len(paths) > 1)} ({', '.join(paths[:NAMED])}{more})"


def read(source: Record | Path) -> Record:
    """The record, from disk where it is there."""
    return source if isinstance(source, Record) else load(source)


def _sources(runs: Sequence[Record | str | Path]) -> list[tuple[Record | Path, bool]]:
    """Each record and each run directory once, and whether it was named itself."""
    found: dict[Path | int, tuple[Record | Path, bool]] = {}
    for run in runs:
        if isinstance(run, Record):
            found.setdefault(id(run), (run, True))
            continue
        is_named = (Path(run) / RECORD_FILE).is_file()
        for path in find_runs([run]):
            if is_named or path.resolve() not in found:
                found[path.resolve()] = (path, is_named)
    return list(found.values())


def _why_not(record: Record, *, is_named: bool) -> str | None:
    """Why a run of a folder is left out; a run that was named is refused instead."""
    if is_named:
        require_same_sequence(record, record)  # refuses a record without a codelength
        if not len(record.nats):
            raise PreqError(f"{record.path or 'the record'} {KEPT_NOTHING}; there is nothing to draw")
        return None
    if not record.prequential:
        return "without a codelength"
    if record.status != "finished":
        return "that diverged" if record.status == "diverged" else f"not finished ({record.status})"
    return None


def _outline(record: Record) -> Record:
    """The same facts and lengths, in no memory."""
    empty: dict[str, Any] = {name: np.broadcast_to(np.nan, len(getattr(record, name))) for name in ARRAYS}
    return replace(record, **empty)


def settings_of_runs(runs: Sequence[Run], *, each_seed: bool = False) -> list[Setting]:
    """The runs as lines of a picture, the shortest code first; seeds of one setting together unless `each_seed`."""
    outlines = [run.outline for run in runs]
    groups = [[number] for number in range(len(runs))] if each_seed else _as_long(outlines, grouped(outlines))
    _, names = group_names(outlines, groups)
    found = [Setting(name, tuple(runs[n] for n in group)) for name, group in zip(names, groups, strict=True)]
    return sorted(found, key=lambda setting: setting.codelength)


def _as_long(records: Sequence[Record], groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """The groups, apart where runs stopped at different labels: they have no mean."""
    found: dict[tuple[int, int], list[int]] = {}
    for place, group in enumerate(groups):
        for number in group:
            found.setdefault((place, len(records[number].nats)), []).append(number)
    return list(found.values())
