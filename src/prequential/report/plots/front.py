"""`pareto`: what runs reached for what they cost, as dots, and the fronts of them."""

import textwrap
from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from prequential.errors import PreqError
from prequential.methods import METHODS
from prequential.report.axes import literal
from prequential.report.colours import FAINT, GREY, INK, METHOD_STYLES
from prequential.report.pareto import Front, front_of, places_of, shown_of
from prequential.report.picture import picture
from prequential.report.seeds import Run
from prequential.report.text import counted

MOST_NAMES = 12
"""Up to so many dots have their names beside them."""
LOGARITHMIC_FROM = 4
"""The ratio of largest to smallest value from which on the axis is logarithmic."""


def plot_pareto(front: Front, path: str | Path, *, heldout: bool = False) -> Path:
    """Draw codelength (and held-out error) against FLOPs and save the picture as PNG, SVG or PDF.

    Every run is a dot. A line in a method's colour is the best that its runs reached for at most so many FLOPs; the
    broad grey line is the front of all runs.
    """
    path = Path(path)
    panels = [which for which in ([False, True] if heldout else [False]) if front.best(heldout=which)]
    if not panels:
        raise PreqError("there is nothing to draw: no run has a codelength or a held-out error")
    runs = front.runs.runs
    models = sorted({run.record.model["name"] for run in runs})
    names = ", ".join(models[:3]) + (", …" if len(models) > 3 else "")
    with picture(path, 5.4 * len(panels) + 0.6, 4.2) as figure:
        for number, which in enumerate(panels, start=1):
            _draw(figure.add_subplot(1, len(panels), number), runs, heldout=which)
        if front.told:
            figure.supxlabel(textwrap.fill(literal(front.told), 90), fontsize=7, color=GREY, x=0.01, ha="left")
        figure.suptitle(
            f"{literal(runs[0].record.data['name'])} · {counted(runs[0].record.length, 'label')} · {literal(names)}",
            fontsize=11,
        )
    return path


def styles_of(methods: Iterable[str]) -> list[tuple[str, str]]:
    """A colour and a mark for each method: those of the package have theirs in every picture, others as they come.

    Example:
        >>> styles_of(["erm", "mine", "mi-rs"])
        [('#009e73', 'v'), ('#cc79a7', 'P'), ('#0072b2', 'o')]
    """
    known = dict(zip(METHODS, METHOD_STYLES, strict=False))
    others = cycle(METHOD_STYLES[len(known) :] or METHOD_STYLES)
    return [known.get(method) or next(others) for method in methods]


def _draw(axes: Any, runs: Sequence[Run], *, heldout: bool) -> None:
    shown = shown_of(runs, heldout=heldout)
    methods = dict(sorted((run.record.method["name"], run.record.title) for run in shown))
    if len(methods) > 1:
        axes.plot(
            *_steps(shown, heldout), color=FAINT, linewidth=7, alpha=0.35, solid_capstyle="butt", label="front of all"
        )
    for (method, title), (colour, mark) in zip(methods.items(), styles_of(methods), strict=True):
        own = [run for run in shown if run.record.method["name"] == method]
        axes.scatter(
            *zip(*places_of(own, heldout=heldout), strict=True),
            s=22,
            color=colour,
            marker=mark,
            alpha=0.55,
            linewidths=0,
        )
        flops, values = _steps(own, heldout)
        corners = slice(0, len(flops) - 1, 2)  # the other corners are no runs
        style = {"color": colour, "marker": mark, "markersize": 5, "label": title}
        axes.plot(flops, values, **style, linewidth=1.6, markevery=corners)
    _name_dots(axes, shown, heldout=heldout)
    values = [value for _, value in places_of(shown, heldout=heldout)]
    is_logarithmic = min(values) > 0 and max(values) / min(values) >= LOGARITHMIC_FROM
    label = "held-out error" if heldout else "codelength [nats]"
    is_free = any(cost <= 0 for cost, _ in places_of(shown, heldout=heldout))  # all labels coded uniformly
    axes.set(xscale="linear" if is_free else "log", yscale="log" if is_logarithmic else "linear", ylabel=label)
    axes.set_xlabel("FLOPs, with the closing stage" if heldout else "FLOPs")
    _label_values(axes.yaxis, heldout=heldout, is_logarithmic=is_logarithmic)
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    axes.legend(frameon=False, fontsize=9, loc="best")


def _name_dots(axes: Any, runs: Sequence[Run], *, heldout: bool) -> None:
    if len(runs) > MOST_NAMES:
        return
    for run, place in zip(runs, places_of(runs, heldout=heldout), strict=True):
        axes.annotate(literal(run.name), place, (5, 5), textcoords="offset points", fontsize=8, color=INK)


def _steps(runs: Sequence[Run], heldout: bool) -> tuple[list[float], list[float]]:
    """The best value for at most so many FLOPs, as a line of steps up to the dearest run.

    Its first, third, fifth, … corners are the runs of the front.
    """
    dearest = max(cost for cost, _ in places_of(runs, heldout=heldout))
    front = places_of(front_of(runs, heldout=heldout), heldout=heldout)
    flops, values = [front[0][0]], [front[0][1]]
    for cost, value in front[1:]:
        flops += [cost, cost]
        values += [values[-1], value]
    return [*flops, dearest], [*values, values[-1]]


def _label_values(axis: Any, *, heldout: bool, is_logarithmic: bool) -> None:
    """Plain numbers on the axis, never powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if is_logarithmic:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %" if heldout else f"{value:,g}"))
