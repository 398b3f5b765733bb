"""`loss`: the smoothed next-step loss along the sequence."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prequential.measure import require_same_sequence
from prequential.report.axes import finish, position_axis
from prequential.report.colours import FAINT, GREY
from prequential.report.picture import picture
from prequential.report.plots.chosen import Setting
from prequential.report.plots.draw import draw_lines, name_lines, num_told_apart
from prequential.report.plots.lines import Line, loss_lines
from prequential.report.plots.options import Options
from prequential.report.plots.windows import windows
from prequential.report.plots.words import band_note, inputs_note, note, title_of

POSITION = "position in the sequence [labels]"


def plot_loss(settings: Sequence[Setting], path: Path, options: Options) -> None:
    """The next-step loss in nats per label, on logarithmic axes unless the order is that of a stream."""
    for setting in settings:
        require_same_sequence(setting.outline, settings[0].outline)
    lines = loss_lines(settings, options.scale(settings[0].outline), options.window)
    with picture(path, 6.4, 3.7) as figure:
        axes = figure.subplots()
        spans = draw_loss(axes, settings, lines, options)
        figure.suptitle(title_of([setting.outline for setting in settings]), fontsize=10)
        name_lines(figure, axes, lines, [f"{line.name}  {line.end:.3g}" for line in lines])
        note(figure, f"Loss: {spans}; at the right, its last value.", band_note(settings), inputs_note(settings))


def draw_loss(axes: Any, settings: Sequence[Setting], lines: Sequence[Line], options: Options) -> str:
    """Draw losses on axes, with that of a uniform guess; says how they were smoothed."""
    uniform = math.log(settings[0].outline.num_classes)
    return draw_smoothed(axes, settings, lines, options, ("uniform code", uniform), "next-step loss [nats per label]")


def draw_smoothed(
    axes: Any, settings: Sequence[Setting], lines: Sequence[Line], options: Options, guess: tuple[str, float], y: str
) -> str:
    """Draw smoothed lines on axes, with the name and the value of a uniform guess; says how they were smoothed."""
    scale = options.scale(settings[0].outline)
    length = max(len(setting.outline.nats) for setting in settings)
    name, uniform = guess
    axes.axhline(uniform, color=FAINT, linewidth=0.9, linestyle=":", zorder=1)
    draw_lines(axes, lines)
    position_axis(axes, length, scale)
    axes.set_yscale(scale)
    low, high = _limits(lines, uniform, scale)
    axes.set_ylim(low, high)
    if uniform < high:
        axes.annotate(
            name, (0.99, uniform), (0, 2), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
            ha="right", fontsize=7, color=GREY,
        )  # fmt: skip
    finish(axes, x=POSITION, y=y, scale=scale, y_scale=scale)
    return windows(length, scale, options.window).text


def _limits(lines: Sequence[Line], uniform: float, scale: str) -> tuple[float, float]:
    """All that is in colour, and the uniform guess unless a linear axis would press the rest together."""
    shown = np.concatenate([line.y for line in lines[: num_told_apart(len(lines))]])
    shown = shown[np.isfinite(shown) & (shown > 0)]
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (uniform / 2, uniform)
    if scale == "log" or uniform < 3 * high:
        high = max(high, uniform)
    return (low / 1.25, high * 1.35) if scale == "log" else (0.0, high * 1.08)
