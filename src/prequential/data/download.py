"""The publishers' files: where they are, and how one is downloaded, checked and kept. pooch does the work. No torch."""

import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prequential.errors import PreqError
from prequential.files import writing
from prequential.lock import Lock

if TYPE_CHECKING:
    from rich.progress import Progress

TIMEOUT_SECONDS = 30.0
NUM_RETRIES = 2
BLOCK_SIZE = 1 << 18


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file as its publisher gives it out.

    Example:
        >>> CIFAR10.name, CIFAR10.size
        ('cifar-10-binary.tar.gz', 170052171)
    """

    name: str
    """The publisher's name for it; a folder stands before one that says too little."""
    urls: tuple[str, ...]
    """Addresses, tried in this order."""
    size: int
    """Bytes."""
    sha256: str
    """Of the whole file, 64 hexadecimal digits."""


def cache_directory() -> Path:
    """Where downloads are kept: $PREQ_CACHE, else $XDG_CACHE_HOME/prequential, else ~/.cache/prequential."""
    if named := os.environ.get("PREQ_CACHE"):
        return Path(named)
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():
        return shared / "prequential"
    try:
        return Path.home() / ".cache" / "prequential"
    except RuntimeError:
        raise PreqError("there is no home directory to keep downloads in; name a directory in PREQ_CACHE") from None


def fetch(file: RemoteFile, directory: Path | None = None) -> Path:
    """The file, whole and of the published SHA-256; downloaded unless it is in the directory already.

    It appears when it is whole and not before. May be called from several threads and processes at once: one
    downloads, the others wait for it. The hash is taken anew each time. A download that breaks begins again from its
    start: pooch continues none. On a terminal, a bar on standard error shows how it gets on.

    Args:
        directory: where it is kept. Default: `cache_directory() / "downloads"`.

    Raises:
        PreqError: if no address gives it, with where to get it by hand; or if it cannot be written.
    """
    import pooch

    path = (cache_directory() / "downloads" if directory is None else directory) / file.name
    with writing(path.parent):
        if path.exists() and pooch.file_hash(str(path)) == file.sha256:  # needs no right to write
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with Lock(path.with_name(f".{path.name}.lock")):
            _download(file, path)
    return path


def _download(file: RemoteFile, path: Path) -> None:
    """Have pooch ask one address after the other; what is there and right is not asked for."""
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel(logging.WARNING)
    refusals = []
    for url in file.urls:
        registry = pooch.create(
            path.parent, "", registry={path.name: file.sha256}, urls={path.name: url}, retry_if_failed=NUM_RETRIES
        )
        try:
            with _bar() as bar:
                registry.fetch(path.name, downloader=_downloader(bar, file))
            return
        except RequestException as error:
            refusals.append(_reason(url, error))
        except ValueError:
            refusals.append(f"{urlsplit(url).hostname} sends another file, whose SHA-256 is not {file.sha256[:12]}…")
    if path.exists():
        refusals.append(f"the one in {path.parent} is damaged")
    raise PreqError(
        f"{file.name} ({readable_size(file.size)}) cannot be downloaded: {', '.join(refusals)}; get it from "
        f"{file.urls[0]} and put it into {path.parent}, or unpack it into a directory named by --data-dir or PREQ_DATA"
    )


def _reason(url: str, error: Exception) -> str:
    """Why an address does not give a file, in words of our own: those a server sends could be anything."""
    import http.client

    import requests

    host = urlsplit(url).hostname
    if isinstance(error, requests.HTTPError) and error.response is not None:
        code = error.response.status_code
        return f"{host} answers {code} {http.client.responses.get(code, '')}".strip()
    if isinstance(error, requests.Timeout):
        return f"{host} gives no answer"
    return (
        f"no network ({host} cannot be reached)"
        if isinstance(error, requests.ConnectionError)
        else f"{host} breaks off"
    )


class _Shown:
    """What pooch tells of a download, on a bar."""

    def __init__(self, bar: "Progress", file: RemoteFile) -> None:
        self.total = file.size
        self._bar, self._task = bar, bar.add_task(file.name, total=file.size)

    def update(self, size: int) -> None:
        self._bar.advance(self._task, size)

    def reset(self) -> None:
        self._bar.reset(self._task)

    def close(self) -> None:
        pass


def _bar() -> "Progress":
    """Name, bytes, speed and time left on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as SpeedColumn

    console, name = Console(stderr=True), TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(24), DownloadColumn(), SpeedColumn(), TimeRemainingColumn(), TextColumn("left"))
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _downloader(bar: "Progress", file: RemoteFile) -> object:
    import pooch

    headers = {"User-Agent": "prequential", "Accept-Encoding": "identity"}  # a .gz is wanted as it is
    return pooch.HTTPDownloader(_Shown(bar, file), BLOCK_SIZE, headers=headers, timeout=TIMEOUT_SECONDS)


def unpack(archive: Path, members: Sequence[str], to: Path) -> None:
    """Take the named members, and nothing else, out of a .tar.gz or .zip file that `fetch` gave.

    They lose the folders before their names, and appear when all were read without a fault.
    """
    import pooch

    with writing(to):
        to.mkdir(parents=True, exist_ok=True)
        with Lock(to / f".{archive.name}.lock"), tempfile.TemporaryDirectory(dir=to.absolute()) as folder:
            processor = pooch.Unzip if archive.suffix == ".zip" else pooch.Untar
            processor(list(members), folder)(str(archive), "download", None)
            for member in members:
                (Path(folder) / member).replace(to / Path(member).name)


def readable_size(size: int) -> str:
    """A size for people.

    Example:
        >>> readable_size(170_052_171), readable_size(29_515), readable_size(148)
        ('170 MB', '30 kB', '148 bytes')
    """
    for unit, name in ((10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.0f} {name}"
    return f"{size} bytes"


def _fashion(name: str, size: int, sha256: str) -> RemoteFile:
    places = (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    )
    return RemoteFile(name=name, urls=tuple(f"{place}/{name}" for place in places), size=size, sha256=sha256)


CIFAR10 = RemoteFile(
    name="cifar-10-binary.tar.gz",
    urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    size=170_052_171,
    sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
CIFAR100 = RemoteFile(
    name="cifar-100-binary.tar.gz",
    urls=("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
    size=168_513_733,
    sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
)
EMNIST = RemoteFile(
    name="emnist/gzip.zip",
    urls=("https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",),
    size=561_753_746,
    sha256="fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
)
FASHION_MNIST = (
    _fashion(
        "train-images-idx3-ubyte.gz", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
    ),
    _fashion("train-labels-idx1-ubyte.gz", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
    _fashion(
        "t10k-images-idx3-ubyte.gz", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
    ),
    _fashion("t10k-labels-idx1-ubyte.gz", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
)
"""Training images, training labels, held-out images, held-out labels."""
