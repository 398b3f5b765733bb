"""What can be said about a picture besides its runs."""

from dataclasses import dataclass
from pathlib import Path

from prequential.errors import PreqError, require_count, unknown_name
from prequential.runs.record import Record

SCALES = ("log", "linear")
USED_BY = {
    "reference": ("regret",),
    "axis": ("regret", "loss", "error", "curve", "calibration"),
    "window": ("regret", "loss", "error", "curve"),
    "each_seed": ("regret", "loss", "error", "curve", "calibration"),
    "heldout": ("pareto",),
}
"""The kinds of picture that each option says something about."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a picture is drawn."""

    reference: Record | str | Path | None = None
    """What `regret` subtracts: a run, the name of a line, or uniform, frequencies, previous. Off: the shortest code."""
    axis: str | None = None
    """How positions are spaced: "log" or "linear". Off: logarithmic, for the given order of a stream linear."""
    window: int | None = None
    """Labels over which a rolling loss or error rate is averaged."""
    each_seed: bool = False
    """A line for each run, where seeds of one setting would become a mean with a band."""
    heldout: bool = False
    """In `pareto`, also the held-out error."""

    def __post_init__(self) -> None:
        if self.axis is not None and self.axis not in SCALES:
            raise unknown_name("axis", self.axis, SCALES)
        if self.window is not None:
            require_count("window", self.window)

    def require_use(self, kind: str) -> None:
        """Refuse an option that would change nothing."""
        for name, kinds in USED_BY.items():
            if getattr(self, name) not in (None, False) and kind not in kinds:
                raise PreqError(f"{kind} has no use for --{name.replace('_', '-')}; leave it out")

    def scale(self, record: Record) -> str:
        """How positions are spaced in a picture of this run."""
        return self.axis or ("log" if record.seeds["order_seed"] is not None else "linear")
