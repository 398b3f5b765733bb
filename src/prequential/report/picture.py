"""What all pictures share: colours, axes with plain numbers, and files with the same bytes each time."""

import os
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError, PreqWarning
from prequential.files import writing
from prequential.terminal import printable

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's, without their yellow, which cannot be read on white paper."""

DASHES = ((), (5, 1.6), (1.2, 1.2), (6, 1.5, 1.2, 1.5), (3, 1.2, 1, 1.2, 1, 1.2), (9, 2.5), (2.5, 1))
"""A line style for each colour, so that nothing is told by colour alone: what is drawn and what not, in line widths."""

MARKS = "os^Dv<>"
"""A mark for each colour, for the same reason."""

INK, GREY, FAINT = "#222222", "#666666", "#999999"
"""What is written, what is said by the way, and what stays in the background."""

POSITION = "position in the sequence [labels]"
DOTS_PER_INCH = 150
LONGEST_ROW = 56
"""Letters of a name in one row beside a picture."""
UNDATED = {".png": "Software", ".svg": "Date", ".pdf": "CreationDate"}
"""The formats, and what matplotlib would write into a file that is not the picture."""
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "prequential",
    "pdf.fonttype": 42,
    **dict.fromkeys(("font.size", "axes.labelsize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 8),
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "text.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "figure.constrained_layout.wspace": 0.05,
}


def require_picture_path(path: Path) -> None:
    """Refuse a file that no picture can be written to."""
    if path.suffix.lower() not in UNDATED:
        raise PreqError(f"a picture is {', '.join(UNDATED)}, got '{path.name}'; end the name in one of them")
    require_place("picture", path)


def require_place(what: str, path: Path) -> None:
    """Refuse a place where no file can be written, before the work."""
    above = next(parent for parent in path.absolute().parents if parent.exists())
    is_closed = path.exists() and not os.access(path, os.W_OK)
    if not above.is_dir() or not os.access(above, os.W_OK) or path.is_dir() or is_closed:
        raise PreqError(f"the {what} {path} cannot be written; choose another place")


@contextmanager
def picture(path: Path, width: float, height: float) -> Iterator[Any]:
    """A figure of so many inches to draw on; it is written when the block ends.

    The user's own style is set aside, so that the same records give the same bytes everywhere.
    """
    import matplotlib as mpl  # slow to import, needed only here
    from matplotlib.figure import Figure

    require_picture_path(path)
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ")  # one for each letter, each time it is measured
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=DOTS_PER_INCH, metadata={UNDATED[path.suffix.lower()]: None})
        unknown = _letters_without_form(figure)
    if unknown:
        warnings.warn(f"the font of pictures lacks {unknown}; boxes stand for them", PreqWarning, stacklevel=5)


def _letters_without_form(figure: Any) -> str:
    """The letters in a figure that its font cannot draw."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.text import Text

    known = get_font(findfont("DejaVu Sans")).get_charmap()
    used = {letter for text in figure.findobj(Text) for letter in text.get_text() if not letter.isspace()}
    return "".join(sorted(letter for letter in used if ord(letter) not in known))


def plain_number(value: float) -> str:
    """A number as people write it, short enough for an axis.

    Example:
        >>> [plain_number(value) for value in (60000, 2.5, -0.001, 0, 10_000_000, 5e-7)]
        ['60,000', '2.5', '−0.001', '0', '10,000,000', '5e−07']
    """
    return f"{value:,.10g}".replace("-", "−")


def literal(text: str) -> str:
    """Text that matplotlib draws as it is: a name with dollar signs is no formula, one of two lines stays on one.

    Example:
        >>> print(literal("cost_$5_$6"))
        cost_\\$5_\\$6
    """
    return printable(text).replace("$", r"\$")


def in_rows(text: str) -> str:
    """Text that is drawn as it is, in rows beside which the picture has room; of what is longer than two of them the
    ends stay, which tell names apart.

    Example:
        >>> in_rows("a short name"), [len(row) for row in in_rows("n" * 200 + "1").split("\\n")]
        ('a short name', [56, 56])
    """
    rows: list[str] = []
    for row in text.replace(r"\$", "\0").split("\n"):  # an escape is one letter
        is_short = len(row) <= 2 * LONGEST_ROW
        kept = row if is_short else f"{row[: LONGEST_ROW - 1]}… {row[-LONGEST_ROW:].lstrip()}"
        rows += textwrap.wrap(kept, LONGEST_ROW) if len(kept) > LONGEST_ROW else [kept]
    return "\n".join(rows).replace("\0", r"\$")


def number_axis(axis: Any, scale: str, *, most: int = 5, text: Callable[[float], str] = plain_number) -> None:
    """Ticks at round places, not as powers of ten; on a logarithmic axis of less than two decades also between."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    if scale == "log":
        short = low > 0 and high / low < 100
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=12))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def finish(axes: Any, *, y: str, x: str = POSITION, scale: str, y_scale: str = "linear", most: int = 5) -> None:
    """Names, scales, ticks and grid of axes whose lines and limits are there."""
    axes.set(xlabel=x, ylabel=y, xscale=scale, yscale=y_scale)
    number_axis(axes.xaxis, scale, most=most)
    number_axis(axes.yaxis, y_scale)
    axes.grid(color=FAINT, alpha=0.3, linewidth=0.5, which="major")


def mark(axes: Any, text: str, at: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """A small text beside a place, so many points away from it."""
    axes.annotate(text, at, offset, textcoords="offset points", **{"fontsize": 7, "color": GREY} | look)


def spread(places: Sequence[float], gap: float, top: float) -> NDArray[np.float64]:
    """The nearest places, in the same order, that are at least `gap` apart and inside [0, top] if there is room.

    Nearest: the one that moves furthest moves as little as it can.

    Example:
        >>> spread([10.0, 50.0, 51.0], 4.0, 100.0).tolist()
        [10.0, 48.5, 52.5]
    """
    order = np.argsort(places, kind="stable")
    gaps = np.arange(len(order)) * gap
    level = np.asarray(places)[order] - gaps  # without the gaps they only must not go down: isotonic regression
    level = (np.maximum.accumulate(level) + np.minimum.accumulate(level[::-1])[::-1]) / 2
    found = np.empty(len(order))
    found[order] = np.clip(level, 0, max(top - gaps[-1], 0)) + gaps
    return found
