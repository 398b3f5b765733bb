"""`curve`: the codelength along the sequence."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prequential.measure import require_same_sequence
from prequential.reference import published
from prequential.report.axes import finish, position_axis
from prequential.report.colours import FAINT, GREY, INK
from prequential.report.picture import picture
from prequential.report.plots.chosen import Setting
from prequential.report.plots.draw import draw_lines, limits, name_lines
from prequential.report.plots.lines import Line, cumulative_lines, loss_lines
from prequential.report.plots.loss import draw_loss
from prequential.report.plots.options import Options
from prequential.report.plots.words import band_note, inputs_note, note, title_of


def plot_curves(settings: Sequence[Setting], path: Path, options: Options) -> None:
    """Left the smoothed next-step loss, right the codelength, with the uniform code and the paper's figure."""
    for setting in settings:
        require_same_sequence(setting.outline, settings[0].outline)
    scale = options.scale(settings[0].outline)
    lines = cumulative_lines(settings, scale)
    with picture(path, 9.6, 3.5) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        spans = draw_loss(left, settings, loss_lines(settings, scale, options.window), options)
        _draw_codelength(right, settings, lines, scale)
        figure.suptitle(title_of([setting.outline for setting in settings]), fontsize=10)
        name_lines(figure, right, lines, [f"{line.name}  {_nats(line.end)}" for line in lines])
        note(figure, f"Loss: {spans}.", band_note(settings), inputs_note(settings))


def _nats(value: float) -> str:
    return f"{value:,.0f} nats" if math.isfinite(value) else "diverged"


def _draw_codelength(axes: Any, settings: Sequence[Setting], lines: Sequence[Line], scale: str) -> None:
    first = settings[0].outline
    length = max(len(setting.outline.nats) for setting in settings)
    uniform = math.log(first.num_classes)
    ends = np.geomspace(1, max(length, 2), 50) if scale == "log" else np.array([0, length])
    axes.plot(ends, ends * uniform, color=FAINT, linewidth=0.9, linestyle=":", zorder=1)
    draw_lines(axes, lines)
    position_axis(axes, length, scale)
    start = max(axes.get_xlim()[0], 1)
    _, high, _ = limits(lines)
    axes.set_yscale(scale)
    axes.set_ylim(*((0, 1.1 * high) if scale == "linear" else (_lowest(lines, start), length * uniform * 1.3)))
    at = length / 2 if scale == "log" else min(length, high / uniform)
    axes.annotate(
        "uniform code", (at, at * uniform), (-5, 0), textcoords="offset points", ha="right", fontsize=7, color=GREY,
    )  # fmt: skip
    _draw_published(axes, settings)
    finish(axes, x="labels coded", y="codelength [nats]", scale=scale, y_scale=scale)


def _lowest(lines: Sequence[Line], start: float) -> float:
    """A little below the lowest codelength that is shown."""
    values = [float(np.interp(start, line.x, line.y)) for line in lines]
    return min((value for value in values if math.isfinite(value) and value > 0), default=1.0) / 1.3


def _draw_published(axes: Any, settings: Sequence[Setting]) -> None:
    """The paper's figure, where it is about the same data, model, method and length."""
    for setting in settings[:1]:
        record = setting.outline
        row = published(record.data["name"], record.model["name"], record.method["name"])
        if row is not None and row.nats is not None and len(record.nats) == row.length:
            axes.axhline(row.nats, color=INK, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
            axes.annotate(
                f"{row.label}: {row.nats:,.0f} nats", (0.02, row.nats), (0, 3), xycoords=axes.get_yaxis_transform(),
                textcoords="offset points", fontsize=7, color=INK,
            )  # fmt: skip
