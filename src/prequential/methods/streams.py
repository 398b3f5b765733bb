"""MI/RS: mini-batches with replay streams."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from prequential.events import Indices
from prequential.methods.ages import UNIFORM, AgeLaw, age_law, require_age_law
from prequential.methods.method import PASSES
from prequential.methods.minibatch import MOST_REPLAYS, MiniBatches, Replay
from prequential.rng import derive, uniforms
from prequential.settings import setting

AGE_FLAGS = {
    "age_law": ("name", "Which ages are replayed: uniform, exponential or pareto."),
    "age_scale": ("scale", "The scale of the exponential or pareto law, in examples."),
}
SCANNED_MOVES = 1 << 14
"""Moves looked at together when a replay is entered far from its beginning."""


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
    about: ClassVar[str] = "replay streams"

    num_streams: int = setting(8, at_least=1, at_most=MOST_REPLAYS, flag="streams", short="streams", role=PASSES)
    """Replay streams (K), that is replayed examples per new one."""
    age_law: AgeLaw = setting(UNIFORM, check=require_age_law, make=age_law, parts=AGE_FLAGS)
    """Which ages are replayed how often."""

    def age_weights(self, ages: Indices) -> NDArray[np.float64]:
        return self.age_law.weights(ages)

    def replay_frontiers(self, length: int) -> Indices:
        return np.append(np.arange(self.unit, length, self.unit), length)

    def replay(self, seed: int, start: int = 0) -> Replay:
        key = derive(seed, "stream resets")
        streams = np.arange(self.num_streams)
        positions = np.zeros(self.num_streams, np.int64)
        mass = 0.0

        def resets(begin: int, end: int) -> tuple[Indices, NDArray[np.bool_]]:
            """The moves that take the frontier from `begin` to `end`, and who goes back to 0 in each."""
            nonlocal mass
            moves = np.arange(begin, end, self.unit)
            added = np.add.reduceat(self.age_law.weights(np.arange(begin + 1, end + 1)), moves - begin)
            masses = np.cumsum(np.append(mass, added))[1:]
            mass = float(masses[-1])
            draws = uniforms(key, moves[:, None] // self.unit * self.num_streams + streams)
            return moves, draws * masses[:, None] < added[:, None]

        def read(begin: int, end: int) -> Indices:
            reads = []
            for move, reset in zip(*resets(begin, end), strict=True):
                size = min(self.unit, end - int(move))
                positions[reset] = 0
                reads.append(positions[:, None] + np.arange(size))
                positions[:] += size
            return np.concatenate(reads, axis=1).ravel()

        for begin in range(0, start, SCANNED_MOVES * self.unit):
            end = min(begin + SCANNED_MOVES * self.unit, start)
            moves, reset = resets(begin, end)
            last = moves[len(moves) - 1 - np.argmax(reset[::-1], axis=0)]
            positions[:] = np.where(reset.any(axis=0), end - last, positions + end - begin)
        return read
