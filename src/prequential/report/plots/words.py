"""What is written around the lines."""

import textwrap
from collections.abc import Sequence
from typing import Any

from prequential.conditioning import difference
from prequential.report.axes import literal
from prequential.report.colours import GREY
from prequential.report.plots.chosen import Setting
from prequential.runs.record import Record

MOST_NAMES = 3
CHARACTERS_PER_INCH = 17
"""Of a note, with some room."""


def title_of(records: Sequence[Record]) -> str:
    """Data and length, then model and method where all of them share it."""
    first = records[0]
    parts = [f"{first.data['name']}", f"{first.length:,} label{'s' * (first.length != 1)}"]
    models = dict.fromkeys(record.model["name"] for record in records)
    titles = list(dict.fromkeys(record.title for record in records))
    parts += [", ".join(models)] if len(models) == 1 else []
    parts += [", ".join(titles)] if len(titles) <= MOST_NAMES else []
    return literal(" · ".join(parts))


def band_note(settings: Sequence[Setting]) -> str:
    """What lines and bands are, where a line stands for several seeds.

    Example:
        >>> band_note([])
        ''
    """
    numbers = sorted({len(setting.runs) for setting in settings})
    if not numbers or numbers[-1] == 1:
        return ""
    seeds = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f"Lines: mean of {seeds} seeds; bands: ± one standard error of it."


def inputs_note(settings: Sequence[Setting]) -> str:
    """What codes were told, where that differs."""
    told = difference((setting.name, setting.outline.conditioned_on) for setting in settings)
    return literal(f"{told[:1].upper()}{told[1:]}")


def signed(value: float) -> str:
    """A difference in nats.

    Example:
        >>> signed(-1204.4), signed(3.21), signed(0.0)
        ('−1,204', '+3.2', '0')
    """
    text = f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.1f}"
    return "0" if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def note(figure: Any, *sentences: str) -> None:
    """What a reader must know, small, under the picture."""
    text = " ".join(sentence if sentence.endswith(".") else f"{sentence}." for sentence in sentences if sentence)
    if text:
        lines = textwrap.fill(text, int(figure.get_figwidth() * CHARACTERS_PER_INCH))
        figure.supxlabel(lines, fontsize=7, color=GREY, x=0.01, ha="left")
