"""Codelength against FLOPs as a drawing in the page: every setting a dot, those that no other beats joined."""

import math
from dataclasses import dataclass

from prequential.measure.fronts import pareto_front
from prequential.report.comparison import Comparison
from prequential.report.text import flops_text, number

LOGARITHMIC_FROM = 4
"""The ratio of largest to smallest codelength from which on that axis is logarithmic."""
DECADES_FROM = 8
"""The ratio of its ends from which on a logarithmic axis has the same marks in each decade."""
MOST_TICKS = 7


@dataclass(frozen=True)
class Frame:
    """Where a drawing has its axes, in its units, which are pixels where it has its own width."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    most_ticks: int
    """Of the axis of FLOPs, whose marks stand side by side."""


FRAMES = {
    "roomy": Frame(720, 330, 76, 700, 14, 282, MOST_TICKS),
    "narrow": Frame(360, 300, 66, 350, 14, 252, 4),
}
"""A screen and paper have room for the one; on a phone its letters would be too small, and the other is shown."""


@dataclass(frozen=True)
class Axis:
    """From values to places, and the round values between."""

    low: float
    high: float
    is_log: bool

    @classmethod
    def of(cls, values: list[float], *, is_log: bool) -> "Axis":
        """An axis with a little room beyond the values."""
        low, high = min(values), max(values)
        if is_log:
            room = max((high / low) ** 0.06, 1.1)
            return cls(low / room, high * room, True)
        room = max(0.06 * (high - low), 0.02 * abs(high), 1e-9)
        return cls(low - room, high + room, False)

    def share(self, value: float) -> float:
        """How far along the axis a value lies, from 0 to 1."""
        of = math.log if self.is_log else float
        return (of(value) - of(self.low)) / (of(self.high) - of(self.low))

    def ticks(self, most: int = MOST_TICKS) -> list[float]:
        """Round values, few enough to write.

        Example:
            >>> Axis(90.0, 2100.0, True).ticks(), Axis(0.5, 3.9, False).ticks()
            ([100.0, 200.0, 500.0, 1000.0, 2000.0], [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5])
            >>> Axis(115.0, 200.0, True).ticks(4)
            [125.0, 150.0, 175.0, 200.0]
        """
        if self.is_log and self.high / self.low >= DECADES_FROM:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
                found = [step * 10.0**power for power in decades for step in steps]
                found = [tick for tick in found if self.low <= tick <= self.high]
                if len(found) <= most:
                    break
            return found[:: -(-len(found) // most)] if found else [self.low]
        size = 10.0 ** math.floor(math.log10(self.high - self.low))
        step = next(
            size * s for s in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5) if (self.high - self.low) / (size * s) <= most
        )
        first = math.ceil(self.low / step)
        return [round(step * each, 12) for each in range(first, math.floor(self.high / step) + 1)]


@dataclass(frozen=True)
class Dot:
    """A setting in the drawing."""

    x: float
    y: float
    title: str
    """What pointing at it says."""
    rank: int | None
    """Its place on the front, the cheapest first; None where it is not on it."""


def cost_of(comparison: Comparison) -> dict[str, object] | None:
    """What the drawings show; None where fewer than two settings have a finite code and known FLOPs."""
    known = [(entry, entry.flops) for entry in comparison.entries if entry.flops and math.isfinite(entry.nats)]
    if len(known) < 2:
        return None
    flops, nats = [cost for _, cost in known], [entry.nats for entry, _ in known]
    front = pareto_front(flops, nats).tolist()
    told = [(entry.name, flops_text(cost), number(entry.nats)) for entry, cost in known]
    titles = [f"{name}: {its_nats} nats, {its_flops} FLOPs" for name, its_flops, its_nats in told]
    return {
        "drawings": {name: _drawn(frame, flops, nats, titles, front) for name, frame in FRAMES.items()},
        "front": [told[index] for index in front],
        "about": f"Codelength against FLOPs of {len(known):,} settings; {len(front):,} of them no other beats in both.",
    }


def _drawn(
    frame: Frame, flops: list[float], nats: list[float], titles: list[str], front: list[int]
) -> dict[str, object]:
    """What one drawing shows, in its units."""
    x_axis = Axis.of(flops, is_log=True)
    y_axis = Axis.of(nats, is_log=min(nats) > 0 and max(nats) / min(nats) >= LOGARITHMIC_FROM)

    def x(value: float) -> float:
        return round(frame.left + (frame.right - frame.left) * x_axis.share(value), 1)

    def y(value: float) -> float:
        return round(frame.bottom - (frame.bottom - frame.top) * y_axis.share(value), 1)

    rank = {index: place for place, index in enumerate(front, start=1)}
    dots = enumerate(zip(flops, nats, titles, strict=True))
    corners = [(x(flops[index]), y(nats[index])) for index in front]
    return {
        "frame": frame,
        "dots": [Dot(x(cost), y(length), title, rank.get(index)) for index, (cost, length, title) in dots],
        "line": _steps(corners, frame.right),
        "x_ticks": [(x(tick), flops_text(tick)) for tick in x_axis.ticks(frame.most_ticks)],
        "y_ticks": [(y(tick), number(tick, ",.10g")) for tick in y_axis.ticks()],
    }


def _steps(corners: list[tuple[float, float]], end: float) -> str:
    """The path of the best code for at most so many FLOPs: along, then down."""
    (x, y), *others = corners
    return f"M{x} {y}" + "".join(f"H{x}V{y}" for x, y in others) + f"H{end}"
