"""`weights`: which expert a mixture trusts when, as areas along the sequence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prequential.errors import PreqError
from prequential.report.experts import Weights, mixer_words, require_mixed
from prequential.report.picture import COLOURS, FAINT, INK, POSITION, finish, in_rows, literal, picture
from prequential.report.plots.draw import Along, Options, frame
from prequential.report.seeds import Run, SeedGroup

MOST_PANELS = 6
"""Runs that one picture shows below each other."""
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "")
"""One for each colour, so that nothing is told by colour alone."""
OTHERS = "#bbbbbb"


def plot_weights(groups: Sequence[SeedGroup], path: Path, options: Options) -> None:
    """A panel for each run: areas whose heights are the weights of its experts after each label, and sum to one."""
    runs = [run for group in groups for run in group.members]
    for run in runs:
        require_mixed(run.load())
    if len(runs) > MOST_PANELS:
        raise PreqError(f"a picture shows the weights of at most {MOST_PANELS} runs, got {len(runs)}; name fewer")
    along = options.along(groups)
    with picture(path, 8.4, 1.2 + 2.5 * len(runs)) as figure:
        panels = figure.subplots(len(runs), 1, squeeze=False, sharex=True)[:, 0]
        for axes, run in zip(panels, runs, strict=True):
            drawn = _draw(axes, run, along, is_last=axes is panels[-1], is_named=len(runs) > 1)
            names = [in_rows(literal(name)) for name in drawn]
            beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.02)}
            axes.legend(list(drawn.values()), names, **beside, frameon=False, fontsize=8, handlelength=2.6)
        mixers = dict.fromkeys(mixer_words(run.record.model) for run in runs)
        frame(figure, groups, options, f"How much each expert is trusted; mixed by {', '.join(mixers)}")


def _draw(axes: Any, run: Run, along: Along, *, is_last: bool, is_named: bool) -> dict[str, Any]:
    """The areas of one run; gives a piece of each by name, the topmost first."""
    found = Weights.of(run.load())
    places = np.append(max(along.start, 0), found.after)  # the first weights stand for what was before them
    shares = np.concatenate([found.shares[:1], found.shares])
    tops, pieces = np.cumsum(shares, axis=1), {}
    for number, name in enumerate(found.names):
        is_rest = bool(found.others) and number == len(found.names) - 1
        look: dict[str, Any] = {"facecolor": OTHERS if is_rest else COLOURS[number], "hatch": HATCHES[number]}
        low = tops[:, number] - shares[:, number]
        pieces[name] = axes.fill_between(
            places, low, tops[:, number], step="pre", **look, edgecolor="white", linewidth=0.3
        )
    axes.set(xlim=(along.start, max(along.length, along.start + 1)), ylim=(0, 1))
    if is_named:
        axes.set_title(literal(run.name), fontsize=8, color=INK, loc="left")
    finish(axes, scale=along.scale, y="weight", x=POSITION if is_last else "")
    axes.grid(visible=False)
    axes.spines["bottom"].set_color(FAINT)
    return dict(reversed(pieces.items()))
