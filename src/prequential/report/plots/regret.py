"""`regret`: next-step loss, and the codelength relative to a reference, along the sequence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prequential.report.axes import finish, literal, position_axis
from prequential.report.colours import FAINT
from prequential.report.picture import picture
from prequential.report.plots.against import Reference, find_reference
from prequential.report.plots.chosen import Setting
from prequential.report.plots.draw import draw_lines, limits, name_lines, num_told_apart
from prequential.report.plots.lines import Line, loss_lines, regret_lines
from prequential.report.plots.loss import POSITION, draw_loss
from prequential.report.plots.options import Options
from prequential.report.plots.words import band_note, inputs_note, note, signed, title_of


def plot_regret(settings: Sequence[Setting], path: Path, options: Options) -> None:
    """Left the smoothed next-step loss, right the cumulative difference to the reference."""
    reference = find_reference(options.reference, settings)
    if reference.setting is not None and reference.setting not in settings[: num_told_apart(len(settings))]:
        settings = [reference.setting, *(setting for setting in settings if setting is not reference.setting)]
    scale = options.scale(settings[0].outline)
    lines = regret_lines(settings, reference.nats, scale)
    with picture(path, 9.6, 3.5) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        spans = draw_loss(left, settings, loss_lines(settings, scale, options.window), options)
        above = _draw_regret(right, lines, len(reference.nats), scale, reference.name)
        figure.suptitle(title_of([setting.outline for setting in settings]), fontsize=10)
        texts = [_text(line, reference.name) for line in lines]
        name_lines(figure, right, lines, texts)
        outside = f"{above:,} of {len(lines):,} end above the picture" if above else ""
        note(figure, f"Loss: {spans}.", band_note(settings), _reference_note(reference), outside, inputs_note(settings))


def _reference_note(reference: Reference) -> str:
    repeated = reference.setting is not None and len(reference.setting.runs) > 1
    return "They take the mean of the reference as given; its own band is the one around 0." if repeated else ""


def _text(line: Line, reference: str) -> str:
    return f"{line.name} (reference)" if line.name == reference else f"{line.name}  {signed(line.end)} nats"


def _draw_regret(axes: Any, lines: Sequence[Line], length: int, scale: str, reference: str) -> int:
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
    draw_lines(axes, lines)
    low, high, above = limits(lines)
    position_axis(axes, length, scale)
    axes.set_ylim(low, high)
    finish(axes, x=POSITION, y=f"codelength relative to\n{literal(reference)} [nats]", scale=scale)
    return above
