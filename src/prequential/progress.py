"""Where a run stands: the fact that listeners are given. No torch."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    position: int
    """Labels predicted so far."""
    length: int
    nats: float
    errors: int
    trained_examples: int
    seconds: float


Listener = Callable[[Progress], object]
"""Called a few times a second with where the run stands, and once at the end."""
