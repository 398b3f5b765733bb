"""`replay`: what was replayed when, and how old it was. From the plan alone."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prequential.catalogue import short_names
from prequential.errors import PreqError, PreqWarning
from prequential.methods import Method
from prequential.methods.rebuild import method_from_settings
from prequential.report.picture import COLOURS, DASHES, GREY, MARKS, finish, literal, picture
from prequential.report.plots.ages import NUM_PIECES, Ages, count_ages, expected_ages
from prequential.report.plots.draw import Options, legend, note
from prequential.report.seeds import SeedGroup
from prequential.report.text import listed
from prequential.runs.record import Record

MOST_PLANS = 5
MOST_DOT_PANELS = 3


@dataclass(frozen=True)
class Replayed:
    """The replays of one plan."""

    name: str
    method: Method
    length: int
    ages: Ages
    law: Ages | None
    """Those that the method's own law expects."""


def plot_replay(groups: Sequence[SeedGroup], path: Path, options: Options) -> None:
    """Left what was replayed when, a panel for each plan; right how often which age was replayed."""
    plans = replayed(groups)
    dotted = plans[:MOST_DOT_PANELS]
    with picture(path, 2.5 * len(dotted) + 5.2, 3.6) as figure:
        *panels, last = figure.subplots(1, len(dotted) + 1, width_ratios=[1] * len(dotted) + [1.5])
        for rank, (axes, plan) in enumerate(zip(panels, dotted, strict=True)):
            _draw_dots(axes, plan, rank)
        _draw_ages(last, plans)
        first = groups[0].first
        about = f"{literal(first.data['name'])} · {plans[0].length:,} labels · replay, from the plan"
        figure.suptitle(about, fontsize=10)
        legend(figure, *last.get_legend_handles_labels())
        is_streams = any(hasattr(plan.method, "age_law") for plan in plans)
        scatter = "A stream keeps its age until it goes back to 0, so that one run scatters around its law."
        note(figure, sampled(plans), scatter if is_streams else "")


def replayed(groups: Sequence[SeedGroup]) -> list[Replayed]:
    """The plans of the runs, each once; the best runs' where there are many."""
    plans: dict[tuple[str, int, int], tuple[SeedGroup, Method]] = {}
    unknown: dict[str, PreqError] = {}
    for group in groups:
        record = group.first
        try:
            method = method_from_settings(record.method)
            plans.setdefault((repr(method), record.length, record.seeds["plan_seed"]), (group, method))
        except PreqError as error:
            unknown.setdefault(group.name, error)
    if unknown and not plans:
        raise next(iter(unknown.values()))
    if unknown:
        told = f"left out {listed(list(unknown))}: {next(iter(unknown.values()))}"
        warnings.warn(told, PreqWarning, stacklevel=4)
    if len(plans) > MOST_PLANS:
        text = f"{len(plans):,} different plans; those of the {MOST_PLANS} shortest codes are drawn"
        warnings.warn(text, PreqWarning, stacklevel=4)
    chosen = list(plans.values())[:MOST_PLANS]
    titles = [describe(group.first) for group, _ in chosen]
    found = []
    for title, (group, method) in zip(titles, chosen, strict=True):
        record, name = group.first, title if titles.count(title) == 1 else f"{title}\n{literal(group.name)}"
        ages = count_ages(method, record.length, record.seeds["plan_seed"])
        law = expected_ages(method, record.length, ages.edges)
        found.append(Replayed(name, method, record.length, ages, None if law is None else replace(ages, counts=law)))
    if not any(plan.ages.counts.any() for plan in found):
        raise PreqError(
            f"there is nothing to draw: over {found[0].length:,} labels {found[0].method.name} replays none"
        )
    return found


def describe(record: Record) -> str:
    """What decides about replay: the method, and how often it reads the past, such as "MI/RS, 25 streams"."""
    counts = [f"{record.method[name]:,} {short}" for name, short in short_names().items() if name in record.method]
    return ", ".join([record.title, *counts[:1]])


def sampled(plans: Sequence[Replayed]) -> str:
    """What was not read or drawn whole."""
    share = min(plan.ages.share for plan in plans)
    counted = "All replays are counted"
    if share < 1:
        counted = f"Replays are counted over {100 * share:.2g} % of the sequence, in {NUM_PIECES} equally spaced pieces"
    is_thinned = any(len(plan.ages.dots) < plan.ages.counts.sum() for plan in plans)
    return counted + (", a few of them are drawn as dots." if is_thinned else ".")


def _draw_dots(axes: Any, plan: Replayed, rank: int) -> None:
    axes.plot([0, plan.length], [0, plan.length], color=GREY, linewidth=0.8)
    axes.plot(*plan.ages.dots.T, linestyle="none", marker=".", markersize=1.6, color=COLOURS[rank], markeredgewidth=0)
    axes.set(xlim=(0, plan.length), ylim=(0, plan.length))
    axes.set_title(plan.name, fontsize=8)
    finish(axes, x="labels revealed", y="" if rank else "position replayed", scale="linear", most=3)


def _draw_ages(axes: Any, plans: Sequence[Replayed]) -> None:
    for rank, plan in enumerate(plans):
        middle = np.sqrt(plan.ages.edges[:-1] * (plan.ages.edges[1:] - 1.0))
        density = np.where(plan.ages.counts > 0, plan.ages.density, np.nan)
        joined = (0, DASHES[rank] or None)
        look = {"color": COLOURS[rank], "marker": MARKS[rank], "markersize": 4, "markeredgewidth": 0, "linewidth": 1}
        axes.plot(middle, density, **look, linestyle="none" if plan.law else joined, label=plan.name)
        if plan.law is not None:
            law = np.where(plan.law.counts > 0, plan.law.density, np.nan)
            axes.plot(middle, law, color=COLOURS[rank], linestyle=joined, linewidth=1.2, label="its law")
    axes.set(xscale="log", yscale="log")
    axes.set_ylim(min(plan.ages.density[plan.ages.counts > 0].min(initial=1) for plan in plans) / 2, None)
    finish(axes, x="age [examples]", y="share of replays per age", scale="log", y_scale="log")
