"""What runs reached for what they cost: dots, and the fronts of them."""

import csv
import io
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prequential.errors import PreqError
from prequential.files import writing
from prequential.report.axes import literal
from prequential.report.colours import FAINT, GREY, INK
from prequential.report.names import shortest
from prequential.report.picture import picture
from prequential.report.runs import Gathered, Point, front_of, places_of, shown_of

STYLES = {
    "mi-rs": ("#0072b2", "o"),
    "mi-rb": ("#56b4e9", "s"),
    "ci-fs": ("#d55e00", "^"),
    "ci-cf": ("#e69f00", "D"),
    "erm": ("#009e73", "v"),
}
"""A colour and a mark for each method, the same in every picture; told apart without colour vision too."""
OTHER_STYLES = [("#cc79a7", "P"), ("#000000", "X"), ("#7f7f00", "<"), ("#8c564b", ">")]
MOST_NAMES = 12
"""Up to so many dots have their names beside them."""
LOGARITHMIC_FROM = 4
"""The ratio of largest to smallest value from which on the axis is logarithmic."""


def plot_pareto(gathered: Gathered, path: str | Path, *, heldout: bool = False) -> Path:
    """Draw codelength (and held-out error) against FLOPs and save the picture as PNG, SVG or PDF.

    Every run is a dot. A line in a method's colour is the best that its runs reached for at most so many FLOPs; the
    broad grey line is the front of all runs.
    """
    path = Path(path)
    panels = [which for which in ([False, True] if heldout else [False]) if gathered.front(heldout=which)]
    if not panels:
        raise PreqError("there is nothing to draw: no run has a codelength or a held-out error")
    first = gathered.points[0]
    models = sorted({point.model for point in gathered.points})
    names = ", ".join(models[:3]) + (", …" if len(models) > 3 else "")
    with picture(path, 5.4 * len(panels) + 0.6, 4.2) as figure:
        for number, which in enumerate(panels, start=1):
            _draw(figure.add_subplot(1, len(panels), number), gathered.points, heldout=which)
        if gathered.told:
            figure.supxlabel(textwrap.fill(literal(gathered.told), 90), fontsize=7, color=GREY, x=0.01, ha="left")
        figure.suptitle(f"{literal(first.data)} · {first.length:,} labels · {literal(names)}", fontsize=11)
    return path


def _draw(axes: Any, points: Sequence[Point], *, heldout: bool) -> None:
    shown = shown_of(points, heldout=heldout)
    methods = {point.method: point.title for point in sorted(shown, key=lambda point: point.method)}
    if len(methods) > 1:
        axes.plot(
            *_steps(shown, heldout), color=FAINT, linewidth=7, alpha=0.35, solid_capstyle="butt", label="front of all"
        )
    others = iter(OTHER_STYLES * len(methods))
    for method, title in methods.items():
        own = [point for point in shown if point.method == method]
        colour, mark = STYLES[method] if method in STYLES else next(others)
        axes.scatter(
            *zip(*places_of(own, heldout=heldout), strict=True),
            s=22,
            color=colour,
            marker=mark,
            alpha=0.55,
            linewidths=0,
        )
        flops, values = _steps(own, heldout)
        runs = slice(0, len(flops) - 1, 2)  # the other corners are no runs
        style = {"color": colour, "marker": mark, "markersize": 5, "label": title}
        axes.plot(flops, values, **style, linewidth=1.6, markevery=runs)
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


def _name_dots(axes: Any, points: Sequence[Point], *, heldout: bool) -> None:
    if len(points) > MOST_NAMES:
        return
    names = shortest([point.directory for point in points], [point.name for point in points])
    for name, place in zip(names, places_of(points, heldout=heldout), strict=True):
        axes.annotate(literal(name), place, (5, 5), textcoords="offset points", fontsize=8, color=INK)


def _steps(points: Sequence[Point], heldout: bool) -> tuple[list[float], list[float]]:
    """The best value for at most so many FLOPs, as a line of steps up to the dearest run.

    Its first, third, fifth, … corners are the runs of the front.
    """
    dearest = max(cost for cost, _ in places_of(points, heldout=heldout))
    front = places_of(front_of(points, heldout=heldout), heldout=heldout)
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


def rows_of(gathered: Gathered) -> list[dict[str, Any]]:
    """A row of plain values for each run, the cheapest first: what CSV and JSON hold."""
    front, heldout_front = ({p.directory for p in gathered.front(heldout=heldout)} for heldout in (False, True))
    return [
        {
            "flops": point.flops,
            "codelength_nats": point.nats,
            "on_front": point.directory in front,
            "heldout_flops": point.heldout_flops,
            "heldout_error": point.heldout_error,
            "on_heldout_front": point.directory in heldout_front,
            "method": point.method,
            "model": point.model,
            "directory": point.directory,
            "settings": point.settings,
        }
        for point in sorted(gathered.points, key=lambda point: (point.flops, point.directory))
    ]


def write_csv(gathered: Gathered, path: str | Path) -> Path:
    """Write the rows as CSV, with a column for each setting that some run has."""
    path = Path(path)
    rows = [row | row.pop("settings") for row in rows_of(gathered)]
    text = io.StringIO()
    table = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.getvalue(), encoding="utf-8", errors="backslashreplace")
    return path


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else value
