"""The codelength curve of one run."""

from pathlib import Path

from prequential.errors import PreqError
from prequential.report.colours import FAINT, INK
from prequential.report.picture import FORMATS, require_picture_path
from prequential.report.plots.chosen import choose, settings_of_runs
from prequential.report.plots.curves import plot_curves
from prequential.report.plots.options import Options
from prequential.runs.record import Record

__all__ = ["FAINT", "FORMATS", "INK", "plot_curve", "require_picture_path"]


def plot_curve(record: Record, path: str | Path) -> Path:
    """Draw next-step loss and codelength against the position and save them as PNG, SVG or PDF."""
    path = Path(path)
    require_picture_path(path)
    if not record.prequential or not len(record.nats):
        raise PreqError(f"there is no curve to draw: {record.method['name']} coded {len(record.nats)} labels")
    plot_curves(settings_of_runs(choose([record])), path, Options())
    return path
