"""The online code of Voita and Titov (2020): block by block, a readout trained from scratch before each."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prequential.probing.closed import Readout
from prequential.probing.coding import Code, make_readouts
from prequential.rng import derive, permutation

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Where blocks end, as parts of the whole: 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50 and 100 %."""
HELD_BACK = 10
"""One example of so many is not trained on, and tells which rate and which epoch to take."""
MOST_EPOCHS, PATIENCE = 60, 6
"""Passes over the past, at most; fewer where so many in turn do not help what is held back."""
BATCH_SIZE = 64
PREDICTED_AT_ONCE = 1024


def block_ends(length: int) -> list[int]:
    """Where the blocks end; those without a label are left out.

    Example:
        >>> block_ends(1000)
        [1, 2, 4, 8, 16, 32, 62, 125, 250, 500, 1000]
    """
    return sorted({end for part in FRACTIONS if (end := int(length * part)) > 0} | {length})


def code_in_blocks(
    features: Tensor, labels: NDArray[np.int64], num_classes: int, readouts: Sequence[str], *, seed: int = 0
) -> Code:
    """L = t₁·ln C − Σᵢ ln p_{θᵢ}(y_{tᵢ+1 … tᵢ₊₁} | x), θᵢ trained on the first tᵢ examples; the first block is uniform.

    Of the past, one example in ten is held back to choose the learning rate (or the readout's scale) and when to stop;
    Voita and Titov take a development set for that, which is not charged.

    Args:
        readouts: one.
    """
    known, length = torch.from_numpy(labels), len(labels)
    ends = block_ends(length)
    nats = np.full(length, np.log(num_classes))
    names = make_readouts(readouts, features.shape[1], num_classes, seed)[1][0].experts
    expert_nats = np.full((length, len(names)), np.log(num_classes))
    for number, (start, stop) in enumerate(pairwise(ends)):
        rows = _trained(features[:start], known[:start], num_classes, readouts, features[start:stop], seed, number)
        here = -rows[0][:, torch.arange(stop - start), known[start:stop]].numpy()
        expert_nats[start:stop], nats[start:stop] = here.T, here[rows[1]]
    weights = np.empty((0, len(names)))
    return Code(nats, names, expert_nats, np.empty(0, np.int64), weights)


def _trained(
    past: Tensor, labels: Tensor, num_classes: int, readouts: Sequence[str], features: Tensor, seed: int, block: int
) -> tuple[Tensor, int]:
    """What the experts of a readout that learned the past predict, and the number of the one to take."""
    order = torch.from_numpy(permutation(derive(seed, "held back", block), len(past)))
    held, used = order[: len(past) // HELD_BACK], order[len(past) // HELD_BACK :]
    stack, (readout,) = make_readouts(readouts, past.shape[1], num_classes, seed)

    def loss() -> Tensor:
        if not len(held):
            return (torch.arange(len(readout.experts), dtype=torch.float64) - 1).abs()  # the one in the middle
        rows = predicted(readout, past[held]) if stack is None else readout.predict(past[held])
        return -rows[:, torch.arange(len(held)), labels[held]].mean(1)

    if stack is None:
        tell(readout, past[used], labels[used])
        return predicted(readout, features), int(loss().argmin())
    best, best_rows, since = loss(), readout.predict(features), 0
    for epoch in range(MOST_EPOCHS):
        shuffled = used[torch.from_numpy(permutation(derive(seed, f"epoch {epoch}", block), len(used)))]
        for begin in range(0, len(shuffled), BATCH_SIZE):
            batch = shuffled[begin : begin + BATCH_SIZE]
            stack.train(past[batch], labels[batch])
        now = loss()
        better = now < best if len(held) else torch.ones_like(now, dtype=torch.bool)
        best_rows = torch.where(better[:, None, None], readout.predict(features), best_rows)
        best, since = torch.where(better, now, best), 0 if bool(better.any()) else since + 1
        if since == PATIENCE:
            break
    return best_rows, int(best.argmin())


def tell(readout: Readout, features: Tensor, labels: Tensor) -> None:
    """Let a readout learn examples in pieces, as it does online: what it measures as they come, and what it solves for
    each piece, does not depend on how many there are."""
    for rows, known in zip(torch.split(features, BATCH_SIZE), torch.split(labels, BATCH_SIZE), strict=True):
        readout.observe(rows, known)


def predicted(readout: Readout, features: Tensor) -> Tensor:
    """What a readout that is only told predicts, in pieces that memory has room for."""
    return torch.cat([readout.predict(rows) for rows in torch.split(features, PREDICTED_AT_ONCE)], 1)
