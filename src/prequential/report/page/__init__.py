"""One page that tells of many runs: a file that opens in any browser, without a server and without the internet."""

from pathlib import Path

from prequential.errors import PreqError
from prequential.files import write_atomically, writing
from prequential.report.comparison import compare
from prequential.report.labels import Examples
from prequential.report.page.build import page_of
from prequential.report.picture import require_place
from prequential.report.runs import Needs, RunSet, Sources
from prequential.report.seeds import cut, slim

__all__ = ["page_of", "write_report"]

SUFFIXES = (".html", ".htm")


def write_report(
    runs: Sources,
    path: str | Path,
    *,
    prefix: bool = False,
    same_inputs: bool = False,
    examples: Examples | None = None,
) -> Path:
    """Write one self-contained page about runs: comparison, interactive plots, what was expensive, settings, data and
    environment.

    Args:
        runs: records, run directories, or folders of runs; all on the same labels in the same order. Runs in
            folders that are not finished (pruned trials of a sweep) or cannot be read are left out, with a warning;
            those that are named are refused.
        path: the page, a file that ends in .html. What is there is replaced.
        prefix: compare only the labels that every run has coded, and take unfinished runs too.
        same_inputs: refuse runs whose inputs differ; else the page says so.
        examples: shows the examples whose labels were expensive, with pictures where they are images:
            `pq.ShownExamples(data)`.

    Raises:
        PreqError: if runs cannot be read or compared, or the page cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise PreqError(f"a report is a page, got '{path.name}'; end the name in .html")
    require_place("report", path)
    found = RunSet.find(runs, Needs(prefix=prefix), slim)
    found.warn()
    comparison = compare(found.records, prefix=prefix, same_inputs=same_inputs)
    by_name = {run.name: run for run in found.runs}  # of which the comparison has a part
    page = page_of(comparison, found.notes, examples, lambda name: cut(by_name[name].load(), comparison.length))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode(errors="backslashreplace"))
    return path
