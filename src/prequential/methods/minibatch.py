"""The time step that MI/RS and MI/RB share: predict Δ, calibrate on Δ, train on Δ, replay K·Δ."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.events import Calibrate, Event, Indices, Predict, Train
from prequential.methods.method import PASSES, InBatches, Work, cut_into_batches, num_batches
from prequential.rng import derive, integers_below
from prequential.settings import setting, with_setting

MOST_REPLAYS = 1_000_000
MOST_EARLY_LABELS = 100_000

Replay = Callable[[int, int], Indices]
"""replay(start, stop): the K·(stop − start) examples replayed when the frontier moves from start to stop.
Called once per time step, in order."""


def spans(length: int, unit: int, batch_size: int, start: int = 0) -> Iterator[tuple[int, int]]:
    """Spans of Δ = u·clip(⌊t/(8u)⌋, 1, B/u) labels; the last one takes what is left.

    Example:
        >>> [stop for _, stop in spans(40, unit=1, batch_size=4, start=14)]
        [15, 16, 18, 20, 22, 24, 27, 30, 33, 37, 40]
    """
    while start < length:
        units = min(max(start // (8 * unit), 1), batch_size // unit)
        stop = min(start + unit * units, length)
        yield start, stop
        start = stop


@dataclass(frozen=True, kw_only=True)
class MiniBatches(InBatches):
    """Settings and time steps of the mini-batch incremental methods; subclasses say what is replayed."""

    first_block: int | None = setting(None, at_least=1, hint="the batch size")
    """Labels predicted at once in the beginning, growing to the batch size."""
    min_steps: int = setting(0, at_least=0)
    """At least this many training steps per block while blocks grow; needs a first block."""
    early_labels: int = setting(0, at_least=0, at_most=MOST_EARLY_LABELS, later=True)
    """At least one training step per label until so many are known."""
    calibrate: bool = setting(True, flag="calibration", off="Leave the softmax temperature at 1.")
    """Forward calibration of the softmax temperature."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size % self.unit:
            raise PreqError(f"first_block must divide the batch size {self.batch_size}, got {self.first_block}")
        if self.min_steps and self.unit == self.batch_size:
            raise PreqError(
                f"min_steps acts only while blocks grow, got min_steps={self.min_steps} and blocks of "
                f"{self.batch_size} from the start; set first_block (a smaller divisor of {self.batch_size}) as well"
            )

    @property
    def replays_per_label(self) -> int:
        """K: replayed examples per new one, whatever the method calls it."""
        return int(getattr(self, with_setting(type(self), role=PASSES)[0]))

    @abstractmethod
    def replay(self, seed: int, start: int = 0) -> Replay:
        """A replay as it is when the frontier has reached `start`, a multiple of the unit."""

    def age_weights(self, ages: Indices) -> NDArray[np.float64] | None:
        """How probable each age is for a replayed example, up to a factor, where there is one so old; None: no law."""
        return None

    def replay_frontiers(self, length: int) -> Indices:
        """The frontiers at which ages are drawn from that law."""
        return np.array([stop for _, stop in self.time_steps(length)])

    @property
    def unit(self) -> int:
        """The block that frontier and streams move by: the first block, or the batch."""
        return self.first_block or self.batch_size

    @property
    def calibration_rate_factor(self) -> float:
        return math.sqrt(self._factor)

    def time_steps(self, length: int, start: int = 0) -> Iterator[tuple[int, int]]:
        """The spans that are predicted at once."""
        return spans(length, self.unit, self.batch_size, start)

    def events(self, length: int, seed: int) -> Iterator[Event]:
        self.require_fits(length)
        return self._walk(length, seed, 0, np.empty(0, np.int64), self.replay(seed))

    def _walk(self, length: int, seed: int, start: int, waiting: Indices, replay: Replay) -> Iterator[Event]:
        extra_key, num_extra = derive(seed, "extra steps"), 0
        for begin, end in self.time_steps(length, start):
            new = np.arange(begin, end)
            yield Predict(begin, end)
            if self.calibrate:
                yield Calibrate(new)
            waiting = np.concatenate([new, waiting, replay(begin, end)])
            ready = len(waiting) if end == length else len(waiting) // self.batch_size * self.batch_size
            batches = cut_into_batches(waiting[:ready], self.batch_size)
            waiting = waiting[ready:]
            yield from map(Train, batches)
            for _ in range(self._num_extra_steps(begin, end, length, len(batches))):
                counters = np.arange(num_extra, num_extra + self.batch_size)
                yield Train(integers_below(end, extra_key, counters))
                num_extra += self.batch_size

    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        """Blocks that come after the beginning are all alike, so whole time steps can be jumped over."""
        begin, num_events, num_waiting, _ = self._beginning(length)
        per_step = 1 + self.calibrate + self._factor
        jumped = min((start - num_events) // per_step, (length - begin - 1) // self.batch_size)
        if jumped < 1:
            return self.events(length, seed), 0
        before = begin + (jumped - 1) * self.batch_size
        replay = self.replay(seed, before)
        replayed = replay(before, before + self.batch_size)
        waiting = replayed[len(replayed) - num_waiting :]
        walk = self._walk(length, seed, before + self.batch_size, waiting, replay)
        return walk, num_events + jumped * per_step

    def _beginning(self, length: int) -> tuple[int, int, int, int]:
        """Where blocks have grown to the batch size and extra steps have ended, or the last block begins; the events
        before that, what waits to be trained on then, and the extra steps so far."""
        num_events = num_waiting = num_extra = begin = 0
        for begin, end in self.time_steps(length):
            if end == length or not self._is_beginning(begin, end):
                break
            num_batches, num_waiting = divmod(num_waiting + (end - begin) * self._factor, self.batch_size)
            more = self._num_extra_steps(begin, end, length, num_batches)
            num_events += 1 + self.calibrate + num_batches + more
            num_extra += more
        return begin, num_events, num_waiting, num_extra

    def most_work(self, length: int) -> Work:
        self.require_fits(length)
        begin, num_events, num_waiting, num_extra = self._beginning(length)
        num_steps = -(-(length - begin) // self.batch_size)
        num_trains = num_batches(num_waiting + (length - begin) * self._factor, self.batch_size)
        num_events += num_steps * (1 + self.calibrate) + num_trains
        return Work(num_events, length, length * self._factor + num_extra * self.batch_size)

    @property
    def _factor(self) -> int:
        return self.replays_per_label + 1

    @property
    def num_early(self) -> int:
        """How many labels have a training step each; all of them must be there to be drawn."""
        return self.early_labels

    def _is_beginning(self, begin: int, end: int) -> bool:
        return end - begin < self.batch_size or end <= self.num_early

    def _num_extra_steps(self, begin: int, end: int, length: int, num_batches: int) -> int:
        """They are drawn from all that is known, and leave streams and buffer alone."""
        if end == length:
            return 0
        wanted = self.min_steps if end - begin < self.batch_size else 0
        if end <= self.num_early:
            wanted = max(wanted, end - begin)
        return max(0, wanted - num_batches)
