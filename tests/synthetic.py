"""Records of runs that never ran, for tests and benchmarks of the reading side. No torch."""

from pathlib import Path
from typing import Any

import numpy as np

from prequential.runs.record import Record

NUM_CLASSES = 10


def synthetic_record(number: int, length: int, *, seed: int = 0, name: str = "", **changes: Any) -> Record:
    """A run whose loss falls as a power of the position; labels that are hard for one are hard for all.

    Args:
        number: of the setting: its rate and floor follow from it. Every fifth has a kink in the middle of the sequence.
    """
    shared = np.random.default_rng(7)
    labels = shared.integers(0, NUM_CLASSES, length).astype(np.uint8)
    hard = shared.exponential(1.0, length)
    own = np.random.default_rng([number, seed])
    positions = np.arange(length)
    rate, floor = 0.35 + 0.4 * (number * 0.618 % 1), 0.02 + 0.002 * (number * 0.382 % 1) * number
    mean = floor + np.log(NUM_CLASSES) * (1 + positions / 60) ** -rate
    if number % 5 == 4:
        mean[length // 2 :] += 0.15
    nats = mean * (0.7 * hard + 0.3 * own.exponential(1.0, length))
    wrong = nats > 1.5
    learning_rate = float(f"{10 ** own.uniform(-4, -2):.3g}") if seed == 0 else 0.001
    facts: dict[str, Any] = {
        "method": {"name": "mi-rs", "batch_size": 32, "num_streams": 1 + number % 50, "calibrate": True},
        "recipe": {"optimizer": "adamw", "learning_rate": learning_rate, "eps": 1e-4, "augment": []},
        "model": {"name": f"net{number % 7}", "width": 1.0, "num_parameters": 10_000 + 37 * number},
        "data": {"name": "synthetic", "input_shape": [1, 28, 28], "inputs": "0" * 32, "labels": "1" * 32}
        | {"heldout": {"inputs": "2" * 32, "labels": "3" * 32}},
        "seeds": {"seed": seed, "order_seed": 0, "plan_seed": 0},
        "length": length,
        "num_classes": NUM_CLASSES,
        "prequential": True,
        "status": "finished",
        "heldout": {"loss": float(mean[-1]), "error_rate": float(mean[-1] / 4)},
        "flops": {"code": 1e9 * (1 + number), "heldout": 0.0},
        "seconds": 10.0 + number,
        "environment": {"prequential": "0.1.0", "python": "3.11", "device": "cpu", "threads": 1 + number % 2},
        "path": Path(name or f"net{number % 7}-{number:03d}"),
    }
    return Record(
        nats=nats,
        uncalibrated_nats=(nats * 1.05).astype(np.float32),
        labels=labels,
        predicted=np.where(wrong, (labels + 1) % NUM_CLASSES, labels).astype(np.uint8),
        confidence=np.exp(-nats).astype(np.float32),
        temperature_positions=np.arange(0, length, 32),
        temperatures=np.ones(len(range(0, length, 32)), np.float32),
        **facts | changes,
    )
