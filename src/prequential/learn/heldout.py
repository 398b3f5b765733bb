"""Held-out data: evaluated at the end, predicted as the sequence is, never charged."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from prequential.data.sequence import DataSequence
from prequential.learn import functional

EVALUATION_SIZE = 512


@torch.no_grad()
def loss_and_error(heldout: DataSequence, logits_of: Callable[[Tensor], Tensor], beta: Tensor) -> dict[str, float]:
    """Mean loss in nats and error rate, from what `logits_of` makes of stored inputs."""
    loss, errors = 0.0, 0
    for start in range(0, len(heldout), EVALUATION_SIZE):
        positions = np.arange(start, min(start + EVALUATION_SIZE, len(heldout)))
        labels = heldout.labels(positions).to(beta.device)
        log_probabilities = functional.log_probabilities(logits_of(heldout.inputs(positions)), beta)
        loss -= float(log_probabilities.gather(1, labels[:, None]).sum())
        errors += int((log_probabilities.argmax(1) != labels).sum())
    return {"loss": loss / len(heldout), "error_rate": errors / len(heldout)}


@torch.no_grad()
def losses_and_errors(
    heldout: DataSequence, charged: Callable[[Tensor], Tensor], num_members: int, device: torch.device
) -> list[dict[str, float]]:
    """The same for each of many members, which come first in the log-probabilities that `charged` makes of inputs."""
    loss = torch.zeros(num_members, dtype=torch.float64, device=device)
    errors = torch.zeros(num_members, dtype=torch.int64, device=device)
    for start in range(0, len(heldout), EVALUATION_SIZE):
        positions = np.arange(start, min(start + EVALUATION_SIZE, len(heldout)))
        labels = heldout.labels(positions).to(device)
        log_probabilities = charged(heldout.inputs(positions))
        loss -= log_probabilities.gather(2, labels[None, :, None].expand(num_members, -1, 1)).sum((1, 2))
        errors += (log_probabilities.argmax(2) != labels).sum(1)
    both = zip(loss.tolist(), errors.tolist(), strict=True)
    return [{"loss": nats / len(heldout), "error_rate": wrong / len(heldout)} for nats, wrong in both]
