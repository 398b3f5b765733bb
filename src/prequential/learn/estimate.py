"""What a plan costs: floating-point operations, counted by torch, and seconds, measured on a few steps."""

import contextlib
import copy
import math
import time
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prequential.counts import Counts
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.learn.learning import Learning
from prequential.learn.randomness import FOREIGN, seeded
from prequential.learn.recipe import Recipe
from prequential.learn.shapes import Shapes
from prequential.methods.method import Work
from prequential.models import ModelFactory, build
from prequential.plan import Plan

WARM_UP, MEASURED = 2, 5
MOST_MEASURED = 512
"""Examples of a training step that is measured for its rate alone."""
MOST_STEPS = 8
"""Training steps that are measured together, where an engine likes several."""


@dataclass(frozen=True)
class Estimate:
    """FLOPs and seconds of a whole plan."""

    flops: dict[str, float] | None
    """`code` (of which `study`, where there is one), and apart from it `heldout`; None where torch cannot count."""
    seconds: float
    train_step_seconds: float
    batch_size: int
    """Of the training steps that were measured: the plan's most common."""


@dataclass(frozen=True)
class Expected:
    """What is known of work before it begins."""

    work: Work | None
    """None where the method cannot tell."""
    flops: float | None
    """At most; None where work or network cannot be counted."""


def estimate(plan: Plan, learner: Learning) -> Estimate:
    """Cost of a plan under a learner, which is trained a few steps on the way: use one that is made for this. Of
    several learners what they take together, and the batch size of the first."""
    if not hasattr(learner, "shares"):
        return _estimate(plan, learner)
    each = [_estimate(share.plan, share.learner) for share in learner.shares(plan, None)]
    seconds, step = (sum(getattr(one, part) for one in each) for part in ("seconds", "train_step_seconds"))
    return Estimate(flops_of(plan, learner), seconds, step, each[0].batch_size)


def _estimate(plan: Plan, learner: Learning) -> Estimate:
    counts, shapes = plan.counts(), Shapes.of(plan)
    batch_size = max(2, shapes.main_batch[0] or round(counts.trained_examples / max(counts.trains, 1)))
    positions = np.arange(batch_size) % len(learner.data)
    steps = np.tile(positions, (min(learner.steps_at_once, MOST_STEPS), 1))
    labels = torch.zeros(steps.shape, dtype=torch.int64, device=learner.device)
    train = _seconds(lambda: learner.train_steps(steps, labels, 0), learner.device) / len(steps)
    span = min(max(shapes.predictions, default=batch_size), len(learner.data))
    predict = _seconds(lambda: learner.predict(0, span), learner.device)
    evaluated = counts.predicted_examples + counts.recomputed_examples + _num_evaluated(learner, counts)
    cost = cost_per_example(learner.model, learner.inputs.clean(np.zeros(2, np.int64))) or ExampleCost(1.0, 3.0)
    trained = counts.trained_examples + (cost.of_beside(counts) + cost.of_study(counts)) / (cost.train or 1.0)
    seconds = trained / batch_size * train + evaluated / span * predict
    return Estimate(flops_of(plan, learner), seconds, train, batch_size)


def most_flops(
    make_model: str | ModelFactory, data: DataSequence, plan: Plan, recipe: Recipe, width: float, predictions: int = 1
) -> Expected:
    """What the codelength of a plan costs at most, before a network has memory or an event is made. It may predict
    several times, from several averages."""
    work, cost = plan.most_work(), None
    with torch.device("meta"), contextlib.suppress(PreqError):  # not every model of a user's own can be built there
        model = build(make_model, data.input_shape, capabilities(data).target.output_size, width=width)
        cost = cost_per_example(model, torch.empty((2, *data.input_shape)))
    if work is None or cost is None:
        return Expected(work, None)
    return Expected(work, cost.seen_by(recipe, predictions).of_examples(work.evaluated, work.trained))


def require_flops(expected: Expected, most: float | None) -> None:
    """Refuse what takes more floating-point operations than that, or nobody knows how many."""
    if most is not None and (expected.flops is None or expected.flops > most):
        flops = "an unknown number of" if expected.flops is None else f"about {expected.flops:.3g}"
        raise PreqError(f"this takes {flops} FLOPs, more than --max-flops {most:g}; allow more if you trust the file")


def flops_of(plan: Plan, learner: Learning, num_events: int | None = None) -> dict[str, float] | None:
    """FLOPs of the first events of a plan (default: all): `code`, and apart from it `heldout`.

    What the codelength needs is `code`, wherever it was computed, with a study that `study` tells of, if there is one;
    a closing stage and the evaluation are `heldout`.
    """
    if hasattr(learner, "shares"):
        return _sum_of(learner.shares(plan, num_events))
    return _flops_of(Share(plan, learner, num_events))


class Share(NamedTuple):
    """What one of several learners does of a plan."""

    plan: Plan
    learner: Learning
    num_events: int | None
    copies: int = 1
    """Networks that do so."""
    predictions: float = 1
    """Of each network: as many averages of it predict."""
    studies: bool = True
    """Whether it does the study of its plan itself."""


