"""`calibration`: the temperature along the sequence, what it saved, and how far confidence can be trusted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.report.picture import MARKS, finish, literal, picture
from prequential.report.plots.draw import LEVEL, Options, draw_lines, frame, legend, limits, num_told_apart, style
from prequential.report.plots.lines import Line, line_of, nats_saved
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
    along = options.along(groups)
    shown = groups[: num_told_apart(len(groups))]
    factors = [temperature_line(group) for group in groups]
    saved = [line_of(group, nats_saved, scale=along.scale) for group in groups]
    found = [reliability(group.loaded()) for group in shown]
    with picture(path, 9.6, 4.6) as figure:
        (hot, diagram), (gain, bars) = figure.subplots(2, 2, height_ratios=[2, 1], sharex="col")
        hot.axhline(1, **LEVEL)
        gain.axhline(0, **LEVEL)
        factor = "factor on the logits\n(1 / temperature)"
        draw_lines(hot, factors, along, limits(factors, level=1.0, least=0.02), x="", y=factor, steps=True)
        draw_lines(gain, saved, along, limits(saved), y="saved so far\n[nats]")
        names = [_text(*each) for each in zip(shown, found, saved[: len(shown)], strict=True)]
        names += [counted(len(groups) - len(shown), "other")] if len(groups) > len(shown) else []
        legend(figure, _draw_reliability(diagram, bars, found, len(groups)), names, labelspacing=0.9)
        is_any_few = any(((each.counts > 0) & (each.counts < FEW)).any() for each in found)
        hollow = f". Hollow marks: fewer than {FEW} predictions" if is_any_few else ""
        is_pooled = any(len(group.members) > 1 for group in groups)
        pooled = "Reliability is that of all their predictions together" if is_pooled else ""
        frame(figure, groups, options, f"ECE: expected calibration error, {NUM_BINS} bins{hollow}", pooled)


def temperature_line(group: SeedGroup) -> Line:
    """The factor on the logits from each prediction on; the last one lasts to the end."""

    def factors(record: Record) -> NDArray[np.float64]:
        return np.append(record.temperatures, record.temperatures[-1]).astype(np.float64)

    first = next(group.loaded())
    return line_of(group, factors, np.append(first.temperature_positions + 1.0, len(first.nats)))


def _text(group: SeedGroup, found: Reliability, saved: Line) -> str:
    gain = signed(abs(saved.end)).lstrip("+")
    what = "lost" if saved.end < 0 and gain != "0" else "saved"
    return f"{literal(group.name)}\nECE {100 * found.error:.1f} %, {gain} nats {what}"


def _draw_reliability(axes: Any, bars: Any, found: Sequence[Reliability], number: int) -> list[Any]:
    """Draw those that are told apart; gives a line of each, and one like those of the others."""
    axes.plot([0, 1], [0, 1], **LEVEL)
    edges, lines = np.linspace(0, 1, NUM_BINS + 1), []
    for rank, each in enumerate(found):
        drawn = style(rank, number) | {"linewidth": 1.1}
        marked = drawn | {"marker": MARKS[rank], "markersize": 4.5}
        many, few = each.counts >= FEW, (each.counts > 0) & (each.counts < FEW)
        lines += axes.plot(each.confidence[many], each.accuracy[many], **marked)
        hollow = marked | {"linestyle": "none", "markerfacecolor": "white"}
        axes.plot(each.confidence[few], each.accuracy[few], **hollow)
        bars.stairs(np.where(many | few, each.counts, np.nan), edges, **drawn, baseline=None)
    if number > len(found):
        lines += axes.plot([], [], **style(len(found), number) | {"alpha": 1})
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))  # marks at the ends are whole
    finish(axes, x="", y="accuracy\n(share that was right)", scale="linear")
    bars.set(yscale="log", ylim=(0.8, None))
    finish(bars, x="confidence (probability of the predicted class)", y="predictions", scale="linear", y_scale="log")
    return lines
