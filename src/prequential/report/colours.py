"""Colours and dashes that stay apart in print, on a bad projector and for the colour-blind."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's, without their yellow, which cannot be read on white paper."""

DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    "solid",
    (0, (5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1.2, 1, 1.2, 1, 1.2)),
    (0, (9, 2.5)),
    (0, (2.5, 1)),
)
"""A line style for each colour, so that nothing is told by colour alone; as matplotlib writes them, in line widths."""

MARKS = "os^Dv<>"
"""A mark for each colour, for the same reason."""

INK, GREY, FAINT = "#222222", "#666666", "#999999"
"""What is written, what is said by the way, and what stays in the background."""

METHOD_STYLES = (
    ("#0072b2", "o"), ("#56b4e9", "s"), ("#d55e00", "^"), ("#e69f00", "D"), ("#009e73", "v"),
    ("#cc79a7", "P"), ("#000000", "X"), ("#7f7f00", "<"), ("#8c564b", ">"),
)  # fmt: skip
"""A colour and a mark for each method, in the order in which methods are listed; told apart without colours too."""
