"""`preq plot KIND RUN… -o FILE`: pictures of runs."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from prequential.cli.parse import PathText, Runs, SameInputs
from prequential.errors import PreqError, require_known
from prequential.report.plots import KINDS, plot
from prequential.report.plots.draw import USED_BY
from prequential.settings import setting
from prequential.terminal import tell


@dataclass(frozen=True, kw_only=True)
class PlotFlags:
    """Draw runs into a PNG, SVG or PDF file; needs the saved runs alone.

    - regret: codelength relative to a reference along the sequence, next-step loss beside it
    - loss: next-step loss along the sequence, smoothed
    - error: next-step error rate along the sequence, smoothed
    - curve: codelength along the sequence, next-step loss beside it
    - calibration: temperature along the sequence, nats it saved, reliability diagram
    - weights: of a mixed run, how much each expert is trusted along the sequence
    - replay: what was replayed when and at which age, from the plan alone
    - pareto: codelength against FLOPs

    `preq plot regret runs/lenet runs/mlp2 -o regret.png`
    """

    kind: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="KIND", help_behavior_hint="(required)")] = ""
    """regret, loss, error, curve, calibration, weights, replay or pareto."""
    runs: Runs
    """Runs or folders of runs; runs that differ only in the seed become one line with a band."""
    output: Annotated[PathText, tyro.conf.arg(aliases=("-o",), help_behavior_hint="(required)")] = None
    """The picture; its name ends in .png, .svg or .pdf."""
    reference: Annotated[PathText, tyro.conf.arg(help_behavior_hint="(default: the shortest code)")] = None
    """For regret: the run to compare with, the name of a line, or uniform, frequencies, previous."""
    axis: str | None = setting(None, hint="log; for a stream in its order linear")
    """How positions are spaced: log or linear."""
    window: int | None = setting(None, hint="grows with the position, or length / 50")
    """Labels over which loss or error rate is averaged."""
    each_seed: bool = False
    """A line for each run, no means over seeds."""
    heldout: bool = False
    """For pareto: also the held-out error."""
    prefix: bool = False
    """Draw only the labels that every run has coded, unfinished runs too."""
    same_inputs: SameInputs = False

    def __post_init__(self) -> None:
        if not self.kind:
            raise PreqError(f"preq plot needs a kind of picture: {', '.join(KINDS)}; see preq plot --help")
        require_known("kind of picture", self.kind, KINDS)
        if self.output is None and self.runs:
            raise PreqError(f"preq plot needs a file for the picture; add -o {self.kind}.png (or .svg, .pdf)")


def main_plot(flags: PlotFlags) -> None:
    """Draw, say where."""
    path = plot(flags.kind, flags.runs, flags.output or "", **{name: getattr(flags, name) for name in USED_BY})
    tell(f"picture: {path}")
