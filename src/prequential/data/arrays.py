"""From the user's arrays or Dataset to a sequence, checked on the way in."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike

from prequential.data.classes_of_text import checked_names, names_of, numbered_texts, texts_of
from prequential.data.items import Keys, example_of
from prequential.data.sequence import ArraySequence
from prequential.data.tables.matrix import standardised_inputs
from prequential.errors import PreqError, PreqWarning, require_count
from prequential.scaling import Scale, parsed_scale

Arrays: TypeAlias = ArrayLike | torch.Tensor | Sequence[Any]
MOST_INFERRED = 10_000_000
"""A larger label is a number of something else, unless the number of classes is given."""


def from_arrays(
    inputs: Arrays,
    labels: Arrays | None = None,
    *,
    num_classes: int | None = None,
    heldout: tuple[Arrays, Arrays] | None = None,
    name: str = "arrays",
    source: Mapping[str, Any] | None = None,
    scale: Scale | None = None,
    standardise: str | None = None,
    class_names: Sequence[str] | None = None,
) -> ArraySequence:
    """A sequence from arrays, in the order given.

    Args:
        inputs: NumPy array or tensor of any shape, one row per example. uint8 is scaled (see `scale`); whole numbers
            of other types reach the model as they are if it takes them (tokens into an embedding), else as floats of
            the same value.
            Arrays are not copied: leave them alone while the sequence is in use.
        labels: one per row: whole numbers from 0, or text. The classes of text are numbered in the order of their
            texts, whatever the order of the rows. None for inputs whose labels are to be decoded.
        num_classes: how many classes there are. Default: the largest label plus one, or as many as there are texts.
        heldout: inputs and labels that are only evaluated at the end.
        name: what tables call it.
        source: what `load_data` would have to be asked for to give it again, if it can.
        scale: what uint8 inputs are out of: 0 to that is brought to −1 to 1; or "none", and they reach the model as
            they are. Default: 255 if one of the first 256 rows holds 128 or more; else a run is refused.
        standardise: for rows of numbers: "table", mean 0 and variance 1 over all rows; "causal", over the rows up to
            each one; or "none". Holes (NaN) then become the mean, and a further column tells where they were.
            Default: inputs are taken as they are.
        class_names: what the classes are called, in the order of their numbers. Default: the texts, where labels are.

    Example:
        >>> data = from_arrays(np.zeros((6, 3), np.float32), [0, 1, 2, 0, 1, 2])
        >>> len(data), data.num_classes, data.input_shape
        (6, 3, (3,))
        >>> from_arrays(np.zeros((3, 2)), ["oak", "ash", "oak"]).class_names
        ('ash', 'oak')
    """
    if standardise is not None:
        if scale is not None:
            raise PreqError("scale is about uint8 pictures, standardise about rows of numbers; leave one out")
        inputs, heldout, table = standardised_inputs(inputs, heldout, standardise, name)
        made = from_arrays(
            inputs, labels, num_classes=num_classes, heldout=heldout, name=name, source=source, class_names=class_names
        )
        return table(made)
    stored_inputs = _checked_inputs(inputs)
    if scale is not None:
        scale = parsed_scale(scale)
        if stored_inputs.dtype != torch.uint8:
            raise PreqError(f"scale is about uint8, and the inputs are {stored_inputs.dtype}; leave it out")
    if labels is None:
        hidden = torch.full((len(stored_inputs),), -1)
        order = torch.arange(len(hidden))
        return ArraySequence(stored_inputs, hidden, num_classes or 2, order, name=name, scale=scale)
    texts = texts_of(labels)
    if class_names is not None:
        class_names = checked_names(class_names, num_classes)
    elif texts is not None:
        class_names = checked_names(names_of(texts), num_classes)
    if class_names is not None:
        num_classes = len(class_names)
        labels = labels if texts is None else numbered_texts(texts, class_names)
    stored_labels, num_classes = _checked_labels(labels, num_classes)
    if len(stored_inputs) != len(stored_labels):
        raise PreqError(f"{len(stored_inputs)} inputs but {len(stored_labels)} labels; give one label per input")
    held = None
    if heldout is not None:
        if not isinstance(heldout, tuple | list) or len(heldout) != 2:
            raise PreqError(f"heldout must be a pair (inputs, labels), got {type(heldout).__name__}")
        if (texts_of(heldout[1]) is None) != (texts is None):
            raise PreqError("of the labels and the held-out ones, some are text and some are not; make them alike")
        held = from_arrays(*heldout, num_classes=num_classes, class_names=class_names, name=f"{name} (held-out)")
        if held.input_shape != tuple(stored_inputs.shape[1:]) or held.stored_inputs.dtype != stored_inputs.dtype:
            raise PreqError(
                f"held-out inputs are {held.stored_inputs.dtype} of shape {held.input_shape}, the others "
                f"{stored_inputs.dtype} of shape {tuple(stored_inputs.shape[1:])}; make them alike"
            )
    order = torch.arange(len(stored_labels))
    data = ArraySequence(
        stored_inputs, stored_labels, num_classes, order, name=name, heldout=held, source=source, scale=scale
    )
    return data if class_names is None else replace(data, class_names=tuple(class_names))


class MapDataset(Protocol):
    """A map-style torch Dataset: it has a length, and item i is (input, label), or a dictionary."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def from_dataset(
    dataset: MapDataset,
    *,
    num_classes: int | None = None,
    heldout: MapDataset | None = None,
    name: str | None = None,
    label: str | None = None,
    inputs: Sequence[str] | None = None,
    scale: Scale | None = None,
) -> ArraySequence:
    """A sequence from a map-style torch Dataset, or one of Hugging Face, in its own order.

    Items are (input, label), or dictionaries of them. Every item is read once, now, and kept in memory: a Dataset that
    augments at random is thereby frozen.

    Args:
        dataset: what is coded.
        num_classes: as in `from_arrays`.
        heldout: a Dataset of the same kind that is only evaluated at the end.
        name: what tables call it.
        label: of dictionaries, the key of the label. Default: the one that is called label, class, target or y.
        inputs: of dictionaries, the keys of the input. Default: all others. What is under several keys is put together
            as one vector, in this order; what is under one keeps its shape.
        scale: as in `from_arrays`.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> dataset = TensorDataset(torch.zeros(4, 1, 8, 8), torch.tensor([0, 1, 1, 0]))
        >>> from_dataset(dataset).input_shape
        (1, 8, 8)
        >>> rows = [{"height": 3.5, "width": 1.0, "class": "oak"}, {"height": 2.5, "width": 2.0, "class": "ash"}]
        >>> from_dataset(rows).inputs(np.array([0]))
        tensor([[3.5000, 1.0000]], dtype=torch.float64)
    """
    rows, labels, keys = _read_all(dataset, Keys(label, inputs))
    held = None if heldout is None else _read_all(heldout, keys)[:2]
    names = keys.class_names(dataset)
    name = name or type(dataset).__name__.lower()
    return from_arrays(rows, labels, num_classes=num_classes, heldout=held, name=name, scale=scale, class_names=names)


