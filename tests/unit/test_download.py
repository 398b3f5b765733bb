"""The publishers' files: downloaded whole from a server on this machine, or refused in one line."""

import contextlib
import errno
import hashlib
import io
import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import termios
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prequential.data import download
from prequential.data.download import RemoteFile, cache_directory, fetch, unpack
from prequential.errors import PreqError

from ..processes import PATIENCE, start, wait_for

CONTENT = hashlib.shake_256(b"the publisher's file").digest(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Behaviour:
    """How one address answers."""

    content: bytes = CONTENT
    status: int = 0
    statuses: list[int] = field(default_factory=list)
    drops: list[int] = field(default_factory=list)
    """After how many bytes of the body each of the next answers ends."""
    chunked: bool = False
    location: str = ""
    waits_at: int | None = None
    """Behind so many bytes of the body each answer waits until the site lets go on."""


class Site(ThreadingHTTPServer):
    """A web server on this machine that remembers what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours: dict[str, Behaviour] = {}
        self.asked: list[str] = []
        self.waiting, self.goes_on = threading.Event(), threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""

    def address(self, path: str, behaviour: Behaviour | None = None) -> str:
        self.behaviours[path] = behaviour or Behaviour()
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def file(self, *behaviours: Behaviour, name: str = "data.bin") -> RemoteFile:
        urls = [self.address(f"/{k}/{name}", behaviour) for k, behaviour in enumerate(behaviours or [Behaviour()])]
        return RemoteFile(name, len(CONTENT), SHA256, tuple(url.removesuffix(name) for url in urls))


class Handler(BaseHTTPRequestHandler):
    server: Site

    def log_message(self, *args: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        behaviour = self.server.behaviours[self.path]
        self.server.asked.append(self.path)
        status = behaviour.statuses.pop(0) if behaviour.statuses else behaviour.status
        if status:
            self.send_response(status, "\033[31mwords of the server")
            if behaviour.location:
                self.send_header("Location", behaviour.location)
            self.end_headers()
            return
        self.send_response(200)
        if not behaviour.chunked:
            self.send_header("Content-Length", str(len(behaviour.content)))
        self.end_headers()
        drop = behaviour.drops.pop(0) if behaviour.drops else len(behaviour.content)
        for at in range(0, min(len(behaviour.content), drop), 10_000):
            if at == behaviour.waits_at:
                self.server.waiting.set()
                self.server.goes_on.wait(PATIENCE)
            self.wfile.write(behaviour.content[at : min(at + 10_000, drop)])


@contextlib.contextmanager
def serving() -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as monkeypatch, Site() as server:
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.goes_on.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def site_for_laws() -> Iterator[Site]:
    with serving() as server:
        yield server


def in_subprocess(file: RemoteFile, directory: Path, before: str = "") -> "subprocess.Popen[str]":
    code = (
        f"from prequential.data.download import *\nfrom prequential.errors import PreqError\n"
        f"from pathlib import Path\n{before}\n"
        f"try: print(fetch({file!r}, Path({str(directory)!r})))\nexcept PreqError as error: print(error)"
    )
    return start([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def names(directory: Path) -> list[str]:
    """What is there, the files of locks apart."""
    return sorted(path.name for path in directory.iterdir() if not path.name.endswith(".lock"))


@settings(max_examples=30)
@given(there=st.binary(max_size=9), chunked=st.booleans(), drops=st.lists(st.integers(0, len(CONTENT)), max_size=5))
def test_whatever_was_there_and_however_it_breaks_the_file_is_right_or_an_error(
    site_for_laws: Site, there: bytes, chunked: bool, drops: list[int]
) -> None:
    file = site_for_laws.file(Behaviour(chunked=chunked, drops=drops))
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "data.bin").write_bytes(there)
        for _ in range(2):  # five drops are one call that gives up
            with contextlib.suppress(PreqError):
                assert fetch(file, Path(name)).read_bytes() == CONTENT
        assert (Path(name) / "data.bin").read_bytes() == CONTENT
        assert names(Path(name)) == ["data.bin"], "nothing else is left behind"


def test_a_file_is_downloaded_once(site: Site, tmp_path: Path) -> None:
    file = site.file()
    path = fetch(file, tmp_path / "new" / "cache")
    assert path == tmp_path / "new" / "cache" / "data.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(file, path.parent) == path
    assert len(site.asked) == 1


def test_a_file_put_there_by_hand_needs_no_network_and_no_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)
    monkeypatch.setattr(download, "Lock", None)
    file = RemoteFile("data.bin", len(CONTENT), SHA256, ("http://127.0.0.1:9/",))
    assert fetch(file, tmp_path) == tmp_path / "data.bin"


def test_a_damaged_file_in_the_cache_is_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT[:-1] + b"?")
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT


def test_a_dropped_connection_is_tried_again_but_not_for_ever(site: Site, tmp_path: Path) -> None:
    assert fetch(site.file(Behaviour(drops=[100_000], statuses=[503])), tmp_path).read_bytes() == CONTENT
    assert len(site.asked) == 3
    with pytest.raises(PreqError, match=r"no answer from 127.0.0.1 \(ChunkedEncodingError\); get it from"):
        fetch(site.file(Behaviour(drops=[10_000] * 9)), tmp_path / "other")
    assert len(site.asked) == 3 + 1 + download.NUM_RETRIES
    assert names(tmp_path / "other") == []


def test_a_server_that_falls_silent_is_left(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(download, "NUM_RETRIES", 0)
    with pytest.raises(PreqError, match=r"no answer from 127.0.0.1 \(ConnectionError|ReadTimeout\); get it from"):
        fetch(site.file(Behaviour(waits_at=150_000)), tmp_path)


def test_wrong_content_is_refused_and_the_next_address_used(site: Site, tmp_path: Path) -> None:
    wrong = Behaviour(content=bytes(300_000))
    assert fetch(site.file(wrong, Behaviour()), tmp_path / "both").read_bytes() == CONTENT
    assert site.asked[-1] == "/1/data.bin"
    with pytest.raises(PreqError, match=f"127.0.0.1 sends another file, whose SHA-256 is not {SHA256[:12]}…; get"):
        fetch(site.file(wrong), tmp_path / "one")
    assert names(tmp_path / "one") == []


def test_what_the_server_answers_is_told_in_our_words(site: Site, tmp_path: Path) -> None:
    missing, broken = Behaviour(status=404), Behaviour(statuses=[500, 503])
    with pytest.raises(PreqError) as caught:
        fetch(site.file(missing), tmp_path)
    url = site.address("/0/data.bin", missing)
    assert str(caught.value) == (
        f"data.bin (300.0 kB) cannot be downloaded: 127.0.0.1 answers 404 Not Found; get it from {url} and put it into "
        f"{tmp_path}, or unpack it into a directory named by --data-dir or PREQ_DATA"
    )
    assert fetch(site.file(missing, broken), tmp_path).read_bytes() == CONTENT
    with pytest.raises(PreqError, match="answers 500 Internal Server Error; get it from"):
        fetch(site.file(Behaviour(status=500)), tmp_path / "other")


def test_redirects_are_followed_within_the_web(site: Site, tmp_path: Path) -> None:
    moved = Behaviour(status=302, location=site.address("/new"))
    assert fetch(site.file(moved), tmp_path).read_bytes() == CONTENT
    assert site.asked[-1] == "/new"
    for location in ("file:///etc/hostname", "ftp://127.0.0.1/x", "http://[", site.address("/0/data.bin")):
        with pytest.raises(
            PreqError, match=r"^data.bin \(300.0 kB\) cannot be downloaded: [^\n\033]*127.0.0.1 [^\n\033]*; get it from"
        ):
            fetch(site.file(Behaviour(status=302, location=location)), tmp_path / "other")


def test_no_network_is_told_in_one_line(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/data.bin"
    file = RemoteFile("data.bin", 170_052_171, SHA256, (url.removesuffix("data.bin"),))
    with pytest.raises(PreqError) as caught:
        fetch(file, tmp_path)
    assert str(caught.value) == (
        f"data.bin (170.1 MB) cannot be downloaded: no network, or no answer from 127.0.0.1 (ConnectionError); get it "
        f"from {url} and put it into {tmp_path}, or unpack it into a directory named by --data-dir or PREQ_DATA"
    )
    assert names(tmp_path) == []
    (tmp_path / "data.bin").write_bytes(b"half of it")
    with pytest.raises(PreqError, match=rf"no network, .*\), the one in {tmp_path} is damaged; get it"):
        fetch(file, tmp_path)


def test_a_killed_download_is_no_file_and_holds_nobody_up(site: Site, tmp_path: Path) -> None:
    file = site.file(Behaviour(waits_at=150_000))
    process = in_subprocess(file, tmp_path)
    wait_for(site.waiting.is_set, process)
    process.kill()
    process.communicate()
    assert not (tmp_path / "data.bin").exists()
    site.goes_on.set()
    assert fetch(file, tmp_path).read_bytes() == CONTENT


def test_many_who_want_the_same_file_share_one_download(site: Site, tmp_path: Path) -> None:
    file = site.file(Behaviour(waits_at=150_000))
    processes = [in_subprocess(file, tmp_path / "to") for _ in range(2)]
    with ThreadPoolExecutor(3) as pool:
        coming = [pool.submit(fetch, file, tmp_path / "to") for _ in range(3)]
        try:
            wait_for(site.waiting.is_set, *processes)
        finally:
            site.goes_on.set()
    assert [process.communicate()[0].strip() for process in processes] == [str(tmp_path / "to" / "data.bin")] * 2
    assert {each.result().read_bytes() for each in coming} == {CONTENT}
    assert len(site.asked) == 1
    assert names(tmp_path / "to") == ["data.bin"]


def test_a_full_disk_is_one_line(site: Site, tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    told = in_subprocess(site.file(), tmp_path, limit).communicate()[0]
    assert told == f"cannot write {tmp_path}: {os.strerror(errno.EFBIG)}; make room or choose another place\n"
    assert names(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_one_line(site: Site, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a directory should be")
    with pytest.raises(PreqError, match=r"^cannot write .*taken/downloads: Not a directory; make room or"):
        fetch(site.file(), tmp_path / "taken" / "downloads")
    assert site.asked == []


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PREQ_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_directory() == tmp_path / "home" / ".cache" / "prequential"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "prequential"
    monkeypatch.setenv("PREQ_CACHE", str(tmp_path / "ours"))
    assert cache_directory() == tmp_path / "ours"
    assert names(tmp_path) == []
    assert fetch(site.file()) == tmp_path / "ours" / "downloads" / "data.bin"


def test_the_table_of_official_files() -> None:
    files = [download.CIFAR10, download.CIFAR100, download.EMNIST, *download.FASHION_MNIST]
    assert len({file.sha256 for file in files}) == len({file.name for file in files}) == 7
    assert all(file.urls[0].startswith("https://") and file.size > 0 for file in files)
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)


def test_the_bar_shows_on_a_terminal_only(site: Site, tmp_path: Path) -> None:
    file = site.file()
    code = (
        "import sys; from pathlib import Path; from prequential.data.download import *\n"
        f"fetch({file!r}, Path(sys.argv[1]))\nsys.exit('torch' in sys.modules)"
    )
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    process = start([sys.executable, "-c", code, str(tmp_path / "a")], stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):
        while True:
            shown += os.read(ours, 1 << 16)
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert b"data.bin" in shown
    assert b"300k/300k" in shown
    silent = subprocess.run([sys.executable, "-c", code, str(tmp_path / "b")], capture_output=True, check=False)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, b"", b"")


MEMBERS = {"set/train.bin": b"trained" * 10_000, "set/test.bin": CONTENT[:20_000], "set/readme.txt": b"no one asked"}
WANTED = ["set/train.bin", "set/test.bin"]


def packed(kind: str) -> bytes:
    stored = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in MEMBERS.items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    else:
        with tarfile.open(fileobj=stored, mode="w:gz") as tar:
            for name, content in MEMBERS.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return stored.getvalue()


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_exactly_the_named_members_are_taken_out(tmp_path: Path, kind: str) -> None:
    archive, to = tmp_path / f"data.{kind}", tmp_path / "new" / "place"
    archive.write_bytes(packed(kind))
    for _ in range(2):
        unpack(archive, WANTED, to)
        assert names(to) == ["test.bin", "train.bin"]
        assert (to / "train.bin").read_bytes() == MEMBERS["set/train.bin"]
        assert (to / "test.bin").read_bytes() == MEMBERS["set/test.bin"]


def test_no_room_while_unpacking_is_one_line_and_nothing_appears(tmp_path: Path) -> None:
    (tmp_path / "data.zip").write_bytes(packed("zip"))
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\nfrom pathlib import Path\n"
        "from prequential.data.download import *\nfrom prequential.errors import PreqError\n"
        f"try: unpack(Path('data.zip'), {WANTED!r}, Path('to'))\nexcept PreqError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "cannot write to: File too large; make room or choose another place\n"
    assert names(tmp_path / "to") == []
