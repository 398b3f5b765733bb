"""One file from one address over HTTP, continued where it stopped, by one process at a time. No torch."""

import contextlib
import hashlib
import http.client
import io
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from prequential.data.remote import RemoteFile
from prequential.files import writing

TIMEOUT_SECONDS = 30.0
NUM_ATTEMPTS = 3
PAUSE_SECONDS = 0.5
_WAIT_SECONDS = 0.1
_BLOCK_SIZE = 1 << 16
_PROGRESS_SIZE = 1 << 20


class NoAnswerError(Exception):
    """Nobody is there: no network, or no such host."""


class RefusedError(Exception):
    """The address does not give the file."""


class _DroppedError(Exception):
    """The connection broke, or the server is in trouble: worth another attempt."""


class Part:
    """The file on its way: the bytes that came so far, on disk, and their hash. Continues what it finds there."""

    def __init__(self, path: Path, file: RemoteFile, report: Callable[[int], None]) -> None:
        self.path, self.file, self._report = path, file, report
        self.length, self._hash = 0, hashlib.sha256()
        with writing(path):
            self._stored = path.open("a+b", buffering=0)
            self._stored.seek(0)
            while self.length <= file.size and (block := self._stored.read(_BLOCK_SIZE)):
                self._hash.update(block)
                self.length += len(block)
        if self.length > file.size:
            self.restart()
        report(self.length)

    @property
    def missing(self) -> int:
        """Bytes that did not come yet."""
        return self.file.size - self.length

    @property
    def sha256(self) -> str:
        """Of what came so far."""
        return self._hash.hexdigest()

    def restart(self) -> None:
        """Forget what came."""
        with writing(self.path):
            self._stored.truncate(0)
        self.length, self._hash = 0, hashlib.sha256()
        self._report(0)

    def write(self, block: bytes) -> None:
        """Put the next bytes behind the others."""
        write_all(self._stored, block, self.path)
        self._hash.update(block)
        self.length += len(block)
        self._report(self.length)

    def close(self) -> None:
        """Make it durable; what is empty is taken away."""
        with self._stored, writing(self.path):
            os.fsync(self._stored.fileno())
            if self.length == 0:
                self.path.unlink(missing_ok=True)


def write_all(file: io.FileIO, block: bytes, path: Path) -> None:
    """Write every byte to an unbuffered file; what the system refuses becomes one line."""
    left = memoryview(block)
    with writing(path):
        while left:
            left = left[file.write(left) :]


def complete(url: str, part: Part) -> None:
    """Bring a part to its full length and the published SHA-256 from this address.

    Raises:
        NoAnswerError, RefusedError: if that cannot be done; their text goes behind the name of the host.
    """
    continued = part.length > 0
    _receive_all(url, part)
    if part.sha256 == part.file.sha256:
        return
    found = part.sha256
    part.restart()
    if not continued:
        raise RefusedError(f"sends another file, whose SHA-256 is {found[:12]}… and not {part.file.sha256[:12]}…")
    complete(url, part)  # the wrong bytes may have been those of an earlier call, or of another address


def _receive_all(url: str, part: Part) -> None:
    """Ask until nothing is missing; give up after several failures that brought next to nothing."""
    failures = 0
    while part.missing:
        before = part.length
        try:
            _receive(url, part)
        except _DroppedError as error:
            failures = 1 if part.length - before >= _PROGRESS_SIZE else failures + 1
            if failures >= NUM_ATTEMPTS:
                kept = ", which are kept: ask again to continue" if part.length else ""
                raise RefusedError(f"{error} after {part.length:,} of {part.file.size:,} bytes{kept}") from None
            time.sleep(PAUSE_SECONDS * 2 ** (failures - 1))


def _receive(url: str, part: Part) -> None:
    """One request: its body goes behind what is there, or in its place."""
    with _ask(url, part) as answer:
        try:
            while part.missing and (block := answer.read(min(_BLOCK_SIZE, part.missing))):
                part.write(block)
            too_long = not part.missing and answer.read(1)
        except (OSError, http.client.HTTPException):
            raise _DroppedError("breaks the connection") from None
    if too_long:
        part.restart()
        raise RefusedError(f"sends more than the published {part.file.size:,} bytes")
    if part.missing:
        raise _DroppedError("ends the connection")


def _ask(url: str, part: Part) -> http.client.HTTPResponse:
    """The answer whose body is what is missing. Where the server only gives the whole file, the part is emptied."""
    answer = _open(url, part.length)
    if answer.status == http.HTTPStatus.PARTIAL_CONTENT:
        said = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if said and int(said[1]) == part.length and said[2] in ("*", str(part.file.size)):
            return answer
        answer.close()
        answer = _open(url, 0)
    if answer.status != http.HTTPStatus.OK or answer.length not in (None, part.file.size):
        answer.close()
        raise RefusedError(
            f"offers {answer.length:,} bytes, the published file has {part.file.size:,}"
            if answer.status == http.HTTPStatus.OK
            else f"answers {_status(answer.status)}"
        )
    if part.length:
        part.restart()
    return answer


def _open(url: str, start: int) -> http.client.HTTPResponse:
    headers = {"User-Agent": "prequential"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        answer = _opener().open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS)
        assert isinstance(answer, http.client.HTTPResponse)
        return answer
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return _open(url, 0)
        passing = error.code >= 500 or error.code in (
            http.HTTPStatus.REQUEST_TIMEOUT,
            http.HTTPStatus.TOO_MANY_REQUESTS,
        )
        raise (_DroppedError if passing else RefusedError)(f"answers {_status(error.code)}") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, OSError) and not isinstance(error.reason, ssl.SSLError):
            raise NoAnswerError(error.reason.strerror or str(error.reason)) from None
        raise RefusedError(f"cannot be asked: {error.reason}") from None
    except (OSError, http.client.HTTPException):
        raise _DroppedError("gives no answer") from None
    except ValueError:
        raise RefusedError("sends to an address that cannot be read") from None


def _opener() -> urllib.request.OpenerDirector:
    """HTTP and HTTPS, through the proxies of the environment; nothing else, wherever a server redirects to."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _status(code: int) -> str:
    """A status in words of our own: those a server sends could be anything."""
    return f"{code} {http.client.responses.get(code, '')}".strip()


@contextlib.contextmanager
def alone(path: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Inside, no other thread or process works on this file. The system takes the lock back from a killed one."""
    place = path.with_name(f".{path.name}.lock")
    with writing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    while (lock := _lock(place)) is None:
        waiting()
        time.sleep(_WAIT_SECONDS)
    with lock:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                place.unlink()


def _lock(place: Path) -> IO[bytes] | None:
    """The locked file, or None while another has it."""
    with writing(place), contextlib.ExitStack() as unless_locked:
        file = unless_locked.enter_context(place.open("ab"))
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file.fileno()), place.stat()):
                return None  # its last owner took it away
        except ImportError:  # no such locks on this system
            pass
        except (BlockingIOError, FileNotFoundError):
            return None
        unless_locked.pop_all()
        return file
