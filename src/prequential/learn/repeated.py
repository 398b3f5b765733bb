"""Outputs that a checkpoint remembers, and that whoever goes on from it repeats first: is it the same model?"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from prequential.errors import PreqError
from prequential.learn.base import BaseLearner
from prequential.learn.last_layer import giving_features
from prequential.learn.learning import Learning
from prequential.learn.randomness import FOREIGN, seeded

FEW = 4
"""Examples that are predicted: the first of the sequence."""
TOLERANCES = {"fp32": 1e-3, "bf16": 0.05}
"""Of the largest output: how far a prediction may be from the one before, where the arithmetic may differ."""

_FRESH = WeakKeyDictionary[BaseLearner, Tensor]()
"""What `training_of_few` found, as long as the learner is there."""


def networks_of(learner: Learning) -> list[BaseLearner]:
    """The learners that can be asked: itself, or those it consists of. None that is not one of ours: nobody knows what
    asking it would change."""
    return [each for each in getattr(learner, "members", [learner]) if isinstance(each, BaseLearner)]


@torch.no_grad()
def prediction_of_few(learner: BaseLearner) -> Tensor:
    """What the network gives for a few examples; where there are members, they come first."""
    positions = np.arange(min(FEW, len(learner.data)))
    return learner.logits(learner.inputs.clean(positions)).cpu()


@torch.no_grad()
def training_of_few(learner: BaseLearner) -> Tensor:
    """What a fresh network (of many members the first) gives for a few examples in train mode, where a `forward` may do
    something else. It depends on code and seed alone, so it is made once for each learner."""
    if learner not in _FRESH:
        inputs = learner.inputs.clean(np.arange(FEW) % len(learner.data))
        fresh = learner._fresh_model(-1, learner.recipe, learner.seed)
        with (
            seeded(learner.seed, "remembered", 0, learner.device, FOREIGN),
            learner.computing(),
            giving_features(fresh),  # its outputs are all 0 if it is to study
        ):
            _FRESH[learner] = fresh(inputs).to(learner.dtype).cpu()
    return _FRESH[learner]


def require_repeated(
    before: Tensor, now: Tensor, learner: BaseLearner, members: Sequence[int] | None, *, exactly: bool, place: object
) -> None:
    """Refuse to go on with a model that makes something else of the same weights and inputs than it did before.

    Args:
        before: what `prediction_of_few` or `training_of_few` was then.
        now: what it is of the learner now.
        learner: restored to the state it had then.
        members: those that count (None: all); what has diverged may overflow elsewhere.
        exactly: whether the arithmetic here is that of then.
        place: where the run is, for the refusal.
    """
    if before.shape == now.shape:
        one, other = before.double(), now.double()
        if one.dim() == 3 and members is not None:
            one, other = one[list(members)], other[list(members)]
        is_exact = exactly and (learner.device.type == "cpu" or learner.deterministic)
        allowed = 0.0 if is_exact else TOLERANCES[learner.precision]
        scale = one.nan_to_num(0, 0, 0).abs().amax((-2, -1), keepdim=True)
        near = ((one - other).abs() <= allowed * scale) | (~one.isfinite() & ~other.isfinite())
        if bool(near.all()):
            return
    raise PreqError(
        f"the model gives something else for the same weights and inputs than when {place} was saved: its code, or "
        "what is done to the inputs, has changed; bring back what it was, or begin anew in another directory"
    )
