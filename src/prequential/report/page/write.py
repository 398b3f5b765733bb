"""From run directories to a page on disk."""

import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from prequential.errors import PreqError, PreqWarning
from prequential.files import write_atomically, writing
from prequential.report.comparable import load_runs
from prequential.report.compare import compare
from prequential.report.page.build import page_of
from prequential.report.sentences import listed
from prequential.runs.record import Record

SUFFIXES = (".html", ".htm")
Run = Record | str | Path


def write_report(runs: Run | Iterable[Run], path: str | Path, *, prefix: bool = False) -> Path:
    """Write one self-contained page about runs: comparison, interactive plots, settings, data and environment.

    Args:
        runs: records, run directories, or folders of runs; all on the same data in the same order. Unfinished runs in
            folders (pruned trials of a sweep) are left out, with a warning; those that are named are refused.
        path: the page, a file that ends in .html. What is there is replaced.
        prefix: compare only the labels that every run has coded, and take unfinished runs too.

    Raises:
        PreqError: if runs cannot be read or compared, or the page cannot be written.
    """
    path = Path(path)
    require_page_path(path)
    records, left_out = read_runs(runs, prefix=prefix)
    notes = [
        f"left out {len(paths):,} run{'s' * (len(paths) != 1)} {why}: {listed(paths)}"
        for why, paths in left_out.items()
    ]
    for note in notes:
        warnings.warn(note, PreqWarning, stacklevel=2)
    page = page_of(compare(records, prefix=prefix), notes)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode(errors="backslashreplace"))
    return path


def require_page_path(path: Path) -> None:
    """Refuse a file that no page can be written to, before the work."""
    if path.suffix.lower() not in SUFFIXES:
        raise PreqError(f"a report is a page, got '{path.name}'; end the name in .html")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK) or path.is_dir():
        raise PreqError(f"the report {path} cannot be written; choose another place")


def read_runs(runs: Run | Iterable[Run], *, prefix: bool) -> tuple[list[Record], dict[str, list[str]]]:
    """The records without what a page does not show, and for each reason the runs that were left out.

    So many long ones fit into memory; labels are kept once.
    """
    first: dict[str, Record] = {}

    def slim(record: Record) -> Record:
        less = replace(record, uncalibrated_nats=np.zeros(0, np.float32), confidence=np.zeros(0, np.float32))
        labels = first.setdefault(str(record.data["labels"]), less).labels
        return replace(less, labels=labels) if np.array_equal(labels, less.labels) else less

    given = [runs] if isinstance(runs, Record | str | Path) else list(runs)
    for run in given:
        if not isinstance(run, Record | str | Path):
            raise PreqError(f"a report is of records or directories of runs, got {type(run).__name__}")
    records = [slim(run) for run in given if isinstance(run, Record)]
    directories = [run for run in given if not isinstance(run, Record)]
    if not directories:
        return records, {}
    loaded, left_out = load_runs(directories, prefix=prefix, kept=slim)
    return records + loaded, left_out
