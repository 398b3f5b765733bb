"""NumPy archives: inputs and labels as arrays."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from prequential.data.sequence import ArraySequence
from prequential.data.sources.request import Request
from prequential.data.sources.tables import Rows, class_names, table, with_numbers
from prequential.errors import PreqError, unknown_name
from prequential.files import reading

USUAL_ARRAYS = (
    *(("x_train", "y_train"), ("inputs", "labels"), ("images", "labels")),
    *(("x", "y"), ("X", "y"), ("data", "target")),
)


def npz(request: Request) -> ArraySequence:
    """Arrays of inputs and labels; those of x_test and y_test are held out. Images are recognised by shape and type."""
    path = request.path()
    with reading(path), path.open("rb") as file, _opened(path, file) as arrays:
        arrays_named = [_array_names(path, arrays, request)]
        if arrays_named[0][0] == "x_train" and {"x_test", "y_test"} <= set(arrays.files):
            arrays_named.append(("x_test", "y_test"))
        rows = [
            Rows(_array(path, arrays, inputs), _array(path, arrays, labels), f"'{labels}' of {path}")
            for inputs, labels in arrays_named
        ]
    train, heldout = rows[0], rows[1] if len(rows) > 1 else None
    (inputs, labels), *held = with_numbers(train, heldout)
    if inputs.ndim == 0 or len(inputs) != len(labels):
        raise PreqError(
            f"{path}: '{arrays_named[0][0]}' has shape {inputs.shape}, '{arrays_named[0][1]}' {len(labels)} labels"
        )
    if inputs.dtype != np.uint8 and inputs.ndim == 2:
        return table(request, path.stem, train, heldout)
    if request.options.standardise not in (None, "none"):
        raise PreqError(f"{path} holds images, not a table; leave --standardise out")
    held_images = (_as_images(held[0][0]), held[0][1]) if held else None
    names = class_names(train.labels)
    return request.sequence(_as_images(inputs), labels, heldout=held_images, class_names=names, name=path.stem)


def holds_table(name: str, directory: Path | None, array: str | None) -> bool:
    """Whether the inputs of an archive are rows of numbers, by their header alone; False where it cannot be read."""
    try:
        path = Request(name=name, argument=name.partition(":")[2], directory=directory).path()
        with zipfile.ZipFile(path) as archive:
            members = {Path(each).stem: each for each in archive.namelist()}
            usual = [array] if array is not None else [inputs for inputs, _ in USUAL_ARRAYS]
            with archive.open(members[next(each for each in usual if each in members)]) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, kind = read(file)
    except (PreqError, OSError, ValueError, EOFError, KeyError, StopIteration, zipfile.BadZipFile):
        return False  # reading it will say why
    return len(shape) == 2 and kind != np.uint8


def _as_images(values: NDArray[Any]) -> NDArray[Any]:
    """Channels first: (n, height, width) gets one, (n, height, width, 1 … 4) is turned."""
    if values.dtype == np.uint8 and values.ndim == 3:
        return values[:, None]
    is_last = values.ndim == 4 and values.shape[-1] in (1, 3, 4) and values.shape[1] not in (1, 3)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2)) if values.dtype == np.uint8 and is_last else values


def _opened(path: Path, file: IO[bytes]) -> Any:
    try:
        opened = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = "it is empty" if not path.stat().st_size else str(error).splitlines()[0]
        raise PreqError(f"{path} cannot be read as .npz: {reason}") from None
    if not isinstance(opened, np.lib.npyio.NpzFile):
        raise PreqError(f"{path} is a single array; npz: takes an archive with inputs and labels (np.savez)")
    return opened


def _array(path: Path, arrays: Any, name: str) -> NDArray[Any]:
    try:
        values: NDArray[Any] = arrays[name]
    except ValueError as error:
        reason = "it holds pickled objects, which are never loaded" if "pickle" in str(error) else str(error)
        raise PreqError(f"{path}: array '{name}' cannot be read: {reason}; save plain numbers") from None
    except (OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise PreqError(f"{path}: array '{name}' is damaged ({error})") from None
    return values


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
