"""The Optuna study of a sweep, in a file or any storage Optuna knows, and signs of life of who shares it. No torch."""

import atexit
import importlib.util
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from prequential.errors import PreqError, in_one_line
from prequential.sweeps.address import holds_password, sqlite_file, without_password

if TYPE_CHECKING:
    from optuna.study import Study

SECONDS_TO_WAIT = 60
"""For another process that writes into the same SQLite file."""
MOST_ATTEMPTS = 8
"""To make the tables of an empty database, where others may be doing so at the same time."""
TABLES = ("alembic_version", "version_info", "studies")
"""What a database has, with something in it, where Optuna has kept a study."""
SIGN = "alive "
BEATS_PER_GRACE = 8


def open_study(url: str, name: str, *, create: bool, sampler: Any = None, pruner: Any = None) -> "Study":
    """The study of that name. It holds no connection between two calls, and need not be closed.

    Args:
        create: make what is missing. Without, nothing is ever written, whatever the storage is.

    Raises:
        PreqError: if the storage cannot be reached or has no such study.
    """
    import optuna
    from sqlalchemy.exc import IntegrityError

    if optuna.logging.get_verbosity() == optuna.logging.INFO:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    open_it: Callable[..., Study] = partial(optuna.create_study, load_if_exists=True) if create else optuna.load_study
    open_storage = _open_storage if create else _read_storage
    for attempt in range(1, MOST_ATTEMPTS + 1):
        try:
            return open_it(storage=open_storage(url), study_name=name, sampler=sampler, pruner=pruner)
        except KeyError:
            raise PreqError(f"{without_password(url)} holds no study '{name}'; was the sweep begun there?") from None
        except Exception as error:  # every database has its own classes of errors
            # one who makes a table that others have just made
            is_too_late = create and (isinstance(error, IntegrityError) or "already exists" in str(error))
            if not is_too_late or attempt == MOST_ATTEMPTS:
                raise PreqError(f"the storage {without_password(url)} cannot be used ({_reason(error, url)})") from None
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
        reason = _reason(error.__cause__ if isinstance(error.__cause__, SQLAlchemyError) else error, url)
        raise PreqError(
            f"the storage {without_password(url)} can no longer be used ({reason}); trials that have run are kept, "
            "and resuming goes on with them"
        ) from None


def _open_storage(url: str, *, is_there: bool = False) -> Any:
    import optuna
    from sqlalchemy.pool import NullPool

    if url.startswith("postgresql://") and importlib.util.find_spec("psycopg") is not None:
        url = url.replace("postgresql:", "postgresql+psycopg:", 1)  # which driver is meant depends on the version
    connect = {"connect_args": {"timeout": SECONDS_TO_WAIT}} if sqlite_file(url) is not None else {}
    engine: dict[str, Any] = {"poolclass": NullPool, **connect}
    if is_there:
        _require_tables(url, engine)
    return optuna.storages.RDBStorage(url, engine_kwargs=engine, skip_table_creation=is_there)


def _require_tables(url: str, engine: dict[str, Any]) -> None:
    """Refuse a database that Optuna would first have to write into, as one without the study."""
    from sqlalchemy import create_engine, inspect, text

    with create_engine(url, **engine).connect() as connection:
        known = inspect(connection).get_table_names()
        for table in TABLES:
            if table not in known or connection.execute(text(f"SELECT 1 FROM {table}")).first() is None:
                raise KeyError(table)


def _read_storage(url: str) -> Any:
    """A storage that is only read. SQLite itself sees to it; and since what a writer who was killed has left half
    written could be read only by undoing it there, it is undone in a copy."""
    from sqlalchemy.exc import OperationalError

    file = sqlite_file(url)
    if file is None:
        return _open_storage(url, is_there=True)
    try:
        return _open_storage(_in_mode("ro", file), is_there=True)
    except OperationalError as error:
        journal = file.with_name(f"{file.name}-journal")
        if "readonly" not in str(error) or not journal.is_file():
            raise
        folder = Path(tempfile.mkdtemp(prefix="preq-study-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for each in (file, journal):
            shutil.copyfile(each, folder / each.name)
        return _open_storage(_in_mode("rw", folder / file.name), is_there=True)


def _in_mode(mode: str, file: Path) -> str:
    """The address of a file of SQLite that is there, to be opened in this mode."""
    from sqlalchemy.engine import URL

    where = f"file:{quote(str(file.absolute()))}"
    return URL.create("sqlite", database=where, query={"mode": mode, "uri": "true"}).render_as_string()


def _reason(error: Exception, url: str) -> str:
    if isinstance(error, ImportError) and "psycopg" in str(error):
        return "its driver is not installed; pip install 'prequential[postgres]'"
    text = in_one_line(error)
    return f"{type(error).__name__}, in words that repeat the password" if holds_password(text, url) else text


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
