"""Pictures as files: where they may go, how they look, and the same bytes each time."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prequential.errors import PreqError, PreqWarning
from prequential.files import writing
from prequential.report.colours import INK

FORMATS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
UNDATED: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""What matplotlib would write into a file that is not the picture."""
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "prequential",
    "pdf.fonttype": 42,
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "figure.constrained_layout.wspace": 0.05,
}


def require_picture_path(path: Path) -> None:
    """Refuse a file that no picture can be written to."""
    if path.suffix.lower() not in FORMATS:
        raise PreqError(f"a picture is {', '.join(FORMATS)}, got '{path.name}'; end the name in one of them")
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
            figure.savefig(path, dpi=DOTS_PER_INCH, metadata=UNDATED[path.suffix.lower()])
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
