"""`pareto`: what runs reached for what they cost, the fronts of them, and their picture."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.measure.choosing import Candidates, candidates
from prequential.measure.comparable import (
    is_one_heldout,
    require_same_data,
    require_same_inputs,
    sequence_of,
    told_of,
)
from prequential.measure.fronts import pareto_front
from prequential.methods import METHODS, Online
from prequential.report.entries import mean_of
from prequential.report.names import data_of, settings_of_run
from prequential.report.picture import COLOURS, FAINT, MARKS, literal, number_axis, picture, plain_number
from prequential.report.plots.dots import name_dots
from prequential.report.plots.draw import band_note, note
from prequential.report.runs import Needs, RunSet, Sources
from prequential.report.seeds import Run, SeedGroup
from prequential.report.text import counted, listed

MOST_NAMES = 12
"""Up to so many dots have their names beside them; of more, those on the front."""
LOGARITHMIC_FROM = 4
"""The ratio of largest to smallest value from which on the axis is logarithmic."""


def place(group: SeedGroup, *, heldout: bool) -> tuple[float, float | None]:
    """FLOPs and codelength; or FLOPs, also those of a closing stage and of the evaluation, and held-out error. Means
    over the seeds."""
    flops = [record.flops or {} for record in group.records]
    if heldout:
        errors = [(record.heldout or {}).get("error_rate") for record in group.records]
        # a study is a part of the code's
        whole = [sum(cost for part, cost in each.items() if part != "study") for each in flops]
        return float(np.mean(whole)), mean_of(errors)
    return float(np.mean([each["code"] for each in flops])), group.codelength if group.first.prequential else None


@dataclass(frozen=True)
class Front:
    """A set of runs with FLOPs, seeds of one setting taken together, and which settings no other beats."""

    runs: RunSet
    each_seed: bool = False
    """Every run by itself."""

    @classmethod
    def find(
        cls, runs: Sources, *, heldout: bool = False, each_seed: bool = False, same_inputs: bool = False
    ) -> "Front":
        """The runs that can be shown together (see `RunSet.find`).

        Those that are not finished or diverged are left out, and those without FLOPs, or with nothing to show: neither
        a codelength nor, with `heldout`, a held-out error.

        Raises:
            PreqError: if runs are about different labels or lengths (or inputs, with `same_inputs`), or if nothing is
                left.
        """
        found = RunSet.find(runs, Needs(code=not heldout, heldout=heldout, flops=True, finite=True, whole=True))
        records = found.records
        sequences = [sequence_of(record) for record in records]
        reference = records[sequences.index(max(sequences, key=sequences.count))]
        for record in records:
            require_same_data(record, reference)
        if same_inputs:
            require_same_inputs(records)
        for other in records if heldout else []:
            one = next(record for record in records if record.heldout is not None or record is other)
            if not is_one_heldout([one, other]):
                told = f"{one.path} and {other.path} were evaluated on different held-out data"
                raise PreqError(f"{told}; show one of them at a time")
        return cls(found, each_seed)

    @cached_property
    def groups(self) -> list[SeedGroup]:
        """The settings, each with its seeds."""
        return self.runs.groups(each_seed=self.each_seed)

    @property
    def told(self) -> list[str]:
        """A line each about what codes were given and told, where that differs."""
        return told_of((group.name, group.first) for group in shown_of(self.groups, heldout=False))

    @property
    def candidates(self) -> Candidates:
        """Those that a setting with a codelength is chosen from, and of sweeps all trials that were begun."""
        shown = shown_of(self.groups, heldout=False)
        return candidates((run.record.path, group.name) for group in shown for run in group.members)

    def best(self, *, heldout: bool = False) -> list[SeedGroup]:
        """The settings that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
        return front_of(self.groups, heldout=heldout)

    def values(self) -> list[dict[str, Any]]:
        """A row of plain values for each run, the cheapest first: what JSON holds. A run is on a front with its
        setting."""
        code, heldout = ({group.name for group in self.best(heldout=which)} for which in (False, True))

        def row(group: SeedGroup, run: Run) -> dict[str, Any]:
            alone = SeedGroup(name=run.name, members=(run,))
            (flops, nats), (heldout_flops, error) = (place(alone, heldout=which) for which in (False, True))
            record, name = run.record, group.name
            names = {"method": record.method["name"], "model": record.model["name"], "directory": str(record.path)}
            code_facts = {"flops": flops, "codelength_nats": nats, "on_front": name in code}
            held = {"heldout_flops": heldout_flops, "heldout_error": error, "on_heldout_front": name in heldout}
            seeds = {"setting": name, "num_seeds": len(group.members)}
            return code_facts | held | names | seeds | {"settings": settings_of_run(record)}

        rows = [row(group, run) for group in self.groups for run in group.members]
        return sorted(rows, key=lambda row: (row["flops"], row["directory"]))


