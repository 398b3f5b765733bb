"""What passes between those who claim, execute and write down trials. No torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prequential.runs.record import Record


@dataclass(frozen=True)
class Claim:
    """A trial that is ours to run."""

    number: int
    settings: Mapping[str, Any]
    seed: int


@dataclass(frozen=True)
class Outcome:
    """How a trial went."""

    number: int
    status: str
    """"finished", "diverged", "pruned", "failed" or "stopped"."""
    value: float | None = None
    """The codelength in nats, infinite where it diverged; of a method without one the held-out loss."""
    positions: int = 0
    seconds: float = 0.0
    flops: float | None = None
    heldout: dict[str, float] | None = None
    trained_share: float = 1.0
    """Of the examples that the whole plan trains on: less than 1 where the trial was pruned."""
    error: str | None = None
    is_mistake: bool = False
    """Whether the error is one in what the user gave."""
    died: bool = False
    """Whether the process died."""
    signal_number: int = 0


def outcome_of(number: int, record: Record, trained_share: float = 1.0) -> Outcome:
    """What a record says of its trial."""
    value = record.codelength if record.prequential else (record.heldout or {}).get("loss")
    return Outcome(
        number,
        record.status,
        value=math.inf if record.status == "diverged" else value,
        positions=len(record.nats),
        seconds=record.seconds,
        flops=None if record.flops is None else record.flops["code"],
        heldout=record.heldout,
        trained_share=trained_share,
    )
