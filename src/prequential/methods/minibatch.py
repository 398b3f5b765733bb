"""The time step that MI/RS and MI/RB share: predict Δ, calibrate on Δ, train on Δ, replay K·Δ."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from prequential.errors import PreqError, require_count
from prequential.events import Calibrate, Event, Indices, Predict, Train
from prequential.methods.method import MethodDefaults, cut_into_batches, require_batch_fits
from prequential.rng import derive, integers_below

Replay = Callable[[int, int], Indices]
"""replay(start, stop): the K·(stop − start) examples replayed when the frontier moves from start to stop.
Called once per time step, in order."""


@dataclass(frozen=True, kw_only=True)
class MiniBatches(MethodDefaults):
    """Settings and time steps of the mini-batch incremental methods; subclasses say what is replayed."""

    batch_size: int = 32
    """Examples per training step."""
    first_block: int | None = None
    """Labels predicted at once in the beginning; grows to the batch size. Off: always the batch size."""
    min_steps: int = 0
    """While blocks grow, at least this many training steps per block; needs first_block."""
    calibrate: bool = True
    """Forward calibration of the softmax temperature."""

    def __post_init__(self) -> None:
        require_count("batch_size", self.batch_size)
        require_count("min_steps", self.min_steps, at_least=0)
        if self.first_block is not None:
            require_count("first_block", self.first_block)
            if self.batch_size % self.first_block:
                raise PreqError(f"first_block must divide the batch size {self.batch_size}, got {self.first_block}")
        elif self.min_steps:
            raise PreqError(
                f"min_steps acts only while blocks grow, got min_steps={self.min_steps} and no first_block; "
                f"set first_block (a divisor of {self.batch_size}) as well"
            )

    @property
    @abstractmethod
    def replays_per_label(self) -> int:
        """K: replayed examples per new one."""

    @abstractmethod
    def replay(self, seed: int) -> Replay:
        """A fresh replay from the beginning of the sequence."""

    @property
    def unit(self) -> int:
        """The block that frontier and streams move by: the first block, or the batch."""
        return self.first_block or self.batch_size

    @property
    def calibration_rate_factor(self) -> float:
        return math.sqrt(self.replays_per_label + 1)

    def time_steps(self, length: int) -> Iterator[tuple[int, int]]:
        """Spans of Δ = u·clip(⌊t/(8u)⌋, 1, B/u) labels; the last one takes what is left."""
        start = 0
        while start < length:
            units = min(max(start // (8 * self.unit), 1), self.batch_size // self.unit)
            stop = min(start + self.unit * units, length)
            yield start, stop
            start = stop

    def events(self, length: int, seed: int) -> Iterator[Event]:
        require_batch_fits(self.batch_size, length)
        replay = self.replay(seed)
        waiting: Indices = np.empty(0, np.int64)
        num_extra = 0
        for start, stop in self.time_steps(length):
            new = np.arange(start, stop)
            yield Predict(start, stop)
            if self.calibrate:
                yield Calibrate(new)
            waiting = np.concatenate([new, waiting, replay(start, stop)])
            ready = len(waiting) if stop == length else len(waiting) // self.batch_size * self.batch_size
            batches = cut_into_batches(waiting[:ready], self.batch_size)
            waiting = waiting[ready:]
            yield from map(Train, batches)
            if stop - start < self.batch_size and stop < length:
                for _ in range(self.min_steps - len(batches)):
                    yield Train(self._uniform_batch(stop, seed, num_extra))
                    num_extra += 1

    def _uniform_batch(self, frontier: int, seed: int, number: int) -> Indices:
        counters = np.arange(self.batch_size) + number * self.batch_size
        return integers_below(frontier, derive(seed, "extra steps"), counters)
