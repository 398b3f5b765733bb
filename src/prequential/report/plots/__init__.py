"""Pictures of runs: regret, loss, error, curve, calibration, weights, replay, pareto. Reads records only. No torch."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from prequential.errors import PreqError, unknown_name
from prequential.measure.comparable import require_same_inputs
from prequential.report.picture import require_picture_path
from prequential.report.plots.calibration import plot_calibration
from prequential.report.plots.draw import Options
from prequential.report.plots.front import Front, plot_pareto
from prequential.report.plots.replay import plot_replay
from prequential.report.plots.sequence import ERROR, LOSS, plot_curves, plot_regret, plot_smoothed
from prequential.report.plots.weights import plot_weights
from prequential.report.runs import Needs, RunSet
from prequential.report.seeds import SeedGroup
from prequential.runs.record import Record

OF_GROUPS: dict[str, Callable[[Sequence[SeedGroup], Path, Options], None]] = {
    "regret": plot_regret,
    "loss": partial(plot_smoothed, LOSS),
    "error": partial(plot_smoothed, ERROR),
    "curve": plot_curves,
    "calibration": plot_calibration,
    "weights": plot_weights,
    "replay": plot_replay,
}
"""The pictures of runs that are grouped by seed."""
KINDS = (*OF_GROUPS, "pareto")
Runs = Record | str | Path | Sequence[Record | str | Path]


def plot(
    kind: str,
    runs: Runs,
    path: str | Path,
    *,
    reference: Record | str | Path | None = None,
    axis: str | None = None,
    window: int | None = None,
    each_seed: bool = False,
    heldout: bool = False,
    prefix: bool = False,
    same_inputs: bool = False,
) -> Path:
    """Draw runs and write the picture as PNG, SVG or PDF, whichever the name ends in.

    Args:
        kind: one of `KINDS`: regret, loss, error, curve, calibration, weights, replay, pareto.
        runs: records, run directories or folders of runs.
        path: the file.
        reference: for `regret`, the run to compare with, the name of a line, or a simple code of the labels:
            "uniform", "frequencies", "previous"; default: the shortest code, for a single run "uniform".
        axis: how positions are spaced, "log" or "linear"; default: logarithmic, linear for the order of a stream.
        window: labels over which loss or error rate is averaged; default: growing with the position on a
            logarithmic axis, else a fiftieth of the sequence.
        each_seed: a line for each run, where seeds of one setting would become their mean with a band.
        heldout: for `pareto`, also the held-out error.
        prefix: draw only the labels that every run has coded, and take unfinished runs of folders too.
        same_inputs: refuse runs whose inputs differ; else a line below the picture says so.

    Raises:
        PreqError: for an unknown kind, a file that cannot be written, runs that cannot be compared, or without a
            codelength.
    """
    if kind not in KINDS:
        raise unknown_name("kind of picture", kind, KINDS)
    options = Options(
        reference=reference,
        axis=axis,
        window=window,
        each_seed=each_seed,
        heldout=heldout,
        prefix=prefix,
        same_inputs=same_inputs,
    )
    options.require_use(kind)
    path = Path(path)
    require_picture_path(path)
    wanted = [runs] if isinstance(runs, Record | str | Path) else list(runs)
    if kind == "pareto":
        if any(isinstance(run, Record) and run.path is None for run in wanted):
            raise PreqError("pareto draws runs from their directories, got a record that was not saved; save it first")
        front = Front.find(wanted, heldout=heldout, each_seed=each_seed, same_inputs=same_inputs)
        front.runs.warn()
        return plot_pareto(front, path, heldout=heldout)
    if kind == "regret" and (isinstance(reference, Record) or (reference is not None and Path(reference).is_dir())):
        wanted.append(reference)
    found = RunSet.find(wanted, Needs(code=True, finite=True, prefix=prefix, experts=kind == "weights"))
    found.warn()
    if same_inputs:
        require_same_inputs(found.records)
    if prefix:
        found = found.cut(found.common_length(prefix=True))
    groups = found.groups(each_seed=each_seed, as_long=True)
    OF_GROUPS[kind](sorted(groups, key=lambda group: group.codelength), path, options)
    return path
