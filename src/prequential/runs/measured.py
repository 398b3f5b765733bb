"""The arrays of one run, filled as predictions come in, in memory or in a directory. No torch."""

import hashlib
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from prequential.errors import PreqError, PreqWarning
from prequential.files import Array, ArrayFile, ArrayMemory
from prequential.methods.several import num_study_steps
from prequential.mixers.kept import EXPERT_ARRAYS, EXPERT_NATS, WEIGHTS, kept_after
from prequential.plan import Plan
from prequential.runs.progress import Progress
from prequential.runs.record import ARRAYS, PER_POSITION, Record, finite_or_none, load, write_facts
from prequential.targets import Target

COUNTERS = ("num_events", "position", "num_predictions", "trained_examples", "heldout")
Contents = dict[str, tuple[int, str]]
"""Length and fingerprint of each array."""


class Measured:
    """What was measured of one member of a run, and how far it got.

    Args:
        plan: what is executed.
        target: what is coded.
        path: the directory where its arrays are, or None: in memory.
        opened: what its files are closed with.
        create: whether the arrays are new.
        num_experts: whose predictions were mixed, if any were.
    """

    def __init__(
        self, plan: Plan, target: Target, path: Path | None, opened: ExitStack, *, create: bool, num_experts: int = 0
    ) -> None:
        self._plan, self.path, self._num_experts = plan, path, num_experts
        types: list[DTypeLike] = ["f8", "f4", target.dtype, target.dtype, "f4", "i8", "f4"]
        shapes: dict[str, tuple[DTypeLike, tuple[int, ...]]]
        shapes = {name: (dtype, (plan.length,)) for name, dtype in zip(ARRAYS, types, strict=True)}
        self._kept_after = kept_after(plan.length) if num_experts else np.empty(0, np.int64)
        if num_experts:
            num_kept = len(self._kept_after)
            own = ("f8", (plan.length, num_experts)), ("i8", (num_kept,)), ("f4", (num_kept, num_experts))
            shapes |= dict(zip(EXPERT_ARRAYS, own, strict=True))
        self._arrays: dict[str, Array] = {}
        for name, (dtype, (length, *row_shape)) in shapes.items():
            if path is None:
                self._arrays[name] = ArrayMemory(np.dtype(dtype), length, tuple(row_shape))
            else:
                file = ArrayFile(path / f"{name}.npy", np.dtype(dtype), length, tuple(row_shape), create=create)
                self._arrays[name] = opened.enter_context(closing(file))
        self.status, self.seconds = "running", 0.0
        self.num_events = self.position = self.num_predictions = self.trained_examples = 0
        self.studied_steps, self._study_steps = 0, num_study_steps(plan.method)
        self.total_nats, self.total_errors = 0.0, 0
        self._temperature: float | None = None
        self.heldout: dict[str, float] | None = None
        self._hashers = {name: hashlib.blake2b(digest_size=16) for name in self._arrays}
        self._hashed = dict.fromkeys(self._arrays, 0)

    def take(self, starts: Sequence[int], rows: NDArray[np.float64], temperatures: NDArray[np.float64]) -> None:
        """Note predictions that began at `starts`, one after the other, and what the labels cost; nothing after a label
        without a finite codelength."""
        bad = np.flatnonzero(~np.isfinite(rows[0]))
        if len(bad):
            self.status = "diverged"
            rows = rows[:, : bad[0] + 1].copy()
            rows[:2, -1], rows[4, -1] = np.inf, 0.0
        begin, end = starts[0], starts[0] + rows.shape[1]
        for name, row in zip(PER_POSITION, rows[: len(PER_POSITION)], strict=True):
            self._arrays[name].write(begin, row)
        if self._num_experts:
            self._take_experts(begin, end, rows[len(PER_POSITION) :])
        known = np.array([start for start in starts if start < end])
        self._arrays["temperature_positions"].write(self.num_predictions, known)
        self._arrays["temperatures"].write(self.num_predictions, temperatures[: len(known)])
        self.num_predictions += len(known)
        self._temperature = float(temperatures[len(known) - 1])
        self.total_nats += float(rows[0].sum())
        self.total_errors += int((rows[2] != rows[3]).sum())
        self.position = end

    def _take_experts(self, begin: int, end: int, rows: NDArray[np.float64]) -> None:
        """Note what the experts said, and how they were trusted where that is kept. Who said nothing was wrong."""
        nats, weights = rows[: self._num_experts].T, rows[self._num_experts :].T
        self._arrays[EXPERT_NATS].write(begin, np.where(np.isnan(nats), np.inf, nats))
        first, last = np.searchsorted(self._kept_after, (begin, end), side="right").tolist()
        here = self._kept_after[first:last]
        for name, values in zip(WEIGHTS, (here, np.nan_to_num(weights[here - 1 - begin])), strict=True):
            self._arrays[name].write(first, values)

    def progress(self, seconds: float, study_seconds: float = 0.0) -> Progress:
        """Where it stands, after so many seconds, and so many of studies that have come to their end."""
        totals = self.total_nats, self.total_errors, self.trained_examples
        studied = self.studied_steps, self._study_steps
        found = Progress(self.position, self._plan.length, *totals, seconds, self._temperature, *studied)
        return replace(found, study_seconds=seconds if found.is_studying else study_seconds)

    def note_heldout(self, result: dict[str, float] | None, *, is_finite: bool) -> None:
        """Keep the held-out result. One that is no number, or from weights that are none, means that a run without a
        code diverged; of one whose labels all have their codelength, the code is whole whatever came after."""
        has_numbers = result is None or all(finite_or_none(value) is not None for value in result.values())
        if not self._plan.method.prequential and not (is_finite and has_numbers):
            self.status = "diverged"
        elif has_numbers:
            self.heldout = result
        else:
            warnings.warn("the weights diverged after the last label: no held-out result", PreqWarning, stacklevel=4)

    def finish(self, status: str) -> None:
        """Say how it ended."""
        self.status = status
        if status == "finished" and self._plan.method.prequential and self.position != self._plan.length:
            raise PreqError(
                f"the plan ends at label {self.position} of {self._plan.length}; a method must predict every position"
            )

    def arrays(self) -> dict[str, Any]:
        """What was measured, cut to where the run got."""
        return {name: self._arrays[name].read(0, self._count(name)) for name in self._arrays}

    def record(self, facts: dict[str, Any], *, is_over: bool) -> Record:
        """The record of which these are the facts, written where there is a directory; that of a run which is over for
        good has arrays of its length."""
        if self.path is None:
            return Record(**facts, **self.arrays())
        if is_over:
            self.cut()
        write_facts(self.path, facts, self.contents())
        return load(self.path)

    def contents(self) -> Contents:
        """Length and fingerprint of each array, made durable; only what is new since the last call is hashed."""
        for name, array in self._arrays.items():
            array.sync()
            for begin in range(self._hashed[name], self._count(name), 1 << 20):
                end = min(begin + (1 << 20), self._count(name))
                self._hashers[name].update(array.read(begin, end).tobytes())
                self._hashed[name] = end
        return {name: (self._count(name), self._hashers[name].hexdigest()) for name in self._arrays}

    def _count(self, name: str) -> int:
        if name in WEIGHTS:
            return int(np.searchsorted(self._kept_after, self.position, side="right"))
        return self.position if name in (*PER_POSITION, EXPERT_NATS) else self.num_predictions

    def cut(self) -> None:
        """Shorten the arrays to what was measured, for good."""
        for name, array in self._arrays.items():
            array.cut(self._count(name))

    def counters(self) -> dict[str, Any]:
        """Where it stands, for `go_back_to`."""
        return {name: getattr(self, name) for name in COUNTERS} | {"diverged": self.status == "diverged"}

    def go_back_to(self, counters: dict[str, Any]) -> None:
        """Continue from where `counters` were taken, with arrays that are as they were then.

        Arrays in memory have nothing to go back to: what they held is in the record of a member that is over.
        """
        for name in COUNTERS:
            setattr(self, name, counters[name])
        self.status = "diverged" if counters["diverged"] else "running"
        if self.path is not None:
            arrays = self.arrays()
            self.total_nats = float(arrays["nats"].sum())
            self.total_errors = int((arrays["labels"] != arrays["predicted"]).sum())
