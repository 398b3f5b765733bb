"""The Optuna study of a sweep, in a file or any storage Optuna knows, and signs of life of who shares it. No torch."""

import importlib.util
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from prequential.errors import PreqError, in_one_line

if TYPE_CHECKING:
    from optuna.study import Study

STUDY_FILE = "study.db"
SECONDS_TO_WAIT = 60
"""For another process that writes into the same SQLite file."""
MOST_ATTEMPTS = 8
"""To make the tables of an empty database, where others may be doing so at the same time."""
SIGN = "alive "
BEATS_PER_GRACE = 8


def storage_url(directory: Path, storage: str | None) -> str:
    """The address of the study."""
    from sqlalchemy.engine import URL

    file = str((directory / STUDY_FILE).absolute())
    return storage or URL.create("sqlite", database=file).render_as_string()


def sqlite_file(url: str) -> Path | None:
    """The file of a study that is kept in one.

    Example:
        >>> sqlite_file(storage_url(Path("/sweeps/what?"), None)).as_posix()
        '/sweeps/what?/study.db'
    """
    from sqlalchemy.engine import make_url

    database = make_url(url).database if url.startswith("sqlite:") else None
    return None if database is None else Path(database)


def without_password(url: str | None) -> str | None:
    """The address as it may be written into files and errors.

    Example:
        >>> without_password("postgresql://me:secret@host/sweeps")
        'postgresql://me@host/sweeps'
        >>> without_password("postgresql://host/sweeps?user=me&password=secret")
        'postgresql://host/sweeps?user=me'
    """
    if url is None:
        return None
    url = re.sub(r"([?&])password=[^&]*&?", r"\1", url).rstrip("?&")
    scheme, separator, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}{separator}{user.partition(':')[0]}{at}{place}"


def open_study(url: str, name: str, *, create: bool, sampler: Any = None, pruner: Any = None) -> "Study":
    """The study of that name. It holds no connection between two calls, and need not be closed.

    Raises:
        PreqError: if the storage cannot be reached or has no such study.
    """
    import optuna
    from sqlalchemy.exc import IntegrityError

    if optuna.logging.get_verbosity() == optuna.logging.INFO:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    open_it: Callable[..., Study] = partial(optuna.create_study, load_if_exists=True) if create else optuna.load_study
    for attempt in range(1, MOST_ATTEMPTS + 1):
        try:
            return open_it(storage=_open_storage(url), study_name=name, sampler=sampler, pruner=pruner)
        except KeyError:
            raise PreqError(f"{without_password(url)} holds no study '{name}'; was the sweep begun there?") from None
        except Exception as error:  # every database has its own classes of errors
            # one who makes a table that others have just made
            is_too_late = create and (isinstance(error, IntegrityError) or "already exists" in str(error))
            if not is_too_late or attempt == MOST_ATTEMPTS:
                raise PreqError(f"the storage {without_password(url)} cannot be used ({_reason(error)})") from error
            sleep(0.05 * attempt)
    raise AssertionError("the last attempt returns or raises")


def turns(url: str) -> AbstractContextManager[object]:
    """Inside, nobody else takes or gives up a trial of a study that is shared.

    Other databases lock the row they have read until it is written. SQLite has no such locks, so that those who share
    a file take turns by another file beside it.
    """
    from filelock import FileLock

    file = sqlite_file(url)
    return nullcontext() if file is None else FileLock(file.with_name(f".{file.name}.lock"))


@contextmanager
def usable(url: str) -> Iterator[None]:
    """Inside, a storage that fails (no room, a database that has gone) becomes one line."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        reason = _reason(error.__cause__ if isinstance(error.__cause__, SQLAlchemyError) else error)
        raise PreqError(
            f"the storage {without_password(url)} can no longer be used ({reason}); trials that have run are kept, "
            "and resuming goes on with them"
        ) from error


def _open_storage(url: str) -> Any:
    import optuna
    from sqlalchemy.pool import NullPool

    if url.startswith("postgresql://") and importlib.util.find_spec("psycopg") is not None:
        url = url.replace("postgresql:", "postgresql+psycopg:", 1)  # which driver is meant depends on the version
    connect = {"connect_args": {"timeout": SECONDS_TO_WAIT}} if url.startswith("sqlite:") else {}
    return optuna.storages.RDBStorage(url, engine_kwargs={"poolclass": NullPool, **connect})


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError) and "psycopg" in str(error):
        return "its driver is not installed; pip install 'prequential[postgres]'"
    return in_one_line(error)


class Pulse:
    """Writes a sign of life into the study and listens for those of others, in a thread.

    No clock is compared with another machine's: whoever listens takes a directory for dead when its sign has not
    changed for the grace time by his own clock, while he was listening without a gap.
    """

    def __init__(self, study: "Study", mark: str, grace_seconds: float) -> None:
        self._study, self._mark, self._grace = study, mark, grace_seconds
        self.seconds = grace_seconds / BEATS_PER_GRACE
        """How often a sign is given."""
        self._heard: dict[str, tuple[object, float]] = {}
        self._last_look = monotonic()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self.beat()
        self._thread = threading.Thread(target=self._go, name="pulse", daemon=True)
        self._thread.start()

    def _go(self) -> None:
        while not self._closed.wait(self.seconds):
            with suppress(Exception):  # a database that is away for a while: the next beat tries again
                self.beat()

    def beat(self) -> None:
        """Give one sign, and look for those of others."""
        self._study.set_user_attr(f"{SIGN}{self._mark}", uuid.uuid4().hex)
        attributes, now = self._study.user_attrs, monotonic()
        with self._lock:
            if now - self._last_look > self._grace / 2:  # we were away ourselves, and know nothing of the time between
                self._heard = {key: (sign, now) for key, (sign, _) in self._heard.items()}
            for key, sign in attributes.items():
                if key.startswith(SIGN) and (key not in self._heard or self._heard[key][0] != sign):
                    self._heard[key] = (sign, now)
            self._last_look = now

    def is_silent(self, mark: str) -> bool:
        """Whether that directory has given no sign for the grace time. One never heard of is listened for from now."""
        with self._lock:
            _, since = self._heard.setdefault(f"{SIGN}{mark}", (None, monotonic()))
            return self._last_look - since > self._grace

    def close(self) -> None:
        """Give no more signs."""
        self._closed.set()
        self._thread.join()
