"""CIFAR-10 and CIFAR-100 from their binary version: label bytes, then 3,072 bytes of red, green and blue."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prequential.data.download import CIFAR10, CIFAR100, RemoteFile
from prequential.data.sequence import ArraySequence
from prequential.data.sources.request import PublishedFiles, Request
from prequential.errors import PreqError
from prequential.files import reading
from prequential.scaling import INTENSITY

NUM_IMAGES, NUM_HELDOUT, NUM_PIXELS = 50_000, 10_000, 3 * 32 * 32


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which files hold a set, and how its rows are made."""

    num_classes: int
    folder: str
    train: tuple[str, ...]
    """Of the same number of images each."""
    test: str
    label_bytes: int
    """The last of them is the label."""
    remote: RemoteFile

    @property
    def files(self) -> PublishedFiles:
        """Its files, training first."""
        return PublishedFiles(
            names=(*self.train, self.test),
            folders=(self.folder, f"cifar{self.num_classes}"),
            remote=(self.remote,),
            member=f"{self.folder}/{{}}",
        )

    def read(self, request: Request) -> ArraySequence:
        """50,000 photographs of ten things, or of a hundred (the fine labels), and 10,000 held out."""
        place = self.files.found(request)
        counts = {name: NUM_IMAGES // len(self.train) for name in self.train} | {self.test: NUM_HELDOUT}
        rows = np.concatenate([self._rows(place / name, count) for name, count in counts.items()])
        images = np.ascontiguousarray(rows[:, self.label_bytes :]).reshape(-1, 3, 32, 32)
        labels = rows[:, self.label_bytes - 1].astype(np.int64)
        train, held = (images[:NUM_IMAGES], labels[:NUM_IMAGES]), (images[NUM_IMAGES:], labels[NUM_IMAGES:])
        more = {"num_classes": self.num_classes, "heldout": held, "scale": INTENSITY}
        return request.sequence(train[0], train[1], name=request.name, **more)

    def _rows(self, path: Path, num_rows: int) -> np.ndarray:
        row_size = self.label_bytes + NUM_PIXELS
        with reading(path, "; get the binary version again"):
            content = np.fromfile(path, np.uint8)
        if len(content) != num_rows * row_size:
            state = "truncated" if len(content) < num_rows * row_size else "too long"
            raise PreqError(
                f"{path} is {state}: {len(content):,} bytes, wanted {num_rows * row_size:,} ({num_rows:,} images of "
                f"{row_size:,}); get the binary version again"
            )
        return content.reshape(num_rows, row_size)


TEN = Layout(
    num_classes=10,
    folder="cifar-10-batches-bin",
    train=tuple(f"data_batch_{k}.bin" for k in range(1, 6)),
    test="test_batch.bin",
    label_bytes=1,
    remote=CIFAR10,
)
HUNDRED = Layout(
    num_classes=100, folder="cifar-100-binary", train=("train.bin",), test="test.bin", label_bytes=2, remote=CIFAR100
)
