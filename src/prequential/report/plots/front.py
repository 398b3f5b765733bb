"""`pareto`: what runs reached for what they cost, the fronts of them, and their picture."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.conditioning import difference
from prequential.errors import PreqError
from prequential.measure.choosing import Candidates, candidates
from prequential.measure.comparable import fingerprints_of, require_same_data, sequence_of
from prequential.measure.fronts import pareto_front
from prequential.methods import METHODS
from prequential.report.names import settings_of_run
from prequential.report.picture import COLOURS, FAINT, INK, MARKS, literal, mark, number_axis, picture, plain_number
from prequential.report.plots.draw import note
from prequential.report.runs import Needs, RunSet, Sources
from prequential.report.seeds import Run
from prequential.report.text import counted, listed

MOST_NAMES = 12
"""Up to so many dots have their names beside them."""
LOGARITHMIC_FROM = 4
"""The ratio of largest to smallest value from which on the axis is logarithmic."""


def place(run: Run, *, heldout: bool) -> tuple[float, float | None]:
    """FLOPs and codelength; or FLOPs, also those of a closing stage and of the evaluation, and held-out error."""
    record = run.record
    assert record.flops is not None
    if heldout:
        return sum(record.flops.values()), (record.heldout or {}).get("error_rate")
    return record.flops["code"], run.codelength if record.prequential else None


@dataclass(frozen=True)
class Front:
    """A set of runs with FLOPs, and which of them no other beats."""

    runs: RunSet

    @classmethod
    def find(cls, runs: Sources, *, heldout: bool = False) -> "Front":
        """The runs that can be shown together (see `RunSet.find`).

        Those that are not finished or diverged are left out, and those without FLOPs, or with nothing to show: neither
        a codelength nor, with `heldout`, a held-out error.

        Raises:
            PreqError: if runs are about different data or lengths, or if nothing is left.
        """
        found = RunSet.find(runs, Needs(code=not heldout, heldout=heldout, flops=True, finite=True, whole=True))
        records = found.records
        sequences = [sequence_of(record) for record in records]
        reference = records[sequences.index(max(sequences, key=sequences.count))]
        for record in records:
            require_same_data(record, reference)
        evaluated = {fingerprints_of(record.data["heldout"]): record.path for record in records if record.heldout}
        if heldout and len(evaluated) > 1:
            one, other = list(evaluated.values())[:2]
            raise PreqError(f"{one} and {other} were evaluated on different held-out data; show one of them at a time")
        return cls(found)

    @property
    def told(self) -> str:
        """One line about what codes were told, where that differs."""
        return difference((run.name, run.record.conditioned_on) for run in shown_of(self.runs.runs, heldout=False))

    @property
    def candidates(self) -> Candidates:
        """Those that a run with a codelength is chosen from: runs, and of sweeps all trials that were begun."""
        return candidates((run.record.path, run.name) for run in shown_of(self.runs.runs, heldout=False))

    def best(self, *, heldout: bool = False) -> list[Run]:
        """The runs that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
        return front_of(self.runs.runs, heldout=heldout)

    def values(self) -> list[dict[str, Any]]:
        """A row of plain values for each run, the cheapest first: what JSON holds."""
        code, heldout = ({run.name for run in self.best(heldout=which)} for which in (False, True))

        def row(run: Run) -> dict[str, Any]:
            (flops, nats), (heldout_flops, error) = (place(run, heldout=which) for which in (False, True))
            record, name = run.record, run.name
            names = {"method": record.method["name"], "model": record.model["name"], "directory": str(record.path)}
            code_facts = {"flops": flops, "codelength_nats": nats, "on_front": name in code}
            held = {"heldout_flops": heldout_flops, "heldout_error": error, "on_heldout_front": name in heldout}
            return code_facts | held | names | {"settings": settings_of_run(record)}

        return sorted(map(row, self.runs.runs), key=lambda row: (row["flops"], row["directory"]))