def _read_all(dataset: MapDataset, keys: Keys) -> tuple[torch.Tensor, list[Any], Keys]:
    """All inputs and labels, and the keys that the first item has them under."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        kind = type(dataset).__name__
        raise PreqError(f"from_dataset needs a map-style Dataset (with __len__ and __getitem__), got {kind}")
    inputs: list[torch.Tensor] = []
    labels: list[Any] = []
    for index in range(len(dataset)):
        given, label, keys = example_of(dataset[index], index, keys)
        value = _as_tensor(f"the input of item {index}", given)
        if inputs and (value.shape != inputs[0].shape or value.dtype != inputs[0].dtype):
            raise PreqError(
                f"item {index} of the Dataset is {value.dtype} of shape {tuple(value.shape)}, item 0 is "
                f"{inputs[0].dtype} of shape {tuple(inputs[0].shape)}; resize or convert them alike"
            )
        inputs.append(value)
        labels.append(label)
    if not inputs:
        raise PreqError("the Dataset is empty; give at least one example")
    return torch.stack(inputs), labels, keys


def _as_tensor(what: str, values: Arrays) -> torch.Tensor:
    if isinstance(values, torch.Tensor):
        return values.detach().cpu()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise PreqError(f"{what} must form one array: {error}; make the rows alike") from None
    if array.dtype.kind not in "buif":
        raise PreqError(f"{what} must be numbers, got {array.dtype}; convert them first")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        contiguous = np.ascontiguousarray(array)
        return torch.from_numpy(contiguous if contiguous.flags.writeable else contiguous.copy())
    except TypeError:
        raise PreqError(f"{what} of type {array.dtype} are not supported; convert to float32 or int64") from None


def _checked_inputs(inputs: Arrays) -> torch.Tensor:
    tensor = _as_tensor("inputs", inputs)
    if tensor.dim() == 0 or len(tensor) == 0:
        raise PreqError(f"the data is empty: inputs have shape {tuple(tensor.shape)}; give at least one example")
    if tensor.is_complex():
        raise PreqError(f"inputs must be real numbers, got {tensor.dtype}")
    if tensor.is_floating_point():
        for start in range(0, len(tensor), 4096):
            finite = torch.isfinite(tensor[start : start + 4096].to(torch.float32))
            finite = finite.reshape(len(finite), -1).all(1)
            if not finite.all():
                position = start + int((~finite).nonzero()[0])
                raise PreqError(f"inputs must be finite, example {position} holds NaN or infinity; remove or fill it")
    return tensor


def _checked_labels(labels: Arrays, num_classes: int | None) -> tuple[torch.Tensor, int]:
    """Whole numbers below the number of classes, which is the least possible where it is not given."""
    tensor = _as_tensor("labels", labels)
    if tensor.dim() != 1:
        raise PreqError(f"labels must be one whole number per example, got shape {tuple(tensor.shape)}")
    if tensor.is_floating_point() or tensor.is_complex():
        raise PreqError(f"labels must be whole numbers, got {tensor.dtype}; convert with labels.astype(int)")
    given, values = num_classes, tensor.numpy()  # torch compares no uint64
    least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if num_classes is None:
        if most >= MOST_INFERRED:
            raise PreqError(
                f"labels go up to {most}, got no num_classes, and {most + 1} are more than anyone means; "
                "renumber the classes 0, 1, 2, …, as np.unique(labels, return_inverse=True)[1] does, or set num_classes"
            )
        num_classes = max(most + 1, 2)
    require_count("num_classes", num_classes, at_least=2)
    if least < 0 or most >= num_classes:
        position = int((values < 0 if least < 0 else values >= num_classes).argmax())
        todo = "subtract 1 if they count from 1," if (least, most) == (1, num_classes) else "renumber the classes"
        raise PreqError(
            f"labels must be in 0 … {num_classes - 1} ({num_classes} classes), got {values[position]} at "
            f"position {position}; {todo} or set num_classes"
        )
    if given is None:
        note_empty_class(least, num_classes, "labels", ", or set num_classes")
    return tensor.to(torch.int64), num_classes


def note_empty_class(least: int, num_classes: int, what: str, todo: str = "") -> None:
    """Say so where labels begin above 0; `todo` adds to what can be done."""
    if least > 0:
        told = f"{what} begin at {least}: class 0 of {num_classes} never occurs, and is paid for by every label"
        warnings.warn(f"{told}; subtract {least} if they count from there{todo}", PreqWarning, stacklevel=4)
