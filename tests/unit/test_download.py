"""The publishers' files: downloaded whole from a server on this machine, or refused in one line."""

import contextlib
import errno
import hashlib
import io
import os
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prequential.data import download, remote, transfer
from prequential.data.download import cache_directory, extract, fetch
from prequential.data.remote import RemoteFile
from prequential.errors import PreqError

from ..processes import PATIENCE, start, wait_for

CONTENT = hashlib.shake_256(b"the publisher's file").digest(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Behaviour:
    """How one address answers."""

    content: bytes = CONTENT
    ranges: bool = True
    status: int = 0
    statuses: list[int] = field(default_factory=list)
    drops: list[int] = field(default_factory=list)
    """After how many bytes of the body each of the next answers ends."""
    stalls: bool = False
    chunked: bool = False
    location: str = ""
    content_range: str = ""
    waits_at: int | None = None
    """Behind so many bytes of the body each answer waits until the site lets go on."""


class Site(ThreadingHTTPServer):
    """A web server on this machine that remembers what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours: dict[str, Behaviour] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.stopped, self.goes_on, self.closing = threading.Event(), threading.Event(), threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""

    def address(self, path: str, behaviour: Behaviour | None = None) -> str:
        self.behaviours[path] = behaviour or Behaviour()
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def file(self, *behaviours: Behaviour, name: str = "data.bin", content: bytes = CONTENT) -> RemoteFile:
        urls = tuple(self.address(f"/{k}/{name}", behaviour) for k, behaviour in enumerate(behaviours or [Behaviour()]))
        return RemoteFile(name=name, urls=urls, size=len(content), sha256=hashlib.sha256(content).hexdigest())


class Handler(BaseHTTPRequestHandler):
    server: Site

    def log_message(self, *args: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        behaviour, wanted = self.server.behaviours[self.path], self.headers["Range"]
        self.server.asked.append((self.path, wanted))
        status = behaviour.statuses.pop(0) if behaviour.statuses else behaviour.status
        if status:
            self.send_response(status, "\033[31mwords of the server")
            if behaviour.location:
                self.send_header("Location", behaviour.location)
            self.end_headers()
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and behaviour.ranges else 0
        if start >= len(behaviour.content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        size = len(behaviour.content)
        if start:
            self.send_header("Content-Range", behaviour.content_range or f"bytes {start}-{size - 1}/{size}")
        if not behaviour.chunked:
            self.send_header("Content-Length", str(size - start))
        self.end_headers()
        self.send_body(behaviour, behaviour.content[start:])

    def send_body(self, behaviour: Behaviour, body: bytes) -> None:
        drop = behaviour.drops.pop(0) if behaviour.drops else len(body)
        for at in range(0, min(len(body), drop), 10_000):
            if at == behaviour.waits_at:
                self.server.goes_on.wait(PATIENCE)
            self.wfile.write(body[at : min(at + 10_000, drop)])
        if behaviour.stalls and drop < len(body):
            self.server.stopped.set()
            self.server.closing.wait(PATIENCE)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(transfer, "PAUSE_SECONDS", 0.01)
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.goes_on.set()
            server.closing.set()
            server.shutdown()
            thread.join()


def in_subprocess(
    file: RemoteFile, directory: Path, before: str = "", listener: str = "lambda *_: None"
) -> "subprocess.Popen[str]":
    code = (
        f"from prequential.data.download import *\nfrom prequential.data.remote import RemoteFile\n"
        f"from prequential.errors import PreqError\nfrom pathlib import Path\n{before}\n"
        f"try: print(fetch({file!r}, Path({str(directory)!r}), listener={listener}))\n"
        f"except PreqError as error: print(error)"
    )
    return start([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@settings(max_examples=50)  # each one waits for the disk
@given(
    cut=st.integers(0, len(CONTENT) + 5),
    spoiled=st.booleans(),
    ranges=st.booleans(),
    chunked=st.booleans(),
    drops=st.lists(st.integers(0, len(CONTENT)), max_size=6),
)
def test_whatever_was_there_and_however_it_breaks_the_file_is_right_or_an_error(
    site_for_laws: Site, cut: int, spoiled: bool, ranges: bool, chunked: bool, drops: list[int]
) -> None:
    file = site_for_laws.file(Behaviour(ranges=ranges, chunked=chunked, drops=drops))
    with tempfile.TemporaryDirectory() as name:
        part = Path(name) / "data.bin.part"
        part.write_bytes(bytes(cut) if spoiled else (CONTENT + b"more!")[:cut])
        for _ in range(3):  # six drops are two calls that give up
            with contextlib.suppress(PreqError):
                assert fetch(file, Path(name)).read_bytes() == CONTENT
                break
        assert (Path(name) / "data.bin").read_bytes() == CONTENT
        assert names(Path(name)) == ["data.bin"], "nothing else is left behind"


@pytest.fixture(scope="module")
def site_for_laws() -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.setattr(transfer, "PAUSE_SECONDS", 0.0)
        with Site() as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield server
            server.shutdown()
            thread.join()


def test_a_file_is_downloaded_once_and_heard_of(site: Site, tmp_path: Path) -> None:
    file, heard = site.file(), []
    path = fetch(file, tmp_path / "new" / "cache", listener=lambda *fact: heard.append(fact))
    assert path == tmp_path / "new" / "cache" / "data.bin"
    assert path.read_bytes() == CONTENT
    assert heard[0] == ("data.bin", 0, 300_000)
    assert heard[-1] == ("data.bin", 300_000, 300_000)
    assert [length for _, length, _ in heard] == sorted({length for _, length, _ in heard})
    assert fetch(file, path.parent) == path
    assert len(site.asked) == 1


def test_a_file_put_there_by_hand_needs_no_network_and_no_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)
    monkeypatch.setattr(download, "alone", None)
    file = RemoteFile(name="data.bin", urls=("http://127.0.0.1:9/",), size=len(CONTENT), sha256=SHA256)
    assert fetch(file, tmp_path) == tmp_path / "data.bin"


def test_a_damaged_file_in_the_cache_is_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT[:-1] + b"?")
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT


def test_a_part_is_continued_and_only_the_rest_is_asked_for(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:123_456])
    heard: list[int] = []
    assert fetch(site.file(), tmp_path, listener=lambda _, length, __: heard.append(length)).read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == ["bytes=123456-"]
    assert heard[0] == 123_456


def test_a_whole_part_needs_no_network(tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    file = RemoteFile(name="data.bin", urls=("http://127.0.0.1:9/",), size=len(CONTENT), sha256=SHA256)
    assert fetch(file, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("behaviour", "requests"),
    [
        (Behaviour(ranges=False), 1),
        (Behaviour(content_range="bytes 7-299999/300000"), 2),
        (Behaviour(content_range="bytes 123456-299999/300001"), 2),
        (Behaviour(content_range="what?"), 2),
        (Behaviour(statuses=[416]), 2),
    ],
    ids=["no ranges", "another start", "another total", "nonsense", "416"],
)
def test_a_server_that_does_not_continue_starts_over(
    site: Site, tmp_path: Path, behaviour: Behaviour, requests: int
) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:123_456])
    assert fetch(site.file(behaviour), tmp_path).read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == ["bytes=123456-", None][:requests]


def test_a_part_of_something_else_is_thrown_away(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1000)
    assert fetch(site.file(), tmp_path).read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == ["bytes=1000-", None]
    (tmp_path / "long.bin.part").write_bytes(CONTENT + b"and more")
    assert fetch(site.file(name="long.bin"), tmp_path).read_bytes() == CONTENT
    assert site.asked[2:] == [("/0/long.bin", None)]


def test_a_dropped_connection_is_continued(site: Site, tmp_path: Path) -> None:
    assert fetch(site.file(Behaviour(drops=[100_000, 50_000])), tmp_path).read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == [None, "bytes=100000-", "bytes=150000-"]


def test_three_failures_in_a_row_are_enough_but_what_moves_on_is_not_given_up(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = site.file(Behaviour(drops=[10_000] * 8))
    with pytest.raises(
        PreqError, match=r"127.0.0.1 ends the connection after 30,000 of 300,000 bytes, which are kept: "
    ):
        fetch(file, tmp_path)
    assert len(site.asked) == 3
    monkeypatch.setattr(transfer, "_PROGRESS_SIZE", 10_000)
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert len(site.asked) == 9


def test_a_server_that_falls_silent_is_left_and_asked_again(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[socket.socket] = []
    really = transfer._open

    def noted(url: str, begin: int) -> Any:
        answer = really(url, begin)
        connections.append(answer.fp.raw._sock)  # type: ignore[attr-defined]
        return answer

    def lose_patience(name: str, length: int, size: int) -> None:
        if length == 131_072 and len(connections) == 1:
            assert site.stopped.wait(PATIENCE)  # whatever comes from there has come
            assert connections[0].gettimeout() == transfer.TIMEOUT_SECONDS
            connections[0].settimeout(0.01)

    monkeypatch.setattr(transfer, "_open", noted)
    file = site.file(Behaviour(drops=[150_000], stalls=True))
    assert fetch(file, tmp_path, listener=lose_patience).read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == [None, "bytes=131072-"], "two whole blocks came"


def test_wrong_content_is_refused_and_the_next_address_used(site: Site, tmp_path: Path) -> None:
    wrong = Behaviour(content=bytes(300_000))
    assert fetch(site.file(wrong, Behaviour()), tmp_path / "both").read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == [None, None]
    with pytest.raises(
        PreqError, match=f"127.0.0.1 sends another file, whose SHA-256 is .* and not {SHA256[:12]}…; get"
    ):
        fetch(site.file(wrong), tmp_path / "one")
    assert names(tmp_path / "one") == []


@pytest.mark.parametrize("content", [CONTENT + b"!", CONTENT[:-1], b"<html>sign in</html>"])
def test_a_body_of_another_length_is_refused_before_it_is_read(site: Site, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    said = f"127.0.0.1 offers {len(content):,} bytes, the published file has 300,000; get"
    with pytest.raises(PreqError, match=said):
        fetch(site.file(Behaviour(content=content, ranges=False)), tmp_path)
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:1000], "another address may continue it"


def test_no_more_than_the_published_size_is_taken(site: Site, tmp_path: Path) -> None:
    heard: list[int] = []
    with pytest.raises(PreqError, match=r"127.0.0.1 sends more than the published 300,000 bytes; get"):
        fetch(
            site.file(Behaviour(content=CONTENT * 2, chunked=True)),
            tmp_path,
            listener=lambda _, length, __: heard.append(length),
        )
    assert max(heard) == 300_000
    assert names(tmp_path) == []


def test_what_the_server_answers_is_told_in_our_words(site: Site, tmp_path: Path) -> None:
    missing, broken = Behaviour(status=404), Behaviour(statuses=[500, 503])
    with pytest.raises(PreqError) as caught:
        fetch(site.file(missing), tmp_path)
    url = site.address("/0/data.bin", missing)
    assert str(caught.value) == (
        f"data.bin (300 kB) cannot be downloaded: 127.0.0.1 answers 404 Not Found; get it from {url} and put it into "
        f"{tmp_path}, or unpack it into a directory named by --data-dir or PREQ_DATA"
    )
    assert len(site.asked) == 1, "what is not there is not asked for again"
    assert fetch(site.file(missing, broken), tmp_path).read_bytes() == CONTENT
    with pytest.raises(PreqError, match="answers 500 Internal Server Error after 0 of 300,000 bytes; get it from"):
        fetch(site.file(Behaviour(status=500)), tmp_path / "other")


def test_redirects_are_followed_within_the_web(site: Site, tmp_path: Path) -> None:
    moved = Behaviour(status=302, location=site.address("/new"))
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    assert fetch(site.file(moved), tmp_path).read_bytes() == CONTENT
    assert site.asked[-1] == ("/new", "bytes=1000-")
    for location in ("file:///etc/hostname", "ftp://127.0.0.1/x", "http://[", site.address("/0/data.bin")):
        with pytest.raises(
            PreqError, match=r"^data.bin \(300 kB\) cannot be downloaded: 127.0.0.1 [^\n\033]*; get it from"
        ):
            fetch(site.file(Behaviour(status=302, location=location)), tmp_path / "other")


def test_no_network_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/data.bin"
    file = RemoteFile(name="data.bin", urls=(url,), size=170_052_171, sha256=SHA256)
    with pytest.raises(PreqError) as caught:
        fetch(file, tmp_path)
    assert str(caught.value) == (
        f"data.bin (170 MB) cannot be downloaded: no network (127.0.0.1: Connection refused); get it from {url} and "
        f"put it into {tmp_path}, or unpack it into a directory named by --data-dir or PREQ_DATA"
    )
    assert names(tmp_path) == []
    (tmp_path / "data.bin").write_bytes(b"half of it")
    with pytest.raises(PreqError, match=rf"no network \(.*\), the one in {tmp_path} is damaged; get it"):
        fetch(file, tmp_path)

    def nobody(*args: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    file = RemoteFile(name="data.bin", urls=("https://nowhere.invalid/data.bin",), size=1, sha256=SHA256)
    with pytest.raises(PreqError, match=r"no network \(nowhere.invalid: Name or service not known\)"):
        fetch(file, tmp_path)


def test_a_killed_download_is_continued(site: Site, tmp_path: Path) -> None:
    file, part = site.file(Behaviour(waits_at=150_000)), tmp_path / "data.bin.part"
    process = in_subprocess(file, tmp_path)
    wait_for(lambda: part.exists() and part.stat().st_size == 131_072, process)
    process.kill()
    process.communicate()
    assert part.stat().st_size == 131_072
    site.address("/0/data.bin")
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == [None, "bytes=131072-"]
    assert names(tmp_path) == ["data.bin"]


def test_many_who_want_the_same_file_share_one_download(site: Site, tmp_path: Path) -> None:
    file, heard = site.file(Behaviour(waits_at=150_000)), [list[int]() for _ in range(3)]
    notes = [tmp_path / "notes" / name for name in ("one", "other")]
    notes[0].parent.mkdir()
    listeners = [f"lambda name, length, size: Path({str(note)!r}).write_text(str(length))" for note in notes]
    processes = [in_subprocess(file, tmp_path / "to", listener=listener) for listener in listeners]

    def all_have_heard() -> bool:
        """Those who wait hear how the other gets on."""
        return all(131_072 in each for each in heard) and all(
            note.exists() and note.read_text() == "131072" for note in notes
        )

    with ThreadPoolExecutor(3) as pool:
        coming = [
            pool.submit(fetch, file, tmp_path / "to", listener=lambda *fact, each=each: each.append(fact[1]))
            for each in heard
        ]
        try:
            wait_for(all_have_heard, *processes)
        finally:
            site.goes_on.set()
    assert [process.communicate()[0].strip() for process in processes] == [str(tmp_path / "to" / "data.bin")] * 2
    assert {each.result().read_bytes() for each in coming} == {CONTENT}
    assert len(site.asked) == 1
    assert names(tmp_path / "to") == ["data.bin"]


def test_a_lock_that_its_last_owner_took_away_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    place, lock = tmp_path / "lock", fcntl.flock

    def too_late(file: int, how: int) -> None:
        place.rename(tmp_path / "gone")
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", too_late)
    assert transfer._lock(place) is None
    place.touch()
    assert transfer._lock(place) is None
    monkeypatch.undo()
    with transfer.alone(tmp_path / "file"):
        assert transfer._lock(tmp_path / ".file.lock") is None
    assert names(tmp_path) == ["gone"]


def test_a_full_disk_is_one_line_and_what_came_is_kept(site: Site, tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    file = site.file()
    told = in_subprocess(file, tmp_path, limit).communicate()[0]
    part = tmp_path / "data.bin.part"
    assert told == f"cannot write {part}: {os.strerror(errno.EFBIG)}; make room or choose another place\n"
    assert part.stat().st_size == 100_000
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert site.asked[-1][1] == "bytes=100000-"


def test_a_cache_that_cannot_be_written_is_one_line(site: Site, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a directory should be")
    with pytest.raises(
        PreqError, match=r"^cannot write .*taken/downloads/.data.bin.lock: Not a directory; make room or"
    ):
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
    files = [remote.CIFAR10, remote.CIFAR100, remote.EMNIST, *remote.FASHION_MNIST]
    assert len({file.sha256 for file in files}) == len({file.name for file in files}) == 7
    assert all(url.rpartition("/")[2] == file.name.rpartition("/")[2] for file in files for url in file.urls)
    assert all(file.urls[0].startswith("https://") for file in files)
    good: dict[str, Any] = {"name": "x", "urls": ("http://127.0.0.1/x",), "size": 1, "sha256": SHA256}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": "/etc/passwd"}, "plain relative path, got '/etc/passwd'"),
        ({"urls": ()}, "x needs at least one address"),
        ({"urls": ("file://localhost/etc/passwd",)}, "must begin with http:// or https://"),
        ({"size": 0}, "size must be a whole number of at least 1, got 0"),
        ({"sha256": SHA256.upper()}, "64 hexadecimal digits in lower case"),
    ]
    for wrong, said in cases:
        with pytest.raises(PreqError, match=said):
            RemoteFile(**(good | wrong))


def test_the_bar_shows_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys\nfrom prequential.data.download import DownloadBar\nwith DownloadBar() as bar:\n"
        "    bar('data.bin', 20_000_000, 50_000_000); bar('data.bin', 30_000_000, 50_000_000)\n"
        "sys.exit('torch' in sys.modules)"
    )
    ours, theirs = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code], stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "120"}, check=False
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:
            break
    os.close(ours)
    assert done.returncode == 0
    assert b"data.bin" in shown
    assert b"20.0/50.0 MB" in shown
    assert b"30.0/50.0 MB" in shown
    silent = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, b"", b"")


MEMBERS = {"set/train.bin": b"trained" * 10_000, "set/test.bin": CONTENT[:20_000], "set/readme.txt": b"no one asked"}
WANTED = {"set/train.bin": "train.bin", "set/test.bin": "held-out.bin"}


def packed(kind: str, members: dict[str, bytes] | None = None) -> bytes:
    stored = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (MEMBERS if members is None else members).items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    else:
        with tarfile.open(fileobj=stored, mode="w:gz") as tar:
            for name, content in (MEMBERS if members is None else members).items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return stored.getvalue()


KINDS = {"tar.gz": packed("tar.gz"), "zip": packed("zip")}


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_named_members_are_taken_out(tmp_path: Path, kind: str) -> None:
    archive, to = tmp_path / f"data.{kind}", tmp_path / "new" / "place"
    archive.write_bytes(KINDS[kind])
    for _ in range(2):
        extract(archive, WANTED, to)
        assert names(to) == ["held-out.bin", "train.bin"]
        assert (to / "train.bin").read_bytes() == MEMBERS["set/train.bin"]
        assert (to / "held-out.bin").read_bytes() == MEMBERS["set/test.bin"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(data=st.data())
def test_a_damaged_archive_gives_the_right_files_or_an_error(kind: str, data: st.DataObject) -> None:
    whole = KINDS[kind]
    damaged = bytearray(whole)
    if data.draw(st.booleans(), label="truncated"):
        del damaged[data.draw(st.integers(0, len(whole) - 1), label="cut") :]
    else:
        for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=3), label="places"):
            damaged[at] ^= data.draw(st.integers(1, 255), label="flip")
    with tempfile.TemporaryDirectory() as name:
        archive, to = Path(name) / "data", Path(name) / "to"
        archive.write_bytes(damaged)
        with contextlib.suppress(PreqError):
            extract(archive, WANTED, to)
        found = {path.name: path.read_bytes() for path in to.iterdir()}
        assert found in ({}, {name: MEMBERS[member] for member, name in WANTED.items()})


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_archive_may_not_hold(tmp_path: Path, kind: str) -> None:
    archive, to = tmp_path / f"data.{kind}", tmp_path / "to"
    archive.write_bytes(KINDS[kind])
    (tmp_path / "to").mkdir()
    (to / "train.bin").write_bytes(b"an older one")
    for wanted, options, said in [
        (WANTED | {"set/more.bin": "more.bin"}, {}, f"^{archive} holds no set/more.bin; get the publisher's archive$"),
        (WANTED, {"most_bytes": 69_999}, f"^set/train.bin in {archive} has 70,000 bytes, at most 69,999 are allowed$"),
        ({"/etc/passwd": "x"}, {}, "plain relative path and go to a plain name, got '/etc/passwd': 'x'"),
        ({"set/../../x": "x"}, {}, "got 'set/../../x': 'x'"),
        ({"set/train.bin": "../x"}, {}, "got 'set/train.bin': '../x'"),
        ({"set/train.bin": "x", "set/test.bin": "x"}, {}, r"different names, got \['x', 'x'\]"),
    ]:
        with pytest.raises(PreqError, match=said):
            extract(archive, wanted, to, **options)
        assert names(to) == ["train.bin"]
    assert (to / "train.bin").read_bytes() == b"an older one"
    extract(archive, WANTED, to, most_bytes=70_000)


def test_links_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "secret"
    target.write_bytes(b"secret")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as tar:
        for name, kind in [("symbolic", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("folder", tarfile.DIRTYPE)]:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, str(target)
            tar.addfile(entry)
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        link = zipfile.ZipInfo("symbolic")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(target))
    for name, member in [("tar.gz", "symbolic"), ("tar.gz", "hard"), ("tar.gz", "folder"), ("zip", "symbolic")]:
        with pytest.raises(
            PreqError, match=f"^{member} in .*data.{name} is a link or no plain file; get the publisher's"
        ):
            extract(tmp_path / f"data.{name}", {member: "out"}, tmp_path / "to")
    assert names(tmp_path / "to") == []


def test_what_is_no_archive_or_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"<html>")
    with pytest.raises(PreqError, match=r"page is neither a .tar.gz nor a .zip file; get it again$"):
        extract(tmp_path / "page", WANTED, tmp_path)
    with pytest.raises(PreqError, match=r"none cannot be unpacked: No such file or directory; get it again$"):
        extract(tmp_path / "none", WANTED, tmp_path)
    with zipfile.ZipFile(tmp_path / "liar.zip", "w") as archive:
        archive.writestr("set/train.bin", b"123")
        archive.infolist()[0].file_size = 4
    with pytest.raises(PreqError, match=r"unpacked: train.bin is not of the length its header says; get it again$"):
        extract(tmp_path / "liar.zip", {"set/train.bin": "train.bin"}, tmp_path)
    (tmp_path / "half.tar.gz").write_bytes(KINDS["tar.gz"][:-5])
    with pytest.raises(
        PreqError, match=r"half.tar.gz cannot be unpacked: Compressed file ended before .*; get it again$"
    ):
        extract(tmp_path / "half.tar.gz", WANTED, tmp_path)


def test_no_room_while_unpacking_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data.zip").write_bytes(KINDS["zip"])
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\nfrom pathlib import Path\n"
        "from prequential.data.download import *\nfrom prequential.errors import PreqError\n"
        f"try: extract(Path('data.zip'), {WANTED!r}, Path('to'))\nexcept PreqError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "cannot write to/.train.bin.part: File too large; make room or choose another place\n"
    assert names(tmp_path / "to") == []
