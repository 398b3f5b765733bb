"""What pictures along the sequence share: options, lines that are told apart, and the words around them."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prequential.errors import PreqError, require_count, unknown_name
from prequential.measure.comparable import told_of
from prequential.report.names import data_of
from prequential.report.picture import COLOURS, DASHES, FAINT, GREY, INK, finish, in_rows, literal, spread
from prequential.report.plots.lines import Curve, Line
from prequential.report.seeds import SeedGroup
from prequential.report.text import counted, sentence
from prequential.runs.record import Record

SCALES = ("log", "linear")
ALONG_THE_SEQUENCE = ("regret", "loss", "error", "curve", "calibration", "weights")
USED_BY = {
    "reference": ("regret",),
    "axis": ALONG_THE_SEQUENCE,
    "window": ("regret", "loss", "error", "curve"),
    "each_seed": (*ALONG_THE_SEQUENCE[:-1], "pareto"),
    "heldout": ("pareto",),
    "prefix": ALONG_THE_SEQUENCE,
    "same_inputs": (*ALONG_THE_SEQUENCE, "pareto"),
}
"""The kinds of picture that each option says something about."""
MOST_TOLD_APART = len(COLOURS)
HIGHLIGHTED = 5
"""Lines in colour where there are too many to tell all of them apart."""
MOST_NAMES = 3
LABEL_SIZE = 8
CHARACTERS_PER_INCH = 17
"""Of a note, with some room."""
LEVEL = {"color": FAINT, "linewidth": 0.8, "zorder": 1}
"""How a value is drawn that lines are compared with."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be said about a picture besides its runs."""

    reference: Record | str | Path | None = None
    """What `regret` subtracts: a run, the name of a line, or uniform, frequencies, previous. Off: the shortest code."""
    axis: str | None = None
    """How positions are spaced: "log" or "linear". Off: logarithmic, for the given order of a stream linear."""
    window: int | None = None
    """Labels over which a rolling loss or error rate is averaged."""
    each_seed: bool = False
    """A line for each run, where seeds of one setting would become a mean with a band."""
    heldout: bool = False
    """In `pareto`, also the held-out error."""
    prefix: bool = False
    """Only the labels that every run has coded."""
    same_inputs: bool = False
    """Refuse runs whose inputs differ."""

    def __post_init__(self) -> None:
        if self.axis is not None and self.axis not in SCALES:
            raise unknown_name("axis", self.axis, SCALES)
        if self.window is not None:
            require_count("window", self.window)

    def require_use(self, kind: str) -> None:
        """Refuse an option that would change nothing."""
        for name, kinds in USED_BY.items():
            if getattr(self, name) not in (None, False) and kind not in kinds:
                raise PreqError(f"{kind} has no use for --{name.replace('_', '-')}; leave it out")

    def along(self, groups: Sequence[SeedGroup]) -> "Along":
        """The positions that a picture of these runs shows."""
        scale = self.axis or ("log" if groups[0].first.seeds["order_seed"] is not None else "linear")
        return Along(max(len(group.first.nats) for group in groups), scale)


@dataclass(frozen=True)
class Along:
    """The positions of a picture: how many, and how they are spaced, "log" or "linear"."""

    length: int
    scale: str

    @property
    def start(self) -> int:
        """Where the axis begins: a logarithmic one leaves out the first ten labels of a long sequence."""
        return 0 if self.scale == "linear" else 10 if self.length >= 1000 else 1


def style(rank: int, number: int) -> dict[str, Any]:
    """How the line of that rank is drawn, among so many."""
    if number > MOST_TOLD_APART and rank >= HIGHLIGHTED:
        faint = min(0.6, max(0.15, 30 / number))  # a cloud of many lines keeps its shades
        return {"color": FAINT, "linestyle": "solid", "linewidth": 0.6, "alpha": faint, "zorder": 1.5}
    return {"color": COLOURS[rank], "linestyle": (0, DASHES[rank] or None), "linewidth": 1.5, "zorder": 3 - rank / 100}


def num_told_apart(number: int) -> int:
    """How many of so many lines have a colour of their own."""
    return number if number <= MOST_TOLD_APART else HIGHLIGHTED


def draw_lines(
    axes: Any, lines: Sequence[Line], along: Along, limits: tuple[float, float], *, steps: bool = False, **named: Any
) -> None:
    """Draw lines along the sequence, the best first; bands are one standard error to each side.

    Args:
        limits: the lowest and the highest value to show.
        named: what the axes are called, as `finish` wants it.
    """
    for rank, line in enumerate(lines):
        drawn = style(rank, len(lines))
        finite = np.where(np.isfinite(line.y), line.y, np.nan)
        axes.plot(line.x, finite, **drawn, drawstyle="steps-post" if steps else "default")
        if line.band is not None and rank < num_told_apart(len(lines)):
            low, high = finite - line.band, finite + line.band
            axes.fill_between(line.x, low, high, color=drawn["color"], alpha=0.18, linewidth=0, zorder=1.4)
    axes.set(xlim=(along.start, max(along.length, along.start + 1)), ylim=limits)
    finish(axes, scale=along.scale, **named)


