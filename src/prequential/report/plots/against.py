"""What regret is measured against: one of the lines, or a simple code of the labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, unknown_name
from prequential.measure.comparable import require_comparable
from prequential.measure.simple import SIMPLE_CODES
from prequential.report.plots.lines import mean_of
from prequential.report.seeds import Run, SeedGroup
from prequential.runs.record import Record


@dataclass(frozen=True)
class Reference:
    """A name, and what each label costs there."""

    name: str
    nats: NDArray[np.float64]
    group: SeedGroup | None
    """The line that it is; None for a simple code."""


def find_reference(wanted: Record | str | Path | None, groups: Sequence[SeedGroup]) -> Reference:
    """The line of that run or of that name, or a simple code; by default the best line, for a single run uniform.

    Raises:
        PreqError: if it is none of these, or the runs cannot be compared with it.
    """
    if wanted is None and len(groups) == 1 and len(groups[0].members) == 1:
        wanted = "uniform"
    group = groups[0] if wanted is None else _line_of(wanted, groups)
    for each in groups:
        for record in each.records:
            require_comparable(record, (group or groups[0]).first)
    if group is not None:
        return Reference(group.name, mean_of(group), group)
    if wanted not in SIMPLE_CODES:
        if isinstance(wanted, Record):
            raise PreqError("the reference is none of the records to draw; give it among them")
        raise unknown_name("reference", str(wanted), [*(each.name for each in groups), *SIMPLE_CODES])
    code, record = SIMPLE_CODES[str(wanted)], next(groups[0].loaded())
    return Reference(f"the {code.phrase}", code.nats(record.labels, record.num_classes), None)


def _line_of(wanted: Record | str | Path, groups: Sequence[SeedGroup]) -> SeedGroup | None:
    by_place = (group for group in groups if any(_is(run, wanted) for run in group.members))
    by_name = (group for group in groups if wanted in (group.name, *group.runs))
    return next(by_place, None) or next(by_name, None)


def _is(run: Run, wanted: Record | str | Path) -> bool:
    path = run.record.path
    if isinstance(wanted, Record):
        return run.source is wanted or (wanted.path is not None and path == wanted.path)
    return path is not None and path.resolve() == Path(wanted).resolve()
