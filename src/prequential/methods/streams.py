"""MI/RS: mini-batches with replay streams."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prequential.errors import require_count
from prequential.events import Indices
from prequential.methods.ages import UNIFORM, AgeLaw
from prequential.methods.minibatch import MiniBatches, Replay
from prequential.rng import derive, uniforms


@dataclass(frozen=True, kw_only=True)
class ReplayStreams(MiniBatches):
    """Mini-batch incremental training with replay streams (MI/RS).

    K pointers read the past in order. When the frontier passes from t to t̃ = t + u, each one first
    goes back to 0 with probability

        r = Σ_{t<a≤t̃} p(a) / Σ_{0<a≤t̃} p(a),

    then reads the next u examples, so that the block of ages it reads is drawn from p at every step.
    Only sequential access to the data is needed. Algorithm 1 of the paper.

    Example:
        >>> ReplayStreams(num_streams=8).calibration_rate_factor
        3.0
    """

    name: ClassVar[str] = "mi-rs"
    title: ClassVar[str] = "MI/RS"

    num_streams: int = 8
    """K: replay streams, that is replayed examples per new one."""
    age_law: AgeLaw = UNIFORM
    """Which ages are replayed how often."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("num_streams", self.num_streams)

    @property
    def replays_per_label(self) -> int:
        return self.num_streams

    def replay(self, seed: int) -> Replay:
        key = derive(seed, "stream resets")
        streams = np.arange(self.num_streams)
        positions = np.zeros(self.num_streams, np.int64)
        mass = 0.0

        def read(start: int, stop: int) -> Indices:
            nonlocal mass
            moves = np.arange(start, stop, self.unit)
            added = np.add.reduceat(self.age_law.weights(np.arange(start + 1, stop + 1)), moves - start)
            masses = mass + np.cumsum(added)
            mass = float(masses[-1])
            draws = uniforms(key, moves[:, None] // self.unit * self.num_streams + streams)
            resets = draws * masses[:, None] < added[:, None]
            reads = []
            for move, reset in zip(moves, resets, strict=True):
                size = min(self.unit, stop - int(move))
                positions[reset] = 0
                reads.append(positions[:, None] + np.arange(size))
                positions[:] += size
            return np.concatenate(reads, axis=1).ravel()

        return read
