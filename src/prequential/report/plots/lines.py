"""The numbers behind lines over the sequence: codelength, difference to a reference, next-step loss and errors."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prequential.report.plots.chosen import Setting
from prequential.report.plots.thinning import kept
from prequential.report.plots.windows import windows
from prequential.runs.record import Record

Curve = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """What is drawn for one setting, thinned out."""

    name: str
    x: Curve
    y: Curve
    """The mean of its runs."""
    band: Curve | None
    """The standard error of that mean; None for a single run."""

    @property
    def end(self) -> float:
        """The value after the last label."""
        return float(self.y[-1])


def standard_error(values: NDArray[np.float64]) -> Curve:
    """Of the mean over the first axis; no number where a value is infinite.

    Example:
        >>> standard_error(np.array([[1.0], [3.0]])).tolist()
        [1.0]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def mean_nats(setting: Setting) -> Curve:
    """The mean over the seeds of what each label cost."""
    total = np.zeros(len(setting.outline.nats))
    for record in setting.records():
        total += record.nats
    return total / len(setting.runs)


def cumulative_lines(settings: Sequence[Setting], scale: str) -> list[Line]:
    """The codelength after each label, in nats."""
    return [_line(setting, np.cumsum(mean_nats(setting)), np.cumsum, scale) for setting in settings]


def regret_lines(settings: Sequence[Setting], base: Curve, scale: str) -> list[Line]:
    """codelength − codelength of a reference after each label, in nats; `base` is what each label costs there."""

    def regret(nats: Curve) -> Curve:
        same = nats == base  # also where both are infinite
        return np.cumsum(np.where(same, 0.0, nats - np.where(same, 0.0, base)))

    return [_line(setting, regret(mean_nats(setting)), regret, scale) for setting in settings]


def _line(setting: Setting, mean: Curve, curve: Callable[[Curve], Curve], scale: str) -> Line:
    """The thinned mean; the seeds are read again for the band, one at a time."""
    points = kept(mean, scale)
    each = [curve(record.nats)[points] for record in setting.records()] if len(setting.runs) > 1 else []
    return Line(setting.name, places_of(points), mean[points], standard_error(np.stack(each)) if each else None)


def places_of(points: NDArray[np.int64]) -> Curve:
    """Labels coded so far, after the label at each of the positions."""
    return points.astype(np.float64) + 1


def loss_lines(settings: Iterable[Setting], scale: str, size: int | None) -> list[Line]:
    """The smoothed next-step loss in nats per label."""
    return _smoothed(settings, scale, size, lambda record: record.nats)


def error_lines(settings: Iterable[Setting], scale: str, size: int | None) -> list[Line]:
    """The smoothed next-step error rate in percent: labels that were not the most probable class when predicted."""
    return _smoothed(settings, scale, size, lambda record: 100.0 * (record.labels != record.predicted))


def _smoothed(
    settings: Iterable[Setting], scale: str, size: int | None, values: Callable[[Record], Curve]
) -> list[Line]:
    """Means over windows of what each label has, for each setting the mean of its seeds."""
    lines = []
    for setting in settings:
        spans = windows(len(setting.outline.nats), scale, size)
        each = np.stack([spans.means(values(record)) for record in setting.records()])
        mean = each.mean(axis=0)
        points = kept(mean)
        band = standard_error(each[:, points]) if len(each) > 1 else None
        lines.append(Line(setting.name, spans.centres[points], mean[points], band))
    return lines
