"""`calibration`: the temperature along the sequence, what it saved, and how far confidence can be trusted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.report.entries import standard_error
from prequential.report.picture import FAINT, MARKS, POSITION, finish, literal, picture, position_axis
from prequential.report.plots.draw import Options, draw_lines, frame, legend, num_told_apart, style
from prequential.report.plots.lines import Line, places_of, saved_lines
from prequential.report.reduction import kept
from prequential.report.seeds import SeedGroup
from prequential.report.text import counted, signed
from prequential.runs.record import Record

NUM_BINS = 15
FEW = 20
"""Predictions below which a bin says little: its mark is hollow."""


@dataclass(frozen=True)
class Reliability:
    """Predictions in bins of equal width over [0, 1]; a bin holds its upper edge."""

    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    """The mean in each bin; no number where a bin is empty."""
    accuracy: NDArray[np.float64]
    """The share that was right."""

    @property
    def error(self) -> float:
        """The expected calibration error: |accuracy − confidence| in the mean over all predictions."""
        filled = self.counts > 0
        gaps = np.abs(self.accuracy[filled] - self.confidence[filled])
        return float((gaps * self.counts[filled]).sum() / max(self.counts.sum(), 1))


def reliability(records: Iterable[Record], num_bins: int = NUM_BINS) -> Reliability:
    """All predictions of the records together, by the probability of the most probable class.

    Example:
        >>> from types import SimpleNamespace
        >>> record = SimpleNamespace(confidence=np.array([0.9, 0.8, 0.3]), labels=np.array([1, 1, 0]),
        ...                          predicted=np.array([1, 0, 0]))
        >>> found = reliability([record], num_bins=2)
        >>> found.counts.tolist(), found.accuracy.tolist(), round(found.error, 3)
        ([1, 2], [1.0, 0.5], 0.467)
    """
    counts, sums, hits = np.zeros(num_bins, np.int64), np.zeros(num_bins), np.zeros(num_bins)
    for record in records:
        bins = np.clip(np.ceil(record.confidence * num_bins).astype(np.int64) - 1, 0, num_bins - 1)
        counts += np.bincount(bins, minlength=num_bins)
        sums += np.bincount(bins, record.confidence, num_bins)
        hits += np.bincount(bins, record.labels == record.predicted, num_bins)
    with np.errstate(invalid="ignore"):
        return Reliability(counts, sums / counts, hits / counts)


def plot_calibration(groups: Sequence[SeedGroup], path: Path, options: Options) -> None:
    """Left temperature and nats saved against the position; right accuracy against confidence, with the counts."""
    scale = options.scale(groups[0].first)
    shown = groups[: num_told_apart(len(groups))]
    saved = saved_lines(groups, scale)
    found = [reliability(group.loaded()) for group in shown]
    length = max(len(group.first.nats) for group in groups)
    with picture(path, 9.6, 4.6) as figure:
        (hot, diagram), (gain, bars) = figure.subplots(2, 2, height_ratios=[2, 1], sharex="col")
        draw_lines(hot, [temperature_line(group) for group in groups], steps=True)
        draw_lines(gain, saved)
        for axes, quantity in [(hot, "factor on the logits\n(1 / temperature)"), (gain, "saved so far\n[nats]")]:
            axes.axhline(1 if axes is hot else 0, color=FAINT, linewidth=0.8, zorder=1)
            position_axis(axes, length, scale)
            axes.set_ylim(*_at_least(axes.get_ylim(), 0.02 if axes is hot else 1.0))
            finish(axes, x=POSITION if axes is gain else "", y=quantity, scale=scale)
        _draw_reliability(diagram, bars, found, len(groups))
        names = [_text(*each) for each in zip(shown, found, saved[: len(shown)], strict=True)]
        _name(figure, names, len(groups))
        is_any_few = any(((each.counts > 0) & (each.counts < FEW)).any() for each in found)
        hollow = f". Hollow marks: fewer than {FEW} predictions" if is_any_few else ""
        is_pooled = any(len(group.members) > 1 for group in groups)
        pooled = "Reliability is that of all their predictions together" if is_pooled else ""
        frame(figure, groups, options, f"ECE: expected calibration error, {NUM_BINS} bins{hollow}", pooled)


def temperature_line(group: SeedGroup) -> Line:
    """The factor on the logits from each prediction on; the last one lasts to the end."""
    each = np.stack([record.temperatures.astype(np.float64) for record in group.loaded()])
    positions = next(group.loaded()).temperature_positions
    points = kept(each.mean(axis=0))
    x = np.append(places_of(positions[points]), len(group.first.nats))
    each = each[:, np.append(points, points[-1])]
    return Line(group.name, x, each.mean(axis=0), standard_error(each) if len(each) > 1 else None)


def _at_least(limits: tuple[float, float], size: float) -> tuple[float, float]:
    """The same limits, wide enough that rounding is not blown up into a curve.

    Example:
        >>> _at_least((1.0, 1.0), 0.5), _at_least((0.0, 2.0), 0.5)
        ((0.75, 1.25), (0.0, 2.0))
    """
    more = max(size - (limits[1] - limits[0]), 0) / 2
    return limits[0] - more, limits[1] + more


def _text(group: SeedGroup, found: Reliability, saved: Line) -> str:
    gain = signed(abs(saved.end)).lstrip("+")
    what = "lost" if saved.end < 0 and gain != "0" else "saved"
    return f"{literal(group.name)}\nECE {100 * found.error:.1f} %, {gain} nats {what}"


def _draw_reliability(axes: Any, bars: Any, found: Sequence[Reliability], number: int) -> None:
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=1)
    edges = np.linspace(0, 1, NUM_BINS + 1)
    for rank, each in enumerate(found):
        drawn = style(rank, number)
        filled = each.counts > 0
        many = each.counts >= FEW
        axes.plot(each.confidence[many], each.accuracy[many], **drawn | {"linewidth": 1.1})
        for few, marked in [(False, many), (True, filled & ~many)]:
            if not marked.any():  # an unclipped line of no points would upset the layout
                continue
            axes.plot(
                each.confidence[marked], each.accuracy[marked], linestyle="none", marker=MARKS[rank], markersize=4.5,
                color=drawn["color"], markerfacecolor="white" if few else drawn["color"], zorder=4, clip_on=False,
            )  # fmt: skip
        bars.stairs(np.where(filled, each.counts, np.nan), edges, **drawn | {"linewidth": 1.1}, baseline=None)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    finish(axes, x="", y="accuracy\n(share that was right)", scale="linear")
    bars.set_yscale("log")
    bars.set_ylim(0.8, None)
    finish(bars, x="confidence (probability of the predicted class)", y="predictions", scale="linear", y_scale="log")


def _name(figure: Any, names: Sequence[str], number: int) -> None:
    from matplotlib.lines import Line2D

    shown = len(names)
    texts = [*names, counted(number - shown, "other")] if number > shown else names
    lines = [
        Line2D(
            [], [], **style(rank, number) | {"alpha": 1}, marker=MARKS[rank] if rank < shown else None, markersize=4.5
        )
        for rank in range(len(texts))
    ]
    legend(figure, lines, texts, labelspacing=0.9)
