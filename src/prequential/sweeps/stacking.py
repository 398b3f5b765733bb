"""Trials whose plans and shapes agree, trained as one stack."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prequential.errors import PreqError
from prequential.learn.recipe import SHARED
from prequential.runs.progress import Listener
from prequential.runs.record import OVER, Record, load
from prequential.sweeps.directory import facts_or_nothing
from prequential.sweeps.spaces import Resolved, resolve

if TYPE_CHECKING:
    from prequential.sweeps.trials import Trial, TrialRunner

STACK = "stack"
"""The engine that records of stacks name."""


def stacks(trials: Sequence["Trial"], base: Resolved, size: int) -> list[tuple["Trial", ...]]:
    """The trials in groups of at most `size` whose plans and shapes agree, in the order of their first numbers.

    Example:
        >>> from prequential.learn.recipe import Recipe
        >>> from prequential.methods import ReplayStreams
        >>> from prequential.sweeps.trials import Trial
        >>> trials = [Trial(n, {"num_streams": 2 + n % 2, "eps": 10.0**-n}, seed=n) for n in range(5)]
        >>> groups = stacks(trials, Resolved(ReplayStreams(), Recipe(), 1.0, 0), 2)
        >>> [[trial.number for trial in group] for group in groups]
        [[0, 2], [1, 3], [4]]
    """
    groups: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        run = resolve(trial.settings, base)
        shared = [getattr(run.recipe, name) for name in SHARED]
        groups.setdefault(repr((run.method, run.width, shared)), []).append(trial)
    parts = (tuple(each[start : start + size]) for each in groups.values() for start in range(0, len(each), size))
    return sorted(parts, key=lambda part: part[0].number)


def run_as_stack(
    runner: "TrialRunner", trials: Sequence[Resolved], paths: Sequence[Path], listeners: Sequence[Listener]
) -> list[Record]:
    """The record of each trial. A stack of the same trials that was stopped goes on where its last checkpoint left it.

    Trials that have come to an end are not run again; what else is in their directories, such as the state of a trial
    that was run alone, is of no use to a stack and goes.
    """
    from prequential.runs.directory import discard_stack
    from prequential.runs.run import run_stack

    found = {path: record for path in paths if (record := _finished(path)) is not None}
    for path in paths:
        if path not in found and not _is_of_a_stack(path):
            shutil.rmtree(path, ignore_errors=True)
    members = [(trial, path) for trial, path in zip(trials, paths, strict=True) if _may_be_member(found.get(path))]
    if len(found) < len(paths):
        records = run_stack(
            runner.work.make_model,
            runner.data,
            trials[0].method,
            [trial.recipe for trial, _ in members],
            seeds=[trial.seed for trial, _ in members],
            width=trials[0].width,
            out=[path for _, path in members],
            resume=True,
            listeners=listeners,
            listeners_of_each=[runner.trackers(path) for _, path in members],
            **runner.work.arguments,
        )
        found |= {path: record for (_, path), record in zip(members, records, strict=True)}
    for path in paths:
        discard_stack(path)
    return [found[path] for path in paths]


def leave_stack(path: Path) -> Record | None:
    """Make the directory of a trial ready for a run by itself: what a stack left unfinished goes, and a record that a
    stack has finished is given back."""
    from prequential.runs.directory import discard_stack

    discard_stack(path)
    if not _is_of_a_stack(path):
        return None
    if (record := _finished(path)) is None:
        shutil.rmtree(path, ignore_errors=True)
    return record


def _is_of_a_stack(path: Path) -> bool:
    """Whether a stack began the run in a directory."""
    return bool(facts_or_nothing(path).get("environment", {}).get("engine") == STACK)


def _may_be_member(record: Record | None) -> bool:
    """Whether a trial may be part of the stack that a checkpoint has: a killed one may have written some records."""
    return record is None or record.environment.get("engine") == STACK


def _finished(path: Path) -> Record | None:
    with suppress(PreqError):
        record = load(path)
        return record if record.status in OVER else None
    return None
