"""Images in folders: one sub-folder per class, ImageNet's layout, and lists of files with labels."""

import csv
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from prequential.data.arrays import note_empty_class
from prequential.data.decode import EXTENSIONS
from prequential.data.images import ImageFiles, ImageReader
from prequential.data.sources.request import NotHere, PublishedFiles, Request
from prequential.errors import PreqError, PreqWarning
from prequential.files import reading

IMAGENET_FILES = PublishedFiles(
    names=("train/n[0-9]*",),
    folders=("imagenet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC", "ILSVRC", ""),
    by_hand="ImageNet (ILSVRC 2012, about 150 GB) cannot be downloaded without an account: get it from "
    "image-net.org and put train/<class>/*.JPEG and val/ into a folder 'imagenet'",
)
CLOC_FILES = PublishedFiles(
    names=("train.txt",),
    folders=("cloc", "CLOC"),
    by_hand="CLOC (39 million photographs) has no download: put train.txt (a path and a label per line, in time order) "
    "and the images into a folder 'cloc'",
)
SOLUTION = "LOC_val_solution.csv"
LISTED = re.compile(r"(.+?)\s*[,\s]\s*(\d{1,7})")
"""A line of a list: a path and a class number."""


class Labelled(NamedTuple):
    """Images below a folder, and the class of each."""

    root: Path
    paths: list[str]
    labels: list[int]


def folder(request: Request) -> ImageFiles:
    """Images whose class is the sub-folder they are in; classes are numbered in the order of their names."""
    root = request.path()
    if not root.is_dir():
        raise PreqError(f"{root} is a file; folder: takes a folder with one sub-folder per class")
    classes = class_names(root)
    place = root.resolve()
    # a name that says only which part of the data it is gets that of the folder above
    is_part = place.name.lower() in ("train", "val", "test", "images")
    name = f"{place.parent.name}/{place.name}" if is_part else place.name
    return _named(_sequence(request, name, len(classes), read_classes(root, classes)), classes)


def class_names(root: Path) -> list[str]:
    """The sub-folders, sorted: each is a class."""
    names = sorted(entry.name for entry in _entries(root) if entry.is_dir())
    if len(names) < 2:
        raise PreqError(f"{root} has {len(names)} sub-folders; folder: takes one sub-folder of images per class")
    return names


def read_classes(root: Path, classes: list[str]) -> Labelled:
    """Every image under the class folders, sorted by class and name, and its class."""
    paths: list[str] = []
    labels: list[int] = []
    ignored: list[str] = []
    for label, name in enumerate(classes):
        _require_inside(root, root / name)
        found = sorted(_files(root, root / name))
        images = [path for path in found if path.lower().endswith(EXTENSIONS)]
        ignored += [path for path in found if not path.lower().endswith(EXTENSIONS)]
        if not images:
            raise PreqError(f"the class folder {root / name} holds no JPEG, PNG or WebP image; fill or remove it")
        paths += images
        labels += [label] * len(images)
    if ignored:
        which = f"{ignored[0]}{', …' if len(ignored) > 1 else ''}"
        files, left = ("file", "is") if len(ignored) == 1 else ("files", "are")
        told = f"{len(ignored):,} {files} under {root} {left} no JPEG, PNG or WebP and {left} left out ({which})"
        warnings.warn(told, PreqWarning, stacklevel=5)
    return Labelled(root, paths, labels)


