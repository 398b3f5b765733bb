"""From run directories to a page on disk."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from prequential.errors import PreqError
from prequential.files import write_atomically, writing
from prequential.record import Record, load
from prequential.report.compare import compare
from prequential.report.page.build import page_of
from prequential.report.runs import find_runs

SUFFIXES = (".html", ".htm")
Run = Record | str | Path


def write_report(runs: Run | Iterable[Run], path: str | Path, *, prefix: bool = False) -> Path:
    """Write one self-contained page about runs: comparison, interactive plots, settings, data and environment.

    Args:
        runs: records, run directories, or folders of runs; all on the same data in the same order.
        path: the page, a file that ends in .html. What is there is replaced.
        prefix: compare only the labels that every run has coded, and take unfinished runs too.

    Raises:
        PreqError: if runs cannot be read or compared, or the page cannot be written.
    """
    path = Path(path)
    require_page_path(path)
    page = page_of(compare(read_runs(runs), prefix=prefix))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode())
    return path


def require_page_path(path: Path) -> None:
    """Refuse a file that no page can be written to, before the work."""
    if path.suffix.lower() not in SUFFIXES:
        raise PreqError(f"a report is a page, got '{path.name}'; end the name in .html")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK) or path.is_dir():
        raise PreqError(f"the report {path} cannot be written; choose another place")


def read_runs(runs: Run | Iterable[Run]) -> list[Record]:
    """The records without what a page does not show, so that many long ones fit into memory; labels are kept once."""
    first: dict[str, Record] = {}
    found = []
    for record in _records([runs] if isinstance(runs, Record | str | Path) else runs):
        slim = replace(record, uncalibrated_nats=np.zeros(0, np.float32), confidence=np.zeros(0, np.float32))
        labels = first.setdefault(str(record.data["labels"]), slim).labels
        found.append(replace(slim, labels=labels) if np.array_equal(labels, slim.labels) else slim)
    return found


def _records(runs: Iterable[Run]) -> Iterator[Record]:
    """Records as they are, then those in directories, each once and read one at a time."""
    directories = []
    for run in runs:
        if isinstance(run, Record):
            yield run
        elif isinstance(run, str | Path):
            directories.append(run)
        else:
            raise PreqError(f"a report is of records or directories of runs, got {type(run).__name__}")
    yield from map(load, find_runs(directories))
