"""Draw what each method does when, from its plan: `python docs/pictures/plans.py` writes the pictures beside it.

No model and no torch: a plan is a pure function of length, settings and seed. A test draws them again and compares.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

import prequential as pq
from prequential.events import (
    Calibrate,
    EndStudy,
    Evaluate,
    Indices,
    OwnEvent,
    Predict,
    Reinit,
    ShrinkPerturb,
    Study,
    Train,
    unknown_event,
)
from prequential.methods import Method

BATCH = 4
METHODS: dict[str, tuple[Method, int]] = {
    "mi-rs": (pq.ReplayStreams(num_streams=3, batch_size=BATCH), 128),
    "mi-rs-pareto": (pq.ReplayStreams(num_streams=3, batch_size=BATCH, age_law=pq.Pareto(scale=40.0)), 128),
    "mi-rb": (pq.ReplayBuffer(num_replays=3, batch_size=BATCH, capacity=48), 128),
    "ci-fs": (pq.ChunksFromScratch(batch_size=BATCH, epochs=2, split_points=(8, 16, 32, 64)), 128),
    "ci-cf": (
        pq.ChunksFineTuned(batch_size=BATCH, epochs=2, split_points=(8, 16, 32, 64), shrink=0.5, perturb=0.1),
        128,
    ),
    "erm": (pq.FullDataset(batch_size=BATCH, epochs=3), 128),
}
"""The picture's name, the method, and how many labels it goes over."""

BREADTH, HEIGHT, LEFT, TOP, RIGHT, BELOW = 600, 200, 52, 34, 8, 30
"""In pixels: the drawing itself, and the room around it."""
COLOURS = {
    "predicted": "#0072B2",
    "coded uniformly": "#B9B9B9",
    "trained on": "#E69F00",
    "calibrated on": "#CC79A7",
    "studied": "#009E73",
}
MARKS = {"fresh weights": "none", "shrink and perturb": "4 3", "of its own": "1 3"}
"""What is drawn as a line over the whole height, and how it is dashed."""


@dataclass(frozen=True)
class Mark:
    """One event as it is drawn: in which column, what it is, and the positions it touches."""

    column: int
    kind: str
    positions: Indices


def marks(plan: pq.Plan) -> Iterator[Mark]:
    """The events of a plan, each in a column of its own."""
    nothing = np.arange(0)
    for column, event in enumerate(plan.events()):
        match event:
            case Predict(start, stop, uniform):
                yield Mark(column, "coded uniformly" if uniform else "predicted", np.arange(start, stop))
            case Train(indices):
                yield Mark(column, "trained on", indices)
            case Study(indices) | EndStudy(indices):
                yield Mark(column, "studied", indices)
            case Calibrate(indices):
                yield Mark(column, "calibrated on", indices)
            case Reinit():
                yield Mark(column, "fresh weights", nothing)
            case ShrinkPerturb():
                yield Mark(column, "shrink and perturb", nothing)
            case OwnEvent():
                yield Mark(column, "of its own", nothing)
            case Evaluate():
                pass
            case _:
                raise unknown_event(event, f"event {column}")


def spans(positions: Indices) -> list[tuple[int, int]]:
    """Positions as half-open spans of neighbours.

    Example:
        >>> spans(np.array([7, 3, 4, 5]))
        [(3, 6), (7, 8)]
    """
    unique = np.unique(positions)
    if not len(unique):
        return []
    parts = np.split(unique, np.flatnonzero(np.diff(unique) > 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]


def draw(method: Method, length: int) -> str:
    """The picture: events from left to right, positions of the sequence from bottom to top."""
    drawn = list(marks(pq.Plan(method, length)))
    num_columns = drawn[-1].column + 1
    across, up = BREADTH / num_columns, HEIGHT / length
    found = {mark.kind for mark in drawn}
    paths = {kind: "" for kind in (*COLOURS, *MARKS) if kind in found}
    for mark in drawn:
        x = LEFT + mark.column * across
        if mark.kind in MARKS:
            paths[mark.kind] += f"M{x + across / 2:.1f} {TOP}v{HEIGHT}"
        for start, stop in spans(mark.positions):
            y = TOP + HEIGHT - stop * up
            paths[mark.kind] += f"M{x:.1f} {y:.1f}h{across:.1f}v{(stop - start) * up:.1f}h-{across:.1f}z"
    total = (LEFT + BREADTH + RIGHT, TOP + HEIGHT + BELOW)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]} {total[1]}" width="{total[0]}" '
        f'height="{total[1]}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(f'{method.title}: what is predicted and trained when')}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        *(f'<path d="{path}" {style(kind)}/>' for kind, path in paths.items()),
        *legend(list(paths)),
        *axes(length, num_columns),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def style(kind: str) -> str:
    """How an event is filled or stroked."""
    if kind in MARKS:
        return f'stroke="#222" stroke-dasharray="{MARKS[kind]}"'
    return f'fill="{COLOURS[kind]}"'


def legend(kinds: list[str]) -> Iterator[str]:
    """One sample and one name for each kind of event in the picture."""
    x = LEFT
    for kind in kinds:
        shape = f'd="M{x + 5} 10v14"' if kind in MARKS else f'd="M{x} 12h10v10h-10z"'
        yield f'<path {shape} {style(kind)}/><text x="{x + 15}" y="21">{kind}</text>'
        x += 36 + 7 * len(kind)


def axes(length: int, num_columns: int) -> Iterator[str]:
    """Two lines and what they measure."""
    bottom = TOP + HEIGHT
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{LEFT + BREADTH}" fill="none" stroke="#222"/>'
    for position in (0, length // 2, length):
        y = bottom - position * HEIGHT / length
        yield f'<path d="M{LEFT - 4} {y:g}h4" stroke="#222"/>'
        yield f'<text x="{LEFT - 7}" y="{y + 4:g}" text-anchor="end">{position}</text>'
    middle = TOP + HEIGHT / 2
    yield f'<text transform="translate(14 {middle:g}) rotate(-90)" text-anchor="middle">position</text>'
    words = f"events, in order: {num_columns:,}"
    yield f'<text x="{LEFT + BREADTH / 2:g}" y="{bottom + 20}" text-anchor="middle">{words}</text>'


def main() -> None:
    for name, (method, length) in METHODS.items():
        path = Path(__file__).with_name(f"{name}.svg")
        path.write_text(draw(method, length), encoding="utf-8")
        print(f"{path.stat().st_size:>8,} bytes  {path.name}")


if __name__ == "__main__":
    main()
