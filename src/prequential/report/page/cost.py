"""Codelength against FLOPs as a drawing in the page: every setting a dot, those that no other beats joined."""

import math
from dataclasses import dataclass

from prequential.measure.fronts import pareto_front
from prequential.report.comparison import Comparison
from prequential.report.text import flops_text, number

LEFT, RIGHT, TOP, BOTTOM = 76.0, 700.0, 14.0, 282.0
"""The frame, in the units of the drawing, which is 720 wide and 330 high."""
LOGARITHMIC_FROM = 4
"""The ratio of largest to smallest codelength from which on that axis is logarithmic."""
MOST_TICKS = 7


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

    def ticks(self) -> list[float]:
        """Round values, few enough to write.

        Example:
            >>> Axis(90.0, 2100.0, True).ticks(), Axis(0.5, 3.9, False).ticks()
            ([100.0, 200.0, 500.0, 1000.0, 2000.0], [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5])
        """
        if self.is_log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
                found = [step * 10.0**power for power in decades for step in steps]
                found = [tick for tick in found if self.low <= tick <= self.high]
                if len(found) <= MOST_TICKS:
                    break
            return found[:: -(-len(found) // MOST_TICKS)] if found else [self.low]
        size = 10.0 ** math.floor(math.log10(self.high - self.low))
        step = next(size * s for s in (0.1, 0.2, 0.25, 0.5, 1, 2) if (self.high - self.low) / (size * s) <= MOST_TICKS)
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
    """What the drawing shows, in its units; None where fewer than two settings have a finite code and known FLOPs."""
    known = [(entry, entry.flops) for entry in comparison.entries if entry.flops and math.isfinite(entry.nats)]
    if len(known) < 2:
        return None
    flops, nats = [cost for _, cost in known], [entry.nats for entry, _ in known]
    x_axis = Axis.of(flops, is_log=True)
    y_axis = Axis.of(nats, is_log=min(nats) > 0 and max(nats) / min(nats) >= LOGARITHMIC_FROM)

    def x(value: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * x_axis.share(value), 1)

    def y(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * y_axis.share(value), 1)

    front = pareto_front(flops, nats).tolist()
    rank = {index: place for place, index in enumerate(front, start=1)}
    told = [(entry.name, flops_text(cost), number(entry.nats)) for entry, cost in known]
    return {
        "dots": [
            Dot(x(cost), y(length), f"{name}: {its_nats} nats, {its_flops} FLOPs", rank.get(index))
            for index, (cost, length, (name, its_flops, its_nats)) in enumerate(zip(flops, nats, told, strict=True))
        ],
        "line": _steps([(x(flops[index]), y(nats[index])) for index in front]),
        "x_ticks": [(x(tick), flops_text(tick)) for tick in x_axis.ticks()],
        "y_ticks": [(y(tick), number(tick, ",.10g")) for tick in y_axis.ticks()],
        "front": [told[index] for index in front],
        "about": f"Codelength against FLOPs of {len(known):,} settings; {len(front):,} of them no other beats in both.",
        "frame": (LEFT, RIGHT, TOP, BOTTOM),
    }


def _steps(corners: list[tuple[float, float]]) -> str:
    """The path of the best code for at most so many FLOPs: along, then down."""
    (x, y), *others = corners
    return f"M{x} {y}" + "".join(f"H{x}V{y}" for x, y in others) + f"H{RIGHT}"
