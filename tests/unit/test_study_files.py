"""What is said of a sweep is read and never written, and no password of a storage is shown or kept."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqError
from prequential.sweeps.address import HIDDEN, without_password
from prequential.sweeps.directory import SweepFile
from prequential.sweeps.storage import open_study

from ..conftest import blobs
from ..laws.test_records import tiny
from ..processes import PATIENCE

SPACE: dict[str, Any] = {"learning_rate": pq.LogUniform(1e-3, 1e-1)}
METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
Captured = pytest.CaptureFixture[str]


def do(out: Path, **changes: Any) -> Any:
    arguments: dict[str, Any] = {"space": SPACE, "trials": 3, "seed": 0, "out": out}
    return pq.sweep(tiny, blobs(64), METHOD, **arguments | changes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "s"
    do(out)
    return out


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All that lies in a folder, with the time of each change."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


def naming(sweep: Path, storage: str) -> None:
    """Let a sweep name another storage."""
    content = json.loads((sweep / "sweep.json").read_text())
    (sweep / "sweep.json").write_text(json.dumps(content | {"storage": storage}))


def strangers_table(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.executescript("CREATE TABLE letters (id INTEGER); INSERT INTO letters VALUES (1)")


def tables_alone(file: Path) -> None:
    """All tables of a study, and nothing in them."""
    open_study(f"sqlite:///{file}", "x", create=True)
    with closing(sqlite3.connect(file)) as database:
        database.executescript("DELETE FROM studies; DELETE FROM version_info; DELETE FROM alembic_version")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (strangers_table, "holds no study"),
        (tables_alone, "holds no study"),
        (Path.touch, "holds no study"),
        (lambda file: open_study(f"sqlite:///{file}", "another", create=True), "holds no study"),
        (lambda file: file.write_text("dear diary, " * 200), "cannot be used"),
        (lambda file: file.mkdir(), "has lost its study"),
    ],
    ids=["strange", "hollow", "empty", "another", "text", "folder"],
)
def test_a_file_that_is_no_study_is_refused_and_stays_as_it_is(
    finished: Path, tmp_path: Path, make: Callable[[Path], object], complaint: str, capsys: Captured
) -> None:
    shutil.copytree(finished, tmp_path / "s")
    make(tmp_path / "letters.db")
    naming(tmp_path / "s", f"sqlite:///{tmp_path}/letters.db")
    before = everything(tmp_path)
    assert main(["sweep", "show", str(tmp_path / "s")]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert everything(tmp_path) == before


@pytest.mark.parametrize("command", ["sweep show", "compare", "pareto", "watch --once", "report -o {}/page.html"])
def test_commands_that_read_a_sweep_write_nothing_into_it(finished: Path, tmp_path: Path, command: str) -> None:
    before = everything(finished)
    assert main([*command.format(tmp_path).split(), str(finished)]) == 0
    assert everything(finished) == before


def test_what_a_killed_writer_left_is_read_without_undoing_it_there(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "s")
    killed = (
        f"import os, sqlite3; d = sqlite3.connect({str(tmp_path / 's/study.db')!r}, isolation_level=None)\n"
        "d.executescript('PRAGMA cache_size = 1; BEGIN; DELETE FROM trial_values; DELETE FROM trials')\n"
        "d.executemany('INSERT INTO studies (study_name) VALUES (?)', [(str(n) * 99,) for n in range(999)])\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", killed], timeout=PATIENCE, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "s/study.db-journal").stat().st_size
    before = everything(tmp_path)
    assert main(["sweep", "show", str(tmp_path / "s")]) == 0
    assert everything(tmp_path) == before
    assert do(tmp_path / "s", trials=4, resume=True).counts["finished"] == 4


def test_a_directory_alone_sends_nobody_to_the_network(finished: Path, tmp_path: Path, capsys: Captured) -> None:
    shutil.copytree(finished, tmp_path / "s")
    naming(tmp_path / "s", "postgresql://me@nowhere.invalid/sweeps")
    assert main(["sweep", "show", str(tmp_path / "s")]) == 2
    assert "its study at postgresql://me@nowhere.invalid/sweeps, which only you can ask for" in capsys.readouterr().err


SECRET = "Xy7zQ"
PART = st.sampled_from(["", "a", "@", "/", ":", "?", "#", "%", "&", "=", ";", "%40", " "])
NAMES = st.sampled_from(["password", "PASSWORD", "passwd", "sslpassword", "Pwd", "pass", "access_token", "db_secret"])


@given(slashes=st.integers(0, 4), before=PART, after=PART, place=st.sampled_from(["h/db", "h", "h:5432/db", "/db", ""]))
def test_no_password_before_the_host_is_ever_shown(slashes: int, before: str, after: str, place: str) -> None:
    url = f"postgresql:{'/' * slashes}me:{before}{SECRET}{after}@{place}"
    assert SECRET not in str(without_password(url))


@given(
    name=NAMES,
    after=PART,
    place=st.sampled_from(["//h/db", "//me@h/db", "///db", "/h/db", "h/db"]),
    first=st.booleans(),
)
def test_no_password_among_the_parameters_is_ever_shown(name: str, after: str, place: str, first: bool) -> None:
    pair = f"{name}={SECRET}{after}"
    shown = without_password(f"postgresql:{place}?{f'{pair}&sslmode=require' if first else f'sslmode=require&{pair}'}")
    assert shown is not None
    assert SECRET not in shown
    assert shown == HIDDEN or "sslmode=require" in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:/me:{}@h/db",
        "postgresql:///me:{}@h/db",
        "me:{}@h/db",
        "postgresql://me:x@{}@h/db",
        "postgresql://h:{}/db",
        "postgresql://h/db;password={}",
        "mssql+pyodbc://?odbc_connect=SERVER%3Dh%3BPWD%3D{}",
        "postgresql://nowhere.invalid/db?sslpassword={}",
    ],
)
def test_a_sweep_neither_shows_nor_keeps_a_password(tmp_path: Path, url: str, capsys: Captured) -> None:
    command = ["sweep", "mnist", "mlp1", "--length", "64", "--space", "mnist", "--trials", "1", "--out"]
    assert main([*command, str(tmp_path / "s"), "--storage", url.format(SECRET)]) == 2
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert "the storage" in said.err
    (tmp_path / "t").mkdir()
    SweepFile.begin(tmp_path / "t", {"model": "m", "method": {}}, trials=1, resume=False, storage=url.format(SECRET))
    assert not any(SECRET.encode() in content for _, content in everything(tmp_path).values())


def test_an_error_that_repeats_the_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> Any:
        raise OperationalError("", None, Exception(f"cannot open {url}"))

    monkeypatch.setattr("prequential.sweeps.storage._open_storage", fail)
    with pytest.raises(PreqError, match=r"cannot be used \(OperationalError, in words that repeat the password\)"):
        open_study(f"postgresql://me:{SECRET}@h/db", "x", create=True)


def test_a_password_that_an_earlier_version_kept_is_taken_out(finished: Path, tmp_path: Path) -> None:
    facts = json.loads((finished / "sweep.json").read_text())["settings"]
    url = "postgresql://h/db?sslpassword="
    begin: dict[str, Any] = {"trials": 3, "storage": f"{url}{SECRET}"}
    (tmp_path / "s").mkdir()
    SweepFile.begin(tmp_path / "s", facts, resume=False, **begin)
    naming(tmp_path / "s", f"{url}{SECRET}")
    SweepFile.begin(tmp_path / "s", facts, resume=True, **begin)
    assert SECRET not in (tmp_path / "s/sweep.json").read_text()
