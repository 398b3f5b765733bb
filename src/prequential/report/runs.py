"""A set of runs: found, read, left out with the reason, grouped by seed, named. Every reading command begins here."""

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from prequential.errors import PreqError, PreqWarning
from prequential.measure.comparable import name_of, require_comparable, sequence_of
from prequential.report.names import group_names, short_names
from prequential.report.seeds import Run, SeedGroup, codelength_of, outline, setting_of
from prequential.report.text import counted, listed
from prequential.runs.leftovers import remove_leftovers
from prequential.runs.live import is_locked, status_of
from prequential.runs.record import RECORD_FILE, Record, load

Source = Record | str | Path
Sources = Source | Iterable[Source]
KEPT_NOTHING = "no label to show yet (a run keeps what it coded at each checkpoint; preq watch shows it before)"


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a reader needs of a run; the rules of what is left out, all of them."""

    code: bool = False
    """A codelength, and at least one label of it."""
    heldout: bool = False
    """Held-out figures may stand in for a codelength."""
    flops: bool = False
    finite: bool = False
    """A codelength that is not infinite; of runs that are named only where `whole` says so."""
    whole: bool = False
    """Also a run that is named must be finished."""
    experts: bool = False
    """Experts that were mixed."""
    prefix: bool = False
    """Runs that have coded some labels will do."""

    def lacking(self, record: Record, *, is_named: bool) -> str | None:
        """Why a run is not taken, or None."""
        status = status_of(record.path, record.status)
        if not (self.prefix and len(record.nats)) and (self.whole or not is_named):
            if status not in ("finished", "diverged"):
                return f"not finished ({status})"
            if status == "diverged" and self.finite:
                return "that diverged"
        if self.experts and not record.expert_names:
            return "with one model, and no experts whose weights could be drawn (--members, --mixer)"
        if self.flops and record.flops is None:
            return "without FLOPs"
        if self.heldout and not record.prequential and record.heldout is None:
            return "without codelength and held-out error"
        if self.code and not record.prequential:
            return "without a codelength" + " (--heldout shows them)" * self.flops
        return f"with {KEPT_NOTHING}" if self.code and not len(record.nats) else None


@dataclass(frozen=True)
class RunSet:
    """Runs that are read together, and why others are not among them."""

    runs: list[Run]
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """For each reason the directories."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> "RunSet":
        """Records that are in memory."""
        return cls(_named([Run("", record, codelength_of(record), record) for record in records]))

    @classmethod
    def find(cls, runs: Sources, needs: Needs, kept: Callable[[Record], Record] = outline) -> "RunSet":
        """Records, run directories, and the runs in folders, each once.

        A run that is named is wanted: what is wrong with it is an error. From a folder, those that cannot be read, that
        lack what is needed (the pruned trials of a sweep), or that are in another order than most are left out.

        Args:
            kept: what is kept of a record in memory; default: its facts and the lengths of its arrays.

        Raises:
            PreqError: for a directory without a run, a named run that will not do, or if nothing is left.
        """
        found: list[tuple[Run, bool]] = []
        left_out: dict[str, list[str]] = {}
        for source, is_named in _sources(runs):
            try:
                record = source if isinstance(source, Record) else load(source)
                remove_leftovers(record.path, record.status)
                reason = needs.lacking(record, is_named=is_named)
            except PreqError as error:
                if is_named:
                    raise
                reason = f"that cannot be read ({error})"
            if reason is None:
                found.append((Run("", kept(record), codelength_of(record), source), is_named))
            elif is_named:
                raise PreqError(f"{name_of(record)} is a run {reason}; leave it out")
            else:
                left_out.setdefault(reason, []).append(str(source))
        if not found:
            told = "; ".join(f"{len(paths):,} {reason}" for reason, paths in left_out.items()) or "none was named"
            can_wait = not needs.whole and any(reason.startswith("not finished") for reason in left_out)
            hint = "none has kept a label yet" if needs.prefix else "--prefix compares the labels that all have coded"
            raise PreqError(f"there is no run to show: {told}" + f"; {hint}" * can_wait)
        return cls(_named(_in_one_order(found, left_out)), left_out)

    @property
    def notes(self) -> list[str]:
        """A line for each reason why runs were left out."""
        return [f"left out {counted(len(each), 'run')} {why}: {listed(each)}" for why, each in self.left_out.items()]

    @property
    def records(self) -> list[Record]:
        """What is in memory of each run."""
        return [run.record for run in self.runs]

    def warn(self) -> None:
        """Say what was left out."""
        for note in self.notes:
            warnings.warn(note, PreqWarning, stacklevel=3)

    def common_length(self, *, prefix: bool) -> int:
        """Labels that every run has coded but those that diverged, whose codes are infinite from there on."""
        going = [run.record for run in self.runs if not math.isinf(run.codelength)]
        going = going or [max(self.records, key=lambda record: len(record.nats))]
        shortest = min(going, key=lambda record: len(record.nats))
        if not len(shortest.nats):
            raise PreqError(f"{name_of(shortest)} has {KEPT_NOTHING}; leave it out")
        if not prefix:
            for record in going:
                require_comparable(record, shortest)
        return len(shortest.nats)

    def cut(self, length: int) -> "RunSet":
        """The same runs up to the label `length`."""
        return replace(self, runs=[run.cut(length) for run in self.runs])

    def groups(self, *, each_seed: bool = False, as_long: bool = False) -> list[SeedGroup]:
        """Seeds together, or each run by itself; with `as_long` apart where they stopped at different labels.

        Two runs of one setting with one seed are not repeated seeds. Something that records do not tell (the code of
        the model, the machine) made them differ, so the runs of such a setting stay apart.
        """
        found: dict[object, list[Run]] = {}
        for run in self.runs:
            setting = run.name if each_seed else (setting_of(run.record), as_long and len(run.record.nats))
            found.setdefault(setting, []).append(run)
        groups: list[list[Run]] = []
        for runs in found.values():
            runs.sort(key=lambda run: (run.record.seeds["seed"], str(run.record.path)))
            is_repeated = len({run.record.seeds["seed"] for run in runs}) == len(runs)
            groups += [runs] if is_repeated else [[run] for run in runs]
        named = zip(group_names(groups), groups, strict=True)
        return [SeedGroup(name=name, members=tuple(runs)) for name, runs in named]


