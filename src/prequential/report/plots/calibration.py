"""`calibration`: the temperature along the sequence, what it saved, and a reliability diagram."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prequential.report.axes import finish, literal, position_axis
from prequential.report.colours import FAINT
from prequential.report.picture import picture
from prequential.report.plots.chosen import Setting
from prequential.report.plots.draw import draw_lines, num_told_apart, style
from prequential.report.plots.lines import Line, places_of, standard_error
from prequential.report.plots.loss import POSITION
from prequential.report.plots.options import Options
from prequential.report.plots.reliability import NUM_BINS, Reliability, nats_saved, reliability
from prequential.report.plots.thinning import kept
from prequential.report.plots.words import band_note, note, signed, title_of

FEW = 20
"""Predictions below which a bin says little: its mark is hollow."""
MARKS = "os^Dv<>"


def plot_calibration(settings: Sequence[Setting], path: Path, options: Options) -> None:
    """Left temperature and nats saved against the position; right accuracy against confidence, with the counts."""
    scale = options.scale(settings[0].outline)
    shown = settings[: num_told_apart(len(settings))]
    saved = [_saved_line(setting, scale) for setting in settings]
    found = [reliability(setting.records()) for setting in shown]
    length = max(len(setting.outline.nats) for setting in settings)
    with picture(path, 9.6, 4.6) as figure:
        (hot, diagram), (gain, bars) = figure.subplots(2, 2, height_ratios=[2, 1], sharex="col")
        draw_lines(hot, [temperature_line(setting) for setting in settings], steps=True)
        draw_lines(gain, saved)
        for axes, quantity in [(hot, "factor on the logits\n(1 / temperature)"), (gain, "saved so far\n[nats]")]:
            axes.axhline(1 if axes is hot else 0, color=FAINT, linewidth=0.8, zorder=1)
            position_axis(axes, length, scale)
            axes.set_ylim(*_at_least(axes.get_ylim(), 0.02 if axes is hot else 1.0))
            finish(axes, x=POSITION if axes is gain else "", y=quantity, scale=scale)
        _draw_reliability(diagram, bars, found, len(settings))
        names = [_text(*each) for each in zip(shown, found, saved[: len(shown)], strict=True)]
        _name(figure, names, len(settings))
        figure.suptitle(title_of([setting.outline for setting in settings]), fontsize=10)
        hollow = f"Hollow marks: fewer than {FEW} predictions" if _any_few(found) else ""
        seeds = band_note(settings)
        pooled = "Reliability is that of all their predictions together" if seeds else ""
        note(figure, f"ECE: expected calibration error, {NUM_BINS} bins.", hollow, seeds, pooled)


def temperature_line(setting: Setting) -> Line:
    """The factor on the logits from each prediction on; the last one lasts to the end."""
    each = np.stack([record.temperatures.astype(np.float64) for record in setting.records()])
    positions = next(setting.records()).temperature_positions
    points = kept(each.mean(axis=0))
    x = np.append(places_of(positions[points]), len(setting.outline.nats))
    each = each[:, np.append(points, points[-1])]
    return Line(setting.name, x, each.mean(axis=0), standard_error(each) if len(each) > 1 else None)


def _saved_line(setting: Setting, scale: str) -> Line:
    mean = np.zeros(len(setting.outline.nats))
    for record in setting.records():
        mean += nats_saved(record) / len(setting.runs)
    points = kept(mean, scale)
    each = [nats_saved(record)[points] for record in setting.records()] if len(setting.runs) > 1 else []
    return Line(setting.name, places_of(points), mean[points], standard_error(np.stack(each)) if each else None)


def _at_least(limits: tuple[float, float], size: float) -> tuple[float, float]:
    """The same limits, wide enough that rounding is not blown up into a curve.

    Example:
        >>> _at_least((1.0, 1.0), 0.5), _at_least((0.0, 2.0), 0.5)
        ((0.75, 1.25), (0.0, 2.0))
    """
    more = max(size - (limits[1] - limits[0]), 0) / 2
    return limits[0] - more, limits[1] + more


def _text(setting: Setting, found: Reliability, saved: Line) -> str:
    gain = signed(abs(saved.end)).lstrip("+")
    what = "lost" if saved.end < 0 and gain != "0" else "saved"
    return f"{literal(setting.name)}\nECE {100 * found.error:.1f} %, {gain} nats {what}"


def _any_few(found: Sequence[Reliability]) -> bool:
    return any(((each.counts > 0) & (each.counts < FEW)).any() for each in found)


def _draw_reliability(axes: Any, bars: Any, found: Sequence[Reliability], number: int) -> None:
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=1)
    edges = np.linspace(0, 1, NUM_BINS + 1)
    for rank, each in enumerate(found):
        look = style(rank, number)
        filled = each.counts > 0
        many = each.counts >= FEW
        axes.plot(each.confidence[many], each.accuracy[many], **look | {"linewidth": 1.1})
        for few, marked in [(False, many), (True, filled & ~many)]:
            if not marked.any():  # an unclipped line of no points would upset the layout
                continue
            axes.plot(
                each.confidence[marked], each.accuracy[marked], linestyle="none", marker=MARKS[rank], markersize=4.5,
                color=look["color"], markerfacecolor="white" if few else look["color"], zorder=4, clip_on=False,
            )  # fmt: skip
        bars.stairs(np.where(filled, each.counts, np.nan), edges, **look | {"linewidth": 1.1}, baseline=None)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    finish(axes, x="", y="accuracy\n(share that was right)", scale="linear")
    bars.set_yscale("log")
    bars.set_ylim(0.8, None)
    finish(bars, x="confidence (probability of the predicted class)", y="predictions", scale="linear", y_scale="log")


def _name(figure: Any, names: Sequence[str], number: int) -> None:
    from matplotlib.lines import Line2D

    looks = [style(rank, number) | {"alpha": 1} for rank in range(len(names))]
    marks: list[Any] = list(MARKS[: len(names)])
    texts = list(names)
    if number > len(names):
        looks.append(style(len(names), number) | {"alpha": 1})
        marks.append(None)
        texts.append(f"{number - len(names):,} others")
    lines = [Line2D([], [], **look, marker=mark, markersize=4.5) for look, mark in zip(looks, marks, strict=True)]
    figure.legend(
        lines, texts, loc="outside right upper", frameon=False, fontsize=8, handlelength=2.6, labelspacing=0.9
    )
