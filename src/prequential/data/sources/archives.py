"""NumPy archives: inputs and labels as arrays."""

import math
import re
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.classes_of_text import names_of_values
from prequential.data.packed import most_unpacked, too_large
from prequential.data.sequence import ArraySequence
from prequential.data.sources.request import Request
from prequential.data.sources.tables import Rows, table, with_numbers
from prequential.errors import PreqError, in_one_line, unknown_name
from prequential.files import bytes_of, reading

USUAL_ARRAYS = (
    *(("x_train", "y_train"), ("inputs", "labels"), ("images", "labels")),
    *(("x", "y"), ("X", "y"), ("data", "target")),
)

NPY_MAGIC = b"\x93NUMPY"
ARRAY_HEADER = re.compile(
    rb"\{'descr': (?:'(?P<type>[<>|=]?(?P<kind>[a-zA-Z?])[^']{0,40})'|(?P<fields>\[.*\])), "
    rb"'fortran_order': (?P<order>True|False), 'shape': \((?P<shape>[\d, ]{0,200})\), ?\} *\n?"
)
MOST_HEADER = 1 << 16
MOST_ENDING = (1 << 16) + 22
"""Bytes that the end of an archive has at most."""


def npz(request: Request) -> ArraySequence:
    """Arrays of inputs and labels; those of x_test and y_test are held out. Images are recognised by shape and type."""
    path = request.path()
    with reading(path), path.open("rb") as file:
        arrays = Archive(path, file, request.max_unpacked)
        names = [_array_names(path, arrays, request)]
        if names[0][0] == "x_train" and {"x_test", "y_test"} <= set(arrays.files):
            names.append(("x_test", "y_test"))
        rows = [Rows(arrays[inputs], arrays[labels], f"'{labels}' of {path}") for inputs, labels in names]
    train, heldout = rows[0], rows[1] if len(rows) > 1 else None
    (inputs, labels), *held = with_numbers(train, heldout)
    if inputs.ndim == 0 or len(inputs) != len(labels):
        raise PreqError(f"{path}: '{names[0][0]}' has shape {inputs.shape}, '{names[0][1]}' {len(labels)} labels")
    if request.options.scale is not None and inputs.dtype != np.uint8:
        raise PreqError(f"--scale is about uint8, and '{names[0][0]}' of {path} is {inputs.dtype}; leave it out")
    if inputs.dtype != np.uint8 and inputs.ndim == 2:
        return table(request, path.stem, train, heldout)
    if request.options.standardise not in (None, "none"):
        raise PreqError(f"{path} holds images, not a table; leave --standardise out")
    held_images = (as_images(held[0][0]), held[0][1]) if held else None
    more = {"scale": request.options.scale, "class_names": names_of_values(train.labels)}
    return request.sequence(as_images(inputs), labels, heldout=held_images, name=path.stem, **more)


def holds_table(name: str, directory: Path | None, array: str | None) -> bool:
    """Whether the inputs of an archive are rows of numbers, by their header alone; False where it cannot be read."""
    try:
        path = Request(name=name, argument=name.partition(":")[2], directory=directory).path()
        with reading(path), path.open("rb") as file:
            archive = Archive(path, file)
            usual = [inputs for inputs, _ in USUAL_ARRAYS] if array is None else [array]
            found = next((each for each in usual if each in archive.files), None)
            dtype, shape = (None, ()) if found is None else archive.kind_of(found)
    except PreqError:
        return False  # reading it will say why
    return len(shape) == 2 and dtype != np.uint8


def as_images(values: NDArray[Any]) -> NDArray[Any]:
    """Channels first: (n, height, width) gets one, (n, height, width, 1 … 4) is turned."""
    if values.dtype == np.uint8 and values.ndim == 3:
        return values[:, None]
    is_last = values.ndim == 4 and values.shape[-1] in (1, 3, 4) and values.shape[1] not in (1, 3)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2)) if values.dtype == np.uint8 and is_last else values


