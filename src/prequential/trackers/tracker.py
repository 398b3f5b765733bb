"""What all trackers share: what is logged when, what is remembered over a resume, and that they disturb no run."""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from prequential.errors import PreqWarning, in_one_line
from prequential.files import digest_of
from prequential.formats import TRACKED
from prequential.plain import parsed, read_bytes, require_shape
from prequential.runs.progress import Progress
from prequential.runs.record import OVER, Record

STATE_FILE = "tracked.json"
MOST_ENTRIES = 1000
IDENTITY = ("model", "data", "method", "recipe", "seeds", "length")
"""What tells whether a log in the same directory is one of the same run."""
FINGERPRINTS = {"model.fingerprint", "data.heldout"} | {
    f"{data}.{part}" for data in ("data", "data.heldout") for part in ("inputs", "labels", "examples")
}
"""What is no hyperparameter."""


class Backend(Protocol):
    """The contract of a tracker's own part: errors may be raised anywhere; `open` is called first, `close` last."""

    name: str
    seconds_between_entries: float

    def open(self, title: str, settings: Mapping[str, Any], identity: str | None) -> str | None:
        """Begin a log, or go on with the one of this identity; gives the identity to go on with later."""

    def log(self, position: int, figures: Mapping[str, float]) -> None:
        """Note figures at a position, so that they outlive the process."""

    def close(self, settings: Mapping[str, Any], results: Mapping[str, float], status: str) -> None:
        """Note hyperparameters and results, and end the log. There are no results where the run can go on."""


class Tracker:
    """A listener that feeds a backend."""

    def __init__(self, backend: Backend, directory: Path) -> None:
        self._backend, self._directory = backend, directory
        self._failed, self._run, self._next_seconds = False, "", 0.0
        self._settings: dict[str, Any] = {}
        self._before: tuple[int, float] = (0, 0.0)
        self._logged, self._identity = 0, None

    def begin(self, facts: Mapping[str, Any], progress: Progress) -> None:
        """Open the log, or go on with it where an earlier process left it."""
        self._settings = settings_of_run(facts)
        self._run = digest_of(json.dumps([facts.get(name) for name in IDENTITY], sort_keys=True).encode())
        self._before, self._next_seconds = (progress.position, progress.nats), 0.0
        self._logged, identity = self._remembered()
        self._identity = self._try(self._backend.open, title_of(self._directory), self._settings, identity)
        self._try(self._write_state)

    def __call__(self, progress: Progress) -> None:
        if progress.is_studying:
            self._tell_studied(progress)
        if progress.position <= self._logged:
            self._before = (progress.position, progress.nats)
            return
        step, is_last = progress.position - self._before[0], progress.position == progress.length
        is_due = step >= progress.length / MOST_ENTRIES and progress.seconds >= self._next_seconds
        if not (is_due or is_last):
            return
        self._next_seconds = progress.seconds + self._backend.seconds_between_entries
        figures = {
            "codelength_nats": progress.nats,
            "nats_per_label": (progress.nats - self._before[1]) / max(step, 1),
            "errors": progress.errors,
            "temperature": progress.temperature,
        }
        self._before, self._logged = (progress.position, progress.nats), progress.position
        self._try(self._write_state)  # first, so that a crash loses one entry rather than logging it twice
        self._try(self._backend.log, progress.position, _numbers(figures))

    def _tell_studied(self, progress: Progress) -> None:
        """How much of a study is done, at position 0."""
        if progress.seconds >= self._next_seconds:
            self._next_seconds = progress.seconds + self._backend.seconds_between_entries
            self._try(self._backend.log, 0, {"studied": progress.studied_steps / progress.study_steps})

    def end(self, record: Record) -> None:
        """Note hyperparameters and results. The log of a run that can go on is left so that it can go on too."""
        is_over = record.status in OVER
        self._try(self._backend.close, self._settings, results_of(record) if is_over else {}, record.status)
        if is_over:
            self._run = ""  # what comes into this directory next is another log
            self._try(self._write_state)

    def _try(self, action: Callable[..., Any], *arguments: object) -> Any:
        """What the action gives; None once a tracker has failed, in whatever way: the run goes on."""
        if self._failed:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what these packages say of their own packages
                return action(*arguments)
        except Exception as error:
            self._failed = True
            text = f"{self._backend.name} failed ({in_one_line(error)}); the run goes on without it"
            warnings.warn(text, PreqWarning, stacklevel=2)

    def _remembered(self) -> tuple[int, str | None]:
        """The position up to which this run was logged, and the identity of the log."""
        state = self._states().get(self._backend.name)
        return (state["position"], state["identity"]) if state and state["run"] == self._run else (0, None)

    def _states(self) -> dict[str, Any]:
        """What is remembered of each tracker."""
        with suppress(ValueError):
            require_shape(states := parsed(read_bytes(self._directory / STATE_FILE)), TRACKED)
            return dict(states)
        return {}

    def _write_state(self) -> None:
        state = {"run": self._run, "position": self._logged, "identity": self._identity}
        content = self._states() | {self._backend.name: state}
        self._directory.mkdir(parents=True, exist_ok=True)
        temporary = self._directory / f".{STATE_FILE}.tmp"
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self._directory / STATE_FILE)


def title_of(directory: Path) -> str:
    """How a run is called in a tracker; a trial with the name of its sweep.

    Example:
        >>> title_of(Path("runs/lenet")), title_of(Path("sweeps/a/trials/0003"))
        ('lenet', 'a/0003')
    """
    path = directory.resolve()
    return f"{path.parent.parent.name}/{path.name}" if path.parent.name == "trials" else path.name


def settings_of_run(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters of a run as flat values.

    Example:
        >>> settings_of_run({"method": {"name": "mi-rs", "age_law": {"name": "uniform"}}, "length": 64})
        {'method.name': 'mi-rs', 'method.age_law.name': 'uniform', 'length': 64}
    """
    parts = {part: facts[part] for part in (*IDENTITY, "num_classes") if part in facts}
    return {name: value for name, value in _flat(parts) if name not in FINGERPRINTS}


def _flat(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value if isinstance(value, bool | int | float | str) else json.dumps(value)


def results_of(record: Record) -> dict[str, float]:
    """The final figures of a run."""
    return _numbers(
        {
            "final_codelength_nats": record.codelength,
            "final_bits_per_label": record.bits_per_label,
            "final_errors": record.errors,
            "flops": None if record.flops is None else record.flops["code"],
            "seconds": record.seconds,
            **{f"heldout_{name}": value for name, value in (record.heldout or {}).items()},
        }
    )


def _numbers(figures: Mapping[str, float | None]) -> dict[str, float]:
    """Those figures that are numbers."""
    return {name: float(value) for name, value in figures.items() if value is not None and math.isfinite(value)}
