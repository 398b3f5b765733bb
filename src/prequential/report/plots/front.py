"""`pareto`: what runs reached for what they cost, as dots, and the fronts of them."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from prequential.errors import PreqError
from prequential.methods import METHODS
from prequential.report.axes import literal, mark, number_axis, plain_number
from prequential.report.colours import FAINT, INK, METHOD_STYLES
from prequential.report.pareto import Front, front_of, places_of, shown_of
from prequential.report.picture import picture
from prequential.report.plots.draw import note
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
        note(figure, literal(front.told))
        first = runs[0].record
        figure.suptitle(literal(f"{first.data['name']} · {counted(first.length, 'label')} · {names}"), fontsize=11)
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
    places = places_of(shown, heldout=heldout)
    methods = dict(sorted((run.record.method["name"], run.record.title) for run in shown))
    if len(methods) > 1:
        broad = {"color": FAINT, "linewidth": 7, "alpha": 0.35, "solid_capstyle": "butt"}
        axes.plot(*_steps(shown, heldout), **broad, label="front of all")
    for (method, title), (colour, dot) in zip(methods.items(), styles_of(methods), strict=True):
        own = [run for run in shown if run.record.method["name"] == method]
        dots = zip(*places_of(own, heldout=heldout), strict=True)
        axes.scatter(*dots, s=22, color=colour, marker=dot, alpha=0.55, linewidths=0)
        flops, values = _steps(own, heldout)
        corners = slice(0, len(flops) - 1, 2)  # the other corners are no runs
        style = {"color": colour, "marker": dot, "markersize": 5, "label": title}
        axes.plot(flops, values, **style, linewidth=1.6, markevery=corners)
    if len(shown) <= MOST_NAMES:
        for run, place in zip(shown, places, strict=True):
            mark(axes, literal(run.name), place, (5, 5), fontsize=8, color=INK)
    costs, reached = zip(*places, strict=True)
    scale = "log" if min(reached) > 0 and max(reached) / min(reached) >= LOGARITHMIC_FROM else "linear"
    axes.set(xscale="log" if min(costs) > 0 else "linear", yscale=scale)  # all labels coded uniformly cost nothing
    axes.set_xlabel("FLOPs, with the closing stage" if heldout else "FLOPs")
    axes.set_ylabel("held-out error" if heldout else "codelength [nats]")
    number_axis(axes.yaxis, scale, text=(lambda share: f"{100 * share:g} %") if heldout else plain_number)
    axes.grid(alpha=0.25, which="major")
    axes.legend(frameon=False, fontsize=9, loc="best")


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