def front_of(groups: Sequence[SeedGroup], *, heldout: bool) -> list[SeedGroup]:
    """Those that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
    shown = shown_of(groups, heldout=heldout)
    return [shown[index] for index in pareto_front(*places_of(shown, heldout=heldout).T)]


def shown_of(groups: Sequence[SeedGroup], *, heldout: bool) -> list[SeedGroup]:
    """Those that have a codelength (or held-out error)."""
    return [group for group in groups if place(group, heldout=heldout)[1] is not None]


def places_of(groups: Sequence[SeedGroup], *, heldout: bool) -> NDArray[np.float64]:
    """FLOPs and codelength (or held-out error) of settings that have one, a row for each."""
    return np.array([place(group, heldout=heldout) for group in groups], np.float64).reshape(-1, 2)


def plot_pareto(front: Front, path: str | Path, *, heldout: bool = False) -> Path:
    """Draw codelength (and held-out error) against FLOPs and save the picture as PNG, SVG or PDF.

    Every setting is a dot, the mean of its seeds. A line in a method's colour is the best that its settings reached for
    at most so many FLOPs; the broad grey line is the front of all.
    """
    path = Path(path)
    panels = [which for which in ([False, True] if heldout else [False]) if front.best(heldout=which)]
    if not panels:
        raise PreqError("there is nothing to draw: no run has a codelength or a held-out error")
    groups = front.groups
    models = listed(sorted({group.first.model["name"] for group in groups}))
    with picture(path, 5.4 * len(panels) + 0.6, 4.2) as figure:
        drawn = [(figure.add_subplot(1, len(panels), number), which) for number, which in enumerate(panels, start=1)]
        for axes, which in drawn:
            _draw(axes, groups, heldout=which)
        seeds = band_note(groups).replace("Lines:", "Dots:").split(";")[0]
        note(figure, seeds, *map(literal, front.told))
        about = f"{data_of(front.runs.records)} · {counted(groups[0].first.length, 'label')} · {models}"
        figure.suptitle(literal(about), fontsize=11)
        for axes, which in drawn:
            shown = shown_of(groups, heldout=which)
            named = shown if len(shown) <= MOST_NAMES else front_of(groups, heldout=which)[:MOST_NAMES]
            name_dots(figure, axes, places_of(shown, heldout=which), {shown.index(each): each.name for each in named})
    return path


def styles_of(methods: Iterable[str]) -> list[tuple[str, str]]:
    """A colour and a mark for each method: those of the package have theirs in every picture, others as they come.

    Example:
        >>> styles_of(["erm", "mine", "mi-rs"])
        [('#e69f00', 'v'), ('#56b4e9', '<'), ('#0072b2', 'o')]
    """
    styles = list(zip(COLOURS, MARKS, strict=True))
    counted_by = [name for name in METHODS if name != Online.name]  # whose learners have no FLOPs, and no dot here
    known = dict(zip(counted_by, styles, strict=False))
    others = cycle(styles[len(known) :] or styles)
    return [known.get(method) or next(others) for method in methods]


def _draw(axes: Any, groups: Sequence[SeedGroup], *, heldout: bool) -> None:
    shown = shown_of(groups, heldout=heldout)
    places = places_of(shown, heldout=heldout)
    methods = dict(sorted((group.first.method["name"], group.first.title) for group in shown))
    if len(methods) > 1:
        broad = {"color": FAINT, "linewidth": 7, "alpha": 0.35, "solid_capstyle": "butt"}
        axes.step(*_steps(shown, heldout), where="post", **broad, label="front of all")
    for (method, title), (colour, dot) in zip(methods.items(), styles_of(methods), strict=True):
        own = [group for group in shown if group.first.method["name"] == method]
        axes.scatter(*places_of(own, heldout=heldout).T, s=22, color=colour, marker=dot, alpha=0.55, linewidths=0)
        steps = _steps(own, heldout)
        style = {"color": colour, "marker": dot, "markersize": 5, "linewidth": 1.6, "label": title}
        axes.step(*steps, where="post", **style, markevery=slice(steps.shape[1] - 1))  # the end is none of the front
    cheapest, lowest = places.min(axis=0)
    scale = "log" if lowest > 0 and places[:, 1].max() / lowest >= LOGARITHMIC_FROM else "linear"
    axes.set(xscale="log" if cheapest > 0 else "linear", yscale=scale)  # all labels coded uniformly cost nothing
    axes.set_xlabel("FLOPs, with the closing stage" if heldout else "FLOPs")
    axes.set_ylabel("held-out error" if heldout else "codelength [nats]")
    number_axis(axes.yaxis, scale, text=(lambda share: f"{100 * share:g} %") if heldout else plain_number)
    axes.grid(alpha=0.25, which="major")
    axes.legend(frameon=False, fontsize=9, loc="best")


def _steps(groups: Sequence[SeedGroup], heldout: bool) -> NDArray[np.float64]:
    """Where the best value for at most so many FLOPs changes, and at last the dearest: the corners of steps."""
    front = places_of(front_of(groups, heldout=heldout), heldout=heldout)
    dearest = places_of(groups, heldout=heldout)[:, 0].max()
    return np.vstack([front, (dearest, front[-1, 1])]).T
