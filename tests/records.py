"""Records made of numbers alone: nothing is trained."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prequential.runs.record import Record


def made_record(
    nats: Sequence[float],
    *,
    name: str = "a",
    seed: int = 0,
    length: int | None = None,
    labels: Sequence[int] | None = None,
    num_classes: int = 2,
    recipe: dict[str, Any] | None = None,
    **changes: Any,
) -> Record:
    """A record that charges these nats, called `name` in every table; a short one was stopped, or it diverged."""
    coded, length = len(nats), len(nats) if length is None else length
    known = np.zeros(coded, np.uint8) if labels is None else np.asarray(labels[:coded], np.uint8)
    over = "diverged" if coded and np.isinf(nats[-1]) else "finished" if coded == length else "stopped"
    facts: dict[str, Any] = {
        "method": {"name": "mi-rs", "batch_size": 1},
        "recipe": recipe or {"learning_rate": 0.1},
        "model": {"name": "net", "width": 1.0, "num_parameters": 3, "fingerprint": f"of seed {seed}"},
        "data": {"name": "made", "inputs": "i", "labels": "l", "heldout": {"inputs": "hi", "labels": "hl"}},
        "seeds": {"seed": seed, "order_seed": 0, "plan_seed": 0},
        "prequential": True,
        "status": over,
        "heldout": {"loss": 0.5, "error_rate": 0.25} if over == "finished" else None,
        "flops": {"code": 100.0, "heldout": 10.0},
        "seconds": 2.0,
        "environment": {"engine": "eager", "precision": "fp32"},
        "path": Path("runs") / name,
    }
    return Record(
        nats=np.asarray(nats, np.float64),
        uncalibrated_nats=np.asarray(nats, np.float32),
        labels=known,
        predicted=np.zeros(coded, np.uint8),
        confidence=np.full(coded, 0.5, np.float32),
        temperature_positions=np.arange(0, coded, 2),
        temperatures=np.arange(0, coded, 2, dtype=np.float32),
        length=length,
        num_classes=num_classes,
        **facts | changes,
    )
