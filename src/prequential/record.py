"""What a run leaves behind: numbers per position, and everything needed to know what they mean.

On disk a record is a directory of open formats: `record.json` and one .npy file per array. No torch.
"""

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

FORMAT = 1
RECORD_FILE = "record.json"
ARRAYS = ("nats", "uncalibrated_nats", "labels", "predicted", "confidence", "temperature_positions", "temperatures")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Record:
    """The result of a run.

    Arrays have one entry per position: 8 + 4 + 4 bytes of floats and two whole numbers as small as
    the number of classes allows, so that tens of millions of positions stay practical.
    """

    nats: NDArray[np.float64]
    """−ln p of each label: what is charged."""
    uncalibrated_nats: NDArray[np.float32]
    """The same at temperature 1."""
    labels: NDArray[np.integer]
    """The labels, in sequence order."""
    predicted: NDArray[np.integer]
    """The most probable class."""
    confidence: NDArray[np.float32]
    """Its probability."""
    temperature_positions: NDArray[np.int64]
    """Where each prediction began …"""
    temperatures: NDArray[np.float32]
    """… and the factor on the logits there, softplus(β)."""

    method: dict[str, Any]
    recipe: dict[str, Any]
    model: dict[str, Any]
    data: dict[str, Any]
    seeds: dict[str, int | None]
    """`seed`, `order_seed` (None: the given order) and `plan_seed`."""
    length: int
    """Labels in the sequence; `nats` is shorter where the run stopped early."""
    num_classes: int
    prequential: bool
    status: str
    """"finished", "stopped" (interrupted) or "diverged" (no finite codelength)."""
    heldout: dict[str, float] | None
    flops: dict[str, float] | None
    """`code`, and apart from it `heldout`: closing stage and evaluation."""
    seconds: float
    environment: dict[str, Any]
    conditioned_on: str = "inputs up to the label"
    """What a prediction may look at besides earlier labels."""
    path: Path | None = field(default=None, compare=False)

    @property
    def codelength(self) -> float | None:
        """Σ −ln p(label) in nats. None where the method has no code, infinity where it diverged."""
        return float(self.nats.sum()) if self.prequential else None

    @property
    def codelength_bits(self) -> float | None:
        """The codelength in bits."""
        return None if self.codelength is None else self.codelength / math.log(2)

    @property
    def bits_per_label(self) -> float | None:
        """The mean codelength of one label in bits."""
        return None if self.codelength_bits is None else self.codelength_bits / max(len(self.nats), 1)

    @property
    def errors(self) -> int | None:
        """Labels that were not the most probable class when they were predicted."""
        return int((self.labels != self.predicted).sum()) if self.prequential else None

    def __repr__(self) -> str:
        length = "no codelength" if self.codelength is None else f"{self.codelength:,.1f} nats"
        run = f"{self.model['name']} on {self.data['name']} by {self.method['name']}"
        return f"<Record: {run}, {length}, {len(self.nats):,} of {self.length:,} labels, {self.status}>"

    def summary(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "codelength_nats": _finite(self.codelength),
            "codelength_bits": _finite(self.codelength_bits),
            "bits_per_label": _finite(self.bits_per_label),
            "errors": self.errors,
            "length": self.length,
            "num_classes": self.num_classes,
            "flops": None if self.flops is None else self.flops["code"],
            "heldout": None if self.heldout is None else {k: _finite(v) for k, v in self.heldout.items()},
            "seconds": self.seconds,
            "method": self.method["name"],
            "model": self.model["name"],
            "data": self.data["name"],
            "seed": self.seeds["seed"],
            "record": None if self.path is None else str(self.path),
        } | ({} if self.status == "finished" else {"status": self.status, "positions": len(self.nats)})

    def save(self, directory: str | Path) -> "Record":
        """Write the record into a directory that holds no run yet; gives the record with its path."""
        path = Path(directory)
        require_no_run(path)
        path.mkdir(parents=True, exist_ok=True)
        for name in ARRAYS:
            np.save(path / f"{name}.npy", getattr(self, name), allow_pickle=False)
        facts = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*ARRAYS, "path")}
        content = json.dumps({"format": FORMAT, **facts}, indent=1, ensure_ascii=False) + "\n"
        temporary = path / f".{RECORD_FILE}.tmp"
        temporary.write_text(content, encoding="utf-8")
        temporary.replace(path / RECORD_FILE)
        return Record(**{f.name: getattr(self, f.name) for f in fields(self)} | {"path": path})


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def require_no_run(path: Path) -> None:
    """Refuse a directory that already holds a run, or anything else in the way."""
    if (path / RECORD_FILE).exists():
        raise PreqError(f"{path} already holds a run; choose another directory or remove it")
    if path.exists() and not path.is_dir():
        raise PreqError(f"{path} is a file; name a directory for the run")
    if path.is_dir() and any(path.iterdir()):
        raise PreqError(f"{path} is not empty; choose another directory for the run")


def claim(path: Path) -> Path:
    """Make the directory for a run now, so that an unwritable place is noticed before the work."""
    require_no_run(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".writable").touch()
        (path / ".writable").unlink()
    except OSError as error:
        raise PreqError(f"cannot write into {path}: {error.strerror}; choose another directory") from None
    return path


def load(directory: str | Path) -> Record:
    """Read a record back.

    Raises:
        PreqError: naming the file that is missing or broken.
    """
    path = Path(directory)
    try:
        facts = json.loads((path / RECORD_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise PreqError(f"{path} holds no run: {RECORD_FILE} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise PreqError(f"{path / RECORD_FILE} is damaged: {error}") from None
    if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
        raise PreqError(f"{path / RECORD_FILE} is not a record of format {FORMAT}; was it made by another version?")
    arrays: dict[str, Any] = {name: _read_array(path / f"{name}.npy") for name in ARRAYS}
    wanted = {f.name for f in fields(Record)} - {*ARRAYS, "path"}
    if set(facts) != wanted:
        odd = ", ".join(sorted(set(facts) ^ wanted))
        raise PreqError(f"{path / RECORD_FILE} is damaged: missing or unexpected {odd}")
    lengths = {name: len(arrays[name]) for name in ARRAYS[:5]}
    if len(set(lengths.values())) != 1:
        raise PreqError(f"{path} is damaged: its arrays differ in length ({lengths})")
    return Record(**facts, **arrays, path=path)


def _read_array(path: Path) -> NDArray[Any]:
    try:
        values = np.load(path, allow_pickle=False)
    except OSError as error:
        raise PreqError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise PreqError(f"{path} is damaged: {error}") from None
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise PreqError(f"{path} is damaged: it is not a one-dimensional array")
    return values


def settings_of(settings: object) -> dict[str, Any]:
    """The settings of a method or recipe as plain values, with its name where it has one.

    Example:
        >>> from prequential.methods import Pareto, ReplayStreams
        >>> settings_of(ReplayStreams(age_law=Pareto(180.0)))["age_law"]
        {'name': 'pareto', 'scale': 180.0}
    """
    name = getattr(settings, "name", None)
    plain = {key: _plain(value) for key, value in vars(settings).items()}
    return {"name": name, **plain} if isinstance(name, str) else plain


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {"name": type(value).__name__.lower(), **{k: _plain(v) for k, v in vars(value).items()}}
