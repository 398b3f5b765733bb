"""The code of labels given features: readouts that learn online, mixed by switching; or block by block."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prequential.errors import PreqError, unknown_name
from prequential.events import Predict, Train
from prequential.methods import Method, ReplayStreams
from prequential.mixers import Switching
from prequential.plan import Plan
from prequential.probing.closed import CLOSED, Frequencies, Readout
from prequential.probing.gradient import HIDDEN, GradientReadouts

READOUTS = (*HIDDEN, *CLOSED)
METHOD = ReplayStreams(num_streams=15, batch_size=64, first_block=4, min_steps=8)
"""What is learned when: blocks grow from 4 labels to 64, and every label is replayed fifteen times."""
FEWEST = METHOD.batch_size
MOST_KEPT = 500
"""About so many times the weights of the experts are kept."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Code:
    """What labels cost, and whom the code believed."""

    nats: Floats
    """−ln p of each label."""
    experts: tuple[str, ...]
    expert_nats: Floats
    """What each expert alone would have charged: labels × experts."""
    weights_after: NDArray[np.int64]
    """The numbers of labels after which weights were kept …"""
    weights: Floats
    """… and these weights, a row for each."""


def require_readouts(readouts: Sequence[str]) -> tuple[str, ...]:
    """The same names, each once, if they are readouts.

    Example:
        >>> require_readouts(["linear", "knn", "linear"])
        ('linear', 'knn')
    """
    for name in readouts:
        if name not in READOUTS:
            raise unknown_name("readout", name, READOUTS)
    if not readouts:
        raise PreqError(f"at least one readout is needed; known: {', '.join(READOUTS)}")
    return tuple(dict.fromkeys(readouts))


def make_readouts(
    readouts: Sequence[str], num_features: int, num_classes: int, seed: int, rate_factor: float = 1.0
) -> tuple[GradientReadouts | None, list[Readout]]:
    """Those that learn by gradients, as one; and all."""
    kinds = [name for name in HIDDEN if name in readouts]
    stack = None
    if kinds:
        stack = GradientReadouts(kinds, num_features, num_classes, seed=seed, rate_factor=rate_factor)
    closed: list[Readout] = [CLOSED[name](num_features, num_classes) for name in CLOSED if name in readouts]
    return stack, [*([stack] if stack else []), *closed]


def code_online(
    features: Tensor,
    labels: NDArray[np.int64],
    num_classes: int,
    readouts: Sequence[str],
    *,
    seed: int = 0,
    plan_seed: int = 0,
    method: Method = METHOD,
) -> Code:
    """Predict each label from its features and the labels before it, by switching among all experts.

    The experts are the readouts at their rates or scales, and the frequencies of labels, which look at no features. All
    follow one plan; inside a block that is predicted at once the mixer learns label by label.
    """
    if len(labels) < FEWEST:
        raise PreqError(f"probing needs at least {FEWEST} labels, got {len(labels)}; take more")
    stack, members = make_readouts(readouts, features.shape[1], num_classes, seed, method.calibration_rate_factor)
    members.append(Frequencies(features.shape[1], num_classes))
    experts = tuple(name for member in members for name in member.experts)
    mixing = Switching().begin(len(experts), num_classes)
    length, known = len(labels), torch.from_numpy(labels)
    nats, expert_nats = np.empty(length), np.empty((length, len(experts)))
    after = kept_after(length)
    kept = np.empty((len(after), len(experts)))
    places = {int(number): place for place, number in enumerate(after)}
    for event in Plan(method, length, plan_seed).events():
        if isinstance(event, Train) and stack is not None:
            stack.train(features[event.indices], known[event.indices])
        elif isinstance(event, Predict):
            rows = features[event.start : event.stop]
            predicted = torch.cat([member.predict(rows) for member in members]).numpy()
            for position in range(event.start, event.stop):
                said, label = predicted[:, position - event.start], int(labels[position])
                nats[position] = -mixing.row(said)[label]
                expert_nats[position] = -said[:, label]
                mixing.tell(label)
                if position + 1 in places:
                    kept[places[position + 1]] = mixing.weights
            for member in members:
                member.observe(rows, known[event.start : event.stop])
    return Code(nats, experts, expert_nats, after, kept)


def kept_after(length: int) -> NDArray[np.int64]:
    """The numbers of labels after which weights are kept: a rule of the length alone, about 500 of them.

    Example:
        >>> kept_after(3), len(kept_after(60_000))
        (array([1, 2, 3]), 500)
    """
    step = math.ceil(length / MOST_KEPT)
    return np.arange(step, length + 1, step)
