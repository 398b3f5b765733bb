"""What runs reached for what they cost: points, and the fronts of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prequential.conditioning import INPUTS_SO_FAR, difference
from prequential.errors import PreqError
from prequential.measure.comparable import require_same_data, sequence_of
from prequential.measure.fronts import pareto_front
from prequential.report.names import MAIN_SETTINGS, shortest
from prequential.report.runs import Needs, RunSet, Source
from prequential.report.table import Column, values_of
from prequential.runs.record import Record


@dataclass(frozen=True, kw_only=True)
class Point:
    """A finished run without its arrays."""

    directory: str
    data: str
    length: int
    method: str
    title: str
    """The method as the paper writes it."""
    model: str
    flops: float
    """Of the codelength."""
    nats: float | None
    """The codelength; None where the method has none."""
    heldout_flops: float
    """Of the held-out error: also those of a closing stage and of the evaluation."""
    heldout_error: float | None
    settings: dict[str, Any]
    conditioned_on: str = INPUTS_SO_FAR
    name: str | None = None
    """What the run was called, if anything."""

    @classmethod
    def of(cls, record: Record, codelength: float) -> "Point":
        """The point of a run."""
        assert record.flops is not None
        own = {key: value for part in (record.method, record.recipe) for key, value in part.items() if key != "name"}
        return cls(
            directory=str(record.path),
            data=record.data["name"],
            length=record.length,
            method=record.method["name"],
            title=record.title,
            model=record.model["name"],
            flops=record.flops["code"],
            nats=codelength if record.prequential else None,
            heldout_flops=record.flops["code"] + record.flops["heldout"],
            heldout_error=None if record.heldout is None else record.heldout["error_rate"],
            settings={"width": record.model["width"], **record.seeds, **own},
            conditioned_on=record.conditioned_on,
            name=record.name,
        )

    def main_settings(self) -> dict[str, str]:
        """The settings people look at first, by their short names."""
        return {
            short: f"{self.settings[name]:.3g}" if isinstance(self.settings[name], float) else str(self.settings[name])
            for name, short in MAIN_SETTINGS.items()
            if isinstance(self.settings.get(name), int | float)
        }

    def place(self, *, heldout: bool) -> tuple[float, float | None]:
        """FLOPs and codelength, or FLOPs and held-out error."""
        return (self.heldout_flops, self.heldout_error) if heldout else (self.flops, self.nats)


@dataclass(frozen=True)
class Front:
    """The points of a set of runs, and which of them no other beats."""

    runs: RunSet
    points: list[Point]

    @classmethod
    def find(cls, runs: Source | Iterable[Source], *, heldout: bool = False) -> "Front":
        """The runs that can be shown together (see `RunSet.find`).

        Those that are not finished or diverged are left out, and those without FLOPs, or with nothing to show: neither
        a codelength nor, with `heldout`, a held-out error.

        Raises:
            PreqError: if runs are about different data or lengths, or if nothing is left.
        """
        found = RunSet.find(runs, Needs(code=not heldout, heldout=heldout, flops=True, finite=True, whole=True))
        records = found.records
        sequences = [sequence_of(record) for record in records]
        reference = records[sequences.index(max(sequences, key=sequences.count))]
        evaluated: dict[tuple[str, str], Record] = {}
        for record in records:
            require_same_data(record, reference)
            if heldout and record.heldout is not None:
                held = record.data["heldout"]
                evaluated.setdefault((held["labels"], held.get("examples") or held["inputs"]), record)
        if len(evaluated) > 1:
            one, other = [record.path for record in evaluated.values()][:2]
            raise PreqError(f"{one} and {other} were evaluated on different held-out data; show one of them at a time")
        return cls(found, [Point.of(run.record, run.codelength) for run in found.runs])

    @property
    def told(self) -> str:
        """One line about what codes were told, where that differs."""
        coded = [point for point in self.points if point.nats is not None]
        names = shortest([point.directory for point in coded], [point.name for point in coded])
        return difference((name, point.conditioned_on) for name, point in zip(names, coded, strict=True))

    def best(self, *, heldout: bool = False) -> list[Point]:
        """The points that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
        return front_of(self.points, heldout=heldout)

    def values(self) -> list[dict[str, Any]]:
        """A row of plain values for each run, the cheapest first: what JSON holds."""
        code, heldout = ({point.directory for point in self.best(heldout=which)} for which in (False, True))
        columns: list[Column[Point]] = [
            Column("", "flops", lambda point: point.flops),
            Column("", "codelength_nats", lambda point: point.nats),
            Column("", "on_front", lambda point: point.directory in code),
            Column("", "heldout_flops", lambda point: point.heldout_flops),
            Column("", "heldout_error", lambda point: point.heldout_error),
            Column("", "on_heldout_front", lambda point: point.directory in heldout),
            Column("", "method", lambda point: point.method),
            Column("", "model", lambda point: point.model),
            Column("", "directory", lambda point: point.directory),
            Column("", "settings", lambda point: point.settings),
        ]
        return values_of(columns, sorted(self.points, key=lambda point: (point.flops, point.directory)))


def front_of(points: Sequence[Point], *, heldout: bool) -> list[Point]:
    """Those that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
    shown = shown_of(points, heldout=heldout)
    costs, values = zip(*places_of(shown, heldout=heldout), strict=True) if shown else ((), ())
    return [shown[index] for index in pareto_front(costs, values)]


def shown_of(points: Sequence[Point], *, heldout: bool) -> list[Point]:
    """Those that have a codelength (or held-out error)."""
    return [point for point in points if point.place(heldout=heldout)[1] is not None]


def places_of(points: Sequence[Point], *, heldout: bool) -> list[tuple[float, float]]:
    """FLOPs and codelength (or held-out error) of those that have one."""
    places = [point.place(heldout=heldout) for point in points]
    return [(cost, value) for cost, value in places if value is not None]
