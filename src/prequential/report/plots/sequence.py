"""Pictures along the sequence: `loss` and `error`, smoothed; `curve` and `regret` with the loss beside them."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prequential.measure.comparable import require_same_sequence
from prequential.reference import published
from prequential.report.picture import INK, in_rows, literal, mark, picture
from prequential.report.plots.draw import (
    LEVEL,
    Along,
    Options,
    draw_lines,
    frame,
    limits,
    name_lines,
    num_told_apart,
    with_given,
)
from prequential.report.plots.lines import CurveOf, Line, find_reference, regret_lines, smoothed_lines, windows
from prequential.report.seeds import SeedGroup
from prequential.report.text import number, signed
from prequential.runs.record import Record

Groups = Sequence[SeedGroup]


@dataclass(frozen=True)
class Smoothed:
    """What can be averaged over windows."""

    word: str
    axis: str
    form: str
    """How a value is written behind the name of its line."""
    values: CurveOf
    """What each label has of it."""
    guess: tuple[str, Callable[[int], float]]
    """What guessing is called, and what it reaches with so many classes."""


LOSS = Smoothed(
    "Loss", "next-step loss [nats per label]", "{:.3g}", lambda record: record.nats, ("uniform code", math.log)
)
ERROR = Smoothed(
    "Errors", "next-step error rate [%]", "{:.3g} %", lambda record: 100.0 * (record.labels != record.predicted),
    ("uniform guess", lambda num_classes: 100 * (1 - 1 / num_classes)),
)  # fmt: skip


def plot_smoothed(what: Smoothed, groups: Groups, path: Path, options: Options) -> None:
    """A smoothed quantity along the sequence, on logarithmic axes unless the order is that of a stream."""
    with picture(path, 6.4, 3.7) as figure:
        axes = figure.subplots()
        lines, spans = _draw_smoothed(axes, what, groups, options)
        frame(figure, groups, options, f"{what.word}: {spans}; at the right, its last value")
        texts = [f"{line.name}  {what.form.format(line.end)}" for line in lines]
        name_lines(figure, axes, lines, with_given(texts, groups, lines))


def plot_curves(groups: Groups, path: Path, options: Options) -> None:
    """Left the smoothed next-step loss, right the codelength, with the uniform code and the paper's figure."""
    along = options.along(groups)
    lines = regret_lines(groups, 0.0, along.scale)
    texts = [f"{line.name}  {f'{line.end:,.0f} nats' if math.isfinite(line.end) else 'diverged'}" for line in lines]
    with _beside_the_loss(groups, path, options, lines, texts) as axes:
        _draw_codelength(axes, groups[0].first, lines, along)


def plot_regret(groups: Groups, path: Path, options: Options) -> None:
    """Left the smoothed next-step loss, right the cumulative difference to the reference."""
    reference = find_reference(options.reference, groups)
    own = reference.group
    if own is not None and own not in groups[: num_told_apart(len(groups))]:
        groups = [own, *(group for group in groups if group is not own)]
    along = options.along(groups)
    lines = regret_lines(groups, reference.nats, along.scale)
    texts = [
        f"{line.name} (reference)" if line.name == reference.name else f"{line.name}  {signed(line.end)} nats"
        for line in lines
    ]
    given = "They take the mean of the reference as given; its own band is the one around 0"
    remark = given if own is not None and len(own.members) > 1 else ""
    low, high = limits(lines)
    above = sum(line.end > high for line in lines)
    outside = f"{above:,} of {len(lines):,} end above the picture" if above else ""
    with _beside_the_loss(groups, path, options, lines, texts, remark, outside) as axes:
        axes.axhline(0, **LEVEL)
        about = f"codelength relative to\n{in_rows(literal(reference.name))} [nats]"
        draw_lines(axes, lines, along, (low, high), y=about)


@contextmanager
def _beside_the_loss(
    groups: Groups, path: Path, options: Options, lines: Sequence[Line], texts: Sequence[str], *remarks: str
) -> Iterator[Any]:
    """Left the smoothed next-step loss; right axes to draw lines on, which then get their names."""
    with picture(path, 9.6, 3.5) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        _, spans = _draw_smoothed(left, LOSS, groups, options)
        yield right
        frame(figure, groups, options, f"Loss: {spans}", *remarks)
        name_lines(figure, right, lines, with_given(texts, groups, lines))


def _draw_smoothed(axes: Any, what: Smoothed, groups: Groups, options: Options) -> tuple[list[Line], str]:
    """Draw smoothed lines, with the name and the value of a guess; gives them, and how they were smoothed."""
    for group in groups:
        require_same_sequence(group.first, groups[0].first)
    along = options.along(groups)
    lines = smoothed_lines(groups, what.values, along.scale, options.window)
    name, guess = what.guess[0], what.guess[1](groups[0].first.num_classes)
    low, high = _limits(lines, guess, along.scale)
    axes.axhline(guess, **LEVEL, linestyle=":")
    draw_lines(axes, lines, along, (low, high), y=what.axis, y_scale=along.scale)
    if guess < high:
        mark(axes, name, (0.99, guess), (0, 2), ha="right", xycoords=axes.get_yaxis_transform())
    return lines, windows(along.length, along.scale, options.window).text


def _limits(lines: Sequence[Line], guess: float, scale: str) -> tuple[float, float]:
    """All that is in colour, and the guess unless a linear axis would press the rest together."""
    shown = np.concatenate([line.y for line in lines[: num_told_apart(len(lines))]])
    shown = shown[np.isfinite(shown) & (shown > 0)]
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (guess / 2, guess)
    if scale == "log" or guess < 3 * high:
        high = max(high, guess)
    return (low / 1.25, high * 1.35) if scale == "log" else (0.0, high * 1.08)


def _draw_codelength(axes: Any, record: Record, lines: Sequence[Line], along: Along) -> None:
    """Codelengths with that of the uniform code; a logarithmic axis begins a little below the lowest that is shown."""
    uniform, (_, high) = math.log(record.num_classes), limits(lines)
    ends, shown = np.array([0, along.length]), (0.0, 1.1 * high)
    if along.scale == "log":
        ends = np.geomspace(1, max(along.length, 2), 50)
        lowest = [float(np.interp(max(along.start, 1), line.x, line.y)) for line in lines]
        low = min((value for value in lowest if math.isfinite(value) and value > 0), default=1.0)
        shown = low / 1.3, along.length * uniform * 1.3
    axes.plot(ends, ends * uniform, **LEVEL, linestyle=":")
    draw_lines(axes, lines, along, shown, x="labels coded", y="codelength [nats]", y_scale=along.scale)
    at = along.length / 2 if along.scale == "log" else min(along.length, high / uniform)
    mark(axes, "uniform code", (at, at * uniform), (-5, 0), ha="right")
    _draw_published(axes, record)


def _draw_published(axes: Any, record: Record) -> None:
    """The paper's figure, where it is about the same data, model, method and length."""
    row = published(record.data["name"], record.model["name"], record.method["name"])
    if row is not None and row.nats is not None and len(record.nats) == row.length:
        axes.axhline(row.nats, color=INK, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
        text = f"{row.label}: {number(row.nats, ',.0f')} nats"
        mark(axes, text, (0.02, row.nats), (0, 3), color=INK, xycoords=axes.get_yaxis_transform())
