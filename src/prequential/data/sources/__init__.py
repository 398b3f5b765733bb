"""Data sets by name, and the user's own by path. Only here are files parsed or downloaded.

To add one, write a function from a `Request` to a sequence and list it in SOURCES.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prequential.data.mapped import open_prepared
from prequential.data.options import DataOptions
from prequential.data.sequence import LoadedSequence
from prequential.data.sources import archives, cifar, folders, hub, mnist, tables
from prequential.data.sources.request import PublishedFiles, Request
from prequential.errors import PreqError, unknown_name, whole_seed
from prequential.scaling import parsed_scale

ORDERS = ("shuffled", "given")
IMAGES = ("size", "crop", "workers", "skip_broken")
TABLE = ("label", "standardise")
COLUMNS = (*TABLE, "max_unpacked", "drop", "columns", "heldout", "time", "schema")


@dataclass(frozen=True)
class Source:
    """Data that can be asked for by name, or by prefix and path."""

    name: str
    """With a colon at its end where a path or a variant follows."""
    description: str
    read: Callable[[Request], LoadedSequence]
    files: PublishedFiles | None = None
    """Where its files are, and what is downloaded where they are not; None for the user's own."""
    options: tuple[str, ...] = ()
    """The options it understands."""
    variants: tuple[str, ...] = ()
    """What may stand behind the name and a colon."""
    order: str = "shuffled"
    """The order where none is asked for; "given" for streams."""


def load(
    name: str,
    *,
    order: str | None = None,
    order_seed: int | None = None,
    data_dir: str | Path | None = None,
    num_labels: int | None = None,
    **options: Any,
) -> LoadedSequence:
    """The data of that name: a data set (see `preq data`), or `folder:`, `table:`, `npz:`, `hf:`, … and a path.

    Args:
        order: "shuffled" (the default) or "given" (for streams; the default for those known to be one).
        order_seed: the seed of the shuffle. Default: 0.
        data_dir: a directory that holds the publisher's files; searched first.
            Default: the environment variable PREQ_DATA.
        num_labels: only the first so many labels, given all inputs; see `with_num_labels`. Default: all.
        options: see `DataOptions`: label, drop, array, standardise, scale, size, crop, workers, skip_broken, …

    Example:
        >>> data = load("mnist")
        >>> len(data), data.num_classes, data.input_shape, len(data.heldout)
        (60000, 10, (1, 28, 28), 10000)
    """
    return completed(open_source(name, order, order_seed, data_dir, options), {**options, "num_labels": num_labels})


def completed(data: LoadedSequence, options: Mapping[str, Any]) -> LoadedSequence:
    """What `load` gives, from what `open_source` does: broken examples left out before labels are counted."""
    data = data.without_broken() if options.get("skip_broken") else data
    return data if options.get("num_labels") is None else data.with_num_labels(options["num_labels"])


def open_source(
    name: str,
    order: str | None,
    order_seed: int | None,
    data_dir: str | Path | None,
    options: Mapping[str, Any],
    *,
    unasked: bool = False,
) -> LoadedSequence:
    """What `load` gives, before broken examples are looked for.

    Args:
        unasked: a file names the data and no person does; see `Request.unasked`.
    """
    if not isinstance(name, str):
        raise PreqError(f"data is asked for by name, such as 'mnist' or 'table:flights.csv', got {name}")
    source, argument = find_source(name)
    if unknown := set(options) - set(DataOptions.__dataclass_fields__):
        raise unknown_name("data option", min(unknown), DataOptions.__dataclass_fields__)
    chosen = DataOptions(**options)
    for option in chosen.asked():
        if option not in source.options:
            owners = ", ".join(each.name for each in SOURCES.values() if option in each.options)
            raise PreqError(f"{option} has no meaning for {name}; it belongs to {owners}")
    if order is not None and order not in ORDERS:
        raise unknown_name("order", order, ORDERS)
    if order == "given" and order_seed is not None:
        raise PreqError(f"order 'given' has no seed, got order_seed {order_seed}; leave one of them out")
    shuffled = (order or ("shuffled" if order_seed is not None else source.order)) == "shuffled"
    seed = whole_seed("the order seed", 0 if order_seed is None else order_seed) if shuffled else None
    asked, place = order is not None or order_seed is not None, user_directory(data_dir)
    named = Request(name=name, argument=argument, directory=place, unasked=unasked)
    return source.read(replace(named, order_seed=seed, order_asked=asked, options=chosen))


