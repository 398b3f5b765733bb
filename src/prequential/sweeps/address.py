"""Where the study of a sweep is: its address as SQLAlchemy reads it, and what of it may be shown and kept. No torch."""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from prequential.errors import PreqError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

STUDY_FILE = "study.db"
HIDDEN = "an address that is not shown, since it may hold a password"
_SECRET_NAME = re.compile("pass|pwd|secret|token|credential", re.IGNORECASE)
_SECRET_VALUE = re.compile(rf"({_SECRET_NAME.pattern})\w*\s*=|:[^/]*@", re.IGNORECASE)
"""Parameters that are themselves lists of parameters, or addresses."""


def storage_url(directory: Path, storage: str | None) -> str:
    """The address of the study, once it can be read as one.

    Example:
        >>> storage_url(Path("sweep"), "postgresql:/me:secret@host/sweeps")
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: the storage is no address that can be read (it is not shown, since it may hold a \
password); write sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, with %40 for an @ inside a part
    """
    from sqlalchemy.engine import URL

    if storage is None:
        return URL.create("sqlite", database=str((directory / STUDY_FILE).absolute())).render_as_string()
    _parsed(storage)
    return storage


def sqlite_file(url: str) -> Path | None:
    """The file of a study that is kept in one.

    Example:
        >>> sqlite_file(storage_url(Path("/sweeps/what?"), None)).as_posix()
        '/sweeps/what?/study.db'
    """
    parts = _parsed(url)
    return Path(parts.database or "") if parts.get_backend_name() == "sqlite" else None


def without_password(url: str | None) -> str | None:
    """The address as it may be written into files and errors.

    Example:
        >>> without_password("postgresql://me:secret@host/sweeps")
        'postgresql://me@host/sweeps'
        >>> without_password("postgresql://host/sweeps?user=me&sslpassword=secret")
        'postgresql://host/sweeps?user=me'
        >>> without_password("postgresql:/me:secret@host/sweeps")
        'an address that is not shown, since it may hold a password'
    """
    if url is None:
        return None
    try:
        parts = _parsed(url)
    except PreqError:
        return HIDDEN
    shown = {name: value for name, value in parts.query.items() if not _is_secret(name, value)}
    user = parts.username
    return parts.create(parts.drivername, user, None, parts.host, parts.port, parts.database, shown).render_as_string()


def holds_password(text: str, url: str) -> bool:
    """Whether a text, such as an error of a driver, repeats a password of an address."""
    parts = _parsed(url)
    secrets = [parts.password or "", *(str(value) for name, value in parts.query.items() if _is_secret(name, value))]
    return any(each and each in text for secret in secrets for each in (secret, quote(secret), quote(secret, safe="")))


def _parsed(url: str) -> "URL":
    """The parts of an address. One that has an @ or a colon where none belongs was meant otherwise: what was read as
    host, user or database may be a password."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parts = make_url(url)
    except (ArgumentError, ValueError, TypeError, AttributeError):
        parts = None
    is_file = parts is not None and parts.get_backend_name() == "sqlite"
    if parts is None or (not is_file and (url.count("@") > 1 or _is_odd(parts))):
        raise PreqError(
            "the storage is no address that can be read (it is not shown, since it may hold a password); write "
            "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, with %40 for an @ inside a part"
        )
    if is_file and parts.database in (None, "", ":memory:"):
        raise PreqError("the storage sqlite:// names no file, and memory cannot be shared; write sqlite:///FILE")
    return parts


def _is_odd(parts: "URL") -> bool:
    host, user, database = (part or "" for part in (parts.host, parts.username, parts.database))
    return "@" in host or ":" in user or any(mark in database for mark in ":@=")


def _is_secret(name: str, value: object) -> bool:
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(str(value)))
