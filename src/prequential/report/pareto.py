"""What runs reached for what they cost: points, and the fronts of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prequential.conditioning import difference
from prequential.errors import PreqError
from prequential.measure.comparable import require_same_data, sequence_of
from prequential.measure.fronts import pareto_front
from prequential.report.names import settings_of_run
from prequential.report.runs import Needs, RunSet, Source
from prequential.report.seeds import Run
from prequential.report.table import Column, values_of
from prequential.runs.record import Record


def place(run: Run, *, heldout: bool) -> tuple[float, float | None]:
    """FLOPs and codelength; or FLOPs, also those of a closing stage and of the evaluation, and held-out error."""
    record = run.record
    assert record.flops is not None
    if heldout:
        return sum(record.flops.values()), (record.heldout or {}).get("error_rate")
    return record.flops["code"], run.codelength if record.prequential else None


@dataclass(frozen=True)
class Front:
    """A set of runs with FLOPs, and which of them no other beats."""

    runs: RunSet

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
        return cls(found)

    @property
    def told(self) -> str:
        """One line about what codes were told, where that differs."""
        return difference((run.name, run.record.conditioned_on) for run in shown_of(self.runs.runs, heldout=False))

    def best(self, *, heldout: bool = False) -> list[Run]:
        """The runs that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
        return front_of(self.runs.runs, heldout=heldout)

    def values(self) -> list[dict[str, Any]]:
        """A row of plain values for each run, the cheapest first: what JSON holds."""
        code, heldout = ({run.name for run in self.best(heldout=which)} for which in (False, True))
        columns: list[Column[Run]] = [
            Column("", "flops", lambda run: place(run, heldout=False)[0]),
            Column("", "codelength_nats", lambda run: place(run, heldout=False)[1]),
            Column("", "on_front", lambda run: run.name in code),
            Column("", "heldout_flops", lambda run: place(run, heldout=True)[0]),
            Column("", "heldout_error", lambda run: place(run, heldout=True)[1]),
            Column("", "on_heldout_front", lambda run: run.name in heldout),
            Column("", "method", lambda run: run.record.method["name"]),
            Column("", "model", lambda run: run.record.model["name"]),
            Column("", "directory", lambda run: str(run.record.path)),
            Column("", "settings", lambda run: settings_of_run(run.record)),
        ]
        order = sorted(self.runs.runs, key=lambda run: (place(run, heldout=False)[0], str(run.record.path)))
        return values_of(columns, order)


def front_of(runs: Sequence[Run], *, heldout: bool) -> list[Run]:
    """Those that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
    shown = shown_of(runs, heldout=heldout)
    costs, values = zip(*places_of(shown, heldout=heldout), strict=True) if shown else ((), ())
    return [shown[index] for index in pareto_front(costs, values)]


def shown_of(runs: Sequence[Run], *, heldout: bool) -> list[Run]:
    """Those that have a codelength (or held-out error)."""
    return [run for run in runs if place(run, heldout=heldout)[1] is not None]


def places_of(runs: Sequence[Run], *, heldout: bool) -> list[tuple[float, float]]:
    """FLOPs and codelength (or held-out error) of those that have one."""
    return [(cost, value) for cost, value in (place(run, heldout=heldout) for run in runs) if value is not None]
