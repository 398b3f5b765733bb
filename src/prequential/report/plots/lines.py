"""The numbers behind lines over the sequence: codelength, difference to a reference, next-step loss and errors."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prequential.errors import unknown_name
from prequential.measure.comparable import require_comparable, total_difference
from prequential.measure.simple import SIMPLE_CODES
from prequential.report.entries import mean_nats, standard_error
from prequential.report.reduction import kept
from prequential.report.seeds import Run, SeedGroup
from prequential.runs.record import Record

Curve = NDArray[np.float64]
CurveOf = Callable[[Record], Curve]
STEPS = 8
"""A rolling window moves by this part of its size."""
PER_DECADE = 10
"""Windows that grow with the position: so many for each factor of ten."""
FIRST_WINDOW = 8


@dataclass(frozen=True)
class Line:
    """What is drawn for one setting, at as few points as tell it."""

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


def line_of(group: SeedGroup, curve: CurveOf, places: Curve | None = None, scale: str = "linear") -> Line:
    """The mean of a curve over the seeds, at few points; they are read again for the band, one at a time.

    Args:
        places: where the values of the curve stand; default: one for each label, after it is coded.
    """
    mean = reduce(np.add, map(curve, group.loaded())) / len(group.members)
    points = kept(mean, scale)
    each = [curve(record)[points] for record in group.loaded()] if len(group.members) > 1 else []
    x: Curve = (np.arange(1.0, len(mean) + 1) if places is None else places)[points]
    return Line(group.name, x, mean[points], standard_error(np.stack(each)) if each else None)


def regret_lines(groups: Iterable[SeedGroup], base: Curve | float, scale: str) -> list[Line]:
    """codelength − codelength of a reference after each label, in nats; `base` is what each label costs there."""
    return [line_of(group, lambda record: total_difference(record.nats, base), scale=scale) for group in groups]


def nats_saved(record: Record) -> Curve:
    """What the temperature saved up to each label. A label that neither could code saves nothing."""
    return total_difference(record.uncalibrated_nats.astype(np.float64), record.nats)


def smoothed_lines(groups: Iterable[SeedGroup], values: CurveOf, scale: str, size: int | None) -> list[Line]:
    """Means over windows of what each label has, for each setting the mean of its seeds."""

    def line(group: SeedGroup) -> Line:
        spans = windows(len(group.first.nats), scale, size)
        return line_of(group, lambda record: spans.means(values(record)), spans.centres)

    return list(map(line, groups))


@dataclass(frozen=True)
class Windows:
    """Spans of positions, half-open; `text` says what they are."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    text: str

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Labels in each."""
        return self.stops - self.starts

    @property
    def centres(self) -> NDArray[np.float64]:
        """The middle of each, for labels that are counted from 1."""
        return (self.starts + self.stops + 1) / 2

    def means(self, nats: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of the values in each."""
        total = np.concatenate([[0.0], np.cumsum(nats)])
        with np.errstate(invalid="ignore"):  # behind a label of probability 0 there is no loss
            return np.asarray((total[self.stops] - total[self.starts]) / self.sizes)


def windows(length: int, scale: str, size: int | None = None) -> Windows:
    """Rolling windows of a size, each an eighth of it further on; the last one ends at the end.

    Without a size, on a logarithmic axis: windows next to each other that grow with the position. They cover the
    sequence once: sizes times means add up to the codelength. On a linear one: a fiftieth of the sequence; of a short
    one that would be few labels, there it is up to an eighth, at most 200.

    Where the size is a multiple of eight, every eighth of the windows lie next to each other: their sums add up to the
    codelength of what they cover.

    Example:
        >>> windows(20, "log").starts.tolist(), windows(20, "linear", 8).starts.tolist()
        ([0, 8, 10, 13, 16], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    """
    if size is None and scale == "log":
        num = max(round(PER_DECADE * np.log10(max(length / FIRST_WINDOW, 1))), 1)
        edges = np.rint(np.geomspace(min(FIRST_WINDOW, length), length, num + 1)).astype(np.int64)
        edges = np.unique(np.append(0, edges))
        return Windows(edges[:-1], edges[1:], "mean over windows that grow with the position")
    size = min(size or max(length // 50, min(length // 8, 200), STEPS) // STEPS * STEPS, length)
    starts = np.unique(np.append(np.arange(0, length - size + 1, max(size // STEPS, 1)), length - size))
    return Windows(starts, starts + size, f"rolling mean of {size:,} labels")


@dataclass(frozen=True)
class Reference:
    """A name, and what each label costs there."""

    name: str
    nats: Curve
    group: SeedGroup | None
    """The line that it is; None for a simple code."""


def find_reference(wanted: Record | str | Path | None, groups: Sequence[SeedGroup]) -> Reference:
    """The line of that run or of that name, or a simple code; by default the best line, for a single run uniform.

    Raises:
        PreqError: if it is none of these, or the runs cannot be compared with it.
    """
    if wanted is None and len(groups) == 1 and len(groups[0].members) == 1:
        wanted = "uniform"
    group = groups[0] if wanted is None else _line_of(wanted, groups)
    for each in groups:
        for record in each.records:
            require_comparable(record, (group or groups[0]).first)
    if group is not None:
        return Reference(group.name, mean_nats(group.loaded(), len(group.first.nats)), group)
    if wanted not in SIMPLE_CODES:
        raise unknown_name("reference", str(wanted), [*(each.name for each in groups), *SIMPLE_CODES])
    code, record = SIMPLE_CODES[str(wanted)], next(groups[0].loaded())
    return Reference(f"the {code.phrase}", code.nats(record.labels, record.num_classes), None)


def _line_of(wanted: Record | str | Path, groups: Sequence[SeedGroup]) -> SeedGroup | None:
    """The line of a run, by where it is, else by a name."""
    path = wanted.path if isinstance(wanted, Record) else Path(wanted)
    place = None if path is None else path.resolve()

    def is_there(run: Run) -> bool:
        return run.source is wanted or (run.record.path is not None and run.record.path.resolve() == place)

    by_place = (group for group in groups if any(map(is_there, group.members)))
    by_name = (group for group in groups if wanted in (group.name, *group.runs))
    return next(by_place, None) or next(by_name, None)
