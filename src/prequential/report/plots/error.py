"""`error`: the smoothed next-step error rate along the sequence."""

from collections.abc import Sequence
from pathlib import Path

from prequential.measure import require_same_sequence
from prequential.report.picture import picture
from prequential.report.plots.chosen import Setting
from prequential.report.plots.draw import name_lines
from prequential.report.plots.lines import error_lines
from prequential.report.plots.loss import draw_smoothed
from prequential.report.plots.options import Options
from prequential.report.plots.words import band_note, inputs_note, note, title_of


def plot_error(settings: Sequence[Setting], path: Path, options: Options) -> None:
    """The next-step error rate in percent, on logarithmic axes unless the order is that of a stream."""
    for setting in settings:
        require_same_sequence(setting.outline, settings[0].outline)
    first = settings[0].outline
    lines = error_lines(settings, options.scale(first), options.window)
    guess = ("uniform guess", 100 * (1 - 1 / first.num_classes))
    with picture(path, 6.4, 3.7) as figure:
        axes = figure.subplots()
        spans = draw_smoothed(axes, settings, lines, options, guess, "next-step error rate [%]")
        figure.suptitle(title_of([setting.outline for setting in settings]), fontsize=10)
        name_lines(figure, axes, lines, [f"{line.name}  {line.end:.3g} %" for line in lines])
        note(figure, f"Errors: {spans}; at the right, its last value.", band_note(settings), inputs_note(settings))
