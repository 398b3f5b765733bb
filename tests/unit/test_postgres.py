"""Sweeps that share a study in PostgreSQL: a real server on loopback, in a temporary directory."""

import importlib.util
import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..processes import PATIENCE, start_preq
from .test_shared_study import assert_shared_fairly, command, kill_one_of_two, take_at_once

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=Path("/none/initdb")).parent
IS_ROOT = os.geteuid() == 0
HAS_USER = any(user.pw_name == "postgres" for user in pwd.getpwall())


def missing() -> str | None:
    """What keeps these tests from running; `make test-postgres` installs it."""
    if not (PROGRAMS / "pg_ctl").exists():
        return "the PostgreSQL server is not installed (Debian's package postgresql)"
    if importlib.util.find_spec("psycopg") is None:
        return "the driver psycopg is not installed (pip install 'prequential[postgres]')"
    if IS_ROOT and not (HAS_USER and shutil.which("setpriv")):
        return "PostgreSQL refuses to run as root, and there is no user postgres to change to"
    return None


pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server with no database of ours yet."""
    with tempfile.TemporaryDirectory(prefix="preq-postgres-") as folder, socket.socket() as free:
        place = Path(folder)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        if IS_ROOT:
            shutil.chown(place, "postgres", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if IS_ROOT else []

        def do(program: str, *arguments: str) -> None:
            subprocess.run(
                [*as_user, PROGRAMS / program, "-D", place / "data", *arguments],
                check=True, cwd=place, stdout=subprocess.DEVNULL, timeout=PATIENCE,
            )  # fmt: skip

        do("initdb", "--username=preq", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        free.close()
        do("pg_ctl", "-w", "-l", str(place / "log"), "-o", settings, "start")
        try:
            yield f"postgresql://preq@127.0.0.1:{port}"
        finally:
            do("pg_ctl", "-w", "-m", "immediate", "stop")


def database(server: str, name: str) -> str:
    """The address of an empty database."""
    port = server.rpartition(":")[2]
    address = ["--host=127.0.0.1", f"--port={port}", "--username=preq"]
    subprocess.run([PROGRAMS / "createdb", *address, name], check=True, timeout=PATIENCE)
    return f"{server}/{name}"


def test_two_sweeps_share_the_trials_of_one_study(tmp_path: Path, server: str) -> None:
    url = database(server, "shared")
    outs = [tmp_path / "one", tmp_path / "other"]
    shared = ["--storage", url, "--grace-seconds", "600", "--json"]
    sweeps = [start_preq(command(tmp_path, *shared, "--out", str(out))) for out in outs]
    for sweep in sweeps:
        told, said = sweep.communicate(timeout=PATIENCE)
        assert said == ""
        assert json.loads(told)["finished"] == 4  # both end when all trials are over
    assert_shared_fairly(tmp_path, outs, url)


def test_processes_that_begin_at_once_take_each_trial_once(server: str) -> None:
    take_at_once(database(server, "at_once"))


def test_the_other_one_finishes_what_a_killed_sweep_had_begun(tmp_path: Path, server: str) -> None:
    kill_one_of_two(tmp_path, database(server, "killed"))
