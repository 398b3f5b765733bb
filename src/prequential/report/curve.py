"""The codelength curve of one run."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from prequential.errors import PreqError
from prequential.record import Record
from prequential.reference import published

FORMATS = (".png", ".svg", ".pdf")
INK, OURS, PAPER, FAINT = "#222222", "#0072b2", "#d55e00", "#999999"


def require_picture_path(path: Path) -> None:
    """Refuse a file that no picture can be written to."""
    if path.suffix.lower() not in FORMATS:
        raise PreqError(f"a picture is {', '.join(FORMATS)}, got '{path.name}'; end the name in one of them")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK) or path.is_dir():
        raise PreqError(f"the picture {path} cannot be written; choose another place")


def plot_curve(record: Record, path: str | Path) -> Path:
    """Draw codelength and next-step loss against the position and save them as PNG, SVG or PDF."""
    from matplotlib.figure import Figure  # slow to import, needed only here

    path = Path(path)
    require_picture_path(path)
    if not record.prequential or not len(record.nats):
        raise PreqError(f"there is no curve to draw: {record.method['name']} coded {len(record.nats)} labels")
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    _draw_codelength(figure.add_subplot(1, 2, 1), record)
    _draw_loss(figure.add_subplot(1, 2, 2), record)
    figure.suptitle(f"{record.data['name']} · {record.model['name']} · {record.method['name']}", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def _draw_codelength(axes: Any, record: Record) -> None:
    positions = np.arange(1, len(record.nats) + 1)
    keep = np.unique(np.geomspace(1, len(positions), 2000).astype(int)) - 1
    total = np.cumsum(record.nats)
    label = f"this run: {total[-1]:,.0f} nats"
    axes.plot(positions[keep], total[keep], color=OURS, linewidth=1.8, label=label)
    uniform = math.log(record.num_classes)
    axes.plot(positions[keep], positions[keep] * uniform, color=FAINT, linestyle=":", label="uniform code")
    row = published(record.data["name"], record.model["name"], record.method["name"])
    if row is not None and row.nats is not None and len(record.nats) == row.length:
        axes.axhline(row.nats, color=PAPER, linestyle="--", linewidth=1.2, label=f"{row.label}: {row.nats:,.0f} nats")
    _finish(axes, "labels coded", "codelength [nats]")
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def _draw_loss(axes: Any, record: Record) -> None:
    edges = np.unique(np.geomspace(1, len(record.nats), 60).astype(int)) - 1
    edges = np.append(edges, len(record.nats)) if len(edges) == 1 else edges
    sums = np.add.reduceat(record.nats, edges[:-1])
    sizes = np.diff(np.append(edges[:-1], len(record.nats)))
    axes.plot(edges[:-1] + (sizes + 1) / 2, sums / sizes, color=INK, linewidth=1.4)
    _finish(axes, "position in the sequence", "next-step loss [nats per label]")


def _finish(axes: Any, x_label: str, y_label: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)
