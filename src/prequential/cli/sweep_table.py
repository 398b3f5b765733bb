"""What a person sees of a sweep."""

import math
import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prequential.catalogue import own_name, short_names
from prequential.sweeps import Summary, TrialResult

WIDTH_OF_FILES = 160
"""Columns of a table that goes into a file or a pipe."""

ONE_SIDED = "one-sided: none of its samples can be below the best found"


def print_summary(summary: Summary, top: int) -> None:
    """The best trials as a table, and below it what they cost and which settings mattered."""
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        console = Console(file=sys.stdout, width=WIDTH_OF_FILES)
    facts = summary.facts
    title = f"{facts['data']['name']} · {facts['model']} · {facts['method'].get('name', '')}"
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    names = list(dict.fromkeys(name for trial in summary.trials for name in trial.settings))
    has_length = summary.has_codelength
    wanted = ["nats", "nats + ln n"] if has_length else ["held-out loss"]
    for name in ("trial", *wanted, *(_head(name, summary) for name in names), "FLOPs", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for trial in summary.ranked[:top]:
        values = [_form(trial.settings.get(name)) for name in names]
        table.add_row(str(trial.number), *_measured(trial, summary, has_length), *values, *_spent(trial))
    console.print(table)
    for line in _lines(summary):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _measured(trial: TrialResult, summary: Summary, has_length: bool) -> list[str]:
    if has_length:
        length = trial.codelength if trial.codelength is not None else math.nan
        return [f"{length:,.1f}", f"{length + summary.choice_nats:,.1f}"]
    return [f"{(trial.heldout or {}).get('loss', math.nan):.4f}"]


def _spent(trial: TrialResult) -> list[str]:
    return ["–" if trial.flops is None else f"{trial.flops:.2g}", f"{trial.seconds:,.1f}"]


def _lines(summary: Summary) -> list[str]:
    said = ", ".join(f"{number} {status}" for status, number in summary.counts.items() if number)
    lines = [f"{len(summary.trials)} trials: {said}"]
    best = summary.best
    if best is not None and best.codelength is not None:
        total = best.codelength + summary.choice_nats
        lines.append(f"best: {best.codelength:,.1f} nats, {total:,.1f} with the {summary.choice_nats:.2f} of choosing")
    elif best is not None:
        lines.append("the method has no codelength: trials are ordered by their loss on held-out data")
    if summary.interval is not None:
        low, high = summary.interval
        upper = f"{high:,.1f} nats" if math.isfinite(high) else "∞: too few trials ran to their end"
        lines.append(f"bootstrap 95 % interval of the best: {low:,.1f} … {upper} ({ONE_SIDED})")
    if summary.importance:
        parts = sorted(summary.importance.items(), key=lambda item: -item[1])
        lines.append("importance: " + ", ".join(f"{_head(name, summary)} {share:.0%}" for name, share in parts))
    flops = "" if summary.flops is None else f"{summary.flops:.2g} FLOPs, "
    lines.append(f"spent: {flops}{summary.seconds:,.1f} seconds of trials")
    if summary.counts["pruned"]:
        saved = summary.saved
        less = "" if summary.flops is None else f", {saved['flops']:.2g} FLOPs"
        lines.append(f"pruning saved {saved['share']:.0%}: about {saved['seconds']:,.1f} seconds{less}")
    failed = [trial for trial in summary.trials if trial.status == "failed"]
    lines += [f"trial {trial.number} failed: {trial.error}" for trial in failed]
    if best is not None and best.path is not None:
        lines.append(f"record of the best: {best.path}")
    return lines


def _head(name: str, summary: Summary) -> str:
    """What a table calls a setting: passes over the past are streams, replays or epochs, as the method has it."""
    own = own_name(name, summary.facts["method"]) or name
    return short_names().get(own, own)


def _form(value: Any) -> str:
    return f"{value:.1e}" if isinstance(value, float) else "–" if value is None else str(value)
