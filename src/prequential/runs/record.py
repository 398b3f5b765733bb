"""What a run leaves behind: numbers per position, and everything needed to know what they mean. On disk a directory of
open formats: `record.json` and one .npy file per array, each with its fingerprint in `record.json`. No torch."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.files import bytes_of, digest_of, read_array, require_platform, write_array, write_atomically
from prequential.formats import RECORD
from prequential.methods import METHODS
from prequential.mixers.kept import EXPERT_ARRAYS, EXPERT_NATS, WEIGHTS, OfExperts, columns_of, expert_names, num_kept
from prequential.names_of_before import FORMATS, in_names_of_now, require_format
from prequential.notebook import record_html, spread, to_arrow, to_pandas
from prequential.plain import ForeignError, MisfitError, read_bytes, require_shape, sealed, unsealed
from prequential.runs.costs import LabelCosts
from prequential.runs.facts import Facts, require_classes
from prequential.runs.studied import OfStudy
from prequential.terminal import printable

FORMAT = FORMATS[-1]
RECORD_FILE = "record.json"
PER_POSITION = ("nats", "uncalibrated_nats", "labels", "predicted", "confidence")
PER_PREDICTION = ("temperature_positions", "temperatures")
ARRAYS = (*PER_POSITION, *PER_PREDICTION)
KINDS = dict.fromkeys(("nats", "uncalibrated_nats", "confidence", "temperatures", EXPERT_NATS, WEIGHTS[1]), "f")
"""The arrays that hold no whole numbers."""
OVER = ("finished", "diverged", "pruned")
"""The statuses of a run that does not go on."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Record(Facts, LabelCosts, OfExperts, OfStudy):
    """The result of a run.

    Arrays have one entry per position: 8 + 4 + 4 bytes of floats and two whole numbers as small as the number of
    classes allows, so that tens of millions of positions stay practical.
    """

    nats: NDArray[np.float64]
    """−ln p of each label: what is charged. Shorter than `length` where the run stopped early."""
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

    status: str
    """"finished", "diverged" (no finite codelength), "pruned" (ended early by a listener), "stopped" (interrupted),
    "failed" or "running"."""
    heldout: dict[str, float] | None
    flops: dict[str, float] | None
    """`code` (a part: `study`), and apart from it `heldout`: closing stage, evaluation. None: torch cannot count."""
    seconds: float
    path: Path | None = field(default=None, compare=False)

    @property
    def title(self) -> str:
        """The method as people write it, such as "MI/RS"."""
        name = str(self.method["name"])
        return METHODS[name].title if name in METHODS else self.method_title or self.method.get("title") or name

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
        return printable(f"<Record: {run}, {length}, {len(self.nats):,} of {self.length:,} labels, {self.status}>")

    def summary(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "codelength_nats": finite_or_none(self.codelength),
            "codelength_bits": finite_or_none(self.codelength_bits),
            "bits_per_label": finite_or_none(self.bits_per_label),
            "errors": self.errors,
            "length": self.length,
            "num_classes": self.num_classes,
            "flops": None if self.flops is None else self.flops["code"],
            "heldout": self.heldout,
            "seconds": self.seconds,
            **{part: getattr(self, part)["name"] for part in ("method", "model", "data")},
            "seed": self.seeds["seed"],
            "record": None if self.path is None else str(self.path),
            **({"class_names": list(self.class_names)} if self.class_names else {}),
            **(self.summary_of_experts() | self.summary_of_study()),
        } | ({} if self.status == "finished" else {"status": self.status, "positions": len(self.nats)})

    def _repr_html_(self) -> str:
        return record_html(self.summary())

    def columns(self) -> dict[str, NDArray[Any]]:
        """What is known of each position, as equally long arrays; the large ones are not copied."""
        known = {"label" if name == "labels" else name: getattr(self, name) for name in PER_POSITION}
        temperature = spread(self.temperatures, self.temperature_positions, len(self.nats))
        position = np.arange(len(self.nats))
        return {"position": position, **known, "temperature": temperature, **self.expert_columns()}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each position (see `columns`)."""
        return to_pandas(self.columns())

    def to_arrow(self) -> Any:
        """A pyarrow.Table with a row for each position (see `columns`)."""
        return to_arrow(self.columns())

    def facts(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values."""
        return {name: value for name, value in super().facts().items() if name not in (*ARRAYS, *EXPERT_ARRAYS, "path")}

    def save(self, directory: str | Path) -> "Record":
        """Write the record into a directory that holds no run yet; gives the record with its path."""
        path = Path(directory)
        require_no_run(path)
        path.mkdir(parents=True, exist_ok=True)
        names = arrays_of(self.model)
        for name in names:
            write_array(path / f"{name}.npy", getattr(self, name))
        contents = {name: (len(values := getattr(self, name)), digest_of(bytes_of(values))) for name in names}
        write_facts(path, self.facts(), contents)
        return replace(self, path=path)


def finite_or_none(value: float | None) -> float | None:
    """What JSON can hold of a number."""
    return value if value is not None and math.isfinite(value) else None


