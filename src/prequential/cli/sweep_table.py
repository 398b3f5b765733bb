"""What a person sees of a sweep."""

import math
import sys
from contextlib import suppress
from typing import Any

from rich.console import Console

from prequential.catalogue import own_name, short_names
from prequential.errors import PreqError
from prequential.measure.importance import FEWEST_TRIALS
from prequential.report.table import Column, print_table, say
from prequential.report.text import NOTHING, counted, number
from prequential.runs.record import read_facts
from prequential.scaling import Scale, in_words, parsed_scale
from prequential.sweeps import Summary, TrialResult
from prequential.sweeps.fingerprints import in_words as in_words_of_data
from prequential.terminal import printable, tell

ONE_SIDED = "one-sided: none of its samples can be below the best found"


def print_summary(summary: Summary, top: int) -> None:
    """The best trials as a table, and below it what they cost and which settings mattered."""
    console = Console(file=sys.stdout)
    facts = summary.facts
    say(console, f"{facts['data']['name']} · {facts['model']} · {facts['method'].get('name', '')}", "bold")
    if (scale := _scale(summary)) is not None:
        tell(in_words(scale))
    print_table(console, _columns(summary), summary.ranked[:top])
    for line in _lines(summary):
        say(console, line)
    if summary.best is not None and summary.best.path is not None:
        tell(f"record of the best: {summary.best.path}")


def _scale(summary: Summary) -> Scale | None:
    """What uint8 inputs were out of, as the first trial says that has a record here."""
    for trial in summary.trials:
        if trial.path is not None:
            with suppress(PreqError):  # a record that is damaged, or not there yet
                told = read_facts(trial.path).get("scale")
                return None if told is None else parsed_scale(told)
    return None


def _columns(summary: Summary) -> list[Column[TrialResult]]:
    names = list(dict.fromkeys(name for trial in summary.trials for name in trial.settings))

    def with_choice(trial: TrialResult) -> float | None:
        return None if trial.codelength is None else trial.codelength + summary.choice_nats

    def setting(name: str) -> Column[TrialResult]:
        return Column(printable(_short(name, summary)), "", lambda trial: trial.settings.get(name), _form)

    measured: list[Column[TrialResult]] = [
        Column("nats", "", lambda trial: trial.codelength, number),
        Column("nats + ln n", "", with_choice, number),
    ]
    if not summary.has_codelength:
        measured = [Column("held-out loss", "", lambda trial: (trial.heldout or {}).get("loss"), "{:.4f}".format)]
    return [
        Column("trial", "", lambda trial: trial.number),
        *measured,
        *map(setting, names),
        Column("FLOPs", "", lambda trial: trial.flops, "{:.2g}".format),
        Column("seconds", "", lambda trial: trial.seconds, number),
    ]


def _lines(summary: Summary) -> list[str]:
    said = ", ".join(f"{number:,} {status}" for status, number in summary.standing().items() if number)
    lines = [f"{counted(len(summary.trials), 'trial')}: {said}"]
    lines += filter(None, [in_words_of_data(trial.data for trial in summary.over)])
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
    if any(trial.settings for trial in summary.ranked):
        lines.append(_importance(summary))
    flops = "" if summary.flops is None else f"{summary.flops:.2g} FLOPs, "
    lines.append(f"spent: {flops}{summary.seconds:,.1f} seconds of trials")
    if summary.counts["pruned"]:
        saved = summary.saved
        less = "" if summary.flops is None else f", {saved['flops']:.2g} FLOPs"
        lines.append(f"pruning saved {saved['share']:.0%}: about {saved['seconds']:,.1f} seconds{less}")
    return lines + [f"trial {each.number} failed: {each.error}" for each in summary.trials if each.status == "failed"]


def _importance(summary: Summary) -> str:
    done = len(summary.ranked)
    if summary.importance is None:
        return f"importance: not told by fewer than {FEWEST_TRIALS} finished trials (here {done:,})"
    shares = ", ".join(f"{_short(name, summary)} {share:.0%}" for name, share in summary.importance.items())
    return f"importance: {shares} (how much of the order of the {done:,} finished trials each explains alone)"


def _short(name: str, summary: Summary) -> str:
    """What a table calls a setting: passes over the past are streams, replays or epochs, as the method has it."""
    own = own_name(name, summary.facts["method"]) or name
    return short_names().get(own, own)


def _form(value: Any) -> str:
    return f"{value:.1e}" if isinstance(value, float) else NOTHING if value is None else str(value)
