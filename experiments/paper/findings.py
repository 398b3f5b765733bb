"""What the scripts of this folder say of their results: pairs over seeds, the best of several, tables, pictures."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prequential.measure.chance import two_sided

Result = dict[str, Any]


def student(degrees: int) -> float:
    """The t that 95 % lie within; infinite without degrees of freedom.

    Example:
        >>> round(student(2), 3), round(student(63), 3), student(0)
        (4.303, 1.998, inf)
    """
    low, high = 0.0, 100.0
    for _ in range(60 if degrees > 0 else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, degrees) > 0.05 else (low, middle)
    return high if degrees > 0 else math.inf


@dataclass(frozen=True)
class Difference:
    """How much longer the code of b is than that of a, over seeds that both have."""

    mean: float
    standard_error: float
    num_seeds: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by Student's t."""
        t = student(self.num_seeds - 1)
        return self.mean - t * self.standard_error, self.mean + t * self.standard_error

    def verdict(self) -> str:
        """Whether b is surely longer, over at least three seeds."""
        if self.num_seeds < 3:
            return "not shown"
        return "holds" if self.interval[0] > 0 else "not seen at this scale"

    def __str__(self) -> str:
        if self.num_seeds == 0:
            return "not known yet (0 seeds)"
        low, high = self.interval
        word = "longer" if self.mean >= 0 else "shorter"
        return f"{abs(self.mean):,.0f} nats {word} ({low:+,.0f} to {high:+,.0f}, {self.num_seeds} seeds)"


def difference(a: Mapping[int, float], b: Mapping[int, float]) -> Difference:
    """Of what each seed gave.

    Example:
        >>> str(difference({0: 10.0, 1: 12.0, 2: 11.0}, {0: 20.0, 1: 23.0, 2: 20.0}))
        '10 nats longer (+8 to +12, 3 seeds)'
    """
    found = [b[seed] - a[seed] for seed in sorted(set(a) & set(b))]
    if not found:
        return Difference(math.nan, math.nan, 0)
    spread = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.inf
    return Difference(statistics.mean(found), spread, len(found))


def by_seed(done: Iterable[Result], what: str = "nats", **labels: Any) -> dict[int, float]:
    """The results with these labels, by seed; of several settings the best by codelength."""
    found: dict[int, Result] = {}
    for line in done:
        known = line["heldout"] is not None or not what.startswith("heldout")
        if known and all(line.get(name) == value for name, value in labels.items()) and line["status"] == "finished":
            before = found.get(line["seed"])
            if before is None or (line["nats"] or math.inf) < (before["nats"] or math.inf):
                found[line["seed"]] = line
    return {seed: value_of(line, what) for seed, line in found.items()}


def value_of(line: Result, what: str) -> float:
    """A number of a result, such as "nats" or "heldout.loss"."""
    value: Any = line
    for name in what.split("."):
        value = value[name]
    return float(value)


def best_of(done: Iterable[Result], num: int = 1, **labels: Any) -> list[Result]:
    """The shortest codes with these labels, the shortest first."""
    lines = [line for line in done if all(line.get(name) == value for name, value in labels.items())]
    finished = [line for line in lines if line["status"] == "finished" and line["nats"] is not None]
    return sorted(finished, key=lambda line: line["nats"])[:num]


def expected_best(values: Sequence[float], num: int) -> float:
    """The mean of the least of `num` of these values, drawn without replacement.

    Example:
        >>> expected_best([1.0, 2.0, 3.0], 1), expected_best([1.0, 2.0, 3.0], 2), expected_best([1.0, 2.0, 3.0], 3)
        (2.0, 1.3333333333333333, 1.0)
    """
    ways = math.comb(len(values), num)
    return sum(v * math.comb(len(values) - 1 - i, num - 1) / ways for i, v in enumerate(sorted(values)))


def table(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows under the names of their columns."""
    lines = [{name: str(value) for name, value in row.items()} for row in rows]
    if not lines:
        print("nothing yet")
        return
    widths = {name: max(len(name), *(len(line[name]) for line in lines)) for name in lines[0]}
    for line in [dict(zip(widths, widths, strict=True)), *lines]:
        print("  ".join(f"{line[name]:>{width}}" for name, width in widths.items()))


def mean_of(values: Mapping[int, float], digits: int = 0) -> str:
    """Mean and standard error over seeds."""
    if not values:
        return "–"
    error = f" ± {statistics.stdev(values.values()) / math.sqrt(len(values)):,.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values.values()):,.{digits}f}{error}"


def cost_of(done: Iterable[Result]) -> str:
    """How many runs there were, and how long they took; side by side they take less.

    Example:
        >>> cost_of([{"seconds": 90.0, "machine": "a GPU"}, {"seconds": 30.0, "machine": "a GPU"}])
        '2 runs, 2 minutes (a GPU)'
    """
    spent: dict[str, list[float]] = defaultdict(list)
    for line in done:
        spent[line["machine"]].append(line["seconds"])
    return "; ".join(f"{len(s)} runs, {sum(s) / 60:,.0f} minutes ({machine})" for machine, s in spent.items())


def draw_regret(
    ax: Any, done: Sequence[Result], reference: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]
) -> None:
    """Cumulative nats above those of the reference, the mean over seeds."""

    def curves(labels: Mapping[str, Any]) -> dict[int, tuple[Any, Any]]:
        found = defaultdict(list)
        for line in done:
            if all(line.get(name) == value for name, value in labels.items()) and line["status"] == "finished":
                found[line["seed"]].append(line)
        best = {seed: min(lines, key=lambda line: line["nats"]) for seed, lines in found.items()}
        return {seed: tuple(np.array(line["curve"]).T) for seed, line in best.items()}

    base = curves(reference)
    for name, labels in others.items():
        regrets = [np.interp(base[s][0], *curve) - base[s][1] for s, curve in curves(labels).items() if s in base]
        if regrets:
            ax.plot(next(iter(base.values()))[0], np.mean(regrets, axis=0), label=name)
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set(xscale="log", xlabel="labels", ylabel="regret, nats")
    ax.legend(frameon=False, fontsize=8)
