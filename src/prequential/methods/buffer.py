"""MI/RB: mini-batches with a replay buffer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.events import Indices
from prequential.methods.method import PASSES
from prequential.methods.minibatch import MOST_REPLAYS, MiniBatches, Replay
from prequential.rng import derive, integers_below, uniforms
from prequential.settings import setting

REPLACEMENTS = ("fifo", "reservoir")
INSERTED_AT_ONCE = 1 << 18


@dataclass(frozen=True, kw_only=True)
class ReplayBuffer(MiniBatches):
    """Mini-batch incremental training with a replay buffer (MI/RB).

    New examples enter the buffer, then K·Δ examples are drawn from it uniformly, with replacement.
    A full buffer drops its oldest example (`fifo`) or keeps a uniform sample of all (`reservoir`,
    Vitter's algorithm R). Without a capacity nothing is dropped: the ages are those of
    `ReplayStreams` with the uniform law.

    Example:
        >>> ReplayBuffer(num_replays=8, capacity=512, replacement="reservoir").capacity
        512
    """

    name: ClassVar[str] = "mi-rb"
    title: ClassVar[str] = "MI/RB"
    about: ClassVar[str] = "replay buffer"

    num_replays: int = setting(8, at_least=1, at_most=MOST_REPLAYS, flag="streams", short="replays", role=PASSES)
    """Replayed examples per new one (K)."""
    capacity: int | None = setting(None, at_least=1, hint="all")
    """Examples the buffer holds."""
    replacement: str = setting("fifo", choices=REPLACEMENTS)
    """What a full buffer drops: fifo the oldest, reservoir a random one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.capacity is None and self.replacement == "reservoir":
            raise PreqError("a reservoir needs a capacity in examples, such as 512")

    def age_weights(self, ages: Indices) -> NDArray[np.float64]:
        is_dropped = self.capacity is not None and self.replacement == "fifo"
        return np.where(ages > (self.capacity or 0), 0.0, 1.0) if is_dropped else np.ones(len(ages))

    @property
    def num_early(self) -> int:
        """Until the buffer is full: then it does not hold all that is known."""
        return min(self.early_labels, self.capacity or self.early_labels)

    def replay(self, seed: int, start: int = 0) -> Replay:
        draw_key, reservoir_key = derive(seed, "buffer draws"), derive(seed, "reservoir")
        reservoir: Indices | None = None

        def slots(begin: int, end: int, held: int) -> Indices:
            counters = np.arange(begin * self.num_replays, end * self.num_replays)
            return integers_below(held, draw_key, counters)

        def from_newest(begin: int, end: int) -> Indices:
            held = min(end, self.capacity or end)
            return end - held + slots(begin, end, held)

        def insert(begin: int, end: int) -> None:
            nonlocal reservoir
            if self.capacity is None or end <= self.capacity:
                return
            if reservoir is None:
                reservoir = np.arange(self.capacity)
            new = np.arange(max(begin, self.capacity), end)
            slot = (uniforms(reservoir_key, new) * (new + 1)).astype(np.int64)
            kept = slot < self.capacity
            reservoir[slot[kept]] = new[kept]  # where two land in one slot, NumPy keeps the later one

        def from_reservoir(begin: int, end: int) -> Indices:
            insert(begin, end)
            return slots(begin, end, end) if reservoir is None else reservoir[slots(begin, end, len(reservoir))]

        if self.replacement != "reservoir":
            return from_newest
        for begin in range(0, start, INSERTED_AT_ONCE):
            insert(begin, min(begin + INSERTED_AT_ONCE, start))
        return from_reservoir
