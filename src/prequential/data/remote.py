"""The publishers' files: where they are, how long, and their SHA-256. Data only; `download` fetches them. No torch."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from prequential.errors import PreqError, require_count


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file as its publisher gives it out.

    Example:
        >>> CIFAR10.name, CIFAR10.size
        ('cifar-10-binary.tar.gz', 170052171)
        >>> RemoteFile(name="../x", urls=("https://example.org/x",), size=1, sha256="0" * 64)
        Traceback (most recent call last):
        prequential.errors.PreqError: a file's name must be a plain relative path, got '../x'
    """

    name: str
    """The publisher's name for it; a folder stands before one that says too little."""
    urls: tuple[str, ...]
    """Addresses, tried in this order."""
    size: int
    """Bytes."""
    sha256: str
    """Of the whole file, 64 hexadecimal digits."""

    def __post_init__(self) -> None:
        if not is_plain(self.name):
            raise PreqError(f"a file's name must be a plain relative path, got '{self.name}'")
        if not self.urls:
            raise PreqError(f"{self.name} needs at least one address")
        for url in self.urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise PreqError(f"an address must begin with http:// or https:// and name a host, got '{url}'")
        require_count("size", self.size)
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise PreqError(f"a SHA-256 is 64 hexadecimal digits in lower case, got '{self.sha256}'")


def is_plain(name: str) -> bool:
    """Whether a relative path stays below the directory it is put into.

    Example:
        >>> [is_plain(name) for name in ("train.bin", "emnist/gzip.zip", "/etc/passwd", "a/../../b", "a//b", "")]
        [True, True, False, False, False, False]
    """
    steps = name.split("/")
    return all(step not in ("", ".", "..") for step in steps) and not any(odd in name for odd in ("\\", "\0", ":"))


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


def _fashion(name: str, size: int, sha256: str) -> RemoteFile:
    return RemoteFile(
        name=name,
        urls=(
            f"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/{name}",
            f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}",
        ),
        size=size,
        sha256=sha256,
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
