"""TensorBoard, Weights & Biases and MLflow as listeners of a run. Each is an extra; none is imported before it is asked
for."""

from collections.abc import Sequence
from pathlib import Path

from prequential.errors import PreqError, in_one_line, require_known
from prequential.trackers.backends import BACKENDS
from prequential.trackers.tracker import Tracker

__all__ = ["require_trackers", "track", "tracker_names"]


def track(name: str, directory: str | Path) -> Tracker:
    """A listener that tells a tracker how a run goes: `run(..., listeners=[track("tensorboard", "runs/mine")])`.

    Logged against the position: codelength, nats per label since the last entry, errors and temperature, at most a
    thousand times in all and (but for TensorBoard) once a second; at the end hyperparameters and results. A tracker
    that fails on the way is told of in one warning, and the run goes on without it. A run that is resumed goes on in
    the tracker where the log ends: positions that were logged before are not logged again.

    Args:
        name: "tensorboard", "wandb" or "mlflow".
        directory: the run's. TensorBoard's events go into its folder `tensorboard`, local files of Weights & Biases
            into `wandb`; MLflow writes where MLFLOW_TRACKING_URI says. `tracked.json` remembers what was logged.

    Raises:
        PreqError: for an unknown name, or if its package is not installed.
    """
    tracker_names([name])
    try:
        return Tracker(BACKENDS[name](Path(directory)), Path(directory))
    except (ImportError, AttributeError) as error:
        raise PreqError(
            f"tracking with {name} needs a package that is not installed ({in_one_line(error)}); "
            f"pip install 'prequential[{name}]', or leave it out"
        ) from None


def tracker_names(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """The trackers that a flag names, each once, all of them known.

    Example:
        >>> tracker_names("tensorboard,mlflow")
        ('tensorboard', 'mlflow')
    """
    parts = [] if text is None else text.split(",") if isinstance(text, str) else list(text)
    names = tuple(dict.fromkeys(part.strip() for part in parts))
    for name in names:
        require_known("tracker", name, BACKENDS)
    return names


def require_trackers(names: Sequence[str], directory: str | Path) -> tuple[str, ...]:
    """The names, once it is sure that each can be made."""
    known = tracker_names(names)
    for name in known:
        track(name, directory)
    return known
