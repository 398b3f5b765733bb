"""What regret is measured against: one of the lines, or a simple code of the labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, unknown_name
from prequential.measure import require_comparable
from prequential.report.plots.chosen import Run, Setting
from prequential.report.plots.lines import mean_nats
from prequential.runs.record import Record
from prequential.targets.simple_codes import frequency_code, previous_label_code, uniform_code

SIMPLE_CODES = {
    "uniform": ("the uniform code", uniform_code),
    "frequencies": ("the code of label frequencies", frequency_code),
    "previous": ("the code of the previous label", previous_label_code),
}


@dataclass(frozen=True)
class Reference:
    """A name, and what each label costs there."""

    name: str
    nats: NDArray[np.float64]
    setting: Setting | None
    """The line that it is; None for a simple code."""


def find_reference(wanted: Record | str | Path | None, settings: Sequence[Setting]) -> Reference:
    """The line of that run or of that name, or a simple code; by default the best line, for a single run uniform.

    Raises:
        PreqError: if it is none of these, or the runs cannot be compared with it.
    """
    if wanted is None and len(settings) == 1 and len(settings[0].runs) == 1:
        wanted = "uniform"
    setting = settings[0] if wanted is None else _line_of(wanted, settings)
    for each in settings:
        for run in each.runs:
            require_comparable(run.outline, (setting or settings[0]).outline)
    if setting is not None:
        return Reference(setting.name, mean_nats(setting), setting)
    if wanted not in SIMPLE_CODES:
        if isinstance(wanted, Record):
            raise PreqError("the reference is none of the records to draw; give it among them")
        raise unknown_name("reference", str(wanted), [*(setting.name for setting in settings), *SIMPLE_CODES])
    name, code = SIMPLE_CODES[str(wanted)]
    record = next(settings[0].records())
    return Reference(name, code(record.labels, record.num_classes), None)


def _line_of(wanted: Record | str | Path, settings: Sequence[Setting]) -> Setting | None:
    by_place = (setting for setting in settings if any(_is(run, wanted) for run in setting.runs))
    by_name = (setting for setting in settings if wanted in (setting.name, *(run.name for run in setting.runs)))
    return next(by_place, None) or next(by_name, None)


def _is(run: Run, wanted: Record | str | Path) -> bool:
    if isinstance(wanted, Record):
        return run.source is wanted or (wanted.path is not None and run.outline.path == wanted.path)
    return run.outline.path is not None and run.outline.path.resolve() == Path(wanted).resolve()
