"""Runs, and groups of them that differ in nothing but their seed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prequential.mixers.kept import EXPERT_ARRAYS
from prequential.runs.facts import without_told
from prequential.runs.record import ARRAYS, PER_POSITION, PER_PREDICTION, Record, load
from prequential.scaling import INTENSITY


@dataclass(frozen=True)
class Run:
    """A run of a set."""

    name: str
    record: Record
    """What is kept in memory; arrays may hold nothing, or be missing."""
    codelength: float
    """In nats; not a number where there is none."""
    source: Record | Path
    """The whole record, or where it is."""
    num_labels: int | None = None
    """The first labels, where only they count."""

    def load(self) -> Record:
        """The whole record; read again each time where it is on disk."""
        record = self.source if isinstance(self.source, Record) else load(self.source)
        return record if self.num_labels is None else cut(record, self.num_labels)

    def cut(self, length: int) -> "Run":
        """The run up to the label `length`."""
        if len(self.record.nats) <= length:
            return self
        codelength = float(self.load().nats[:length].sum())
        return replace(self, record=cut(self.record, length), codelength=codelength, num_labels=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class SeedGroup:
    """One or more runs that differ in nothing but their seed."""

    name: str
    members: tuple[Run, ...]
    """In order of the seeds."""

    @property
    def runs(self) -> list[str]:
        """The short names of its runs."""
        return [run.name for run in self.members]

    @property
    def records(self) -> list[Record]:
        """What is in memory of each run."""
        return [run.record for run in self.members]

    @property
    def first(self) -> Record:
        """What all of its runs share, and the seed of the first."""
        return self.members[0].record

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [record.seeds["seed"] for record in self.records]

    @property
    def codelengths(self) -> dict[int, float]:
        """The codelength of each seed, in nats."""
        return {run.record.seeds["seed"]: run.codelength for run in self.members}

    @property
    def codelength(self) -> float:
        """The mean of the runs, in nats."""
        return float(np.mean([run.codelength for run in self.members]))

    def loaded(self) -> Iterator[Record]:
        """The whole records, one after the other."""
        return (run.load() for run in self.members)


def setting_of(record: Record) -> str:
    """Everything that was decided about a run but its seed, as text: equal for repeated seeds of one setting.

    Equal are data and its order, plan, method, recipe, model and precision. The fingerprint of a model is that of its
    initial weights, which the seed draws; where it ran and how long it took is no setting.
    """
    facts = decided(record) | {"data": without_told(record.data), "length": record.length}
    return json.dumps(facts, sort_keys=True, default=str)


def decided(record: Record) -> dict[str, dict[str, Any]]:
    """Everything that was decided about a run but its data and its seed, part by part."""
    # 255 is what records of before do not say
    scaled = {} if record.scale in (None, INTENSITY) else {"scale of uint8 inputs": record.scale}
    return {
        "model": _model(record.model),
        "method": record.method | ({"title": record.title} if record.method_title else {}),
        "recipe": record.recipe,
        "seeds": {name: value for name, value in record.seeds.items() if name != "seed"},
        "predictions": {"conditioned_on": record.conditioned_on} | scaled,
        "computed": {name: record.environment.get(name) for name in ("engine", "precision")},
    }


def _model(model: dict[str, Any]) -> dict[str, Any]:
    """What is told of a model without what the seed decides."""
    told = {name: value for name, value in model.items() if name != "fingerprint"}
    if "experts" in told:
        told["experts"] = [_model(expert | {"seed": None}) for expert in told["experts"]]
    return told


def codelength_of(record: Record) -> float:
    """The codelength in nats; not a number where there is none."""
    return float("nan") if record.codelength is None else record.codelength


def cut(record: Record, length: int) -> Record:
    """The record of the first labels; what belongs to the whole run is not known of them."""
    arrays: dict[str, Any] = {name: getattr(record, name)[:length] for name in PER_POSITION}
    kept = int(np.searchsorted(record.temperature_positions, length))
    arrays |= {name: getattr(record, name)[:kept] for name in PER_PREDICTION}
    return replace(record, **arrays | record.experts_until(length), heldout=None, flops=None)


def outline(record: Record) -> Record:
    """The same facts and lengths, in no memory."""
    empty: dict[str, Any] = {name: np.broadcast_to(np.nan, len(getattr(record, name))) for name in ARRAYS}
    return replace(record, **empty | dict.fromkeys(EXPERT_ARRAYS))


def slim(record: Record) -> Record:
    """What comparisons show of a record, so that many fit into memory."""
    return replace(
        record, uncalibrated_nats=np.zeros(0, np.float32), confidence=np.zeros(0, np.float32), expert_nats=None
    )
