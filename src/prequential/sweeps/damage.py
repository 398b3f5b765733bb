"""A study whose file is damaged: told with what to do about it. No torch."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from prequential.errors import PreqError, in_one_line
from prequential.sweeps.address import STUDY_FILE


@contextmanager
def undamaged(file: Path | None) -> Iterator[None]:
    """Inside, a study is opened and read that is kept in this file; None: on a server, which looks after its own."""
    from optuna.exceptions import StorageInternalError

    if file is None:
        yield
        return
    if file.exists() and (reason := _found_by_sqlite(file)):
        raise _damaged(file, reason)
    try:
        yield
    except PreqError:
        raise
    except (StorageInternalError, ValueError, LookupError, TypeError) as error:  # what Optuna makes of garbled rows
        raise _damaged(file, in_one_line(error)) from error


def _damaged(file: Path, reason: str) -> PreqError:
    reason = "".join(letter if letter.isprintable() else "?" for letter in reason)  # it may name what is garbled
    todo = "remove it and resume the sweep (--resume), which finds the trials that have run"
    if file.name != STUDY_FILE:  # somebody named it, and it may be anything
        todo = "name the study's own file (--storage)"
    return PreqError(f"the study {file} is damaged ({reason}); {todo}")


def _found_by_sqlite(file: Path) -> str | None:
    """What is wrong with a file of SQLite's; nothing is written, and what is only busy is not damaged."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            return None if found == "ok" else str(found).splitlines()[0]
    except sqlite3.OperationalError:
        return None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return str(error)
