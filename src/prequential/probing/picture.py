"""A picture of a probing: the ranking, and which readouts the code believed along the labels."""

import textwrap
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from prequential.probing.networks import RUN
from prequential.probing.result import Probed, Probing
from prequential.report.names import shortest
from prequential.report.picture import COLOURS, DASHES, FAINT, GREY, finish, literal, number_axis, picture

MOST_WEIGHTS = 3
"""Representations whose weights are drawn: the best ones."""
NUM_MEANS = 24
"""Weights go up and down from label to label: means over so many stretches are drawn, each as much longer."""
ROW = 0.28
"""Inches of a row of the ranking."""
MOST_LETTERS = 34
"""Of a line above the weights, which stand side by side."""


def plot_probing(probing: Probing, path: str | Path) -> Path:
    """Draw a ranking and, of the best representations, the weights of the readouts; PNG, SVG or PDF by the name."""
    path = Path(path)
    shown, names = [each for each in probing.ranking if len(each.code.weights)][:MOST_WEIGHTS], names_of(probing)
    top = 0.9 + ROW * len(probing.ranking)
    with picture(path, 7.0, top + 1.9 * bool(shown)) as figure:
        grid = figure.add_gridspec(1 + bool(shown), max(1, len(shown)), height_ratios=[top, 1.9][: 1 + bool(shown)])
        _draw_ranking(figure.add_subplot(grid[0, :]), probing, names)
        readouts = list(dict.fromkeys(name for each in shown for name in each.weights_of_readouts()))
        for column, each in enumerate(shown):
            axes = figure.add_subplot(grid[1, column])
            _draw_weights(axes, each, readouts)
            axes.set_title(_in_lines(names[each.network], each.name.removeprefix(each.network)), fontsize=7)
            axes.set_ylabel("weight of the readout" if not column else "")
        if shown:
            handles, labels = figure.axes[1].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=7, frameon=False)
    return path


def names_of(probing: Probing) -> dict[str, str]:
    """What each network is called where there is little room: a run by as much of the end of its directory as tells it
    from the others."""
    networks = list(dict.fromkeys(each.network for each in probing.ranking))
    given = [None if word.startswith(RUN) else word for word in networks]
    short = shortest([word.removeprefix(RUN) for word in networks], given)
    times = Counter(short)
    return {word: name if times[name] == 1 else word for word, name in zip(networks, short, strict=True)}


def _in_lines(network: str, layer: str) -> str:
    lines = [*textwrap.wrap(network, MOST_LETTERS), *textwrap.wrap(layer.strip(), MOST_LETTERS)]
    return "\n".join(map(literal, lines))


def _draw_ranking(axes: Any, probing: Probing, names: dict[str, str]) -> None:
    rows = range(len(probing.ranking))
    networks = list(dict.fromkeys(each.network for each in probing.ranking))
    colours = [COLOURS[networks.index(each.network) % len(COLOURS)] for each in probing.ranking]
    values = [each.nats_per_label for each in probing.ranking]
    axes.barh(rows, values, color=colours, height=0.7)
    for row, each in zip(rows, probing.ranking, strict=True):
        place, ground = (each.nats_per_label, row), {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        look = {"va": "center", "fontsize": 7, "color": GREY, "bbox": ground}
        axes.annotate(f"{each.codelength:,.0f} nats", place, (3, 0), textcoords="offset points", **look)
    level = probing.frequencies_nats / probing.length
    axes.axvline(level, color=FAINT, linewidth=0.8, zorder=1)
    axes.text(level, -0.7, "label frequencies", fontsize=7, color=GREY, ha="right")
    labels = [literal(names[each.network] + each.name.removeprefix(each.network)) for each in probing.ranking]
    axes.set_yticks(list(rows), labels, fontsize=7)
    axes.set_ylim(len(probing.ranking) - 0.4, -1.1)
    axes.set_xlim(0, 1.13 * max(*values, level))
    axes.set_xlabel(f"nats per label of {literal(probing.data)}, {probing.length:,} labels; given all inputs")
    number_axis(axes.xaxis, "linear")


def _draw_weights(axes: Any, probed: Probed, readouts: list[str]) -> None:
    after, bins = probed.code.weights_after, np.geomspace(1, len(probed.code.nats) + 1, NUM_MEANS + 1)
    inside = [
        (after >= low) & (after < high) for low, high in pairwise(bins) if ((after >= low) & (after < high)).any()
    ]
    for name, weights in probed.weights_of_readouts().items():
        number = readouts.index(name) % len(COLOURS)
        axes.plot(
            [after[here].mean() for here in inside],
            [weights[here].mean() for here in inside],
            color=COLOURS[number],
            dashes=DASHES[number] or (None, None),
            linewidth=1.0,
            label=name,
        )
    axes.set_ylim(-0.02, 1.02)
    finish(axes, y="", x="labels", scale="log", most=3)
