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


class Pruned(Exception):  # noqa: N818  # no error: a way for a run to end
    """A listener raises it to end a run for good: the record keeps what was measured, with status "pruned"."""


Listener = Callable[[Progress], object]
"""Called a few times a second with where the run stands, and once at the end."""
