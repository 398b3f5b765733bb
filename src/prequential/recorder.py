"""Collects what a run measures, position by position, and notices when it diverges."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prequential.learn.environment import environment
from prequential.learn.learner import Learner, Prediction
from prequential.models import name_of
from prequential.plan import Plan
from prequential.record import Record, settings_of

SECONDS_BETWEEN_REPORTS = 0.1
FETCHED_AT_ONCE = 64
"""Predictions that stay on a GPU before they are fetched together."""


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


class Recorder:
    """Arrays of one entry per position, filled as predictions come in.

    Results stay on a GPU until a few have come together, so that it never waits for them.
    """

    def __init__(self, plan: Plan, num_classes: int) -> None:
        class_type = np.min_scalar_type(num_classes - 1)
        self.plan, self.num_classes = plan, num_classes
        self.nats = np.empty(plan.length)
        self.uncalibrated_nats = np.empty(plan.length, np.float32)
        self.labels = np.empty(plan.length, class_type)
        self.predicted = np.empty(plan.length, class_type)
        self.confidence = np.empty(plan.length, np.float32)
        self.temperature_positions: list[int] = []
        self.temperatures: list[float] = []
        self.position = self.total_errors = self.num_events = self.trained_examples = 0
        self.total_nats = self.seconds = 0.0
        self.status = "running"
        self.heldout: dict[str, float] | None = None
        self._waiting: list[tuple[int, Tensor, Tensor]] = []
        self._started = self._next_report = 0.0

    @property
    def diverged(self) -> bool:
        """Whether a label had no finite codelength."""
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
        if charged.device.type == "cpu" or len(self._waiting) >= FETCHED_AT_ONCE:
            self._fetch()

    def _fetch(self) -> None:
        for start, rows, temperature in self._waiting:
            if not self.diverged:
                self._take(start, rows.cpu().numpy(), float(temperature))
        self._waiting.clear()

    def _take(self, start: int, rows: np.ndarray, temperature: float) -> None:
        bad = np.flatnonzero(~np.isfinite(rows[0]))
        if len(bad):
            self.status = "diverged"
            rows = rows[:, : bad[0] + 1]
            rows[:2, -1], rows[4, -1] = np.inf, 0.0
        stop = start + rows.shape[1]
        self.nats[start:stop], self.uncalibrated_nats[start:stop] = rows[0], rows[1]
        self.labels[start:stop], self.predicted[start:stop] = rows[2], rows[3]
        self.confidence[start:stop] = rows[4]
        self.temperature_positions.append(start)
        self.temperatures.append(temperature)
        self.total_nats += float(rows[0].sum())
        self.total_errors += int((rows[2] != rows[3]).sum())
        self.position = stop

    def report_is_due(self) -> bool:
        """Whether listeners should hear of it again."""
        self.seconds = time.perf_counter() - self._started
        return self.seconds >= self._next_report

    def report(self, listeners: Iterable[Callable[[Progress], object]]) -> None:
        """Tell every listener where the run stands."""
        self._next_report = self.seconds + SECONDS_BETWEEN_REPORTS
        progress = Progress(
            self.position,
            self.plan.length,
            self.total_nats,
            self.total_errors,
            self.trained_examples,
            self.seconds,
        )
        for listener in listeners:
            listener(progress)

    def finish(self, *, stopped: bool = False) -> None:
        """Fetch what is left and say how it ended."""
        self._fetch()
        self.seconds = time.perf_counter() - self._started
        if not self.diverged:
            self.status = "stopped" if stopped else "finished"

    def record(self, learner: Learner, flops: dict[str, float]) -> Record:
        """What was measured, cut to where the run got, with everything needed to know what it means."""
        whole = ("nats", "uncalibrated_nats", "labels", "predicted", "confidence")
        data, method = learner.data, self.plan.method
        return Record(
            **{name: getattr(self, name)[: self.position].copy() for name in whole},
            temperature_positions=np.array(self.temperature_positions, np.int64),
            temperatures=np.array(self.temperatures, np.float32),
            method=settings_of(method),
            recipe=settings_of(learner.recipe),
            model={
                "name": name_of(learner.factory),
                "width": learner.width,
                "num_parameters": sum(p.numel() for p in learner.model.parameters()),
            },
            data={"name": data.name, "input_shape": list(data.input_shape), **data.digests()},
            seeds={"seed": learner.seed, "order_seed": data.order_seed, "plan_seed": self.plan.seed},
            length=self.plan.length,
            num_classes=self.num_classes,
            prequential=method.prequential,
            status=self.status,
            heldout=self.heldout,
            flops=flops,
            seconds=self.seconds,
            environment=environment(learner.device),
        )
