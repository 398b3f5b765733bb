"""What can be said about a picture besides its runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prequential.errors import PreqError, require_count, unknown_name
from prequential.record import Record
from prequential.report.plots.chosen import Run, Setting

SCALES = ("log", "linear")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a picture is drawn; not every kind has a use for everything."""

    reference: Record | str | Path | None = None
    """The run, or the name of a line, that `regret` subtracts. Off: the shortest code."""
    axis: str | None = None
    """How positions are spaced: "log" or "linear". Off: logarithmic, for the given order of a stream linear."""
    window: int | None = None
    """Labels over which a rolling loss is averaged."""
    each_seed: bool = False
    """A line for each run, where seeds of one setting would become a mean with a band."""
    heldout: bool = False
    """In `pareto`, also the held-out error."""

    def __post_init__(self) -> None:
        if self.axis is not None and self.axis not in SCALES:
            raise unknown_name("axis", self.axis, SCALES)
        if self.window is not None:
            require_count("window", self.window)

    def scale(self, record: Record) -> str:
        """How positions are spaced in a picture of this run."""
        return self.axis or ("log" if record.seeds["order_seed"] is not None else "linear")


def find_reference(wanted: Record | str | Path | None, settings: Sequence[Setting]) -> Setting:
    """The line that others are compared with.

    Raises:
        PreqError: if the name is none of the lines, none of the runs and no directory of one of them.
    """
    if wanted is None:
        return settings[0]
    for setting in settings:
        if any(_is(run, wanted) for run in setting.runs):
            return setting
    for setting in settings:
        if str(wanted) == setting.name or any(str(wanted) == run.name for run in setting.runs):
            return setting
    if isinstance(wanted, Record):
        raise PreqError("the reference is none of the records to draw; give it among them")
    raise unknown_name("reference", str(wanted), [setting.name for setting in settings])


def _is(run: Run, wanted: Record | str | Path) -> bool:
    if isinstance(wanted, Record):
        return run.source is wanted or (wanted.path is not None and run.outline.path == wanted.path)
    return run.outline.path is not None and run.outline.path.resolve() == Path(wanted).resolve()
