"""The publishers' files: where they are, and how one is downloaded, checked and kept. pooch does the work. No torch."""

import http.client
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from prequential.errors import PreqError
from prequential.files import writing
from prequential.lock import Lock

TIMEOUT_SECONDS = 30.0
NUM_RETRIES = 2
BLOCK_SIZE = 1 << 18


@dataclass(frozen=True)
class RemoteFile:
    """A file as its publisher gives it out.

    Example:
        >>> CIFAR10.name, CIFAR10.urls
        ('cifar-10-binary.tar.gz', ('https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz',))
    """

    name: str
    """The publisher's name for it; a folder stands before one that says too little."""
    size: int
    """Bytes."""
    sha256: str
    """Of the whole file, 64 hexadecimal digits."""
    places: tuple[str, ...]
    """The addresses without the name, tried in this order."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Where it is given out."""
        return tuple(f"{place}{self.name.rpartition('/')[2]}" for place in self.places)


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
    start: pooch continues none. On a terminal, a bar on standard error (tqdm, which
    pooch takes) shows how it gets on.

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
    from rich.filesize import decimal  # here, since a run whose data is there needs no rich

    shown = sys.stderr.isatty()
    pooch.get_logger().setLevel(logging.INFO if shown else logging.WARNING)
    headers = {"User-Agent": "prequential", "Accept-Encoding": "identity"}  # a .gz is wanted as it is
    downloader = pooch.HTTPDownloader(shown, BLOCK_SIZE, headers=headers, timeout=TIMEOUT_SECONDS)
    refusals = []
    for url in file.urls:
        registry, urls, host = {path.name: file.sha256}, {path.name: url}, urlsplit(url).hostname
        known = pooch.create(path.parent, "", registry=registry, urls=urls, retry_if_failed=NUM_RETRIES)
        try:
            known.fetch(path.name, downloader=downloader)
            return
        except RequestException as error:
            code = getattr(error.response, "status_code", None)
            answer = f"{host} answers {code} {http.client.responses.get(code or 0, '')}".strip()
            refusals.append(answer if code else f"no network, or no answer from {host} ({type(error).__name__})")
        except ValueError as error:  # of pooch, or of an address that a server sends to
            other = f"sends another file, whose SHA-256 is not {file.sha256[:12]}…"
            refusals.append(f"{host} {other if 'SHA256' in str(error) else 'sends to an address that cannot be read'}")
    if path.exists():
        refusals.append(f"the one in {path.parent} is damaged")
    raise PreqError(
        f"{file.name} ({decimal(file.size)}) cannot be downloaded: {', '.join(refusals)}; get it from "
        f"{file.urls[0]} and put it into {path.parent}, or unpack it into a directory named by --data-dir or PREQ_DATA"
    )


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


_TORONTO = ("https://www.cs.toronto.edu/~kriz/",)
_ZALANDO = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)
CIFAR10 = RemoteFile(
    "cifar-10-binary.tar.gz", 170_052_171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", _TORONTO
)
CIFAR100 = RemoteFile(
    "cifar-100-binary.tar.gz", 168_513_733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec", _TORONTO
)
EMNIST = RemoteFile(
    "emnist/gzip.zip",
    561_753_746,
    "fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
    ("https://biometrics.nist.gov/cs_links/EMNIST/",),
)
FASHION_MNIST = tuple(
    RemoteFile(f"{name}-ubyte.gz", size, sha256, _ZALANDO)
    for name, size, sha256 in (
        ("train-images-idx3", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    )
)
"""Training images, training labels, held-out images, held-out labels."""