class Archive:
    """The arrays in an open .npz file; what each holds is matched and sized before memory is given to it.

    Raises:
        PreqError: for a file that is no archive of plain numbers, or holds one array twice.
    """

    def __init__(self, path: Path, file: IO[bytes], max_unpacked: float | None = None) -> None:
        self._path, self._max_unpacked = path, max_unpacked
        try:
            if file.read(6) == NPY_MAGIC:
                raise PreqError(f"{path} is a single array; npz: takes an archive with inputs and labels (np.savez)")
            self._zip = zipfile.ZipFile(file)
            self._members = {info.filename.removesuffix(".npy"): info for info in self._zip.infolist()}
            if not _is_whole(file, len(self._zip.infolist())):
                raise PreqError(f"{path} is damaged: its list of arrays is not as long as it says")
            if len(self._members) < len(self._zip.infolist()):
                raise PreqError(f"{path} holds two arrays of one name; save it again")
            for info in self._members.values():  # a name is written twice, and damage to one is noticed here
                self._zip.open(info).close()
        except PreqError:
            raise
        except Exception as error:  # a foreign file fails in many ways
            reason = in_one_line(error).partition(": ")[2] if path.stat().st_size else "it is empty"
            raise PreqError(f"{path} cannot be read as .npz: {reason}") from None

    @property
    def files(self) -> list[str]:
        """The names of the arrays."""
        return list(self._members)

    def kind_of(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The type and the shape of an array, by its header."""
        what = f"{self._path}: array '{name}'"
        try:
            with self._zip.open(self._members[name]) as file:
                return _matched(file, what)[:2]
        except PreqError:
            raise
        except Exception as error:
            raise PreqError(f"{what} is damaged ({in_one_line(error)})") from None

    def __getitem__(self, name: str) -> NDArray[Any]:
        info, what = self._members[name], f"{self._path}: array '{name}'"
        is_packed, most = (
            info.compress_type != zipfile.ZIP_STORED,
            most_unpacked(info.compress_size, self._max_unpacked),
        )
        if is_packed and info.file_size > most:
            raise too_large(what, info.compress_size, most, info.file_size)
        try:
            with self._zip.open(info) as file:
                dtype, shape, in_columns, start = _matched(file, what)
                if start + math.prod(shape) * dtype.itemsize != info.file_size:
                    raise PreqError(f"{what} is damaged: its header says {shape} of {dtype}, its size is another")
                values = np.empty(math.prod(shape), dtype)
                content = bytes_of(values)
                while len(content):
                    piece = file.read(min(len(content), 1 << 24))
                    if not piece:
                        raise PreqError(f"{what} is damaged: it ends too early")
                    content[: len(piece)] = piece
                    content = content[len(piece) :]
        except PreqError:
            raise
        except Exception as error:
            raise PreqError(f"{what} is damaged ({in_one_line(error)})") from None
        ordered = values.reshape(shape, order="F" if in_columns else "C")
        return ordered.astype(dtype.newbyteorder("="), copy=False)


def _is_whole(file: IO[bytes], num_members: int) -> bool:
    """Whether an archive has as many members as its end says; damage inside the list can hide some of them."""
    size = file.seek(0, 2)
    file.seek(max(0, size - MOST_ENDING))
    _, found, ending = file.read().rpartition(b"PK\x05\x06")
    said = int.from_bytes(ending[6:8], "little")
    return not found or said in (num_members, 0xFFFF)  # which stands for more than fit there


def _matched(file: IO[bytes], what: str) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """The type, the shape, the order and the size of the header of an array; it is matched, never evaluated."""
    start = file.read(8)
    wide = 2 if start[6:7] == b"\x01" else 4
    size = file.read(wide)
    text = file.read(min(int.from_bytes(size, "little"), MOST_HEADER))
    found = ARRAY_HEADER.fullmatch(text)
    if not start.startswith(NPY_MAGIC) or found is None:
        raise PreqError(f"{what} cannot be read: it is no array of plain numbers")
    if found["kind"] in (b"O", b"V") or found["fields"]:
        raise PreqError(f"{what} cannot be read: it holds pickled objects, which are never loaded; save plain numbers")
    shape = tuple(int(size) for size in found["shape"].replace(b",", b" ").split())
    return np.dtype(found["type"].decode()), shape, found["order"] == b"True", 8 + wide + len(text)


def _array_names(path: Path, arrays: Any, request: Request) -> tuple[str, str]:
    inputs, labels, names = request.options.array, request.options.label, list(arrays.files)
    for wanted in (inputs, labels):
        if wanted is not None and wanted not in names:
            raise unknown_name(f"array of {path}", wanted, names)
    for usual_inputs, usual_labels in USUAL_ARRAYS:
        if {inputs or usual_inputs, labels or usual_labels} <= set(names):
            return inputs or usual_inputs, labels or usual_labels
    if labels is not None and inputs is None and len(names) == 2:
        return next(name for name in names if name != labels), labels
    raise PreqError(
        f"which arrays of {path} are inputs and labels? give --array and --label; it has: {', '.join(names[:40])}"
    )
