"""What notebooks ask of results: a table in HTML, pandas, Arrow. No torch."""

import html
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.terminal import printable

MOST_EXPERTS = 24
"""That a notebook lists."""
CELL = "padding:2px 10px;text-align:{side};white-space:nowrap"


def html_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, below: Sequence[str] = (), faint: int = 0
) -> str:
    """A table in HTML; texts are escaped, the first column is a name and the others are numbers.

    Args:
        below: lines of text under the table.
        faint: the last rows that stand back.

    Example:
        >>> html_table("a < b", [], [["nats", "431.0"]]).count("&lt;")
        1
    """

    def safe(text: str) -> str:
        return html.escape(printable(text))

    def line(tag: str, cells: Sequence[str], style: str = "") -> str:
        styles = [CELL.format(side="right" if column else "left") + style for column in range(len(cells))]
        row = (f'<{tag} style="{s}">{safe(cell)}</{tag}>' for s, cell in zip(styles, cells, strict=True))
        return f"<tr>{''.join(row)}</tr>"

    shown = [line("td", row, ";opacity:0.6" * (number >= len(rows) - faint)) for number, row in enumerate(rows)]
    head = f"<thead>{line('th', heads)}</thead>" if heads else ""
    caption = f'<caption style="text-align:left;font-weight:bold">{safe(title)}</caption>'
    notes = "".join(f"<div>{safe(text)}</div>" for text in below)
    return f'<table style="border-collapse:collapse">{caption}{head}<tbody>{"".join(shown)}</tbody></table>{notes}'


def record_html(summary: Mapping[str, Any]) -> str:
    """A run as a notebook shows it, from its summary."""

    def told(value: float | None, form: str, unknown: str = "–") -> str:
        return unknown if value is None else format(value, form)

    status, heldout = summary.get("status", "finished"), summary["heldout"] or {}
    lost = "∞" if status == "diverged" else "–"
    labels = f"{summary['length']:,}"
    rows = [
        ("codelength, nats", told(summary["codelength_nats"], ",.1f", lost)),
        ("bits per label", told(summary["bits_per_label"], ".4f", lost)),
        ("errors", told(summary["errors"], ",d")),
        ("labels", f"{summary['positions']:,} of {labels}" if "positions" in summary else labels),
        ("held-out loss, nats", told(heldout.get("loss"), ".4f")),
        ("held-out error", told(heldout.get("error_rate"), ".2%")),
        ("FLOPs", told(summary["flops"], ".3g")),
        ("seconds", f"{summary['seconds']:,.1f}"),
        ("seed", str(summary["seed"])),
        ("status", status),
        *(
            (f"{each['name']} alone, nats", told(each["nats"], ",.1f"))
            for each in summary.get("experts", ())[:MOST_EXPERTS]
        ),
    ]
    title = f"{summary['data']} · {summary['model']} · {summary['method']}"
    return html_table(title, [], rows, below=[f"record: {summary['record']}"] if summary["record"] else [])


def spread(values: NDArray[Any], starts: NDArray[np.int64], length: int) -> NDArray[Any]:
    """Values that hold from a position up to the next one's, one for each position; nan before the first.

    Example:
        >>> spread(np.array([1.0, 2.0], np.float32), np.array([1, 3]), 4)
        array([nan,  1.,  1.,  2.], dtype=float32)
    """
    ends = np.append(starts, length)
    first = np.full(ends[0], np.nan, values.dtype)
    return np.concatenate([first, np.repeat(values, np.diff(ends))])


def to_pandas(columns: Mapping[str, Any]) -> Any:
    """The columns as a pandas.DataFrame."""
    return _needed("pandas").DataFrame(dict(columns))


def to_arrow(columns: Mapping[str, Any]) -> Any:
    """The columns as a pyarrow.Table; arrays are not copied."""
    return _needed("pyarrow").table(dict(columns))


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise PreqError(f"this needs {package}, which is not installed; pip install {package}") from None
