"""`preq plan`: what a method would do."""

import json
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Annotated

from prequential.cli.parse import UNSET, Whole, parse
from prequential.cli.settings import MethodFlags, method_from
from prequential.errors import require_count
from prequential.events import Calibrate, Event, Predict, Train
from prequential.plan import Plan
from prequential.presets import find_preset


@dataclass(frozen=True, kw_only=True)
class PlanFlags(MethodFlags):
    """List, count and check the events of a method. No model is run and no data is read.

    `preq plan --method ci-fs --length 60000`
    """

    length: Whole = 60_000
    """Labels in the sequence."""
    events: Whole = 12
    """How many events to list."""
    heldout: Annotated[bool, UNSET] = False
    """Include the closing stage and the evaluation on held-out data."""
    json: Annotated[bool, UNSET] = False
    """Print one JSON object and nothing else."""


def main_plan(arguments: list[str]) -> int:
    """Parse, check, print."""
    flags = parse(PlanFlags, "plan", arguments)
    require_count("--events", flags.events, at_least=0)
    plan = Plan(method_from(flags, find_preset(flags.preset)), flags.length, flags.plan_seed, heldout=flags.heldout)
    plan.check()
    counts = plan.counts()
    if flags.json:
        facts = {"method": plan.method.name, "length": plan.length, "plan_seed": plan.seed, "digest": plan.digest()}
        print(json.dumps(facts | {"prequential": plan.method.prequential, "causal": True} | asdict(counts)))
        return 0
    for number, event in enumerate(islice(plan.events(), flags.events)):
        print(f"{number:>10,}  {describe(event)}")
    if counts.events > flags.events:
        print(f"{'…':>10}  {counts.events - flags.events:,} more (--events N lists more)")
    proof = "causal and complete" if plan.method.prequential else "not prequential: every label is revealed at once"
    print(
        f"\n{plan.method.title} over {plan.length:,} labels: {counts.events:,} events, {proof}\n"
        f"  predict    {counts.predicts:>10,} events {counts.predicted_examples:>14,} labels"
        f"  (+ {counts.uniform_examples:,} coded uniformly)\n"
        f"  calibrate  {counts.calibrates:>10,} events {counts.calibrated_examples:>14,} examples"
        f"  ({counts.recomputed_examples:,} need a forward pass)\n"
        f"  train      {counts.trains:>10,} events {counts.trained_examples:>14,} examples"
        f"  ({counts.trained_examples / plan.length:.1f} per label)"
    )
    return 0


def describe(event: Event) -> str:
    """An event on one line.

    Example:
        >>> import numpy as np
        >>> describe(Train(np.array([0, 1, 2, 7])))
        'Train      4 examples: 0–2, 7'
    """
    if isinstance(event, Predict):
        return f"Predict    labels {event.start}–{event.stop - 1}{' uniformly' if event.uniform else ''}"
    if not isinstance(event, Calibrate | Train):
        return repr(event)
    runs: list[list[int]] = []
    for index in event.indices.tolist():
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    texts = [f"{first}–{last}" if last > first else f"{first}" for first, last in runs]
    shown = ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")
    return f"{type(event).__name__:<10} {len(event.indices)} examples: {shown}"
