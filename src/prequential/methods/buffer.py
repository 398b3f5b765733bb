"""MI/RB: mini-batches with a replay buffer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prequential.errors import PreqError, require_count, unknown_name
from prequential.events import Indices
from prequential.methods.minibatch import MiniBatches, Replay
from prequential.rng import derive, integers_below, uniforms

REPLACEMENTS = ("fifo", "reservoir")


@dataclass(frozen=True, kw_only=True)
class ReplayBuffer(MiniBatches):
    """Mini-batch incremental training with a replay buffer (MI/RB).

    New examples enter the buffer, then K·Δ examples are drawn from it uniformly, with replacement.
    A full buffer drops its oldest example (`fifo`) or keeps a uniform sample of all (`reservoir`,
    Vitter's algorithm R). Without a capacity nothing is dropped.

    Example:
        >>> ReplayBuffer(num_replays=8, capacity=512, replacement="reservoir").capacity
        512
    """

    name: ClassVar[str] = "mi-rb"
    title: ClassVar[str] = "MI/RB"

    num_replays: int = 8
    """K: replayed examples per new one."""
    capacity: int | None = None
    """Examples the buffer holds. Off: all of them."""
    replacement: str = "fifo"
    """What a full buffer drops: "fifo" the oldest, "reservoir" a random one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("num_replays", self.num_replays)
        if self.replacement not in REPLACEMENTS:
            raise unknown_name("replacement", self.replacement, REPLACEMENTS)
        if self.capacity is not None:
            require_count("capacity", self.capacity)
        elif self.replacement == "reservoir":
            raise PreqError("a reservoir needs a capacity in examples, such as 512")

    @property
    def replays_per_label(self) -> int:
        return self.num_replays

    def replay(self, seed: int) -> Replay:
        draw_key, reservoir_key = derive(seed, "buffer draws"), derive(seed, "reservoir")
        reservoir = np.empty(self.capacity or 0, np.int64)

        def slots(start: int, stop: int, held: int) -> Indices:
            counters = np.arange(start * self.num_replays, stop * self.num_replays)
            return integers_below(held, draw_key, counters)

        def from_newest(start: int, stop: int) -> Indices:
            held = min(stop, self.capacity or stop)
            return stop - held + slots(start, stop, held)

        def from_reservoir(start: int, stop: int) -> Indices:
            new = np.arange(start, stop)
            drawn = (uniforms(reservoir_key, new) * (new + 1)).astype(np.int64)
            slot = np.where(new < len(reservoir), new, drawn)
            kept = slot < len(reservoir)
            reservoir[slot[kept]] = new[kept]  # where two land in one slot, NumPy keeps the later one
            return reservoir[slots(start, stop, min(stop, len(reservoir)))]

        return from_reservoir if self.replacement == "reservoir" else from_newest
