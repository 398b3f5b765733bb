"""What a plan will cost on this device: FLOPs counted, seconds measured on a few steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from prequential.learn.flops import cost_of, cost_per_example
from prequential.learn.learning import Learning
from prequential.learn.shapes import Shapes
from prequential.plan import Plan

WARM_UP, MEASURED = 2, 5
MOST_STEPS = 8
"""Training steps that are measured together, where an engine likes several."""


@dataclass(frozen=True)
class Estimate:
    """FLOPs and seconds of a whole plan."""

    flops: dict[str, float] | None
    """`code`, and apart from it `heldout`; None where torch cannot count."""
    seconds: float
    train_step_seconds: float
    batch_size: int
    """Of the training steps that were measured: the plan's most common."""


def estimate(plan: Plan, learner: Learning) -> Estimate:
    """Cost of a plan under a learner, which is trained a few steps on the way: use one that is made for this."""
    counts, shapes = plan.counts(), Shapes.of(plan)
    heldout = learner.data.heldout
    batch_size = max(2, shapes.main_batch[0] or round(counts.trained_examples / max(counts.trains, 1)))
    positions = np.arange(batch_size) % len(learner.data)
    steps = np.tile(positions, (min(learner.steps_at_once, MOST_STEPS), 1))
    labels = torch.zeros(steps.shape, dtype=torch.int64, device=learner.device)
    train = _seconds(lambda: learner.train_steps(steps, labels, 0), learner.device) / len(steps)
    span = min(max(shapes.predictions, default=batch_size), len(learner.data))
    predict = _seconds(lambda: learner.predict(0, span), learner.device)
    evaluated = counts.predicted_examples + counts.recomputed_examples
    if heldout is not None and counts.evaluates:
        evaluated += len(heldout)
    seconds = counts.trained_examples / batch_size * train + evaluated / span * predict
    return Estimate(flops_of(plan, learner), seconds, train, batch_size)


def flops_of(plan: Plan, learner: Learning, num_events: int | None = None) -> dict[str, float] | None:
    """FLOPs of the first events of a plan (default: all): `code`, and apart from it `heldout`."""
    cost = cost_per_example(learner.model, learner.inputs.clean(np.zeros(2, np.int64)))
    if cost is None:
        return None
    heldout = learner.data.heldout
    recipe = learner.inputs.recipe
    cost = cost.seen(recipe.average_views * (2 if recipe.average_flips else 1))
    return cost_of(plan, cost, num_events, 0 if heldout is None else len(heldout))


def _seconds(step: Callable[[], object], device: torch.device) -> float:
    """The median time of a step."""
    times = []
    for _ in range(WARM_UP + MEASURED):
        begin = time.perf_counter()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - begin)
    return float(np.median(times[WARM_UP:]))
