"""The runs in some directories as points: what each cost, what it reached, with which settings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prequential.catalogue import short_names
from prequential.conditioning import INPUTS_SO_FAR, difference
from prequential.errors import PreqError
from prequential.measure import sequence_of
from prequential.pareto import pareto_front
from prequential.report.names import shortest
from prequential.runs.record import RECORD_FILE, Record, load


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

    def main_settings(self) -> dict[str, str]:
        """The settings people look at first, by their short names."""
        return {
            short: f"{self.settings[name]:.3g}" if isinstance(self.settings[name], float) else str(self.settings[name])
            for name, short in short_names().items()
            if isinstance(self.settings.get(name), int | float)
        }


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The runs that can be shown together, and why others cannot."""

    points: list[Point]
    left_out: dict[str, list[str]]
    """For each reason the directories."""

    @property
    def told(self) -> str:
        """One line about what codes were told, where that differs."""
        coded = [point for point in self.points if point.nats is not None]
        names = shortest([point.directory for point in coded], [point.name for point in coded])
        return difference((name, point.conditioned_on) for name, point in zip(names, coded, strict=True))

    def front(self, *, heldout: bool = False) -> list[Point]:
        """The points that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
        return front_of(self.points, heldout=heldout)


def front_of(points: Sequence[Point], *, heldout: bool) -> list[Point]:
    """Those that no other beats in both FLOPs and codelength (or held-out error), the cheapest first."""
    shown = shown_of(points, heldout=heldout)
    costs, values = zip(*places_of(shown, heldout=heldout), strict=True) if shown else ((), ())
    return [shown[index] for index in pareto_front(costs, values)]


def shown_of(points: Sequence[Point], *, heldout: bool) -> list[Point]:
    """Those that have a codelength (or held-out error)."""
    return [point for point in points if (point.heldout_error if heldout else point.nats) is not None]


def places_of(points: Sequence[Point], *, heldout: bool) -> list[tuple[float, float]]:
    """FLOPs and codelength (or held-out error) of those that have one."""
    places = [(p.heldout_flops, p.heldout_error) if heldout else (p.flops, p.nats) for p in points]
    return [(cost, value) for cost, value in places if value is not None]


def find_runs(directories: Sequence[str | Path]) -> list[Path]:
    """The run directories that are, or lie anywhere below, the given ones; each once, in order of their names.

    Raises:
        PreqError: for a directory that is not there, or with no run in it.
    """
    found: dict[Path, Path] = {}
    for directory in map(Path, directories):
        if not directory.is_dir():
            raise PreqError(f"{directory} is no directory; name one that preq run or preq sweep wrote with --out")
        runs = list(_runs_below(directory))
        if not runs:
            raise PreqError(f"{directory} holds no run; name a directory that preq run or preq sweep wrote with --out")
        for run in runs:
            found.setdefault(run.resolve(), run)
    return list(found.values())


def _runs_below(directory: Path) -> Iterator[Path]:
    if (directory / RECORD_FILE).is_file():
        yield directory
        return
    try:
        children = sorted(child for child in directory.iterdir() if child.is_dir() and not child.name.startswith("."))
    except OSError as error:
        raise PreqError(f"{directory} cannot be read: {error.strerror}") from None
    for child in children:
        if not child.is_symlink() or (child / RECORD_FILE).is_file():  # links to folders may go round in circles
            yield from _runs_below(child)


def gather(directories: Sequence[str | Path], *, heldout: bool = False) -> Gathered:
    """Every run below the directories that can be shown with the others.

    Runs that are not finished, that cannot be read, without FLOPs or in another order than most are left out, and so
    are those that have nothing to show: neither a codelength nor, with `heldout`, a held-out error.

    Raises:
        PreqError: if runs are about different data or lengths, or if nothing is left.
    """
    left_out: dict[str, list[str]] = {}
    kept: list[tuple[Point, _About]] = []
    for path in find_runs(directories):
        try:
            record = load(path)
        except PreqError as error:
            left_out.setdefault(f"that cannot be read ({error})", []).append(str(path))
            continue
        if (reason := _why_not(record, heldout=heldout)) is not None:
            left_out.setdefault(reason, []).append(str(path))
        else:
            kept.append((_point(record), _About.of(record, heldout=heldout)))
    if not kept:
        reasons = "; ".join(f"{len(paths)} {reason}" for reason, paths in left_out.items())
        raise PreqError(f"there is no run to show: {reasons}")
    return Gathered(points=_alike(kept, left_out), left_out=left_out)


@dataclass(frozen=True)
class _About:
    """What runs must share to be comparable."""

    data: str
    length: int
    num_classes: int
    order_seed: int | None
    sequence: tuple[int, str, str]
    heldout: tuple[str, str] | None

    @classmethod
    def of(cls, record: Record, *, heldout: bool) -> "_About":
        held = record.data["heldout"] if heldout and record.heldout is not None else None
        return cls(
            record.data["name"],
            record.length,
            record.num_classes,
            record.seeds["order_seed"],
            sequence_of(record),
            None if held is None else (held["labels"], held.get("examples") or held["inputs"]),
        )

    def is_another_order_of(self, other: "_About") -> bool:
        same = (self.data, self.length, self.num_classes) == (other.data, other.length, other.num_classes)
        return same and self.order_seed != other.order_seed

    def __str__(self) -> str:
        return f"{self.length:,} labels of {self.data} (fingerprint {self.sequence[2][:8]})"


def _alike(runs: list[tuple[Point, _About]], left_out: dict[str, list[str]]) -> list[Point]:
    """The runs on the most frequent sequence; those in another order are left out, other data is refused."""
    most = Counter(about.sequence for _, about in runs).most_common(1)[0][0]
    reference, common = next((point, about) for point, about in runs if about.sequence == most)
    points: list[Point] = []
    evaluated: dict[tuple[str, str], str] = {}
    for point, about in runs:
        if about.sequence == most:
            points.append(point)
            if about.heldout is not None:
                evaluated.setdefault(about.heldout, point.directory)
        elif about.is_another_order_of(common):
            left_out.setdefault(f"in another order than most (order seed {common.order_seed})", []).append(
                point.directory
            )
        else:
            raise PreqError(
                f"{point.directory} is about {about}, {reference.directory} about {common}; "
                "show runs on the same data and length"
            )
    if len(evaluated) > 1:
        one, other = list(evaluated.values())[:2]
        raise PreqError(f"{one} and {other} were evaluated on different held-out data; show one of them at a time")
    return points


def _why_not(record: Record, *, heldout: bool) -> str | None:
    if record.status != "finished":
        return "that diverged" if record.status == "diverged" else f"not finished ({record.status})"
    if record.flops is None:
        return "without FLOPs"
    if not record.prequential and not heldout:
        return "without a codelength (--heldout shows them)"
    if not record.prequential and record.heldout is None:
        return "without codelength and held-out error"
    return None


def _point(record: Record) -> Point:
    assert record.flops is not None
    own = {key: value for part in (record.method, record.recipe) for key, value in part.items() if key != "name"}
    return Point(
        directory=str(record.path),
        data=record.data["name"],
        length=record.length,
        method=record.method["name"],
        title=record.title,
        model=record.model["name"],
        flops=record.flops["code"],
        nats=record.codelength,
        heldout_flops=record.flops["code"] + record.flops["heldout"],
        heldout_error=None if record.heldout is None else record.heldout["error_rate"],
        settings={"width": record.model["width"], **record.seeds, **own},
        conditioned_on=record.conditioned_on,
        name=record.name,
    )
