"""The codelength curve of one run."""

from pathlib import Path

from prequential.errors import PreqError
from prequential.report.picture import require_picture_path
from prequential.report.plots import plot
from prequential.runs.record import Record

__all__ = ["plot_curve", "require_picture_path"]


def plot_curve(record: Record, path: str | Path) -> Path:
    """Draw next-step loss and codelength against the position and save them as PNG, SVG or PDF."""
    path = Path(path)
    require_picture_path(path)
    if not record.prequential or not len(record.nats):
        raise PreqError(f"there is no curve to draw: {record.method['name']} coded {len(record.nats)} labels")
    return plot("curve", record, path)
