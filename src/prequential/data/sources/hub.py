"""Hugging Face data sets, by name or saved to disk: tables, vectors and images. Needs the extra `hf`."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.decode import BrokenImage, strict_pillow
from prequential.data.images import ImageFiles
from prequential.data.sequence import LoadedSequence
from prequential.data.sources.numbering import numbered
from prequential.data.sources.request import NotHere, Request
from prequential.data.sources.vectors import class_numbers, column_of, index_of, inputs_of, is_table, vectors
from prequential.data.tables.roles import label_column
from prequential.data.views import Broken, content_of
from prequential.data.workers import Decoded
from prequential.errors import PreqError, PreqWarning

HELDOUT_SPLITS = ("test", "validation", "valid")


def hub(request: Request) -> LoadedSequence:
    """The train split of a data set, its test (or validation) split held out where it is one of images."""
    train, heldout, name = _open(request)
    images, label = _roles(train, name, request.options.label)
    for option in ("standardise", "scale") if images else ("size", "crop", "skip_broken"):
        if option in request.options.asked():
            what = "holds images" if images else "is a table"
            raise PreqError(f"{option} has no meaning for {name}, which {what}")
    if not images:
        if index := index_of(train, label):
            for column in index:
                numbers = f"column '{column}' of {name} numbers the rows of a data frame and is no input"
                warnings.warn(f"{numbers}; rename it if it should be one", PreqWarning, stacklevel=2)
            train = train.remove_columns(index)
        is_alike = heldout is not None and set(train.column_names) <= set(heldout.column_names)
        return vectors(request, name, label, train, heldout.select_columns(train.column_names) if is_alike else None)
    if len(images) > 1:
        raise PreqError(f"{name} has {len(images)} columns of images ({', '.join(images)}); keep one")
    data = _images(request, train, images[0], label, name).sized(request.options.size)
    if heldout is not None:
        held = _images(request, heldout, images[0], label, "held-out", known=column_of(train, label))
        data = replace(data, heldout=replace(held, size=data.size))
    return request.ordered(data)


def holds_table(name: str, directory: Path | None, label: str | None, standardise: str | None) -> bool:
    """Whether the inputs of a data set are a table, by its first row; False where it cannot be read."""
    try:
        train, _, called = _open(Request(name=name, argument=name.partition(":")[2], directory=directory))
        images, label = _roles(train, called, label)
        few = train.select(range(min(len(train), 1)))
        few = few if images else few.remove_columns(index_of(few, label))
        return not images and len(few) > 0 and is_table(inputs_of(few, label, called), standardise)
    except PreqError:
        return False  # reading it will say why


def _roles(train: Any, name: str, label: str | None) -> tuple[list[str], str]:
    """The columns of images, and that of labels."""
    kinds = {column: type(feature).__name__ for column, feature in train.features.items()}
    images, classes = ([column for column in kinds if kinds[column] == kind] for kind in ("Image", "ClassLabel"))
    return images, label_column(name, train.features, label, classes)


def _open(request: Request) -> tuple[Any, Any, str]:
    """Train split, held-out split or None, and a name."""
    try:
        import datasets
    except ImportError:
        raise PreqError("hf: needs the datasets package; install prequential[hf]") from None
    argument = request.argument
    if not argument:
        raise PreqError("'hf:' names no data set; write hf:NAME or hf:FOLDER")
    try:
        nearby = [Path(argument), *([request.directory / argument] if request.directory is not None else [])]
        folder = next((path for path in nearby if path.is_dir()), None)
        if folder is None and request.unasked:
            raise NotHere(f"'{argument}' is no folder here, and the Hub is not asked unless a person does")
        opened = datasets.load_dataset(argument) if folder is None else datasets.load_from_disk(str(folder))
    except NotHere:
        raise
    except Exception as error:  # the library raises many kinds
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        raise PreqError(f"the Hugging Face data set '{argument}' cannot be opened ({reason})") from None
    name = Path(argument).name
    if not isinstance(opened, datasets.DatasetDict):
        return opened, None, name
    if "train" not in opened:
        raise PreqError(f"'{argument}' has no train split; it has: {', '.join(opened)}")
    held = next((opened[split] for split in HELDOUT_SPLITS if split in opened), None)
    return opened["train"], held, name


def _images(
    request: Request, rows: Any, column: str, label: str, name: str, known: NDArray[Any] | None = None
) -> "HubImages":
    import datasets

    feature, what = rows.features[label], f"column '{label}' of {name}"
    values, names = class_numbers(column_of(rows, label), what, known)
    is_class = type(feature).__name__ == "ClassLabel"
    classes = known
    if names is not None:
        classes = np.arange(len(names))
    labels = values.astype(np.int64) if is_class else numbered(values, what, classes)
    num_classes = feature.num_classes if is_class else len(np.unique(values if classes is None else classes))
    if labels.min() < 0:
        raise PreqError(f"{name}: row {int(labels.argmin()) + 1} has no label; this split cannot be coded")
    if labels.max() >= num_classes:
        where = f"row {int(labels.argmax()) + 1} has the class {labels.max()}"
        raise PreqError(f"{name}: {where}, and its column names {num_classes} classes; mend the data set")
    encoded = rows.cast_column(column, datasets.Image(decode=False)).with_format(None)
    return HubImages(
        root=Path(),
        paths=[],
        stored_labels=torch.from_numpy(labels),
        num_classes=num_classes,
        class_names=tuple(feature.names) if is_class else names,
        order=torch.arange(len(rows)),
        name=name,
        random_crop=request.options.crop != "centre",
        source=request.source,
        table=encoded,
        column=column,
    )


@dataclass(frozen=True, eq=False, repr=False)
class HubImages(ImageFiles):
    """Images inside an Arrow table; threads decode them."""

    table: Any = None
    column: str = ""

    def content(self, row: int) -> bytes:
        """The encoded image of a row."""
        cell = self.table[row][self.column]
        if cell is None or (cell.get("bytes") is None and not cell.get("path")):
            raise BrokenImage(self.describe(row), "there is none")
        return content_of(cell["path"]) if cell.get("bytes") is None else bytes(cell["bytes"])

    def describe(self, row: int) -> str:
        return f"row {row} of '{self.name}'"

    def read(self, positions: NDArray[np.int64], key: int | None = None) -> Decoded:
        rows, views = self.rows(positions).tolist(), self._views(positions, key)
        images = np.zeros((len(rows), *self.input_shape), np.uint8)

        def decode(number: int) -> Broken:
            try:
                images[number] = views[number].decode(self.content(rows[number]))
            except BrokenImage as error:
                return [(number, error.reason)]
            return []

        with strict_pillow(), ThreadPoolExecutor(4) as threads:
            return images, list(chain.from_iterable(threads.map(decode, range(len(rows)))))

    def read_ahead(self, reads: Any) -> None:
        """Nothing to do: the rows lie in a mapped file."""