def _sum_of(shares: Iterable[Share]) -> dict[str, float] | None:
    """FLOPs of all of them; None if those of one cannot be counted."""
    found = [(share.copies, _flops_of(share)) for share in shares]
    total = {"code": 0.0, "heldout": 0.0}
    for copies, flops in found:
        if flops is None:
            return None
        total = {part: total.get(part, 0.0) + copies * flops.get(part, 0.0) for part in {**total, **flops}}
    return total


def _flops_of(share: Share) -> dict[str, float] | None:
    plan, learner, num_events, _, predictions, studies = share
    cost = cost_per_example(learner.model, learner.inputs.clean(np.zeros(2, np.int64)))
    if cost is None:
        return None
    cost = cost.seen_by(learner.inputs.recipe, predictions)
    done, code = plan.counts(num_events), plan.without_heldout().counts(num_events)
    evaluation = cost.of_examples(_num_evaluated(learner, done), 0)
    found = {"code": cost.of(code), "heldout": cost.of(done - code) + evaluation}
    if not code.studies:
        return found
    study = cost.of_study(code) if studies else 0.0
    return found | {"code": found["code"] + study, "study": study}


def _num_evaluated(learner: Learning, counts: Counts) -> int:
    heldout = learner.data.heldout
    return len(heldout) if heldout is not None and counts.evaluates else 0


def flops_per_second(learner: Learning, batch_size: int) -> float:
    """How fast a learner trains, by a few steps: it is trained by them, use one that is made for this."""
    size = min(max(batch_size, 2), MOST_MEASURED)
    positions, labels = np.arange(size) % len(learner.data), torch.zeros(size, dtype=torch.int64, device=learner.device)
    seconds = _seconds(lambda: learner.train_steps(positions[None], labels[None], 0), learner.device)
    cost = cost_per_example(learner.model, learner.inputs.clean(positions[:2]))
    return math.inf if cost is None else cost.train * size / seconds


def _seconds(step: Callable[[], object], device: torch.device) -> float:
    """The median time of a step."""

    def whole_step() -> None:
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    times = timeit.repeat(whole_step, timer=time.perf_counter, number=1, repeat=WARM_UP + MEASURED)
    return float(np.median(times[WARM_UP:]))


@dataclass(frozen=True)
class ExampleCost:
    """FLOPs of one example."""

    forward: float
    train: float
    """Forward and backward."""
    passes: float = field(default=1, repr=False)
    """Forward, of a prediction."""

    def of(self, counts: Counts) -> float:
        """FLOPs of predictions, calibrations without logits at hand, and training; those of a study are apart."""
        evaluated = counts.predicted_examples + counts.recomputed_examples
        return self.of_examples(evaluated, counts.trained_examples) + self.of_beside(counts)

    def of_beside(self, counts: Counts) -> float:
        """FLOPs of inputs beside labelled ones: the average says what a view is, another view is trained on."""
        return (self.forward + self.train) * counts.beside_examples

    def of_study(self, counts: Counts) -> float:
        """FLOPs of a study, without its projection: two views of an input are trained on, and the average is shown
        both; then the statistics."""
        return 2 * (self.forward + self.train) * counts.studied_examples + self.forward * counts.measured_examples

    def of_examples(self, evaluated: int, trained: int) -> float:
        """FLOPs of so many that are only predicted, and so many that are trained on."""
        return self.passes * self.forward * evaluated + self.train * trained

    def seen_by(self, recipe: Recipe, predictions: float = 1) -> "ExampleCost":
        """The cost where predictions average over flips and views of an example, and there are so many of them."""
        views = recipe.average_views * (2 if recipe.average_flips else 1)
        return replace(self, passes=predictions * views)


def cost_per_example(model: nn.Module, inputs: Tensor) -> ExampleCost | None:
    """FLOPs per example, counted on the meta device, or on the real batch where that fails, else None.

    Example:
        >>> cost_per_example(nn.Linear(10, 3), torch.zeros(4, 10))
        ExampleCost(forward=60.0, train=120.0)
    """
    with seeded(0, "flops", 0, inputs.device, FOREIGN):
        for device in ("meta", inputs.device):  # a model that branches on values cannot run without data
            with contextlib.suppress(Exception):
                return _count(copy.deepcopy(model).to(device), inputs.to(device))
    return None


def _count(model: nn.Module, inputs: Tensor) -> ExampleCost:
    from torch.utils.flop_counter import FlopCounterMode  # slow to import, needed once

    forward_counter, train_counter = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with torch.no_grad(), forward_counter:
        model.eval()(inputs)
    with train_counter:
        logits = model.train()(inputs)
        labels = torch.zeros(len(inputs), dtype=torch.int64, device=logits.device)
        torch.autograd.backward(F.cross_entropy(logits, labels))
    return ExampleCost(forward_counter.get_total_flops() / len(inputs), train_counter.get_total_flops() / len(inputs))
