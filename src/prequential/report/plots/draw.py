"""Lines on axes: a few that are told apart by colour and dashes, many as a grey cloud behind the best."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prequential.report.axes import name_ends
from prequential.report.colours import COLOURS, DASHES, FAINT
from prequential.report.plots.lines import Line

MOST_TOLD_APART = len(COLOURS)
HIGHLIGHTED = 5
"""Lines in colour where there are too many to tell all of them apart."""


def style(rank: int, number: int) -> dict[str, Any]:
    """How the line of that rank is drawn, among so many."""
    if number > MOST_TOLD_APART and rank >= HIGHLIGHTED:
        faint = min(0.6, max(0.15, 30 / number))  # a cloud of many lines keeps its shades
        return {"color": FAINT, "linestyle": "solid", "linewidth": 0.6, "alpha": faint, "zorder": 1.5}
    return {"color": COLOURS[rank], "linestyle": DASHES[rank], "linewidth": 1.5, "zorder": 3 - rank / 100}


def num_told_apart(number: int) -> int:
    """How many of so many lines have a colour of their own."""
    return number if number <= MOST_TOLD_APART else HIGHLIGHTED


def draw_lines(axes: Any, lines: Sequence[Line], *, steps: bool = False) -> None:
    """Draw lines, the best first; bands are one standard error to each side."""
    for rank, line in enumerate(lines):
        look = style(rank, len(lines))
        finite = np.where(np.isfinite(line.y), line.y, np.nan)
        axes.plot(line.x, finite, **look, drawstyle="steps-post" if steps else "default")
        if line.band is not None and rank < num_told_apart(len(lines)):
            low, high = finite - line.band, finite + line.band
            axes.fill_between(line.x, low, high, color=look["color"], alpha=0.18, linewidth=0, zorder=1.4)


def name_lines(figure: Any, axes: Any, lines: Sequence[Line], texts: Sequence[str], *, what: str = "runs") -> None:
    """The texts at the ends of the lines that are told apart, and how many others there are."""
    shown = num_told_apart(len(lines))
    ends = [
        (_last_finite(line), text, COLOURS[rank], DASHES[rank])
        for rank, (line, text) in enumerate(zip(lines[:shown], texts[:shown], strict=True))
    ]
    others = [_last_finite(line) for line in lines[shown:]]
    if others:
        ends.append((float(np.median(others)), f"{len(others):,} other {what}", FAINT, "solid"))
    name_ends(figure, axes, ends)


def _last_finite(line: Line) -> float:
    finite = line.y[np.isfinite(line.y)]
    return float(finite[-1]) if len(finite) else 0.0


def limits(lines: Sequence[Line]) -> tuple[float, float, int]:
    """Lowest and highest value to show, and how many lines end above that.

    Where there are many lines, those in colour and three quarters of the others fit; a few runs that went wrong do
    not press the rest together.
    """
    shown = num_told_apart(len(lines))
    tops = np.array([_top(line) for line in lines])
    top = float(tops[:shown].max())
    if len(lines) > shown:
        top = max(top, float(np.quantile(tops[shown:], 0.75)))
    low = -max(_top(replace(line, y=-line.y)) for line in lines)
    margin = max(0.04 * (top - low), (1 - (top - low)) / 2)  # at least one nat, that rounding is not blown up
    ends = np.array([_last_finite(line) for line in lines])
    return low - margin, top + margin, int((ends > top + margin).sum())


def _top(line: Line) -> float:
    high = line.y if line.band is None else line.y + line.band
    finite = high[np.isfinite(high)]
    return float(finite.max()) if len(finite) else 0.0