def _entries(place: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, hidden things apart."""
    with reading(place), os.scandir(place) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def _files(root: Path, place: Path) -> Iterator[str]:
    """Files under a folder, relative to the root; hidden ones are not seen."""
    for entry in _entries(place):
        if entry.is_symlink():
            _require_inside(root, Path(entry.path))
            if entry.is_dir():
                raise PreqError(f"{entry.path} is a link to a folder; copy the images, or remove it")
        if entry.is_dir():
            yield from _files(root, Path(entry.path))
        else:
            yield os.path.relpath(entry.path, root)


def _require_inside(root: Path, path: Path) -> None:
    """Refuse a link that leads out of the folder: what is coded should be what is there."""
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        raise PreqError(f"{path} is a link that leads out of {root}; copy what it points to, or remove it")


def imagenet(request: Request) -> ImageFiles:
    """ILSVRC 2012: train/<class>/*.JPEG, and val/ in class folders or flat with LOC_val_solution.csv."""
    root = IMAGENET_FILES.found(request)
    classes = class_names(root / "train")
    held = [_imagenet_heldout(root, classes)] if (root / "val").is_dir() else []
    return _named(_sequence(request, "imagenet", len(classes), read_classes(root / "train", classes), *held), classes)


def _imagenet_heldout(root: Path, classes: list[str]) -> Labelled:
    if any(entry.is_dir() for entry in _entries(root / "val")):
        return read_classes(root / "val", classes)
    solution = next((p / SOLUTION for p in (root, *list(root.parents)[:3]) if (p / SOLUTION).exists()), None)
    if solution is None:
        todo = "add it, or sort the images into class folders"
        raise PreqError(f"{root / 'val'} is flat and there is no {SOLUTION} beside {root.name}; {todo}")
    paths, labels = [], []
    with solution.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            image, name = row.get("ImageId"), (row.get("PredictionString") or "").partition(" ")[0]
            if not image or name not in classes:
                raise PreqError(f"row {number} of {solution} names no class of {root / 'train'}")
            paths.append(f"{image}.JPEG")
            labels.append(classes.index(name))
    return Labelled(root / "val", paths, labels)


def listed(request: Request) -> ImageFiles:
    """A text file: a path relative to it and a label per line."""
    path = request.path()
    return _from_lists(request, path.stem, path)


def cloc(request: Request) -> ImageFiles:
    """Images and labels in time order: train.txt, and test.txt held out."""
    root = CLOC_FILES.found(request)
    return _from_lists(request, "cloc", root / "train.txt", *root.glob("test.txt"))


def _from_lists(request: Request, name: str, *lists: Path) -> ImageFiles:
    parts = [_read_list(path) for path in lists]
    labels = [label for part in parts for label in part.labels]
    num_classes = max(2, 1 + max(labels))
    note_empty_class(min(labels), num_classes, f"the labels of {lists[0]}")
    return _sequence(request, name, num_classes, *parts)


def _read_list(path: Path) -> Labelled:
    paths, labels = [], []
    with reading(path), path.open(encoding="utf-8", errors="backslashreplace") as file:
        for number, line in enumerate(map(str.strip, file), 1):
            if found := LISTED.fullmatch(line):
                paths.append(found[1])
                labels.append(int(found[2]))
            elif line:
                raise PreqError(f"{path}: line {number} is '{line[:60]}', wanted a path and a class number")
    if not paths:
        raise PreqError(f"{path} lists no image; give a path and a label per line")
    return Labelled(path.parent, paths, labels)


def _sequence(request: Request, name: str, num_classes: int, train: Labelled, *held: Labelled) -> ImageFiles:
    """The images of a list, and those of a held-out one where there is one; all get the size of the first."""
    options = request.options
    places = (part.root / path for part in (train, *held) for path in part.paths)
    if request.unasked and any(place.exists() and not place.is_file() for place in places):
        raise NotHere(f"{request.name} holds what is no file")  # a pipe or a device may never end
    data = ImageFiles(
        **_fields(train),
        num_classes=num_classes,
        name=name,
        random_crop=options.crop != "centre",
        source=request.source,
        reader=ImageReader(options.workers),
    ).sized(options.size)
    for part in held:
        data = replace(data, heldout=replace(data, **_fields(part), name="held-out"))
    return request.ordered(data)


def _named(data: ImageFiles, classes: list[str]) -> ImageFiles:
    heldout = None if data.heldout is None else replace(data.heldout, class_names=tuple(classes))
    return replace(data, class_names=tuple(classes), heldout=heldout)


def _fields(rows: Labelled) -> dict[str, Any]:
    labels = torch.tensor(rows.labels)
    return {"root": rows.root, "paths": rows.paths, "stored_labels": labels, "order": torch.arange(len(labels))}