def front_of(runs: Sequence[Run], *, heldout: bool) -> list[Run]:
    """Those that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
    shown = shown_of(runs, heldout=heldout)
    return [shown[index] for index in pareto_front(*places_of(shown, heldout=heldout).T)]


def shown_of(runs: Sequence[Run], *, heldout: bool) -> list[Run]:
    """Those that have a codelength (or held-out error)."""
    return [run for run in runs if place(run, heldout=heldout)[1] is not None]


def places_of(runs: Sequence[Run], *, heldout: bool) -> NDArray[np.float64]:
    """FLOPs and codelength (or held-out error) of runs that have one, a row for each."""
    return np.array([place(run, heldout=heldout) for run in runs], np.float64).reshape(-1, 2)


def plot_pareto(front: Front, path: str | Path, *, heldout: bool = False) -> Path:
    """Draw codelength (and held-out error) against FLOPs and save the picture as PNG, SVG or PDF.

    Every run is a dot. A line in a method's colour is the best that its runs reached for at most so many FLOPs; the
    broad grey line is the front of all runs.
    """
    path = Path(path)
    panels = [which for which in ([False, True] if heldout else [False]) if front.best(heldout=which)]
    if not panels:
        raise PreqError("there is nothing to draw: no run has a codelength or a held-out error")
    runs = front.runs.runs
    models = listed(sorted({run.record.model["name"] for run in runs}))
    with picture(path, 5.4 * len(panels) + 0.6, 4.2) as figure:
        for number, which in enumerate(panels, start=1):
            _draw(figure.add_subplot(1, len(panels), number), runs, heldout=which)
        note(figure, literal(front.told))
        first = runs[0].record
        figure.suptitle(literal(f"{first.data['name']} · {counted(first.length, 'label')} · {models}"), fontsize=11)
    return path


def styles_of(methods: Iterable[str]) -> list[tuple[str, str]]:
    """A colour and a mark for each method: those of the package have theirs in every picture, others as they come.

    Example:
        >>> styles_of(["erm", "mine", "mi-rs"])
        [('#e69f00', 'v'), ('#56b4e9', '<'), ('#0072b2', 'o')]
    """
    styles = list(zip(COLOURS, MARKS, strict=True))
    known = dict(zip(METHODS, styles, strict=False))
    others = cycle(styles[len(known) :] or styles)
    return [known.get(method) or next(others) for method in methods]


def _draw(axes: Any, runs: Sequence[Run], *, heldout: bool) -> None:
    shown = shown_of(runs, heldout=heldout)
    places = places_of(shown, heldout=heldout)
    methods = dict(sorted((run.record.method["name"], run.record.title) for run in shown))
    if len(methods) > 1:
        broad = {"color": FAINT, "linewidth": 7, "alpha": 0.35, "solid_capstyle": "butt"}
        axes.step(*_steps(shown, heldout), where="post", **broad, label="front of all")
    for (method, title), (colour, dot) in zip(methods.items(), styles_of(methods), strict=True):
        own = [run for run in shown if run.record.method["name"] == method]
        axes.scatter(*places_of(own, heldout=heldout).T, s=22, color=colour, marker=dot, alpha=0.55, linewidths=0)
        steps = _steps(own, heldout)
        style = {"color": colour, "marker": dot, "markersize": 5, "linewidth": 1.6, "label": title}
        axes.step(*steps, where="post", **style, markevery=slice(steps.shape[1] - 1))  # the end is none of the front
    if len(shown) <= MOST_NAMES:
        for run, place in zip(shown, places, strict=True):
            mark(axes, literal(run.name), place, (5, 5), fontsize=8, color=INK)
    cheapest, lowest = places.min(axis=0)
    scale = "log" if lowest > 0 and places[:, 1].max() / lowest >= LOGARITHMIC_FROM else "linear"
    axes.set(xscale="log" if cheapest > 0 else "linear", yscale=scale)  # all labels coded uniformly cost nothing
    axes.set_xlabel("FLOPs, with the closing stage" if heldout else "FLOPs")
    axes.set_ylabel("held-out error" if heldout else "codelength [nats]")
    number_axis(axes.yaxis, scale, text=(lambda share: f"{100 * share:g} %") if heldout else plain_number)
    axes.grid(alpha=0.25, which="major")
    axes.legend(frameon=False, fontsize=9, loc="best")


def _steps(runs: Sequence[Run], heldout: bool) -> NDArray[np.float64]:
    """Where the best value for at most so many FLOPs changes, and at last the dearest run: the corners of steps."""
    front = places_of(front_of(runs, heldout=heldout), heldout=heldout)
    dearest = places_of(runs, heldout=heldout)[:, 0].max()
    return np.vstack([front, (dearest, front[-1, 1])]).T
