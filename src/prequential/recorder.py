"""Collects what a run measures, position by position, and notices when it diverges."""

import hashlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prequential.errors import PreqError
from prequential.files import Array, ArrayFile, ArrayMemory
from prequential.learn.prediction import Prediction
from prequential.plan import Plan
from prequential.progress import Listener, Progress
from prequential.record import ARRAYS, PER_POSITION, finite_or_none

SECONDS_BETWEEN_PAUSES = 0.1
FETCHED_AT_ONCE = 256
SECONDS_BETWEEN_FETCHES = 0.5
"""Predictions stay on a GPU until there are so many, or so much time has passed: then they are fetched together."""
COUNTERS = ("num_events", "position", "num_predictions", "trained_examples", "seconds", "heldout")
Contents = dict[str, tuple[int, str]]
"""Length and fingerprint of each array."""


class Recorder:
    """Arrays of one entry per position, filled as predictions come in, in memory or in a directory.

    Results stay on a GPU until a few have come together, so that it never waits for them.
    """

    def __init__(
        self,
        plan: Plan,
        num_classes: int,
        directory: Path | None = None,
        *,
        create: bool = True,
        arrays: dict[str, Array] | None = None,
    ) -> None:
        self.plan = plan
        self._arrays = arrays or open_arrays(num_classes, plan.length, directory, create=create)
        self.status = "running"
        self._waiting: list[tuple[int, Tensor, Tensor]] = []
        self._started = self._next_pause = self._next_fetch = 0.0
        self._rewind()

    def _rewind(self) -> None:
        self.num_events = self.position = self.num_predictions = self.trained_examples = 0
        self.seconds, self.total_nats, self.total_errors = 0.0, 0.0, 0
        self._temperature: float | None = None
        self.heldout: dict[str, float] | None = None
        self._hashers = {name: hashlib.blake2b(digest_size=16) for name in ARRAYS}
        self._hashed = dict.fromkeys(ARRAYS, 0)

    @property
    def diverged(self) -> bool:
        """Whether a label had no finite codelength, or the weights are no numbers any more."""
        return self.status == "diverged"

    def start_clock(self) -> None:
        """From here on time counts."""
        self._started = time.perf_counter() - self.seconds

    def add(self, start: int, prediction: Prediction, labels: Tensor) -> None:
        """Note a prediction and the labels it was about."""
        charged, column = prediction.log_probabilities, labels[:, None]
        confidence, predicted = charged.max(dim=1)
        rows = [
            -charged.gather(1, column)[:, 0],
            -prediction.uncalibrated.gather(1, column)[:, 0],
            labels.double(),
            predicted.double(),
            confidence.exp(),
        ]
        self._waiting.append((start, torch.stack(rows), prediction.temperature))
        is_late = time.perf_counter() >= self._next_fetch
        if charged.device.type == "cpu" or len(self._waiting) >= FETCHED_AT_ONCE or is_late:
            self.fetch()

    def fetch(self) -> None:
        """Take what is waiting, in one transfer; nothing after a label without a finite codelength."""
        waiting, self._waiting = self._waiting, []
        self._next_fetch = time.perf_counter() + SECONDS_BETWEEN_FETCHES
        if not waiting or self.diverged:
            return
        rows = torch.cat([rows for _, rows, _ in waiting], dim=1).cpu().numpy()
        temperatures = torch.stack([temperature for _, _, temperature in waiting]).cpu().numpy()
        bad = np.flatnonzero(~np.isfinite(rows[0]))
        if len(bad):
            self.status = "diverged"
            rows = rows[:, : bad[0] + 1]
            rows[:2, -1], rows[4, -1] = np.inf, 0.0
        begin, end = waiting[0][0], waiting[0][0] + rows.shape[1]
        for name, row in zip(PER_POSITION, rows, strict=True):
            self._arrays[name].write(begin, row)
        starts = np.array([start for start, _, _ in waiting if start < end])
        self._arrays["temperature_positions"].write(self.num_predictions, starts)
        self._arrays["temperatures"].write(self.num_predictions, temperatures[: len(starts)])
        self.num_predictions += len(starts)
        self._temperature = float(temperatures[len(starts) - 1])
        self.total_nats += float(rows[0].sum())
        self.total_errors += int((rows[2] != rows[3]).sum())
        self.position = end

    def pause_is_due(self) -> bool:
        """Whether listeners should hear of it again."""
        self.seconds = time.perf_counter() - self._started
        return self.seconds >= self._next_pause

    def report(self, listeners: Iterable[Listener]) -> None:
        """Tell every listener where the run stands."""
        self._next_pause = self.seconds + SECONDS_BETWEEN_PAUSES
        progress = self.progress()
        for listener in listeners:
            listener(progress)

    def progress(self) -> Progress:
        """Where the run stands."""
        return Progress(
            self.position,
            self.plan.length,
            self.total_nats,
            self.total_errors,
            self.trained_examples,
            self.seconds,
            self._temperature,
        )

    def note_heldout(self, result: dict[str, float] | None) -> None:
        """Keep the held-out result; one that is no number means that the run diverged."""
        if result is not None and any(finite_or_none(value) is None for value in result.values()):
            self.status = "diverged"
        else:
            self.heldout = result

    def finish(self, status: str) -> None:
        """Fetch what is left and say how it ended."""
        self.fetch()
        self.seconds = time.perf_counter() - self._started
        if not self.diverged:
            self.status = status
        if self.status == "finished" and self.plan.method.prequential and self.position != self.plan.length:
            raise PreqError(
                f"the plan ends at label {self.position} of {self.plan.length}; a method must predict every position"
            )

    def arrays(self) -> dict[str, Any]:
        """What was measured, cut to where the run got."""
        return {name: self._arrays[name].read(0, self._count(name)) for name in ARRAYS}

    def contents(self) -> Contents:
        """Length and fingerprint of each array; only what is new since the last call is hashed."""
        for name, array in self._arrays.items():
            hasher = self._hashers[name].copy()
            for begin in range(self._hashed[name], self._count(name), 1 << 20):
                end = min(begin + (1 << 20), self._count(name))
                hasher.update(array.read(begin, end).tobytes())
            self._hashers[name], self._hashed[name] = hasher, self._count(name)
        return {name: (self._count(name), self._hashers[name].copy().hexdigest()) for name in ARRAYS}

    def _count(self, name: str) -> int:
        return self.position if name in PER_POSITION else self.num_predictions

    def sync(self) -> None:
        """Make the arrays durable."""
        for array in self._arrays.values():
            array.sync()

    def cut(self) -> None:
        """Shorten the arrays to what was measured, for good."""
        for name, array in self._arrays.items():
            array.cut(self._count(name))

    def close(self) -> None:
        """Let go of the arrays."""
        for array in self._arrays.values():
            array.close()

    def counters(self) -> dict[str, Any]:
        """Where the run stands, for `go_back_to`."""
        return {name: getattr(self, name) for name in COUNTERS}

    def go_back_to(self, counters: dict[str, Any], contents: Contents) -> None:
        """Continue from where `counters` and `contents` were taken; refuse arrays that do not fit them."""
        self._rewind()
        for name in COUNTERS:
            setattr(self, name, counters[name])
        for name, described in self.contents().items():
            if described != tuple(contents[name]):
                raise PreqError(f"{name}.npy does not fit the checkpoint")
        nats, labels, predicted = (
            self._arrays[name].read(0, self.position) for name in ("nats", "labels", "predicted")
        )
        self.total_nats, self.total_errors = float(nats.sum()), int((labels != predicted).sum())


def open_arrays(num_classes: int, length: int, directory: Path | None, *, create: bool) -> dict[str, Array]:
    """The arrays of a record, each with room for `length` numbers: in a directory, or in memory."""
    classes = np.min_scalar_type(num_classes - 1)
    types = [np.dtype(t) for t in (np.float64, np.float32, classes, classes, np.float32, np.int64, np.float32)]
    arrays: dict[str, Array] = {}
    try:
        for name, dtype in zip(ARRAYS, types, strict=True):
            if directory is None:
                arrays[name] = ArrayMemory(dtype, length)
            else:
                arrays[name] = ArrayFile(directory / f"{name}.npy", dtype, length, create=create)
    except PreqError:
        for array in arrays.values():
            array.close()
        raise
    return arrays
