"""A comparison in plain language."""

import math
from typing import TYPE_CHECKING

from prequential.measure.simple import SIMPLE_CODES
from prequential.report.entries import Entry, paired_test_of
from prequential.report.text import counted, listed, number, odds, p_text, sentence

if TYPE_CHECKING:
    from prequential.report.comparison import Comparison

SIGNIFICANT = 0.05
SAME = 0.05
"""Nats below which two codelengths are printed as the same number, near enough."""


def sentences_of(comparison: "Comparison") -> list[str]:
    """What the comparison says, the main thing first."""
    entries = comparison.entries
    is_finite = math.isfinite(entries[0].nats)
    said = []
    if len(entries) > 1 and is_finite:
        said += [_of_pair(entries[0], entries[1]), _of_seeds(entries[0], entries[1])]
    elif len(entries) > 1:
        said.append("No code is finite.")
    lost = [_lost(entry) for entry in entries if math.isinf(entry.nats)]
    if lost:
        why = "a label got probability 0 or a prediction was no number"
        said.append(f"Infinite, since {why}: {listed(lost)}.")
    said.append(_of_simple_codes(comparison))
    chosen_from = comparison.candidates
    if chosen_from.number > 1 and is_finite:
        cost = f"ln {chosen_from.number:,} = {chosen_from.nats:.2f} nats"
        said.append(f"Choosing the best of {chosen_from.told('setting')} afterwards costs {cost} more.")
    if comparison.uncoded:
        names = listed([group.name for group in comparison.uncoded])
        said.append(f"Without a codelength, so that only held-out figures are shown: {names}.")
    if comparison.length < comparison.sequence_length and is_finite:
        said.insert(0, f"Only the first {comparison.length:,} of {comparison.sequence_length:,} labels are compared.")
    return [*said, *map(sentence, comparison.notes)]


def _lost(entry: Entry) -> str:
    diverged = sum(math.isinf(nats) for nats in entry.codelengths.values())
    return entry.name if diverged == len(entry.runs) else f"{entry.name} ({diverged:,} of {len(entry.runs):,} seeds)"


def _of_pair(best: Entry, second: Entry) -> str:
    if second.difference < SAME:
        return f"{best.name} and {second.name} have codes of the same length."
    if math.isinf(second.difference):
        return f"{best.name} is the only one with a finite code."
    said = f"{best.name} needs {number(second.difference)} nats less than {second.name}, odds {odds(second.log_odds)}"
    if best.leads_from is None or best.early_share is None:
        return f"{said}."
    share = f"{number(100 * best.early_share, '.0f')} % of its advantage was earned in the first 10 % of the data"
    if best.early_share < -0.005:
        share = "it was behind after the first 10 % of the data"
    elif best.early_share > 1.005:
        share = "it was further ahead after the first 10 % of the data, and lost some of that later"
    return f"{said}; it leads from position {best.leads_from:,} on; {share}."


def _of_seeds(best: Entry, second: Entry) -> str:
    shared = len(set(best.seeds) & set(second.seeds))
    if second.p_value is None:
        if math.isinf(second.nats):
            return "A code is infinite: no test."
        each = len(best.runs) == len(second.runs) == 1
        seeds = "One seed each" if each else counted(shared, "shared seed")
        return f"{seeds}: whether other seeds would say the same is not tested."
    test = paired_test_of(best, second)
    assert test is not None
    differ = "these seeds alone do not show that the settings differ"
    if test.p_value < SIGNIFICANT:
        differ = "the settings differ by more than their seeds do"
    if test.mean < 0:
        differ += f", and over these seeds {second.name} is ahead"
    difference = f"{number(test.mean)} ± {number(test.standard_error)} nats over {shared} shared seeds"
    return f"Seed by seed the difference is {difference}: p = {p_text(test.p_value)} (paired t-test); {differ}."


def _of_simple_codes(comparison: "Comparison") -> str:
    name = min(comparison.simple, key=lambda name: comparison.simple[name])
    nats, number_of = comparison.simple[name], len(comparison.entries)
    beaten = sum(entry.nats >= nats for entry in comparison.entries)
    code = f"{SIMPLE_CODES[name].phrase} with {number(nats)} nats"
    if not beaten:
        who = "All beat" if number_of > 1 else f"{comparison.best.name} beats"
        return f"{who} the simple codes; the best of these is the {code}."
    who = "None beats" if number_of > 1 else f"{comparison.best.name} does not beat"
    if beaten < number_of:
        who = f"{beaten:,} of {number_of:,} do{'es' * (beaten == 1)} not beat"
    return f"{who} a code without any model: the {code}."
