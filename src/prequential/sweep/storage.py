"""The Optuna study of a sweep: a file in its directory, or any storage Optuna knows. No torch."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

STUDY_FILE = "study.db"
SECONDS_TO_WAIT = 60
"""For another process that writes into the same SQLite file."""


def storage_url(directory: Path, storage: str | None) -> str:
    """The address of the study."""
    return storage or f"sqlite:///{(directory / STUDY_FILE).absolute()}"


def without_password(url: str | None) -> str | None:
    """The address as it may be written into files and errors.

    Example:
        >>> without_password("postgresql://me:secret@host/sweeps")
        'postgresql://me@host/sweeps'
    """
    if url is None:
        return None
    scheme, separator, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}{separator}{user.partition(':')[0]}{at}{place}"


def open_study(url: str, name: str, *, create: bool, sampler: Any = None, pruner: Any = None) -> "Study":
    """The study of that name.

    Raises:
        PreqError: if the storage cannot be reached or has no such study.
    """
    import optuna

    if optuna.logging.get_verbosity() == optuna.logging.INFO:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    wait = {"connect_args": {"timeout": SECONDS_TO_WAIT}} if url.startswith("sqlite:") else {"pool_pre_ping": True}
    try:
        storage = optuna.storages.RDBStorage(url, engine_kwargs=wait)
        if create:
            return optuna.create_study(
                storage=storage, study_name=name, sampler=sampler, pruner=pruner, load_if_exists=True
            )
        return optuna.load_study(storage=storage, study_name=name, sampler=sampler, pruner=pruner)
    except KeyError:
        raise PreqError(f"{without_password(url)} holds no study '{name}'; was the sweep begun there?") from None
    except Exception as error:  # every database has its own classes of errors
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise PreqError(f"the storage {without_password(url)} cannot be used ({reason})") from error


def close_study(study: "Study") -> None:
    """Let go of the connections."""
    with contextlib.suppress(AttributeError):
        study._storage._backend.engine.dispose()  # type: ignore[attr-defined]


def reopen_trial(study: "Study", frozen: "FrozenTrial") -> "Trial":
    """A running trial that can be told of again."""
    from optuna.trial import Trial

    return Trial(study, frozen._trial_id)