def _sources(runs: Sources) -> list[tuple[Record | Path, bool]]:
    """Each record and each run directory once, and whether it was named itself."""
    found: dict[Path | int, tuple[Record | Path, bool]] = {}
    for run in [runs] if isinstance(runs, Record | str | Path) else runs:
        if isinstance(run, Record):
            found.setdefault(id(run), (run, True))
            continue
        if not isinstance(run, str | Path):
            raise PreqError(f"runs are records or directories of runs, got {type(run).__name__}")
        is_named = (Path(run) / RECORD_FILE).is_file()
        for path in find_runs([run]):
            if is_named or path.resolve() not in found:
                found[path.resolve()] = (path, is_named)
    return list(found.values())


def _named(runs: Sequence[Run]) -> list[Run]:
    names = short_names([run.record for run in runs])
    return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]


def _in_one_order(found: Sequence[tuple[Run, bool]], left_out: dict[str, list[str]]) -> list[Run]:
    """Without the runs of folders that are about the same data in another order than most."""
    most = Counter(sequence_of(run.record) for run, _ in found).most_common(1)[0][0]
    common = next(run.record for run, _ in found if sequence_of(run.record) == most)
    order_seed, shown = common.seeds["order_seed"], []
    for run, is_named in found:
        mine, other = ((r.data["name"], r.length, r.num_classes) for r in (run.record, common))
        is_elsewhere = sequence_of(run.record) != most and mine == other
        if is_elsewhere and run.record.seeds["order_seed"] != order_seed and not is_named:
            reason = f"in another order than most (order seed {order_seed})"
            left_out.setdefault(reason, []).append(str(run.source))
        else:
            shown.append(run)
    return shown


def find_runs(directories: Sequence[str | Path]) -> list[Path]:
    """The run directories that are, or lie anywhere below, the given ones; each once, in order of their names.

    Raises:
        PreqError: for a directory that is not there, or with no run in it.
    """
    for directory in directories:
        require_runs(directory, find_work([directory], is_strict=True)[0])
    return find_work(directories)[0]


def require_runs(directory: str | Path, found: Sequence[Path]) -> None:
    """Refuse a directory that is not there, or in which nothing was found."""
    wanted = "that preq run or preq sweep wrote with --out"
    if not Path(directory).is_dir():
        raise PreqError(f"{directory} is no directory; name one {wanted}")
    if not found:
        raise PreqError(f"{directory} holds no run; name a directory {wanted}")


def find_work(directories: Sequence[str | Path], *, is_strict: bool = False) -> tuple[list[Path], list[Path]]:
    """The runs at or below the directories, and what is locked there without being a run: a sweep, or a run that has
    not written anything yet.

    A folder that cannot be read is passed over, unless `is_strict`.
    """

    def failed(error: OSError) -> None:
        if is_strict and Path(error.filename).is_dir():
            raise PreqError(f"{error.filename} cannot be read: {error.strerror}")

    def is_entered(folder: Path) -> bool:  # links to folders may go round in circles
        return folder.name[0] != "." and (not folder.is_symlink() or (folder / RECORD_FILE).is_file())

    runs: dict[Path, Path] = {}
    locked: dict[Path, Path] = {}
    for directory in directories:
        for folder, children, files in os.walk(directory, onerror=failed, followlinks=True):
            path = Path(folder)
            if RECORD_FILE in files:
                runs.setdefault(path.resolve(), path)
            elif is_locked(path):
                locked.setdefault(path.resolve(), path)
            children[:] = [] if RECORD_FILE in files else sorted(each for each in children if is_entered(path / each))
    return list(runs.values()), list(locked.values())
