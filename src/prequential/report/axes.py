"""What the axes of all pictures share: plain numbers, faint grids, names at the ends of lines."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.report.colours import FAINT, GREY, INK

POSITION = "position in the sequence [labels]"
LABEL_SIZE = 8
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain_number(value: float) -> str:
    """A number as people write it, short enough for an axis.

    Example:
        >>> [plain_number(value) for value in (60000, 2.5, -0.001, 0, 10_000_000, 5e-7)]
        ['60,000', '2.5', '−0.001', '0', '10 M', '5·10⁻⁷']
    """
    if 0 < abs(value) < 0.9e-3:
        power = math.floor(math.log10(abs(value)) + 1e-9)
        factor = f"{value / 10**power:.3g}·".removeprefix("1·")
        return f"{factor}10{str(power).translate(SUPERSCRIPTS)}".replace("-", "−")
    is_large = abs(value) >= 0.9999e6
    text = f"{value / 1e6 if is_large else value:,.6f}".rstrip("0").rstrip(".")
    return text.replace("-", "−") + (" M" if is_large else "")


def literal(text: str) -> str:
    """Text that matplotlib draws as it is: a name with dollar signs is no formula.

    Example:
        >>> print(literal("cost_$5_$6"))
        cost_\\$5_\\$6
    """
    return text.replace("$", r"\$")


def number_axis(axis: Any, scale: str, *, most: int = 5, text: Callable[[float], str] = plain_number) -> None:
    """Ticks at round places, not as powers of ten; on a logarithmic axis of less than two decades also between."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    if scale == "log":
        short = low > 0 and high / low < 100
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=12))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def position_axis(axes: Any, length: int, scale: str) -> None:
    """Positions from the first to the last label; a logarithmic axis leaves out the first ten of a long sequence."""
    first = 0 if scale == "linear" else 10 if length >= 1000 else 1
    axes.set(xscale=scale, xlim=(first, max(length, first + 1)))


def finish(axes: Any, *, x: str, y: str, scale: str, y_scale: str = "linear", most: int = 5) -> None:
    """Names, ticks and grid of axes whose lines and limits are there."""
    axes.set(xlabel=x, ylabel=y)
    number_axis(axes.xaxis, scale, most=most)
    number_axis(axes.yaxis, y_scale)
    axes.grid(color=FAINT, alpha=0.3, linewidth=0.5, which="major")


def mark(axes: Any, text: str, at: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """A small text beside a place, so many points away from it."""
    axes.annotate(text, at, offset, textcoords="offset points", **{"fontsize": 7, "color": GREY} | look)


def spread(places: Sequence[float], gap: float, top: float) -> NDArray[np.float64]:
    """The nearest places, in the same order, that are at least `gap` apart and inside [0, top] if there is room.

    Example:
        >>> spread([10.0, 50.0, 51.0], 4.0, 100.0).tolist()
        [10.0, 48.5, 52.5]
    """
    order = np.argsort(places, kind="stable")
    groups: list[tuple[float, int]] = []
    for rank, index in enumerate(order):  # without the gaps they only must not go down: isotonic regression
        groups.append((float(places[index]) - rank * gap, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (mean, number), (before, others) = groups.pop(), groups.pop()
            groups.append(((mean * number + before * others) / (number + others), number + others))
    level = np.repeat([mean for mean, _ in groups], [number for _, number in groups])
    level = np.clip(level, 0, max(top - (len(order) - 1) * gap, 0))
    found = np.empty(len(order))
    found[order] = level + np.arange(len(order)) * gap
    return found


def name_ends(figure: Any, axes: Any, ends: Sequence[tuple[float, str, str, Any]]) -> None:
    """Write names to the right of the axes, each joined to its line's end: (height, text, colour, dashes)."""
    if not ends:
        return
    figure.get_layout_engine().execute(figure)  # only now heights are known
    tall = axes.get_window_extent().height
    gap = LABEL_SIZE * 1.35 * figure.dpi / 72 / tall
    scaled = axes.yaxis.get_transform().transform([end[0] for end in ends])
    heights = [float(np.clip(axes.transLimits.transform((0, height))[1], 0, 1)) for height in scaled]
    for start, stop, (_, text, colour, dashes) in zip(heights, spread(heights, gap, 1.0), ends, strict=True):
        look = {"color": colour, "linestyle": dashes, "linewidth": 1.1}
        axes.plot([1.005, 1.03, 1.075], [start, stop, stop], transform=axes.transAxes, clip_on=False, **look)
        ink = INK if colour != FAINT else GREY
        axes.text(1.085, stop, literal(text), transform=axes.transAxes, va="center", fontsize=LABEL_SIZE, color=ink)
