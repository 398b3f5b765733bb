"""Names beside dots that cover neither each other nor a dot."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.report.picture import FAINT, INK, literal

NAME_SIZE = 8
DOT = 4
"""Half the width of a dot with some room, in points."""
FAR = 1.5
"""Line heights from which on a thin line leads from a dot to its name."""


def name_dots(figure: Any, axes: Any, places: NDArray[np.float64], names: Mapping[int, str]) -> None:
    """Write names, by the index of their dot, each at the nearest place that is free; all else is already drawn."""
    figure.get_layout_engine().execute(figure)  # only now it is known where dots are
    scale = figure.dpi / 72
    dots = axes.transData.transform(places)
    taken: list[tuple[float, ...]] = [
        (x - DOT * scale, y - DOT * scale, x + DOT * scale, y + DOT * scale) for x, y in dots
    ]
    taken += [
        _box(ends, scale) for line in axes.lines for ends in _segments(axes.transData.transform(line.get_xydata()))
    ]
    if (legend := axes.get_legend()) is not None:
        taken.append(tuple(legend.get_window_extent().extents))
    room = [*axes.get_window_extent().extents]
    room[2] = max(room[2], figure.bbox.x1) if axes is figure.axes[-1] else room[2]
    for index, name in names.items():
        look: Any = {"textcoords": "offset points", "fontsize": NAME_SIZE, "color": INK, "in_layout": False}
        text = axes.annotate(literal(name), places[index], (0, 0), **look)
        box = text.get_window_extent()
        for x, y in _around(box.width / scale, box.height / scale):
            left, low = dots[index] + np.array([x, y]) * scale
            found = (left, low, left + box.width, low + box.height)
            if _is_inside(found, room) and not any(_overlap(found, other) for other in taken):
                break
        else:
            text.remove()
            continue
        text.set_position((x, y))
        taken.append(found)
        middle = y + box.height / scale / 2
        if abs(middle) > FAR * box.height / scale:
            line = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.6, "shrinkA": 0, "shrinkB": DOT / 2}
            end = (x if x > 0 else min(x + box.width / scale, 0.0), middle)
            axes.annotate("", places[index], end, textcoords="offset points", arrowprops=line, in_layout=False)


def _around(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Where the lower left corner of a text may lie, in points from its dot, the nearest first."""
    for step in range(25):
        for up in dict.fromkeys((step, -step)):
            for x in (DOT + 1, -DOT - 1 - width, -width / 2):
                y = up * height * 0.75 - height / 2
                if x != -width / 2 or abs(y + height / 2) >= DOT + height / 2:
                    yield x, y


def _segments(corners: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """The pieces of a line of steps, along and then up or down."""
    for (x, y), (later_x, later_y) in pairwise(corners):
        yield np.array([(x, y), (later_x, y)])
        yield np.array([(later_x, y), (later_x, later_y)])


def _box(ends: NDArray[np.float64], scale: float) -> tuple[float, ...]:
    return (*(ends.min(axis=0) - scale), *(ends.max(axis=0) + scale))


def _is_inside(box: tuple[float, ...], room: Any) -> bool:
    return bool(box[0] >= room[0] and box[1] >= room[1] and box[2] <= room[2] and box[3] <= room[3])


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