def arrays_of(model: Mapping[str, Any]) -> dict[str, int | None]:
    """The arrays that the record of such a model has, and how many columns each has (None: numbers)."""
    return dict.fromkeys(ARRAYS) | columns_of(model)


def write_facts(path: Path, facts: dict[str, Any], arrays: dict[str, tuple[int, str]]) -> None:
    """Write `record.json`: the facts, and length and fingerprint of each array."""
    described = {name: {"length": length, "digest": digest} for name, (length, digest) in arrays.items()}
    write_atomically(path / RECORD_FILE, sealed({"format": FORMAT, **facts, "arrays": described}, "record"))


def require_no_run(path: Path) -> None:
    """Refuse a directory that holds a run, or anything but the traces of one killed before it began."""
    if (path / RECORD_FILE).exists():
        raise PreqError(f"{path} already holds a run; choose another directory, or resume it")
    if path.exists() and not path.is_dir():
        raise PreqError(f"{path} is a file; name a directory for the run")
    ours = ("lock", ".writable", f".{RECORD_FILE}.tmp")
    if path.is_dir() and any(file.name not in ours for file in path.iterdir()):
        raise PreqError(f"{path} holds no run, and is not empty; choose another directory for the run")


def require_writable(path: Path) -> Path:
    """Make the directory for a run now, so that an unwritable place is noticed before the work."""
    require_platform()
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".writable").touch()
        (path / ".writable").unlink()
    except OSError as error:
        raise PreqError(f"cannot write into {path}: {error.strerror}; choose another directory") from None
    return path


def read_facts(path: Path) -> dict[str, Any]:
    """What `record.json` says, its checksum verified, in the names of now."""
    file = path / RECORD_FILE
    if not file.is_file():
        raise PreqError(f"{path} holds no run: there is no {RECORD_FILE}")
    try:
        content = unsealed(read_bytes(file), "record", lambda inside: require_format(inside.get("format"), file))
        require_shape(content, RECORD)
    except ForeignError:
        raise PreqError(f"{file} is not a record") from None
    except MisfitError as error:
        raise PreqError(f"{file} is damaged: {error}") from None
    _require_lengths(file, content)
    return in_names_of_now(content, content["format"])


def load(directory: str | Path) -> Record:
    """Read a record back, verified.

    Raises:
        PreqError: naming the file that is missing or broken.
    """
    path, content = Path(directory), read_facts(Path(directory))
    described, columns = content["arrays"], arrays_of(content["model"])
    arrays: dict[str, Any] = {name: read_verified(path, name, described[name], columns[name]) for name in columns}
    require_classes(content, arrays["labels"], arrays["predicted"], path / RECORD_FILE)
    plain = [f for f in fields(Record) if f.name not in (*ARRAYS, *EXPERT_ARRAYS, "path")]
    if missing := [f.name for f in plain if f.name not in content and f.default is MISSING]:
        raise PreqError(f"{path / RECORD_FILE} is damaged: {', '.join(missing)} missing")
    return Record(**{f.name: content[f.name] for f in plain if f.name in content}, **arrays, path=path)


def _require_lengths(file: Path, content: dict[str, Any]) -> None:
    """Refuse arrays that cannot belong together."""
    if missing := [name for name in arrays_of(content["model"]) if name not in content["arrays"]]:
        raise PreqError(f"{file} is damaged: it says nothing of {missing[0]}")
    lengths = {name: content["arrays"][name]["length"] for name in ARRAYS}
    coded, predictions = lengths["nats"], lengths["temperatures"]
    whole = content["length"] if content["status"] == "finished" and content["prequential"] else coded
    per_position, per_prediction = ({lengths[name] for name in names} for names in (PER_POSITION, PER_PREDICTION))
    if per_position != {whole} or per_prediction != {predictions} or not predictions <= coded <= content["length"]:
        raise PreqError(f"{file} is damaged: its arrays have {lengths}, of {content['length']:,} labels")
    if expert_names(content["model"]):
        wanted = (coded, *[num_kept(content["length"], coded)] * 2)
        if (found := tuple(content["arrays"][name]["length"] for name in EXPERT_ARRAYS)) != wanted:
            raise PreqError(f"{file} is damaged: the arrays of its experts have {found} rows, not {wanted}")


def read_verified(path: Path, name: str, described: dict[str, Any], columns: int | None = None) -> NDArray[Any]:
    """An array of the run in a directory, if it is the one that `record.json` describes."""
    values = read_array(path / f"{name}.npy", described["length"], columns=columns)
    if digest_of(bytes_of(values)) != described["digest"] or values.dtype.kind not in KINDS.get(name, "iu"):
        raise PreqError(f"{path / f'{name}.npy'} is damaged: its content does not fit {RECORD_FILE}")
    if name in ("nats", EXPERT_NATS) and np.isnan(values).any():
        raise PreqError(f"{path / f'{name}.npy'} is damaged: it holds what is no number")
    return values
