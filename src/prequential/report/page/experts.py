"""Mixed runs on the page: what each expert alone would cost, and a drawing of who was trusted when."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prequential.report.comparison import Comparison
from prequential.report.experts import MOST_DRAWN, Mixed, Weights
from prequential.report.page.cost import FRAMES, Axis
from prequential.report.picture import COLOURS
from prequential.report.text import number
from prequential.runs.record import Record

Floats = NDArray[np.float64]
LEFT, RIGHT, TOP, BOTTOM = (getattr(FRAMES["roomy"], side) for side in ("left", "right", "top", "bottom"))
MOST_MIXED = 4
"""Mixed runs that are shown, the best first."""
STEP = 3.0
"""Units of the drawing between two points of an outline."""
WORTH_A_NAME = 0.25
"""The share of the height that an area must reach somewhere to have its name written into it."""
ROOM = 60.0
"""Between a name and the edges of the drawing."""
FILLS = (*COLOURS[: MOST_DRAWN - 1], "var(--ink)")
"""The colours of areas; black is not seen on a dark page."""


@dataclass(frozen=True)
class Area:
    """The weight of an expert along the sequence, as an outline."""

    name: str
    fill: str
    outline: str
    place: tuple[float, float] | None
    """Where its name is written, if it is anywhere large."""


@dataclass(frozen=True)
class MixedRun:
    """A mixed run as the page shows it."""

    name: str
    mixed: Mixed
    areas: list[Area]
    x_ticks: list[tuple[float, str]]
    fills: dict[str, str]
    """The colour of each expert that has its own."""
    frame: tuple[float, float, float, float] = LEFT, RIGHT, TOP, BOTTOM


def mixed_runs(comparison: Comparison, load: Callable[[str], Record]) -> list[MixedRun]:
    """The mixed runs of a comparison, of several seeds the first; none where no run has experts.

    Args:
        load: gives the whole record of a run by its name.
    """
    found = []
    for entry in [entry for entry in comparison.entries if entry.first.expert_names][:MOST_MIXED]:
        record = load(entry.runs[0])
        mixed = Mixed.of(record)
        if mixed is not None and record.expert_weights is not None and len(record.expert_weights):
            found.append(_drawn(entry.runs[0], record, mixed))
    return found


def _drawn(name: str, record: Record, mixed: Mixed) -> MixedRun:
    weights, is_log = Weights.of(record), record.seeds["order_seed"] is not None
    axis = Axis(1.0 if is_log else 0.0, float(max(len(record.nats), 2)), is_log)
    places = np.array([LEFT + (RIGHT - LEFT) * axis.share(float(after)) for after in weights.after])
    kept = np.append(np.flatnonzero(np.diff(np.floor(places / STEP))), len(places) - 1)  # the last of each step
    xs, shares = np.round(np.append(LEFT, places[kept]), 1), weights.shares[np.append(kept[:1], kept)]
    tops = np.cumsum(shares, axis=1)
    areas, fills = [], {}
    for index, expert in enumerate(weights.names):
        fill = "var(--faint)" if weights.others and index == len(weights.names) - 1 else FILLS[index]
        low, high = _heights(tops[:, index] - shares[:, index]), _heights(tops[:, index])
        areas.append(Area(expert, fill, _outline(xs, low, high), _place(xs, shares[:, index], low, high)))
        fills[expert] = fill
    return MixedRun(name, mixed, areas, [(_x(axis, tick), number(tick, ",.10g")) for tick in axis.ticks()], fills)


def _x(axis: Axis, value: float) -> float:
    return float(round(LEFT + (RIGHT - LEFT) * axis.share(value), 1))


def _heights(shares: Floats) -> Floats:
    heights: Floats = np.round(BOTTOM - (BOTTOM - TOP) * np.clip(shares, 0, 1), 1)
    return heights


def _outline(xs: Floats, low: Floats, high: Floats) -> str:
    """Along the top from left to right, back along the bottom; a weight holds from the point before."""
    there = "".join(f"V{y:g}H{x:g}" for x, y in zip(xs[1:], high[1:], strict=True))
    back = "".join(f"V{y:g}H{x:g}" for x, y in zip(xs[-2::-1], low[:0:-1], strict=True))
    return f"M{xs[0]:g} {high[1]:g}{there}{back}Z"


def _place(xs: Floats, shares: Floats, low: Floats, high: Floats) -> tuple[float, float] | None:
    inside = np.where((xs > LEFT + ROOM) & (xs < RIGHT - ROOM), shares, 0.0)
    where = int(inside.argmax())
    if inside[where] < WORTH_A_NAME:
        return None
    return float(xs[where]), float((low[where] + high[where]) / 2 + 4)