def find_source(name: str) -> tuple["Source", str]:
    """The source of a name, and what stands behind its colon.

    Example:
        >>> find_source("csv:elec.csv")[1]
        'elec.csv'
    """
    prefix, colon, argument = name.partition(":")
    source = SOURCES.get(prefix + colon) or SOURCES.get(prefix)
    if source is not None and colon and not source.name.endswith(":") and argument not in source.variants:
        variants = f"; it has: {', '.join(f'{prefix}:{v}' for v in source.variants)}" if source.variants else ""
        raise PreqError(f"'{prefix}' has no variant '{argument}'{variants or '; leave the colon out'}")
    if source is None:
        raise unknown_name("data set", name, [key if key[-1] != ":" else f"{key}PATH" for key in SOURCES])
    return source, argument


def _prepared(request: Request) -> LoadedSequence:
    data = open_prepared(request.path())
    if request.order_asked and request.order_seed != data.order_seed:
        has = "the given order" if data.order_seed is None else f"order seed {data.order_seed}"
        raise PreqError(f"{request.name} was prepared in {has}, and stays in it; leave --order and --order-seed out")
    if request.options.scale is None:
        return data
    scale, dtype = parsed_scale(request.options.scale), np.dtype(data.index.dtype)
    if dtype != np.uint8 or data.scale not in (None, scale):
        what = f"holds {dtype.name} inputs" if dtype != np.uint8 else f"was prepared with the scale {data.scale}"
        raise PreqError(f"{request.name} {what}, got --scale {scale}; leave it out")
    return replace(data, scale=scale, source={**(data.source or {}), "scale": scale})


def user_directory(data_dir: str | Path | None) -> Path | None:
    """The directory named by the user, or by PREQ_DATA; it must exist."""
    named = data_dir or os.environ.get("PREQ_DATA")
    if not named:
        return None
    if not isinstance(named, str | os.PathLike):
        raise PreqError(f"the data directory must be a path, got {named}")
    path = Path(named)
    if not path.is_dir():
        raise PreqError(f"the data directory {path} is not there; check --data-dir or PREQ_DATA")
    return path


_SOURCES = (
    Source("mnist", "60,000 handwritten digits, 28×28 grey, 10 classes", mnist.mnist, mnist.MNIST_FILES),
    Source("fashion-mnist", "60,000 pieces of clothing, 28×28 grey, 10 classes", mnist.fashion, mnist.FASHION_FILES),
    *(
        Source(f"emnist-{split}", about, mnist.emnist, mnist.emnist_files(split))
        for split, (_, about) in mnist.SPLITS.items()
    ),
    Source(
        "rgb-mnist", "three MNIST digits as red, green and blue; the label is the red one's; also rgb-mnist:RG and :R",
        mnist.rgb_mnist, mnist.MNIST_FILES, options=("examples", "data_seed"), variants=mnist.CONDITIONINGS,
    ),
    *(
        Source(f"cifar{n}", f"50,000 photographs, 32×32 colour, {n} classes", layout.read, layout.files)
        for n, layout in ((10, cifar.TEN), (100, cifar.HUNDRED))
    ),
    Source(
        "imagenet", "1,281,167 photographs of any size, 1,000 classes (ILSVRC 2012)",
        folders.imagenet, folders.IMAGENET_FILES, options=IMAGES,
    ),
    Source(
        "cloc", "images listed in time order, with labels (train.txt, and test.txt held out)",
        folders.cloc, folders.CLOC_FILES, options=IMAGES, order="given",
    ),
    Source("folder:", "images in one sub-folder per class (JPEG, PNG, WebP)", folders.folder, options=IMAGES),
    Source("list:", "a text file of image paths and labels, one pair per line", folders.listed, options=IMAGES),
    Source(
        "table:", "a table, one column of which is the label (csv, tsv, gzipped or not; Parquet)",
        tables.file, options=COLUMNS,
    ),
    Source("csv:", "another name for table:", tables.file, options=COLUMNS),
    Source("npz:", "NumPy arrays: inputs and labels", archives.npz, options=(*TABLE, "array", "scale", "max_unpacked")),
    Source(
        "hf:", "a Hugging Face data set, by name or saved to disk", hub.hub,
        options=(*TABLE, "scale", "size", "crop", "skip_broken"),
    ),
    Source("prepared:", "what preq data prepare has written", _prepared, options=("scale",)),
)  # fmt: skip
SOURCES = {source.name: source for source in _SOURCES}

load_data = load
"""What the package as a whole calls it, which loads records too."""
