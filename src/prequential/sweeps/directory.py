"""The directory of a sweep: `sweep.json` says what it is about, each trial has a directory in it. No torch."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import time_ns
from typing import Any, Self

from prequential.errors import PreqError
from prequential.files import digest_of, write_atomically
from prequential.measure.choosing import SWEEP_FILE, num_begun
from prequential.names_of_before import FORMATS, differences, in_names_of_now, require_format
from prequential.runs.record import OVER, read_facts
from prequential.sweeps.address import STUDY_FILE, without_password


@dataclass(frozen=True)
class SweepFile:
    """What `sweep.json` holds."""

    mark: str
    """Tells the trials of this directory from those of others that share the study."""
    study: str
    storage: str | None
    """Where the study is, without the password; None: beside this file."""
    trials: int
    settings: dict[str, Any]
    begun: int = 0
    """Trials that were begun, here or by others who share the study, as far as is known here."""

    @classmethod
    def begin(cls, directory: Path, facts: dict[str, Any], *, trials: int, resume: bool, storage: str | None) -> Self:
        """Begin a sweep in a directory, or go on with the same one."""
        facts = json.loads(json.dumps(facts, allow_nan=False))
        if (directory / SWEEP_FILE).exists():
            if not resume:
                raise PreqError(f"{directory} already holds a sweep; choose another directory, or resume it")
            earlier = cls.read(directory)
            now = {"storage": without_password(storage), **facts}
            before = {"storage": without_password(earlier.storage), **earlier.settings}
            if different := list(differences("", before, now)):
                raise PreqError(f"settings differ from the sweep in {directory}: {'; '.join(different)}")
            begun = replace(earlier, trials=max(trials, earlier.trials), settings=facts, storage=now["storage"])
        else:
            names = sorted(file.name for file in directory.iterdir())
            if strangers := [name for name in names if not name.startswith((".", "lock"))]:
                raise PreqError(f"{directory} is not empty (it has {strangers[0]}); choose another directory")
            named = {"format": FORMATS[-1], **facts}  # what shares a storage must mean the same by a name
            digest = digest_of(json.dumps(named, sort_keys=True).encode())[:12]
            study = f"{facts['model']} {facts['method'].get('name', '')} {digest}"
            mark = digest_of(f"{directory.absolute()} {time_ns()}".encode())[:16]
            begun = cls(mark, study, without_password(storage), trials, facts)
        begun.write(directory)
        return begun

    def write(self, directory: Path) -> None:
        """Replace what the file holds."""
        content = {"format": FORMATS[-1], **asdict(self)}
        write_atomically(directory / SWEEP_FILE, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """What the sweep in a directory is about."""
        file = directory / SWEEP_FILE
        try:
            content = {"begun": 0} | json.loads(file.read_text(encoding="utf-8"))
            require_format(content["format"], file)
            content["settings"] = in_names_of_now(dict(content["settings"]), content["format"])
            return cls(**{name: content[name] for name in cls.__dataclass_fields__})
        except OSError as error:
            raise PreqError(f"{directory} holds no sweep: {SWEEP_FILE} cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, PreqError):
                raise
            raise PreqError(f"{file} is damaged: {error}") from None


@contextmanager
def begun_in(directory: Path, facts: dict[str, Any], **more: Any) -> Iterator[SweepFile]:
    """A sweep that is begun in a directory, or goes on there (see `SweepFile.begin`). Inside, a mistake takes a new one
    back, unless a trial has left a record that is worth keeping: once corrected, it can begin here."""
    trials, is_new = directory / "trials", not (directory / SWEEP_FILE).exists()
    sweep = SweepFile.begin(directory, facts, **more)
    try:
        yield sweep
    except PreqError:
        if is_new and not any(map(_is_over, trials.glob("*/"))):
            shutil.rmtree(trials, ignore_errors=True)
            for name in (STUDY_FILE, f"{STUDY_FILE}-journal", SWEEP_FILE):
                (directory / name).unlink(missing_ok=True)
        raise


def _is_over(path: Path) -> bool:
    with suppress(PreqError):
        return read_facts(path)["status"] in OVER
    return False


def note_begun(directory: Path, number: int) -> None:
    """Tell whoever reads the directory how many trials were begun: others may have begun some elsewhere."""
    if num_begun(directory) < number:
        replace(SweepFile.read(directory), begun=number).write(directory)


def trial_path(directory: Path, number: int) -> Path:
    """The run directory of a trial.

    Example:
        >>> trial_path(Path("sweep"), 7).as_posix()
        'sweep/trials/00007'
    """
    return directory / "trials" / f"{number:05d}"


def set_aside(directory: Path, number: int) -> None:
    """Hide the run of a trial that another directory has taken over, so that no run counts twice."""
    path = trial_path(directory, number)
    if path.exists():
        hidden = path.with_name(f".{path.name}.taken-over")
        shutil.rmtree(hidden, ignore_errors=True)
        path.rename(hidden)