def name_lines(figure: Any, axes: Any, lines: Sequence[Line], texts: Sequence[str]) -> None:
    """The texts right of the axes, each joined to the end of its line, and how many others there are. A text may
    have several rows."""
    shown = num_told_apart(len(lines))
    ends = [float(_finite(line.y)[-1]) for line in lines]
    named = list(zip(ends[:shown], texts, [INK] * shown, strict=False))
    if others := ends[shown:]:
        named.append((float(np.median(others)), counted(len(others), "other run"), GREY))
    named = [(end, in_rows("\n".join(map(literal, text.split("\n")))), ink) for end, text, ink in named]
    figure.get_layout_engine().execute(figure)  # only now heights are known
    rows = max((text.count("\n") + 1 for _, text, _ in named), default=1)
    gap = rows * LABEL_SIZE * 1.35 * figure.dpi / 72 / axes.get_window_extent().height
    scaled = axes.yaxis.get_transform().transform([height for height, *_ in named])
    starts = [float(np.clip(axes.transLimits.transform((0, height))[1], 0, 1)) for height in scaled]
    inside = {"transform": axes.transAxes}
    for rank, (start, stop, (_, written, ink)) in enumerate(zip(starts, spread(starts, gap, 1.0), named, strict=True)):
        look = style(rank, len(lines)) | {"linewidth": 1.1, "alpha": 1, "clip_on": False}
        axes.plot([1.005, 1.03, 1.075], [start, stop, stop], **inside, **look)
        axes.text(1.085, stop, written, **inside, va="center", fontsize=LABEL_SIZE, color=ink)


def with_given(texts: Sequence[str], groups: Sequence[SeedGroup], lines: Sequence[Line]) -> list[str]:
    """The texts of lines, each with what its code is given in a second row where that differs."""
    given = {group.name: group.first.conditioned_on for group in groups}
    if len(set(given.values())) < 2:
        return list(texts)
    return [f"{text}\ngiven {given[line.name]}" for text, line in zip(texts, lines, strict=True)]


def _finite(values: Curve) -> Curve:
    """The values that are numbers; a zero where there is none."""
    finite = values[np.isfinite(values)]
    return finite if len(finite) else np.zeros(1)


def limits(lines: Sequence[Line], level: float = 0.0, least: float = 1.0) -> tuple[float, float]:
    """Lowest and highest value to show, `level` among them, and so far apart that rounding is not blown up.

    Where there are many lines, those in colour and three quarters of the others fit; a few runs that went wrong do
    not press the rest together.
    """
    shown = num_told_apart(len(lines))
    bands = [0.0 if line.band is None else line.band for line in lines]
    tops = [float(_finite(line.y + band).max()) for line, band in zip(lines, bands, strict=True)]
    lows = [float(_finite(line.y - band).min()) for line, band in zip(lines, bands, strict=True)]
    others = [float(np.quantile(tops[shown:], 0.75))] if tops[shown:] else []
    low, top = min(*lows, level), max(*tops[:shown], *others, level)
    margin = max(0.04 * (top - low), (least - (top - low)) / 2)
    return low - margin, top + margin


def frame(figure: Any, groups: Sequence[SeedGroup], options: Options, about: str, *remarks: str) -> None:
    """The words above and below a picture along the sequence: data and length, model and method where all lines share
    them; what a reader must know."""
    records = [group.first for group in groups]
    models = dict.fromkeys(record.model["name"] for record in records)
    methods = dict.fromkeys(record.title for record in records)
    parts = [data_of(records), counted(records[0].length, "label")]
    parts += [", ".join(names) for names, most in ((models, 1), (methods, MOST_NAMES)) if len(names) <= most]
    figure.suptitle(literal(" · ".join(parts)), fontsize=10)
    drawn, whole = len(records[0].nats), records[0].length
    part = f"Only the first {drawn:,} of {whole:,} labels" if options.prefix and drawn < whole else ""
    told = map(literal, told_of((group.name, group.first) for group in groups))
    note(figure, about, band_note(groups), *remarks, part, *told)


def band_note(groups: Sequence[SeedGroup]) -> str:
    """What lines and bands are, where a line stands for several seeds.

    Example:
        >>> band_note([])
        ''
    """
    numbers = sorted({len(group.members) for group in groups})
    if not numbers or numbers[-1] == 1:
        return ""
    seeds = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f"Lines: mean of {seeds} seeds; bands: ± one standard error of it."


def legend(figure: Any, lines: Sequence[Any], texts: Sequence[str], **look: Any) -> None:
    """The texts beside the picture, each behind a piece of its line."""
    rows = list(map(in_rows, texts))
    figure.legend(lines, rows, loc="outside right upper", frameon=False, fontsize=8, handlelength=2.6, **look)


def note(figure: Any, *remarks: str) -> None:
    """What a reader must know, small, under the picture."""
    if text := " ".join(filter(None, map(sentence, remarks))):
        lines = textwrap.fill(text, int(figure.get_figwidth() * CHARACTERS_PER_INCH))
        figure.supxlabel(lines, fontsize=7, color=GREY, x=0.01, ha="left")
