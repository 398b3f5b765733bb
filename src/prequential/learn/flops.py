"""Cost in floating-point operations, counted by torch, times what the plan does."""

import contextlib
import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prequential.learn.randomness import seeded
from prequential.plan import Counts, Plan


@dataclass(frozen=True)
class ExampleCost:
    """FLOPs of one example."""

    forward: float
    train: float
    """Forward and backward."""

    def seen(self, num_views: int) -> "ExampleCost":
        """Where each prediction takes so many forward passes."""
        return ExampleCost(num_views * self.forward, self.train)

    def of(self, counts: Counts) -> float:
        """FLOPs of everything counted: predictions, calibrations without logits at hand, training."""
        evaluated = counts.predicted_examples + counts.recomputed_examples
        return self.forward * evaluated + self.train * counts.trained_examples


def cost_of(plan: Plan, cost: ExampleCost, num_events: int | None, num_heldout: int) -> dict[str, float]:
    """FLOPs of the first `num_events` events: `code`, and apart from it `heldout`.

    What the codelength needs is `code`; a closing stage and the evaluation are `heldout`.
    """
    done = plan.counts(num_events)
    code = plan.without_heldout().counts(num_events)
    evaluated = num_heldout if done.evaluates else 0
    return {"code": cost.of(code), "heldout": cost.of(done - code) + cost.forward * evaluated}


def cost_per_example(model: nn.Module, inputs: Tensor) -> ExampleCost | None:
    """FLOPs per example, counted on the meta device, or on the real batch where that fails, else None.

    Example:
        >>> cost_per_example(nn.Linear(10, 3), torch.zeros(4, 10))
        ExampleCost(forward=60.0, train=120.0)
    """
    with seeded(0, "flops", 0, inputs.device):
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
