"""What the charts of a page know: codelengths of all runs at shared positions, in a form that browsers read fast."""

import base64
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prequential.measure.simple import SIMPLE_CODES
from prequential.report.colours import COLOURS, DASHES
from prequential.report.comparison import Comparison
from prequential.report.reduction import Reduced, reduced, totals_after

MOST_POSITIONS, FEWEST_POSITIONS = 4000, 800
NUMBERS_IN_PAGE = 600_000
"""Codelengths that a page holds, as far as each run keeps enough: eleven bytes each."""
LINE_WIDTH = 2
"""Pixels of a line; dashes are told in line widths."""


def curves_of(comparison: Comparison) -> Reduced:
    """The codelengths of all runs, entry by entry, and behind them those of the simple codes."""
    records = [record for entry in comparison.entries for record in entry.records]
    most = min(max(NUMBERS_IN_PAGE // len(records), FEWEST_POSITIONS), MOST_POSITIONS)
    curves = reduced([record.nats for record in records], most)
    longest = max(records, key=lambda record: len(record.nats))
    simple = [
        totals_after(code.nats(longest.labels, longest.num_classes), curves.kept) for code in SIMPLE_CODES.values()
    ]
    return replace(curves, totals=curves.totals + simple)


def data_of(comparison: Comparison, curves: Reduced) -> dict[str, Any]:
    """The data of the charts, as JSON can hold it."""
    num_runs = sum(len(entry.runs) for entry in comparison.entries)
    entries, next_run = [], 0
    for entry in comparison.entries:
        numbers = list(range(next_run, next_run + len(entry.runs)))
        entries.append({"name": entry.name, "runs": numbers, "names": entry.runs, "finite": math.isfinite(entry.nats)})
        next_run += len(entry.runs)
    return {
        "kept": packed(curves.kept),
        "curves": [packed(totals) for totals in curves.totals],
        "entries": entries,
        "codes": [
            {"name": SIMPLE_CODES[name].title, "curve": num_runs + number}
            for number, name in enumerate(comparison.simple)
        ],
        "linear": comparison.best.records[0].seeds["order_seed"] is None,  # a stream: late labels count as much
        "colours": COLOURS,
        "dashes": dashes(DASHES),
    }


def packed(values: ArrayLike) -> str:
    """Numbers as base64 of 64-bit floats, lowest byte first.

    Example:
        >>> packed([0.0, 1.0])
        'AAAAAAAAAAAAAAAAAADwPw=='
    """
    return base64.b64encode(np.asarray(values, "<f8").tobytes()).decode()


def dashes(styles: Sequence[str | tuple[int, tuple[float, ...]]]) -> list[list[float]]:
    """Dashes as a canvas wants them, in pixels.

    Example:
        >>> dashes(["solid", (0, (5, 1.5))])
        [[], [10, 3.0]]
    """
    return [[] if isinstance(style, str) else [LINE_WIDTH * size for size in style[1]] for style in styles]
