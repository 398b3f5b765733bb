"""Held-out data: evaluated at the end, predicted as the sequence is, never charged."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from prequential.data.sequence import DataSequence
from prequential.learn.prediction import Prediction

EVALUATION_SIZE = 512


@torch.no_grad()
def losses_and_errors(
    heldout: DataSequence, predict: Callable[[Tensor], Prediction], device: torch.device
) -> list[dict[str, float]]:
    """For each member mean loss in nats and error rate, by what `predict` says of stored inputs."""
    loss, errors = torch.zeros(1, dtype=torch.float64, device=device), torch.zeros(1, dtype=torch.int64, device=device)
    for start in range(0, len(heldout), EVALUATION_SIZE):
        positions = np.arange(start, min(start + EVALUATION_SIZE, len(heldout)))
        labels = heldout.labels(positions).to(device)
        nats, _, wanted, predicted, _ = predict(heldout.inputs(positions)).measured(labels).unbind(1)
        loss, errors = loss + nats.sum(1), errors + (predicted != wanted).sum(1)
    both = zip(loss.tolist(), errors.tolist(), strict=True)
    return [{"loss": nats / len(heldout), "error_rate": wrong / len(heldout)} for nats, wrong in both]
